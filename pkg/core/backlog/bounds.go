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
	"maps"
	"slices"
)

// Bounds say which units may be in a line. These are the first of each namespace, up to a bound, and of them the first
// up to another. Units within the bounds are inside, the others outside.
//
// The sides say nothing about the line itself: the owner of both moves a unit by the answers of Enter. Without a bound
// nothing is kept.
type Bounds[U Unit, N any] struct {
	line        *Line[U, N]
	namespaceOf func(U) string
	// each is the bound of each namespace, all that of all; below zero is none.
	each, all int
	ofEach    map[string]*share[U, N]
	// ofAll has the units that are inside the share of their namespace.
	ofAll *share[U, N]
	// unsettled are namespaces.
	unsettled map[string]struct{}
}

// NewBounds returns bounds of the line that know no unit: so many of each namespace, and so many in all. Below zero is
// no bound. After Reorder the line needs new ones.
func (l *Line[U, N]) NewBounds(namespaceOf func(U) string, each, all int) *Bounds[U, N] {
	return &Bounds[U, N]{
		line: l, namespaceOf: namespaceOf, each: each, all: all,
		ofEach: map[string]*share[U, N]{}, ofAll: newShare(l, max(all, 0)), unsettled: map[string]struct{}{},
	}
}

// None says that there is no bound.
func (b *Bounds[U, N]) None() bool { return b.each < 0 && b.all < 0 }

// Enter says whether a unit is inside, and keeps it on that side until Leave, or until Settle moves it.
func (b *Bounds[U, N]) Enter(u U) (inside bool) {
	if b.each >= 0 && !b.enterOwn(u) {
		b.leaveAll(u)
		return false
	}
	return b.all < 0 || b.ofAll.enter(u)
}

func (b *Bounds[U, N]) enterOwn(u U) (inside bool) {
	namespace := b.namespaceOf(u)
	own, ok := b.ofEach[namespace]
	if !ok {
		own = newShare(b.line, b.each)
		b.ofEach[namespace] = own
	}
	inside = own.enter(u)
	b.note(namespace, own)
	return inside
}

// Leave forgets a unit, if it is known.
func (b *Bounds[U, N]) Leave(u U) {
	namespace := b.namespaceOf(u)
	if own, ok := b.ofEach[namespace]; ok {
		own.remove(u)
		b.note(namespace, own)
	}
	b.leaveAll(u)
}

func (b *Bounds[U, N]) leaveAll(u U) {
	if b.ofAll.len() > 0 { // else the policy need not be asked
		b.ofAll.remove(u)
	}
}

// note keeps up with a share of a namespace that has changed.
func (b *Bounds[U, N]) note(namespace string, own *share[U, N]) {
	if own.settled() {
		delete(b.unsettled, namespace)
	} else {
		b.unsettled[namespace] = struct{}{}
	}
	if own.len() == 0 {
		delete(b.ofEach, namespace)
	}
}

// Settled says that each unit is on the side where it belongs.
func (b *Bounds[U, N]) Settled() bool { return len(b.unsettled) == 0 && b.ofAll.settled() }

// Settle moves units to the side where they belong and returns them; none if all are there. Each of them has to enter
// again before the next call, because the bound of all follows from those of the namespaces.
func (b *Bounds[U, N]) Settle() (moved []U) {
	for _, namespace := range slices.Sorted(maps.Keys(b.unsettled)) {
		moved = append(moved, b.ofEach[namespace].settle()...)
	}
	if clear(b.unsettled); len(moved) > 0 {
		return moved
	}
	return b.ofAll.settle()
}

// Outside lists the units outside: by namespace, then those that only the bound of all keeps out, each in the order of
// the line.
func (b *Bounds[U, N]) Outside() (units []U) {
	add := func(k sortKey[U]) bool { units = append(units, k.unit); return true }
	for _, namespace := range slices.Sorted(maps.Keys(b.ofEach)) {
		b.ofEach[namespace].outside.Walk(add)
	}
	b.ofAll.outside.Walk(add)
	return units
}

// OutsideOwn says that the bound of its namespace keeps a unit outside.
func (b *Bounds[U, N]) OutsideOwn(u U) bool {
	own, ok := b.ofEach[b.namespaceOf(u)]
	return ok && own.outside.Contains(b.line.sortKey(u))
}
