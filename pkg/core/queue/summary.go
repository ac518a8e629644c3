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
	"slices"
	"sort"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// summary is what is known of all values in and below a node, so that a search passes over those where there is nothing.
// It is taken when it is asked for, and then kept up to date by what comes and goes.
type summary struct {
	// weight is nil where it is not known.
	weight *resources.Sum
	// least measure of a value, where measured says so.
	least    int64
	measured bool
	// heaviest is the most that any value weighs of each resource, and peaks how many values weigh that much, where compared
	// says so. Most values weigh the same as others: one that goes seldom takes the last with it.
	heaviest []resources.Item
	peaks    []int
	compared bool
}

func (sm *summary) forget() { *sm = summary{} }

// NewWeighedTree returns an empty tree of values with weights, none of them negative, which must not change while a value
// is in the tree.
func NewWeighedTree[T any](compare func(a, b T) int, weigh func(v T) resources.List) *Tree[T] {
	t := NewTree(compare)
	t.weigh = weigh
	return t
}

// NewMeasuredTree returns an empty tree of values with a measure, which changes only as Remeasured is told while a value is
// in the tree.
func NewMeasuredTree[T any](compare func(a, b T) int, measure func(v T) int64) *Tree[T] {
	t := NewTree(compare)
	t.measure = measure
	return t
}

// gained and lost bring the summary of a node up to date with a value that came or went, in or below it.
func (t *Tree[T]) gained(n *node[T], v T) {
	if n.weight != nil {
		n.weight.Add(t.weigh(v))
	}
	if n.measured {
		n.least = min(n.least, t.measure(v))
	}
	if n.compared {
		n.raise(t.weigh(v).Items(), nil)
	}
}

func (t *Tree[T]) lost(n *node[T], v T) {
	if n.weight != nil {
		n.weight.Sub(t.weigh(v))
		for _, it := range t.weigh(v).Items() {
			if n.weight.Get(it.Name) == 0 {
				n.weight = nil // so that it does not keep the names of all that ever came
				break
			}
		}
	}
	n.measured = n.measured && t.measure(v) > n.least
	n.compared = n.compared && n.lower(t.weigh(v).Items())
}

// raise makes the greatest weights no less than these, which so many values have; without peaks it is one.
func (sm *summary) raise(weights []resources.Item, peaks []int) {
	i := 0
	for j, it := range weights {
		values := 1
		if peaks != nil {
			values = peaks[j]
		}
		for i < len(sm.heaviest) && sm.heaviest[i].Name < it.Name {
			i++
		}
		switch {
		case i == len(sm.heaviest) || sm.heaviest[i].Name != it.Name:
			sm.heaviest, sm.peaks = slices.Insert(sm.heaviest, i, it), slices.Insert(sm.peaks, i, values)
		case it.Amount > sm.heaviest[i].Amount:
			sm.heaviest[i].Amount, sm.peaks[i] = it.Amount, values
		case it.Amount == sm.heaviest[i].Amount:
			sm.peaks[i] += values
		}
	}
}

// lower takes the weight of one value out and says whether the greatest weights are still known.
func (sm *summary) lower(weight []resources.Item) bool {
	i := 0
	for _, it := range weight {
		for sm.heaviest[i].Name < it.Name {
			i++
		}
		if it.Amount == sm.heaviest[i].Amount {
			if sm.peaks[i]--; sm.peaks[i] == 0 {
				return false
			}
		}
	}
	return true
}

// above says whether a weight is more than the bounds in one of the resources that they name. Nothing is above no bound.
func above(weight, bounds []resources.Item) bool {
	i := 0
	for _, it := range weight {
		for i < len(bounds) && bounds[i].Name < it.Name {
			i++
		}
		if i < len(bounds) && bounds[i].Name == it.Name && it.Amount > 0 && it.Amount > bounds[i].Amount {
			return true
		}
	}
	return false
}

