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

package ordered

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// requireWalks compares walks from the middle with the slice.
func requireWalks(t require.TestingT, tree *Tree[int], want []int) {
	for _, from := range []int{-1, 0, 1, 20, 50, 80, 111} {
		var walked []int
		tree.WalkFrom(func(v int) bool { return v < from }, func(v int) bool {
			walked = append(walked, v)
			return v < 100
		})
		i, _ := slices.BinarySearch(want, from)
		j := slices.IndexFunc(want[i:], func(v int) bool { return v >= 100 }) + 1
		if j == 0 {
			j = len(want) - i
		}
		require.True(t, slices.Equal(want[i:i+j], walked), "from %d: %v", from, walked)
	}
	for _, skip := range []int{-1, 0, 1, 7, 33, len(want) - 1, len(want), len(want) + 1} {
		var walked []int
		tree.WalkAt(skip, func(v int) bool {
			walked = append(walked, v)
			return len(walked) < 40
		})
		i := min(max(skip, 0), len(want))
		require.True(t, slices.Equal(want[i:min(i+40, len(want))], walked), "after %d: %v", skip, walked)
	}
}

func TestTreeEqualsSortedSlice(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		set := map[int]bool{}
		tree := NewTree(cmp.Compare[int])
		// The first values make more than one level.
		before, step := rapid.IntRange(0, 3*mostValues).Draw(t, "before"), rapid.SampledFrom([]int{1, 7, 100}).Draw(t, "step")
		for i := range before {
			v := i * step % 101
			tree.Insert(v)
			set[v] = true
		}
		for range rapid.IntRange(0, effort.Steps(200)).Draw(t, "operations") {
			v := rapid.IntRange(0, 110).Draw(t, "value")
			switch {
			case rapid.Bool().Draw(t, "delete"):
				require.Equal(t, set[v], tree.Delete(v))
				delete(set, v)
			case !set[v]:
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
	for v := -1; v <= 111; v++ {
		if rank := sort.SearchInts(want, v); tree.Rank(v) != rank || tree.Contains(v) != set[v] {
			require.Fail(t, "rank", "of %d in %v: %d, contained: %t", v, want, tree.Rank(v), tree.Contains(v))
		}
	}
	requireWalks(t, tree, want)
	requireBalanced(t, tree.root, true)
	first, ok := tree.Min()
	require.Equal(t, len(want) > 0, ok)
	if ok {
		require.Equal(t, want[0], first)
	}
}

// requireBalanced checks what keeps the tree shallow and the ranks right, and returns its height.
func requireBalanced[T any](t require.TestingT, n *node[T], isRoot bool) int {
	if len(n.values) > mostValues || (!isRoot && len(n.values) < leastValues) {
		require.Fail(t, "values", "%d in one node", len(n.values))
	}
	if n.leaf() {
		return 1
	}
	if len(n.children) != len(n.values)+1 || len(n.sizes) != len(n.children) {
		require.Fail(t, "children", "%d, of %d sizes, around %d values", len(n.children), len(n.sizes), len(n.values))
	}
	height := 0
	for i, child := range n.children {
		h := requireBalanced(t, child, false)
		if i > 0 && h != height {
			require.Fail(t, "height", "%d beside %d", h, height)
		}
		if height = h; child.size() != n.sizes[i] {
			require.Fail(t, "size", "%d said to be %d", child.size(), n.sizes[i])
		}
	}
	return height + 1
}

// The work of every operation grows with the logarithm, in whatever order the values came and go.
func TestTreeStaysShallow(t *testing.T) {
	const n = 100_000
	for name, place := range map[string]func(i int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return n - i },
		"scattered":  func(i int) int { return i * 7919 % n },
		"zigzag":     func(i int) int { return (2*(i%2) - 1) * i },
	} {
		t.Run(name, func(t *testing.T) {
			compared := 0
			tree := NewTree(func(a, b int) int { compared++; return cmp.Compare(a, b) })
			for i := range n {
				tree.Insert(place(i))
			}
			require.LessOrEqual(t, requireBalanced(t, tree.root, true), 6)
			for i := range n - 10_000 {
				require.True(t, tree.Delete(place(i)))
			}
			require.LessOrEqual(t, requireBalanced(t, tree.root, true), 5)
			most := 0
			for i := n - 10_000; i < n; i++ {
				compared = 0
				tree.Rank(place(i))
				most = max(most, compared)
			}
			require.LessOrEqual(t, most, 24, "comparisons for one of 10,000 values")
		})
	}
}

// A node that loses a value stays while it has enough. Otherwise it is merged with its neighbour if both fit into one,
// or gets a value of it.
func TestMend(t *testing.T) {
	leaf := func(first, n int) *node[int] {
		values := make([]int, n)
		for i := range values {
			values[i] = first + i
		}
		return &node[int]{values: values}
	}
	for small := leastValues; small <= leastValues+1; small++ {
		for large := leastValues; large <= mostValues; large++ {
			for name, c := range map[string]struct {
				left, right, taken int
			}{
				"before": {left: small, right: large, taken: 0},
				"behind": {left: large, right: small, taken: large + 1},
			} {
				tree := NewTree(cmp.Compare[int])
				tree.length = c.left + 1 + c.right
				tree.root = &node[int]{
					values: []int{c.left}, children: []*node[int]{leaf(0, c.left), leaf(c.left+1, c.right)},
					sizes: []int{c.left, c.right},
				}
				require.True(t, tree.Delete(c.taken))
				requireBalanced(t, tree.root, true)
				set := map[int]bool{}
				for v := range small + 1 + large {
					set[v] = v != c.taken
				}
				delete(set, c.taken)
				requireSame(t, tree, set)
				var fill []int
				for _, child := range tree.root.children {
					fill = append(fill, len(child.values))
				}
				slices.Sort(fill)
				var want []int
				switch rest := small - 1; {
				case rest >= leastValues:
					want = []int{min(rest, large), max(rest, large)}
				case rest+1+large > mostValues:
					want = []int{rest + 1, large - 1}
				}
				require.Equal(t, want, fill, "%d %s %d", small, name, large)
			}
		}
	}
}

// The same one level up: a moved value takes its subtree along.
func TestMendInnerNodes(t *testing.T) {
	for large := leastValues; large <= mostValues; large++ {
		for _, fewFirst := range []bool{true, false} {
			next := 0
			leaf := func(i int) *node[int] {
				n := &node[int]{}
				for range leastValues + i%leastValues%3 {
					n.values = append(n.values, next)
					next++
				}
				return n
			}
			inner := func(values int) *node[int] {
				n := &node[int]{children: []*node[int]{leaf(0)}, sizes: []int{leastValues}}
				for i := range values {
					n.values = append(n.values, next)
					next++
					child := leaf(i + 1)
					n.children, n.sizes = append(n.children, child), append(n.sizes, len(child.values))
				}
				return n
			}
			left, right := leastValues, large
			if !fewFirst {
				left, right = large, leastValues
			}
			tree := NewTree(cmp.Compare[int])
			tree.root = &node[int]{children: []*node[int]{inner(left)}}
			tree.root.values = []int{next}
			next++
			tree.root.children = append(tree.root.children, inner(right))
			tree.root.sizes = []int{tree.root.children[0].size(), tree.root.children[1].size()}
			tree.length = next
			taken := 0
			if !fewFirst {
				taken = next - 1
			}
			require.True(t, tree.Delete(taken))
			requireBalanced(t, tree.root, true)
			rank := 0
			for v := range next {
				require.Equal(t, v != taken, tree.Contains(v))
				require.Equal(t, rank, tree.Rank(v))
				if v != taken {
					rank++
				}
			}
		}
	}
}

// Most values come in order, and leave nodes behind that are fuller than halves.
func TestNodesThatFillInOrderAreFull(t *testing.T) {
	tree := NewTree(cmp.Compare[int])
	for v := range 1000 {
		tree.Insert(v)
	}
	n := tree.root
	for !n.leaf() {
		n = n.children[0]
	}
	require.Len(t, n.values, mostValues-leastValues-1)
}

// A comparison that panics while a value comes or goes leaves the tree as it was.
func TestTreeSurvivesAPanic(t *testing.T) {
	left := 0
	tree := NewTree(cmp.Compare[int])
	tree.compare = func(a, b int) int {
		if left--; left == 0 {
			panic("the comparison")
		}
		return cmp.Compare(a, b)
	}
	set := map[int]bool{}
	for v := range 500 {
		tree.Insert(2 * v)
		set[2*v] = true
	}
	for n := 1; n < 12; n++ {
		for _, change := range []func(){func() { tree.Insert(501) }, func() { tree.Delete(500) }} {
			left = n
			func() {
				defer func() { _ = recover() }()
				change()
			}()
			panicked := left == 0
			left = 0
			if panicked {
				require.Equal(t, 500, tree.Len())
				requireBalanced(t, tree.root, true)
				requireSame(t, tree, set)
				continue
			}
			tree.Delete(501)
			if !tree.Contains(500) {
				tree.Insert(500)
			}
		}
	}
}

func TestWalkStops(t *testing.T) {
	tree := NewTree(cmp.Compare[int])
	for v := range 10 {
		tree.Insert(v)
	}
	var got []int
	tree.Walk(func(v int) bool { got = append(got, v); return len(got) < 3 })
	require.Equal(t, []int{0, 1, 2}, got)
}

func BenchmarkTree(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		tree := NewTree(cmp.Compare[uint64])
		for i := range n {
			tree.Insert(uint64(i) * 0x9e3779b97f4a7c15)
		}
		b.Run(fmt.Sprintf("op=insert+delete/values=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				v := uint64(i) * 0xbf58476d1ce4e5b9
				tree.Insert(v)
				tree.Delete(v)
			}
		})
		b.Run(fmt.Sprintf("op=rank/values=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				tree.Rank(uint64(i) * 0xbf58476d1ce4e5b9)
			}
		})
	}
}
