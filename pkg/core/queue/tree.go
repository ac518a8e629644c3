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

// Tree is an ordered set that knows positions: a treap whose node priorities come from a hash of the value,
// so that its shape, and with it every cost, depends on its content alone and not on history (I13).
// Insert, Delete, Min and Rank take O(log n).
//
// The order of a value must not change while it is in a tree.
type Tree[T any] struct {
	root    *node[T]
	compare func(a, b T) int
	hash    func(T) uint64
}

// node is small: there are two for every unit that waits.
type node[T any] struct {
	value       T
	hash, size  uint32
	left, right *node[T]
}

// above says whether a node belongs above another. Equal hashes are no rarity among very many values.
func (t *Tree[T]) above(n, other *node[T]) bool {
	return n.hash > other.hash || (n.hash == other.hash && t.compare(n.value, other.value) < 0)
}

// NewTree returns an empty tree. compare must be zero for equal values only; hash must be stable per value.
func NewTree[T any](compare func(a, b T) int, hash func(T) uint64) *Tree[T] {
	return &Tree[T]{compare: compare, hash: hash}
}

// Hash is a well mixed 64-bit hash of a string, the same in every process.
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h ^= uint64(s[i])
		h *= 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Len is the number of values.
func (t *Tree[T]) Len() int { return t.root.len() }

func (n *node[T]) len() int {
	if n == nil {
		return 0
	}
	return int(n.size)
}

func (n *node[T]) resize() { n.size = uint32(n.left.len() + n.right.len() + 1) } //nolint:gosec // there is no memory for more

// Insert adds a value that is not in the tree.
func (t *Tree[T]) Insert(v T) {
	fresh := &node[T]{value: v, hash: uint32(t.hash(v) >> 32), size: 1} //nolint:gosec // the upper half
	at := &t.root
	for *at != nil && t.above(*at, fresh) {
		(*at).size++
		if t.compare(v, (*at).value) < 0 {
			at = &(*at).left
		} else {
			at = &(*at).right
		}
	}
	fresh.left, fresh.right = t.split(*at, v)
	fresh.resize()
	*at = fresh
}

// split parts a subtree into the values before v and those after it.
func (t *Tree[T]) split(n *node[T], v T) (before, after *node[T]) {
	if n == nil {
		return nil, nil
	}
	if t.compare(n.value, v) < 0 {
		n.right, after = t.split(n.right, v)
		n.resize()
		return n, after
	}
	before, n.left = t.split(n.left, v)
	n.resize()
	return before, n
}

// Delete removes a value and says whether it was there.
func (t *Tree[T]) Delete(v T) bool {
	root, found := t.remove(t.root, v)
	t.root = root
	return found
}

func (t *Tree[T]) remove(n *node[T], v T) (rest *node[T], found bool) {
	if n == nil {
		return nil, false
	}
	switch c := t.compare(v, n.value); {
	case c == 0:
		return t.join(n.left, n.right), true
	case c < 0:
		n.left, found = t.remove(n.left, v)
	default:
		n.right, found = t.remove(n.right, v)
	}
	if found {
		n.size--
	}
	return n, found
}

// join puts two subtrees together, all of a before all of b.
func (t *Tree[T]) join(a, b *node[T]) *node[T] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.hash >= b.hash: // as above says: a comes before b
		a.right = t.join(a.right, b)
		a.resize()
		return a
	default:
		b.left = t.join(a, b.left)
		b.resize()
		return b
	}
}

// Contains says whether the value is in the tree.
func (t *Tree[T]) Contains(v T) bool {
	n := t.root
	for n != nil {
		c := t.compare(v, n.value)
		if c == 0 {
			return true
		}
		if c < 0 {
			n = n.left
		} else {
			n = n.right
		}
	}
	return false
}

// Min returns the first value.
func (t *Tree[T]) Min() (T, bool) {
	n := t.root
	if n == nil {
		var none T
		return none, false
	}
	for n.left != nil {
		n = n.left
	}
	return n.value, true
}

// Rank is the number of values before v, which need not be in the tree.
func (t *Tree[T]) Rank(v T) int {
	rank := 0
	for n := t.root; n != nil; {
		if t.compare(n.value, v) < 0 {
			rank += n.left.len() + 1
			n = n.right
		} else {
			n = n.left
		}
	}
	return rank
}

// Walk visits the values in order until visit returns false. The tree must not be changed meanwhile.
func (t *Tree[T]) Walk(visit func(T) bool) { t.root.walk(visit) }

func (n *node[T]) walk(visit func(T) bool) bool {
	if n == nil {
		return true
	}
	return n.left.walk(visit) && visit(n.value) && n.right.walk(visit)
}
