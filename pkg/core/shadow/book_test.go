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

package shadow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

// frees sums what would be free of the limits and of the mins of levels, in cpu and in jobs.
func frees(t *testing.T, b *Book, tree *capacity.Tree) map[string][2]int64 {
	sums := map[string][2]int64{}
	cpu, _ := tree.Number("cpu")
	jobs, _ := tree.Number(resources.Jobs)
	for _, s := range b.Cast(tree) {
		for _, lim := range s.limits {
			name := lim.Level().Name()
			if lim.IsMin() {
				name += " min"
			}
			sum := sums[name]
			sums[name] = [2]int64{sum[0] + s.frees[cpu], sum[1] + s.frees[jobs]}
		}
		require.Equal(t, -s.frees[cpu], s.takes[cpu])
	}
	return sums
}

func TestBook(t *testing.T) {
	tree := capacity.NewTree(ledger.New())
	limit := cpu(10).Add(resources.FromMap(map[string]int64{resources.Jobs: 5}))
	for _, q := range []capacity.Quota{
		{Name: "root", Limit: limit, Min: cpu(1)}, {Name: "a", Parent: "root", Limit: limit, Min: cpu(1)},
	} {
		tree.Set(q)
	}
	var b Book
	require.Empty(t, b.Cast(tree))

	b.Waits("ns/waits", "a", false, cpu(3))
	b.Holds("ns/holds", "a", false, cpu(4), cpu(1))
	require.Equal(t, map[string][2]int64{"a": {0, -1}, "root": {0, -1}}, frees(t, &b, tree), "3 more, and 3 less")
	b.Holds("ns/strict", "a", true, cpu(2), cpu(5))
	require.Equal(t, map[string][2]int64{
		"a": {0, -2}, "root": {0, -2}, "a min": {0, -1}, "root min": {0, -1},
	}, frees(t, &b, tree), "its pods use more than it asks for")

	b.Holds("ns/waits", "a", false, cpu(3), cpu(3))
	require.Equal(t, [2]int64{-3, -3}, frees(t, &b, tree)["a"])
	b.Waits("ns/holds", "gone", false, cpu(1))
	require.Equal(t, [2]int64{0, -2}, frees(t, &b, tree)["a"])
	for _, key := range []string{"ns/waits", "ns/holds", "ns/strict", "ns/unknown"} {
		b.Forget(key)
	}
	require.Empty(t, b.Cast(tree))
	require.Empty(t, b.sums)
}
