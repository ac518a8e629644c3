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
	"slices"
	"sort"
)

// Bounds of the values in a node of a tree; the root may have fewer.
const (
	leastValues = 8
	mostValues  = 32
)

// Tree is an ordered set that knows positions: a B-tree whose nodes count their members. Insert, Delete, Min and Rank
// take O(log n) and touch little memory: a million values are at most four nodes from the root.
//
// The order of a value must not change while it is in a tree. A comparison that panics leaves the tree as it was.
type Tree[T any] struct {
	root    *node[T]
	length  int
	compare func(a, b T) int
}

// node has its values in order, and, unless it is a leaf, children before, between and after them.
type node[T any] struct {
	values   []T
	children []*node[T]
	// sizes counts the values in and below each child.
	sizes []int
}

// NewTree returns an empty tree. compare must be zero for equal values only.
func NewTree[T any](compare func(a, b T) int) *Tree[T] {
	return &Tree[T]{root: &node[T]{}, compare: compare}
}

// Len is the number of values.
func (t *Tree[T]) Len() int { return t.length }

func (n *node[T]) leaf() bool { return len(n.children) == 0 }

func (n *node[T]) size() int {
	size := len(n.values)
	for _, below := range n.sizes {
		size += below
	}
	return size
}

// search is where the value is in a node, or the child that it belongs to.
func (t *Tree[T]) search(n *node[T], v T) (i int, found bool) {
	return slices.BinarySearchFunc(n.values, v, t.compare)
}

// Insert adds a value that is not in the tree.
func (t *Tree[T]) Insert(v T) {
	if up, right := t.insert(t.root, v); right != nil {
		left := t.root
		t.root = &node[T]{values: []T{up}, children: []*node[T]{left, right}, sizes: []int{left.size(), right.size()}}
	}
	t.length++
}

// insert adds a value at or below a node. If the node had to be split, right is its new neighbour and up the value
// between them.
func (t *Tree[T]) insert(n *node[T], v T) (up T, right *node[T]) {
	i, _ := t.search(n, v)
	if n.leaf() {
		up, right = n.put(i, v, nil)
	} else if between, fresh := t.insert(n.children[i], v); fresh == nil {
		n.sizes[i]++
	} else {
		n.sizes[i] = n.children[i].size()
		up, right = n.put(i, between, fresh)
	}
	return up, right
}

// put adds a value at a place in a node, and the child after it, if it is not a leaf.
func (n *node[T]) put(i int, v T, child *node[T]) (up T, right *node[T]) {
	at := n
	if len(n.values) == mostValues {
		middle := mostValues / 2
		if i == mostValues {
			// Most values come in order: what is left behind will not grow.
			middle = mostValues - leastValues - 1
		}
		up, right = n.split(middle)
		if i > middle {
			at, i = right, i-middle-1
		}
	}
	at.values = slices.Insert(at.values, i, v)
	if child != nil {
		at.children = slices.Insert(at.children, i+1, child)
		at.sizes = slices.Insert(at.sizes, i+1, child.size())
	}
	return up, right
}

// split moves what is after the value at middle into a new node.
func (n *node[T]) split(middle int) (up T, right *node[T]) {
	up = n.values[middle]
	right = &node[T]{values: cut(&n.values, middle+1, mostValues)}
	cut(&n.values, middle, 0)
	if !n.leaf() {
		right.children = cut(&n.children, middle+1, mostValues+1)
		right.sizes = cut(&n.sizes, middle+1, mostValues+1)
	}
	return up, right
}

// cut shortens a slice and returns what was behind, with room to grow.
func cut[E any](from *[]E, length, room int) []E {
	behind := (*from)[length:]
	rest := append(make([]E, 0, max(room, len(behind))), behind...)
	clear(behind)
	*from = (*from)[:length]
	return rest
}

// Delete removes a value and says whether it was there.
func (t *Tree[T]) Delete(v T) bool {
	if !t.remove(t.root, v) {
		return false
	}
	t.length--
	if len(t.root.values) == 0 && !t.root.leaf() {
		t.root = t.root.children[0]
	}
	return true
}

func (t *Tree[T]) remove(n *node[T], v T) bool {
	i, found := t.search(n, v)
	switch {
	case n.leaf():
		if found {
			n.values = slices.Delete(n.values, i, i+1)
		}
		return found
	case found:
		n.values[i] = n.children[i].removeLast()
	case !t.remove(n.children[i], v):
		return false
	}
	n.sizes[i]--
	n.mend(i)
	return true
}

// removeLast takes the last value at or below a node out.
func (n *node[T]) removeLast() T {
	last := len(n.values) - 1
	if n.leaf() {
		v := n.values[last]
		n.values = slices.Delete(n.values, last, last+1)
		return v
	}
	v := n.children[last+1].removeLast()
	n.sizes[last+1]--
	n.mend(last + 1)
	return v
}

