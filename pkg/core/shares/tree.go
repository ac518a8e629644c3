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

package shares

import (
	"maps"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Part says how a quota takes part.
type Part uint8

const (
	// None: not at all.
	None Part = iota
	// Top has its max to share out. It has no parent.
	Top
	// Sharing: its limit is its share of what its parent gets.
	Sharing
	// Apart: its limit is given, and its use is subtracted from the total of its parent, a top. It is a child of that top
	// all the same, as in Koordinator.
	Apart
)

// Spec is what a quota is.
type Spec struct {
	Part   Part
	Parent string
	// Min, Max and Weight, which divides the amount beyond min. Resources that Max does not name are neither shared nor
	// limited.
	Min, Max, Weight resources.List
	// KeepsMin: the quota lends nothing of min. ScalesMin: min shrinks if the total is less than all min together.
	// GuaranteesUsed: used amounts are guaranteed like min.
	KeepsMin, ScalesMin, GuaranteesUsed bool
}

func (s *Spec) same(o *Spec) bool {
	return s.Part == o.Part && s.Parent == o.Parent && s.Max.Same(o.Max) && s.Min.Same(o.Min) &&
		s.Weight.Same(o.Weight) && s.KeepsMin == o.KeepsMin && s.ScalesMin == o.ScalesMin &&
		s.GuaranteesUsed == o.GuaranteesUsed
}

// Demand is the demand of one quota, without quotas below it. Request is that of all its pods and jobs. Assigned is the
// part that pods have already: it counts if used amounts are guaranteed, or if the quota is apart.
type Demand struct{ Request, Assigned resources.List }

// Tree shares out the total of every top. It is not safe for concurrent use.
//
// Quotas may come in any order. The demand of a quota whose parents lead nowhere is remembered until they exist.
type Tree struct {
	specs   map[string]Spec
	demands map[string]Demand
	// nodes are the quotas in their places, unless rebuild says that specs changed since.
	nodes   map[string]*node
	rebuild bool
	// names are all resources that are shared, sorted; numbers are their places.
	names   []string
	numbers map[string]int
	// asked and dirty list, by depth, the nodes that are. recount are the tops whose total may have changed, moved the
	// nodes of which a runtime has.
	asked, dirty [][]*node
	recount      []*node
	moved        []*node
	needy        []int
	// owedMoved: a min may be scaled otherwise than when OwedMoved was asked last.
	owedMoved bool
}

// NewTree returns an empty tree.
func NewTree() *Tree {
	return &Tree{specs: map[string]Spec{}, demands: map[string]Demand{}, nodes: map[string]*node{}}
}

// Set takes a new or changed quota.
func (t *Tree) Set(name string, s Spec) {
	former, known := t.specs[name]
	if known && former.same(&s) {
		return
	}
	t.specs[name] = s
	former.Max = s.Max
	if n := t.nodes[name]; n != nil && !t.rebuild && s.Part == Top && former.same(&s) {
		n.spec = s
		t.recount = append(t.recount, n)
		return
	}
	t.rebuild = true
}

// Delete forgets a quota, and what is asked of it.
func (t *Tree) Delete(name string) {
	if _, known := t.specs[name]; known {
		delete(t.specs, name)
		delete(t.demands, name)
		t.rebuild = true
	}
}

// SetDemand takes what is asked of a quota.
func (t *Tree) SetDemand(name string, d Demand) {
	if d.Request.IsZero() && d.Assigned.IsZero() {
		delete(t.demands, name)
	} else {
		t.demands[name] = d
	}
	n := t.nodes[name]
	if t.rebuild || n == nil || n.parent == nil || !n.ask(t.names, &d) {
		return
	}
	t.markAsked(n)
	if n.spec.Part == Apart && n.parent.spec.Part == Top {
		t.recount = append(t.recount, n.parent)
	}
}

func (t *Tree) markAsked(n *node) {
	if !n.asked && n.parent != nil {
		n.asked = true
		t.asked[n.depth] = append(t.asked[n.depth], n)
	}
}

func (t *Tree) markDirty(n *node) {
	if !n.dirty && n.columns != nil {
		n.dirty = true
		t.dirty[n.depth] = append(t.dirty[n.depth], n)
	}
}

func (t *Tree) noteMoved(n *node) {
	if !n.moved && n.spec.Part == Sharing {
		n.moved = true
		t.moved = append(t.moved, n)
	}
}

// Settle computes all outdated limits, and returns the quotas whose limit has changed. Quotas that got or lost their
// place are among them.
func (t *Tree) Settle() (names []string) {
	if t.rebuild {
		names = t.build()
	}
	for depth := len(t.asked) - 1; depth >= 0; depth-- {
		for _, n := range t.asked[depth] {
			n.asked = false
			if n.passOn() {
				t.markDirty(n.parent)
				t.markAsked(n.parent)
			}
		}
		t.asked[depth] = emptied(t.asked[depth])
	}
	for _, top := range t.recount {
		if top.count(t.names) {
			t.markDirty(top)
		}
	}
	t.recount = emptied(t.recount)
	for depth := range t.dirty {
		for _, n := range t.dirty[depth] {
			n.dirty = false
			t.shareOut(n)
		}
		t.dirty[depth] = emptied(t.dirty[depth])
	}
	for _, n := range t.moved {
		if n.moved = false; n.refreshLimit(t.numbers) {
			names = append(names, n.name)
		}
	}
	t.moved = emptied(t.moved)
	return names
}

func emptied(list []*node) []*node {
	clear(list)
	return list[:0]
}

// shareOut divides the runtime of a node among its children.
func (t *Tree) shareOut(n *node) {
	for i := range n.columns {
		c := &n.columns[i]
		if !c.dirty || !c.shared {
			continue
		}
		c.dirty = false
		t.needy, t.owedMoved = c.distribute(t.needy, t.owedMoved)
		for place := range c.slots {
			sl, child := &c.slots[place], n.children[place]
			if child.columns != nil && child.columns[i].give(sl.next, true) {
				t.markDirty(child)
			}
			if sl.runtime != sl.next {
				sl.runtime = sl.next
				t.noteMoved(child)
			}
		}
	}
}

// Limit is the runtime of a quota as of the last Settle, for every resource that its max names. It is not known of a
// quota without a place.
func (t *Tree) Limit(name string) (limit resources.List, known bool) {
	n := t.nodes[name]
	if n == nil || n.spec.Part != Sharing {
		return resources.List{}, false
	}
	return n.limit, true
}

// Promised is Limit, or what the quota would get at least if it asked for more, where that is more.
func (t *Tree) Promised(name string) resources.List {
	n := t.nodes[name]
	if n == nil || n.spec.Part != Sharing {
		return resources.List{}
	}
	return n.promised(t.numbers)
}

// Owed is the min of a quota for one resource as of the last Settle, scaled down where there is less than all mins
// together. It is not known of a quota without a place, or where nothing is shared.
func (t *Tree) Owed(name, resource string) (amount int64, known bool) {
	n := t.nodes[name]
	number, shared := t.numbers[resource]
	if n == nil || n.spec.Part != Sharing || !shared || !n.parent.columns[number].shared {
		return 0, false
	}
	return n.parent.columns[number].slots[n.place].owed, true
}

// OwedMoved says, once, whether Owed may be another one of any quota than before.
func (t *Tree) OwedMoved() bool {
	moved := t.owedMoved
	t.owedMoved = false
	return moved
}

// build puts every quota in its place, with the limits of before to compare with, and returns those that lost theirs.
func (t *Tree) build() (gone []string) {
	old := t.nodes
	t.rebuild, t.owedMoved, t.nodes = false, true, make(map[string]*node, len(t.specs))
	t.recount, t.moved, t.asked, t.dirty = nil, nil, nil, nil
	t.number()
	below := map[string][]string{}
	var row []*node
	for _, name := range slices.Sorted(maps.Keys(t.specs)) {
		if s := t.specs[name]; s.Part == Top {
			row = append(row, &node{name: name, spec: s})
		} else {
			below[s.Parent] = append(below[s.Parent], name)
		}
	}
	t.recount = append(t.recount, row...)
	for depth := 0; len(row) > 0; depth++ {
		t.asked, t.dirty = append(t.asked, nil), append(t.dirty, nil)
		var next []*node
		for _, n := range row {
			for place, name := range below[n.name] {
				n.children = append(n.children, &node{
					name: name, spec: t.specs[name], parent: n, place: place, depth: depth + 1,
				})
			}
			next = append(next, n.children...)
			t.putInPlace(n, old[n.name])
		}
		row = next
	}
	for name, n := range old {
		if now := t.nodes[name]; n.spec.Part == Sharing && (now == nil || now.spec.Part != Sharing) {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return gone
}

func (t *Tree) putInPlace(n, former *node) {
	t.nodes[n.name] = n
	demand := t.demands[n.name]
	n.fill(t.names, &demand, len(n.children))
	if n.parent != nil {
		n.enter(t.names)
	}
	if former != nil && n.spec.Part == former.spec.Part {
		n.limit = former.limit
	}
	t.markAsked(n)
	t.markDirty(n)
	t.noteMoved(n)
}

// number gives every resource that is shared a number: what the max of any quota names that has a share.
func (t *Tree) number() {
	t.numbers, t.names = map[string]int{}, nil
	for _, s := range t.specs {
		if s.Part != Sharing {
			continue
		}
		for _, it := range s.Max.Items() {
			t.numbers[it.Name] = 0
		}
	}
	t.names = slices.Sorted(maps.Keys(t.numbers))
	for i, name := range t.names {
		t.numbers[name] = i
	}
}
