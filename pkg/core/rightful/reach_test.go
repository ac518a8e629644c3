/*
Copyright 2026 The koord-jobqueue Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package rightful

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Pods outside of units stay, so no other quota has a right to their use. Then the pods of b turn out to be of a unit.
func TestPodsThatAreOfAUnitAfterAll(t *testing.T) {
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	pods := ledger.New()
	tree := capacity.NewTree(pods)
	tree.Set(capacity.Quota{Name: "root", Limit: cpu(30), Used: cpu(10)})
	for name, used := range map[string]int64{"a": 0, "b": 10} {
		tree.Set(capacity.Quota{Name: name, Parent: "root", Shared: true, Limit: cpu(15), Min: cpu(4), Used: cpu(used)})
	}
	tree.Refresh()
	book, a := New(tree), tree.Route("a").Levels[0]
	require.EqualValues(t, 20, book.Rightful(a, 0))
	pods.SetPod("unit", ledger.Pod{UID: "p", Level: "b", Request: cpu(10)}, true)
	require.EqualValues(t, 26, book.Rightful(a, 0))
	pods.DeletePod("unit", "p")
	require.EqualValues(t, 20, book.Rightful(a, 0))
}

func TestNoPartOfManyIsLost(t *testing.T) {
	for _, part := range []int{0, 1, lastBit - 1, lastBit, lastBit + 1, 1000} {
		s := set(0).with(part)
		require.NotZero(t, s, "part %d", part)
		require.True(t, s.has(part), "part %d", part)
		require.Equal(t, part == 0, s.has(0), "part %d", part)
	}
}
