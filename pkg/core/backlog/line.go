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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// Unit is what waits.
type Unit interface {
	comparable
	// Item is what the place of the unit depends on. It does not change while the unit is in a line.
	Item() queue.Item
}

// Line has the units of one queue in the order of its policy. N is what the owner of the line keeps of each group.
type Line[U Unit, N any] struct {
	policy queue.Policy
	// units are all that are in line, open or not: positions are taken here.
	units  *ordered.Tree[sortKey[U]]
	groups map[Key]*Group[U, N]
	// open are the open groups by their heads.
	open *ordered.Tree[*Group[U, N]]
	// made numbers the groups.
	made int64
}

// sortKey is a unit in the trees of its line. It carries the keys of the policy, so that comparing two of many units
// seldom reads the units.
type sortKey[U Unit] struct {
	keys queue.Keys
	unit U
}

// NewLine returns an empty line.
func NewLine[U Unit, N any](policy queue.Policy) *Line[U, N] {
	l := &Line[U, N]{groups: map[Key]*Group[U, N]{}}
	l.setPolicy(policy)
	return l
}

func (l *Line[U, N]) setPolicy(policy queue.Policy) {
	l.policy = policy
	l.units = ordered.NewTree(l.compare)
	l.open = ordered.NewTree(func(a, b *Group[U, N]) int { return l.compare(a.head, b.head) })
}

// Reorder gives an empty line another policy.
func (l *Line[U, N]) Reorder(policy queue.Policy) {
	if l.units.Len() > 0 {
		panic("backlog: a line with units keeps its policy")
	}
	l.setPolicy(policy)
}

// Policy of the line.
func (l *Line[U, N]) Policy() queue.Policy { return l.policy }

func (l *Line[U, N]) sortKey(u U) sortKey[U] {
	return sortKey[U]{keys: queue.KeysOf(l.policy, u.Item()), unit: u}
}

func (l *Line[U, N]) compare(a, b sortKey[U]) int {
	if c := a.keys.Compare(b.keys); c != 0 || a.unit == b.unit {
		return c
	}
	return l.policy.Compare(a.unit.Item(), b.unit.Item())
}

// Try asks the policy about a unit alone, before others are compared with it. If the policy panics, it panics over that
// unit, and not over the first one that is compared with it.
func (l *Line[U, N]) Try(u U) {
	it := u.Item()
	l.policy.Compare(it, it)
	l.policy.Blocks(it.Priority)
}

// Before says whether one unit is served before another.
func (l *Line[U, N]) Before(a, b U) bool { return l.compare(l.sortKey(a), l.sortKey(b)) < 0 }

// Len is the number of units in line.
func (l *Line[U, N]) Len() int { return l.units.Len() }

// Position of a unit in line, from 1, in O(log n).
func (l *Line[U, N]) Position(u U) int { return l.units.Rank(l.sortKey(u)) + 1 }

// First unit of the line.
func (l *Line[U, N]) First() (U, bool) {
	first, ok := l.units.Min()
	return first.unit, ok
}

// Walk visits the units in order until visit returns false.
func (l *Line[U, N]) Walk(visit func(U) bool) {
	l.units.Walk(func(k sortKey[U]) bool { return visit(k.unit) })
}

// WalkAt visits the units in order, after the first skip ones, until visit returns false. To come there takes O(log n).
func (l *Line[U, N]) WalkAt(skip int, visit func(U) bool) {
	l.units.WalkAt(skip, func(k sortKey[U]) bool { return visit(k.unit) })
}

// Heads visits the open groups in the order of their heads until visit returns false.
func (l *Line[U, N]) Heads(visit func(*Group[U, N]) bool) { l.open.Walk(visit) }

// Head is the first unit of an open group, and its group; false if no group is open.
func (l *Line[U, N]) Head() (*Group[U, N], bool) { return l.open.Min() }