// Before counts the values at the front for which ahead says so, and adds up what they weigh of a resource. ahead must be
// true for no value behind one for which it is false.
func (t *Tree[T]) Before(ahead func(v T) bool, resource string) (values int, weight int64) {
	for n := t.root; ; {
		i := sort.Search(len(n.values), func(i int) bool { return !ahead(n.values[i]) })
		values += i
		for _, v := range n.values[:i] {
			amount, _ := t.weigh(v).Get(resource)
			weight = resources.SaturatingAdd(weight, amount)
		}
		if n.leaf() {
			return values, weight
		}
		for j, child := range n.children[:i] {
			values += n.sizes[j]
			weight = resources.SaturatingAdd(weight, t.weightOf(child).Get(resource))
		}
		n = n.children[i]
	}
}

// FirstWithin is the first value with a measure of at most so much.
func (t *Tree[T]) FirstWithin(most int64) (first T, found bool) {
	return t.first(
		func(n *node[T]) bool { return t.leastOf(n) <= most },
		func(v T) bool { return t.measure(v) <= most },
	)
}

// FirstAbove is the first value that weighs more of a resource than the bounds say, which are sorted by name; of a resource
// that they do not name it may weigh anything.
func (t *Tree[T]) FirstAbove(bounds []resources.Item) (first T, found bool) {
	return t.first(
		func(n *node[T]) bool { return above(t.heaviestOf(n), bounds) },
		func(v T) bool { return above(t.weigh(v).Items(), bounds) },
	)
}

// first is the first value that is sought; holds says whether there is one in or below a node.
func (t *Tree[T]) first(holds func(n *node[T]) bool, sought func(v T) bool) (first T, found bool) {
	if t.length == 0 || !holds(t.root) {
		return first, false
	}
	for n := t.root; ; {
		i := 0
		for ; i < len(n.values); i++ {
			if !n.leaf() && holds(n.children[i]) {
				break
			}
			if sought(n.values[i]) {
				return n.values[i], true
			}
		}
		if n.leaf() {
			return first, false
		}
		n = n.children[i]
	}
}

// Least is the least measure of all values, of which there is at least one.
func (t *Tree[T]) Least() int64 { return t.leastOf(t.root) }

// Remeasured says that the measure of a value in the tree has changed.
func (t *Tree[T]) Remeasured(v T, former int64) { t.remeasured(t.root, v, former) }

func (t *Tree[T]) remeasured(n *node[T], v T, former int64) {
	if i, found := t.search(n, v); !found && !n.leaf() {
		t.remeasured(n.children[i], v, former)
	}
	if measure := t.measure(v); measure <= n.least {
		n.least = measure // that of no other is less
	} else {
		n.measured = n.measured && former > n.least
	}
}

// weightOf is the weight of a node.
func (t *Tree[T]) weightOf(n *node[T]) *resources.Sum {
	if n.weight == nil {
		n.weight = &resources.Sum{}
		for _, v := range n.values {
			n.weight.Add(t.weigh(v))
		}
		for _, child := range n.children {
			n.weight.AddSum(t.weightOf(child))
		}
	}
	return n.weight
}

// leastOf is the least measure in or below a node, which is not empty.
func (t *Tree[T]) leastOf(n *node[T]) int64 {
	if !n.measured {
		n.least, n.measured = t.measure(n.values[0]), true
		for _, v := range n.values[1:] {
			n.least = min(n.least, t.measure(v))
		}
		for _, child := range n.children {
			n.least = min(n.least, t.leastOf(child))
		}
	}
	return n.least
}

// heaviestOf is the most that a value in or below a node weighs of each resource.
func (t *Tree[T]) heaviestOf(n *node[T]) []resources.Item {
	if !n.compared {
		n.heaviest, n.peaks, n.compared = n.heaviest[:0], n.peaks[:0], true
		for _, v := range n.values {
			n.raise(t.weigh(v).Items(), nil)
		}
		for _, child := range n.children {
			heaviest := t.heaviestOf(child)
			n.raise(heaviest, child.peaks)
		}
	}
	return n.heaviest
}

// WalkFrom visits the values in order until visit returns false, from the first that is not before where the walk begins.
// before must be true for no value behind one for which it is false.
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
