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

package queue

import (
	"cmp"
	"fmt"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/testing/effort"
)

func newTree() *Tree[int] {
	return NewTree(cmp.Compare[int], func(v int) uint64 { return Hash(fmt.Sprint(v)) })
}

func TestTreeEqualsSortedSlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree, set := newTree(), map[int]bool{}
		for range rapid.IntRange(0, effort.Steps(200)).Draw(t, "operations") {
			v := rapid.IntRange(0, 60).Draw(t, "value")
			if rapid.Bool().Draw(t, "delete") {
				require.Equal(t, set[v], tree.Delete(v))
				delete(set, v)
			} else if !set[v] {
				tree.Insert(v)
				set[v] = true
			}
			requireSame(effort.Plain(t), tree, set)
		}
	})
}

func requireSame(t require.TestingT, tree *Tree[int], set map[int]bool) {
	want := make([]int, 0, len(set))
	for v := range set {
		want = append(want, v)
	}
	sort.Ints(want)
	got := []int{}
	tree.Walk(func(v int) bool { got = append(got, v); return true })
	require.Equal(t, want, got)
	require.Equal(t, len(want), tree.Len())
	for v := -1; v <= 61; v++ {
		if rank := sort.SearchInts(want, v); tree.Rank(v) != rank || tree.Contains(v) != set[v] {
			require.Fail(t, "rank", "of %d in %v: %d, contained: %t", v, want, tree.Rank(v), tree.Contains(v))
		}
	}
	requireHeap(t, tree.root)
	first, ok := tree.Min()
	require.Equal(t, len(want) > 0, ok)
	if ok {
		require.Equal(t, want[0], first)
	}
}

// requireHeap checks what keeps the tree shallow and the ranks right.
func requireHeap(t require.TestingT, n *node[int]) {
	if n == nil {
		return
	}
	for _, child := range []*node[int]{n.left, n.right} {
		if child != nil && child.hash > n.hash {
			require.Fail(t, "heap", "%d is below %d", child.value, n.value)
		}
		requireHeap(t, child)
	}
	if n.len() != 1+n.left.len()+n.right.len() {
		require.Fail(t, "size", "of %d: %d", n.value, n.size)
	}
}

// The shape depends on the content alone.
func TestTreeShapeIsCanonical(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfNDistinct(rapid.IntRange(0, 1000), 0, 50, func(v int) int { return v }).Draw(t, "values")
		hashes := rapid.Uint64Range(1, 1<<32-1).Draw(t, "number of hashes")
		alike := func() *Tree[int] {
			return NewTree(cmp.Compare[int], func(v int) uint64 { return Hash(fmt.Sprint(v)) % hashes << 32 })
		}
		a, b := alike(), alike()
		for _, v := range values {
			a.Insert(v)
		}
		for _, v := range rapid.Permutation(values).Draw(t, "other order") {
			b.Insert(v)
			b.Insert(v + 5000)
		}
		for _, v := range values {
			b.Delete(v + 5000)
		}
		require.Equal(t, shape(a.root), shape(b.root))
	})
}

func shape(n *node[int]) string {
	if n == nil {
		return "."
	}
	return fmt.Sprintf("(%s%d%s)", shape(n.left), n.value, shape(n.right))
}

func TestTreeStaysShallow(t *testing.T) {
	tree := newTree()
	const n = 100_000
	for v := range n {
		tree.Insert(v)
	}
	require.Less(t, depth(tree.root), 64, "ascending inserts must not degenerate")
}

func depth(n *node[int]) int {
	if n == nil {
		return 0
	}
	return 1 + max(depth(n.left), depth(n.right))
}

func TestWalkStops(t *testing.T) {
	tree := newTree()
	for v := range 10 {
		tree.Insert(v)
	}
	var got []int
	tree.Walk(func(v int) bool { got = append(got, v); return len(got) < 3 })
	require.Equal(t, []int{0, 1, 2}, got)
}

func BenchmarkTree(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("insert+delete/n=%d", n), func(b *testing.B) {
			tree := NewTree(cmp.Compare[uint64], func(v uint64) uint64 { return v * 0x9e3779b97f4a7c15 })
			for i := range n {
				tree.Insert(Hash(fmt.Sprint(i)))
			}
			b.ResetTimer()
			for i := range b.N {
				v := uint64(i) * 0xbf58476d1ce4e5b9
				tree.Insert(v)
				tree.Delete(v)
			}
		})
	}
}
