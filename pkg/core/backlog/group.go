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

package backlog

import (
	"cmp"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// Key is what makes two units of a line be decided alike: when the first of them does not fit, the others do not
// either.
type Key struct {
	// Quota that they draw on, and what each of them asks for of it, in text.
	Quota, Request string
	// Quotas in which they may be admitted as well, in text.
	Quotas string
	// Total is what a unit that holds some already would hold then, in text; empty for the others.
	Total string
	// Sizes in which a unit may be admitted, in text; empty for those with one.
	Sizes                  string
	NonPreemptible, Blocks bool
	// Observed units are decided about after all others.
	Observed bool
	// Unchecked units ask for more than admission checks answered for.
	Unchecked bool
	// Checks are the equivalence keys of the checks of extensions.
	Checks string
	// Alone is the unit itself, if no other unit may share its group. Gang: for it is decided with others of its gang
	// group.
	Alone string
	Gang  bool
	// MaxPriority of the units, where the line compares priorities to take what others hold; else zero. The first may
	// take no less than those behind it.
	MaxPriority int32
	// Namespace of the units, where the line has bounds for each; else empty.
	Namespace string
}

// Group is an ordered set of units that are decided alike. It is never empty. An open group has its place among the
// heads of its line; of one that is not open no unit is eligible.
type Group[U Unit, N any] struct {
	head sortKey[U]
	// Notes are kept here for the caller that decides. A new group has none.
	Notes N

	key    Key
	line   *Line[U, N]
	number int64
	units  *ordered.Tree[sortKey[U]]
	open   bool
}

// Key of the group.
func (g *Group[U, N]) Key() Key { return g.key }

// Line of the group.
func (g *Group[U, N]) Line() *Line[U, N] { return g.line }

// Head is the first unit.
func (g *Group[U, N]) Head() U { return g.head.unit }

// Len is the number of units.
func (g *Group[U, N]) Len() int { return g.units.Len() }

// Open says whether units of the group are eligible.
func (g *Group[U, N]) Open() bool { return g.open }

// Walk visits the units in order, from the first that is not before this one, until visit returns false.
func (g *Group[U, N]) Walk(visit func(U) bool) {
	g.units.Walk(func(k sortKey[U]) bool { return visit(k.unit) })
}

// WalkFrom visits the units behind one in order until visit returns false.
func (g *Group[U, N]) WalkFrom(u U, visit func(U) bool) {
	from := g.line.sortKey(u)
	g.units.WalkFrom(
		func(k sortKey[U]) bool { return g.line.compare(k, from) <= 0 },
		func(k sortKey[U]) bool { return visit(k.unit) },
	)
}

// Groups lists the groups of the line in the order in which they were made.
func (l *Line[U, N]) Groups() []*Group[U, N] {
	out := make([]*Group[U, N], 0, len(l.groups))
	for _, g := range l.groups {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *Group[U, N]) int { return cmp.Compare(a.number, b.number) })
	return out
}

// Join puts a unit that is not in line into the group of this key, and says whether the group is new. A new group is
// not open.
func (l *Line[U, N]) Join(u U, key Key) (g *Group[U, N], isNew bool) {
	at := l.sortKey(u)
	g, ok := l.groups[key]
	if !ok {
		l.made++
		g = &Group[U, N]{key: key, line: l, number: l.made, units: ordered.NewTree(l.compare), head: at}
		l.groups[key] = g
	}
	l.units.Insert(at)
	g.units.Insert(at)
	if l.compare(at, g.head) < 0 {
		g.setHead(at)
	}
	return g, !ok
}

// Part takes a unit out of its group and its line. A group that is empty then is gone.
func (g *Group[U, N]) Part(u U) {
	l, at := g.line, g.line.sortKey(u)
	l.units.Delete(at)
	if g.units.Len() == 1 {
		g.SetOpen(false)
		g.units.Delete(at)
		delete(l.groups, g.key)
		return
	}
	g.units.Delete(at)
	if g.head.unit == u {
		next, _ := g.units.Min()
		g.setHead(next)
	}
}

func (g *Group[U, N]) setHead(head sortKey[U]) {
	if g.open {
		g.line.open.Delete(g)
	}
	g.head = head
	if g.open {
		g.line.open.Insert(g)
	}
}

// SetOpen opens or closes the group.
func (g *Group[U, N]) SetOpen(open bool) {
	if g.open == open {
		return
	}
	if g.open = open; open {
		g.line.open.Insert(g)
	} else {
		g.line.open.Delete(g)
	}
}
