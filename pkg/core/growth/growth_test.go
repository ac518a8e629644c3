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

package growth

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

// Pods still to come are as many as the object of a unit that holds quota says, until a smaller number is written.
func TestExpected(t *testing.T) {
	u := &unit.Unit{Stated: unit.Stated{HeldPods: 4}, Expected: unit.Expected{Pods: 2, Each: cpu(1)}}
	require.Equal(t, int64(4), Expected(u, true).Pods)
	require.Equal(t, int64(2), Expected(u, false).Pods, "it waits")
	u.HeldPods = 1
	require.Equal(t, int64(2), Expected(u, true).Pods)
	u.Expected.Pods = 0
	require.Zero(t, Expected(u, true).Pods, "nothing bounds it")
}

// Units wait alike for growths that need the same, lead to the same, and that checks answered for alike.
func TestGrowthsAreTheSame(t *testing.T) {
	g := Growth{Need: cpu(2), Total: cpu(6), Pods: 6}
	for name, c := range map[string]struct {
		other Growth
		same  bool
	}{
		"equal":            {Growth{Need: cpu(2), Total: cpu(6), Pods: 6}, true},
		"for other pods":   {Growth{Need: cpu(2), Total: cpu(6), Pods: 3}, true},
		"another need":     {Growth{Need: cpu(1), Total: cpu(6), Pods: 6}, false},
		"another total":    {Growth{Need: cpu(2), Total: cpu(5), Pods: 6}, false},
		"not answered for": {Growth{Need: cpu(2), Total: cpu(6), Pods: 6, Unchecked: true}, false},
	} {
		require.Equal(t, c.same, g.Same(&c.other), name)
	}
}