// mend sees to it that a child of which a value was taken has enough left.
func (n *node[T]) mend(i int) {
	if len(n.children[i].values) >= leastValues {
		return
	}
	if i == len(n.values) {
		i-- // the child and the one before it
	}
	left, right := n.children[i], n.children[i+1]
	switch {
	case len(left.values)+1+len(right.values) <= mostValues:
		left.values = append(append(left.values, n.values[i]), right.values...)
		left.children = append(left.children, right.children...)
		left.sizes = append(left.sizes, right.sizes...)
		n.values = slices.Delete(n.values, i, i+1)
		n.children = slices.Delete(n.children, i+1, i+2)
		n.sizes = slices.Delete(n.sizes, i+1, i+2)
	case len(left.values) < len(right.values):
		left.values = append(left.values, n.values[i])
		n.values[i] = right.values[0]
		right.values = slices.Delete(right.values, 0, 1)
		if !left.leaf() {
			left.children, left.sizes = append(left.children, right.children[0]), append(left.sizes, right.sizes[0])
			right.children, right.sizes = slices.Delete(right.children, 0, 1), slices.Delete(right.sizes, 0, 1)
		}
	default:
		last := len(left.values) - 1
		right.values = slices.Insert(right.values, 0, n.values[i])
		n.values[i] = left.values[last]
		left.values = slices.Delete(left.values, last, last+1)
		if !left.leaf() {
			right.children = slices.Insert(right.children, 0, left.children[last+1])
			right.sizes = slices.Insert(right.sizes, 0, left.sizes[last+1])
			left.children, left.sizes = slices.Delete(left.children, last+1, last+2), slices.Delete(left.sizes, last+1, last+2)
		}
	}
	n.sizes[i] = left.size()
	if i+1 < len(n.sizes) && n.children[i+1] == right {
		n.sizes[i+1] = right.size()
	}
}

// Contains says whether the value is in the tree.
func (t *Tree[T]) Contains(v T) bool {
	for n := t.root; ; {
		i, found := t.search(n, v)
		if found || n.leaf() {
			return found
		}
		n = n.children[i]
	}
}

// Min returns the first value.
func (t *Tree[T]) Min() (T, bool) {
	n := t.root
	for !n.leaf() {
		n = n.children[0]
	}
	if len(n.values) == 0 {
		var none T
		return none, false
	}
	return n.values[0], true
}

// Max returns the last value.
func (t *Tree[T]) Max() (T, bool) {
	n := t.root
	for !n.leaf() {
		n = n.children[len(n.children)-1]
	}
	if len(n.values) == 0 {
		var none T
		return none, false
	}
	return n.values[len(n.values)-1], true
}

// Rank is the number of values before v, which need not be in the tree.
func (t *Tree[T]) Rank(v T) int {
	rank := 0
	for n := t.root; ; {
		i, found := t.search(n, v)
		rank += i
		if n.leaf() {
			return rank
		}
		for _, below := range n.sizes[:i] {
			rank += below
		}
		if found {
			return rank + n.sizes[i]
		}
		n = n.children[i]
	}
}

// Walk visits the values in order until visit returns false. The tree must not be changed during the walk.
func (t *Tree[T]) Walk(visit func(T) bool) { t.root.walk(visit) }

func (n *node[T]) walk(visit func(T) bool) bool {
	for i, v := range n.values {
		if !n.leaf() && !n.children[i].walk(visit) {
			return false
		}
		if !visit(v) {
			return false
		}
	}
	return n.leaf() || n.children[len(n.values)].walk(visit)
}

// WalkFrom visits the values in order until visit returns false, from the first that is not before where the walk
// begins. before must be true for no value behind one for which it is false.
func (t *Tree[T]) WalkFrom(before, visit func(T) bool) { t.root.walkFrom(before, visit) }

func (n *node[T]) walkFrom(before, visit func(T) bool) bool {
	i := sort.Search(len(n.values), func(i int) bool { return !before(n.values[i]) })
	if !n.leaf() && !n.children[i].walkFrom(before, visit) {
		return false
	}
	for ; i < len(n.values); i++ {
		if !visit(n.values[i]) || (!n.leaf() && !n.children[i+1].walk(visit)) {
			return false
		}
	}
	return true
}

// WalkAt visits the values in order until visit returns false, from the one that rank others are before. To come there
// takes O(log n).
func (t *Tree[T]) WalkAt(rank int, visit func(T) bool) { t.root.walkAt(max(rank, 0), visit) }

func (n *node[T]) walkAt(skip int, visit func(T) bool) bool {
	for i, v := range n.values {
		if !n.leaf() {
			if skip < n.sizes[i] && !n.children[i].walkAt(skip, visit) {
				return false
			}
			skip = max(skip-n.sizes[i], 0)
		}
		if skip > 0 {
			skip--
			continue
		}
		if !visit(v) {
			return false
		}
	}
	return n.leaf() || n.children[len(n.values)].walkAt(skip, visit)
}
