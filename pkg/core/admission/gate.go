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

package admission

import (
	"math"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// gate is one limit that a unit has to pass: the limit of a level, or its min, which non-preemptible units have to
// pass as well, on every level. To borrow it has to pass the gate beyond on every level in place of the limit.
type gate struct {
	level *level
	kind  gateKind
	// compareQueues is State.compareQueues, need is needOf: they are passed to many trees.
	compareQueues func(a, b *unitLine) int
	need          func(g *group) int64
	// free is limit - used - outstanding of every resource that the limit names. It is negative where more is
	// in use than the limit allows.
	free []resources.Item
	// former is the memory of the amounts before these, to be used again.
	former []resources.Item

	// waiters are blocked groups by resource.
	waiters map[string]*waitList
	book    book
}

func (gt *gate) isMin() bool { return gt.kind == gateMin }

type gateKind int

const (
	gateLimit gateKind = iota
	gateMin
	gateBeyond
)

// claim is what the first unit of a line that does not fit waits for: its whole request, on every gate where
// it is short. What is behind it has to fit beside it.
type claim struct {
	group *group
	unit  *unit
	// path are the gates that the unit has to pass; it is short at some of them, unless its group is dirty.
	path []*gate
	// watch is the gate in whose book it is watched.
	watch *gate
	// deciding: it is short nowhere, and its group dirty.
	deciding bool
}

func (gt *gate) init(s *State, l *level, kind gateKind) {
	*gt = gate{level: l, kind: kind, compareQueues: s.compareQueues, waiters: map[string]*waitList{}, book: newBook(s)}
	gt.need = gt.needOf
}

// freeOf is how much of a resource is free; limited is false where there is no limit.
func (gt *gate) freeOf(resource string) (free int64, limited bool) {
	for _, f := range gt.free {
		if f.Name == resource {
			return f.Amount, true
		}
	}
	return 0, false
}

func (gt *gate) limit() resources.List {
	if gt.isMin() {
		return gt.level.spec.Min
	}
	return gt.level.spec.Limit
}

func (gt *gate) used() resources.List {
	if gt.isMin() {
		return gt.level.spec.NonPreemptibleUsed
	}
	return gt.level.spec.Used
}

func (s *State) outstandingAt(gt *gate, resource string) int64 {
	if resource == resources.Jobs {
		return s.ledger.Units(gt.level.name)
	}
	if gt.isMin() {
		return s.ledger.OutstandingNonPreemptibleOf(gt.level.name, resource)
	}
	return s.ledger.OutstandingOf(gt.level.name, resource)
}

// gatesFor lists the gates that a unit of the group has to pass, leaf first.
//
// ElasticQuota compares non-preemptible pods with the min of their own quota only. Min is a promise of capacity, and
// what a parent promises to its children together is its own min: were it compared at the leaf alone, children whose
// min adds up to more would be promised the same capacity twice, and nobody could take it back.
func (s *State) gatesFor(g *group) []*gate {
	if g.gatesOf == s.tree && g.gates != nil {
		return g.gates
	}
	path, _ := s.pathTo(g.leaf)
	gates := make([]*gate, 0, 2*len(path))
	for _, l := range path {
		gates = append(gates, &l.main)
		if g.key.nonPreemptible {
			gates = append(gates, &l.min)
		}
	}
	g.gates, g.gatesOf = gates, s.tree
	return gates
}

// refreshGate recomputes the free amounts. A group that waits for an amount is woken when it is there; what
// waits for claims, and the claimants, are reviewed when anything grew.
func (s *State) refreshGate(gt *gate, held ledger.Reading) {
	used, outstanding := gt.used(), held.Outstanding()
	if gt.isMin() {
		outstanding = held.OutstandingNonPreemptible()
	}
	free := gt.former[:0]
	for _, it := range gt.limit().Items() {
		inUse, _ := used.Get(it.Name)
		reserved := outstanding.Get(it.Name)
		if it.Name == resources.Jobs {
			reserved = held.Units()
		}
		inUse = resources.SaturatingAdd(inUse, reserved)
		limit := it.Amount
		if gt.kind == gateBeyond {
			asked, _ := gt.level.asked.Get(it.Name)
			limit, inUse = gt.level.spec.beyond(it), max(inUse, asked)
		}
		free = append(free, resources.Item{Name: it.Name, Amount: resources.SaturatingSub(limit, inUse)})
	}
	old := gt.free
	gt.free, gt.former = free, old
	grew, shrank := s.compareFree(gt, old)
	if grew && gt.kind == gateBeyond {
		s.wakeBehind(gt.level)
	}
	if (grew || shrank) && gt.kind != gateBeyond {
		s.review(gt, grew)
		s.wakeBorrowersUp(gt.level)
	}
}

// compareFree wakes the groups whose amount is there now and says which ways the gate went.
func (s *State) compareFree(gt *gate, old []resources.Item) (grew, shrank bool) {
	i, j := 0, 0
	for i < len(old) || j < len(gt.free) {
		switch {
		case j == len(gt.free) || (i < len(old) && old[i].Name < gt.free[j].Name):
			// Not limited any more.
			grew = true
			s.wakeWaiters(gt, old[i].Name, math.MaxInt64)
			i++
		case i == len(old) || gt.free[j].Name < old[i].Name:
			shrank = true
			j++
		default:
			if gt.free[j].Amount > old[i].Amount {
				grew = true
				s.wakeWaiters(gt, gt.free[j].Name, gt.free[j].Amount)
			} else if gt.free[j].Amount < old[i].Amount {
				shrank = true
			}
			i++
			j++
		}
	}
	return grew, shrank
}

// setClaim enters the claim of a line, in place of the one before: of the head of a group that is short at some gate.
// Whoever competes with either is looked at again.
func (s *State) setClaim(g *group, short *gate) {
	ln, path := g.line, s.gatesFor(g)
	old := ln.claim
	if old != nil && old.unit == g.head && slices.Equal(old.path, path) {
		if old.deciding {
			// Where it is not short it takes nothing any more.
			s.decideSoon(old, false)
			for _, gt := range path {
				s.review(gt, true)
			}
		}
		s.watch(old, short)
		return
	}
	s.removeClaim(ln)
	s.unregister(g)
	c := &claim{group: g, unit: g.head, path: path}
	ln.claim = c
	s.claims++
	for _, gt := range path {
		gt.book.enter(gt, c)
		s.review(gt, false)
	}
	s.watch(c, short)
	s.wakeBorrowersOn(path)
	if old != nil && old.group != g {
		s.markDirty(old.group)
	}
}

// removeClaim takes the claim of a line out of the book. What it stopped is looked at again.
func (s *State) removeClaim(ln *line) {
	c := ln.claim
	if c == nil {
		return
	}
	s.decideSoon(c, false)
	for _, gt := range c.path {
		gt.book.exit(gt, c)
		s.review(gt, true)
	}
	s.watch(c, nil)
	ln.claim = nil
	s.claims--
	s.wakeBorrowersOn(c.path)
}

// dropClaim ends the claim of a line. What it stopped is looked at again, and who claims next.
func (s *State) dropClaim(ln *line) {
	c := ln.claim
	if c == nil {
		return
	}
	s.removeClaim(ln)
	// It waits nowhere.
	s.markDirty(c.group)
	s.succeed(ln)
	if len(s.cfg.Checks) == 0 {
		return
	}
	// A check may stop the first, and those after it.
	for g := range ln.groups {
		s.markDirty(g)
	}
}

// succeed has the first unit of a line without a claim looked at: it claims if it does not fit. Those behind it wait for an
// amount, or for claims, as they did.
func (s *State) succeed(ln *line) {
	if ln == nil || ln.claim != nil || ln.queue.full {
		return
	}
	if first, ok := ln.active.Min(); ok {
		s.markDirty(first)
	}
}
