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
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// unitLine is a queue: its object, if there is one, and the units that name it.
type unitLine struct {
	name  string
	known bool
	spec  Queue
	// policy orders the units; that of spec, or Priority while that is not known.
	policy queue.Policy
	// fault says why the policy of spec could not be made.
	fault string
	// keyed is the policy, if it has keys.
	keyed queue.Keyed

	// refs counts the units that name the queue, holding those of them that hold quota.
	refs, holding int
	// full: as many units hold quota as the queue may have.
	full bool

	// waiting holds all units in groups, parked groups included: positions are taken here.
	waiting *queue.Tree[spot]
	groups  map[*group]struct{}
	lines   map[string]*line
	// waits are its places in the lists of groups that wait.
	waits map[*waitList]*waiters
	// byHead is compareHeads: it is passed to many trees.
	byHead func(a, b *group) int
	// active holds the groups with eligible units, dirty those that Decide is to look at, by their heads.
	active, dirty *queue.Tree[*group]

	// rank, while ranked, is the key in State.ranked, and in State.dirty while listed.
	rank                    QueueRank
	ranked, listed, touched bool
	// moved: in State.moved.
	moved    bool
	headLeaf *level
}

// queue finds or makes the queue of a name.
func (s *State) queue(name string) *unitLine {
	if q, ok := s.queues[name]; ok {
		return q
	}
	q := &unitLine{
		name:   name,
		groups: map[*group]struct{}{}, lines: map[string]*line{}, waits: map[*waitList]*waiters{},
	}
	q.setPolicy(s.policies["Priority"](0))
	s.queues[name] = q
	return q
}

// trees makes the empty trees, which are ordered by the policy.
func (q *unitLine) trees() {
	q.byHead = q.compareHeads
	q.active, q.dirty = queue.NewTree(q.byHead), queue.NewTree(q.byHead)
	q.waiting = queue.NewTree(q.compare)
}

func (q *unitLine) compareHeads(a, b *group) int { return q.compare(a.spot, b.spot) }

func (q *unitLine) line(leaf *level) *line {
	ln, ok := q.lines[leaf.name]
	if !ok {
		ln = &line{queue: q, leaf: leaf, groups: map[*group]struct{}{}, active: queue.NewTree(q.byHead)}
		q.lines[leaf.name] = ln
	}
	return ln
}

func (s *State) pruneQueue(name string) {
	if q, ok := s.queues[name]; ok && !q.known && q.refs == 0 {
		delete(s.queues, name)
	}
}

// UpsertQueue takes the Queue object as it is now.
func (s *State) UpsertQueue(now time.Time, in Queue) {
	q := s.queue(in.Name)
	if q.known && sameQueue(q.spec, in) {
		return
	}
	reorder := !q.known || q.spec.Policy != in.Policy || q.spec.Threshold != in.Threshold
	q.known, q.spec = true, in
	s.changed(now, q, reorder)
}

// DeleteQueue parks the units of a queue that goes with UnknownQueue.
func (s *State) DeleteQueue(now time.Time, name string) {
	q, ok := s.queues[name]
	if !ok || !q.known {
		return
	}
	q.known, q.spec = false, Queue{}
	s.changed(now, q, true)
	s.pruneQueue(name)
}

// changed brings the units of a queue in line with its object.
func (s *State) changed(now time.Time, q *unitLine, reorder bool) {
	if reorder {
		s.reorder(now, q)
	}
	for g := range q.groups {
		s.repark(now, g)
	}
	s.updateFull(q)
	s.touch(q)
}

// reorder moves all waiting units of a queue into the order of its present policy.
func (s *State) reorder(now time.Time, q *unitLine) {
	units := make([]*unit, 0, q.waiting.Len())
	q.waiting.Walk(func(at spot) bool { units = append(units, at.unit); return true })
	for _, u := range units {
		before := s.look(u)
		s.part(now, u)
		s.looked = before
	}
	var policy queue.Policy
	policy, q.fault = s.policyOf(q)
	q.setPolicy(policy)
	for _, u := range units {
		before := s.look(u)
		s.join(now, u)
		s.account(u)
		s.looked = before
	}
}

// policyOf is the policy that the queue names; Priority where that is not known, or panics while it is made. Then the units
// are parked.
func (s *State) policyOf(q *unitLine) (policy queue.Policy, fault string) {
	policy = s.policies["Priority"](q.spec.Threshold)
	factory, ok := s.policies[q.spec.Policy]
	if !q.known || !ok {
		return policy, ""
	}
	defer func() {
		if r := recover(); r != nil {
			s.panics++
			fault = fmt.Sprintf("internal error while policy %q of queue %q was made: %v", q.spec.Policy, q.name, r)
		}
	}()
	return factory(q.spec.Threshold), ""
}

// updateFull closes or opens a queue with a bound on admitted units.
func (s *State) updateFull(q *unitLine) {
	full := q.known && q.spec.MaxAdmitted >= 0 && q.holding >= int(q.spec.MaxAdmitted)
	if full == q.full {
		return
	}
	q.full = full
	for _, ln := range q.lines {
		s.dropClaim(ln)
	}
	for g := range q.groups {
		s.markDirty(g)
	}
}

// touch remembers that the rank of a queue may have changed.
func (s *State) touch(q *unitLine) {
	if !q.touched {
		q.touched = true
		s.touched = append(s.touched, q)
	}
}

func (s *State) listDirty(q *unitLine) {
	if q.ranked && !q.listed && q.dirty.Len() > 0 {
		q.listed = true
		s.dirty.Insert(q)
	}
	if !q.ranked {
		s.touch(q)
	}
}

func (s *State) unlistDirty(q *unitLine) {
	if q.listed && q.dirty.Len() == 0 {
		q.listed = false
		s.dirty.Delete(q)
	}
}

// refreshRanks brings the order of the queues up to date. Claims bind the queues behind only, so where the
// order changes, what the claims stopped is looked at again.
func (s *State) refreshRanks() {
	for len(s.touched) > 0 {
		touched := s.touched
		s.touched, s.retouched = s.retouched[:0], nil
		if len(touched) > 1 {
			slices.SortFunc(touched, func(a, b *unitLine) int { return strings.Compare(a.name, b.name) })
		}
		for _, q := range touched {
			q.touched = false
			s.refreshRank(q)
		}
		clear(touched)
		s.retouched = touched
	}
}

func (s *State) refreshRank(q *unitLine) {
	rank, leaf, eligible := s.currentRank(q)
	if q.headLeaf != leaf {
		if q.headLeaf != nil {
			delete(q.headLeaf.heads, q)
		}
		if leaf != nil {
			leaf.heads[q] = struct{}{}
		}
		q.headLeaf = leaf
	}
	if eligible == q.ranked && (!eligible || rank == q.rank) {
		return
	}
	var looked *unit
	if eligible {
		// An order that cannot cope with a queue is to fail over that one, not over whichever is compared with it.
		first, _ := q.active.Min()
		looked = s.look(first.head)
		s.order.Compare(rank, rank)
	}
	before := -1
	if q.ranked {
		if s.claims > 0 {
			before = s.ranked.Rank(q)
		}
		s.ranked.Delete(q)
		if q.listed {
			s.dirty.Delete(q)
			q.listed = false
		}
	}
	s.move(q, func() { q.rank, q.ranked = rank, eligible })
	if !eligible {
		return
	}
	s.ranked.Insert(q)
	s.listDirty(q)
	if before >= 0 && s.ranked.Rank(q) != before {
		s.reranked(q)
	}
	s.looked = looked
}

func (s *State) currentRank(q *unitLine) (QueueRank, *level, bool) {
	first, ok := q.active.Min()
	if !ok {
		return QueueRank{}, nil, false
	}
	ofMin, ofMax := s.shares(first.leaf)
	return QueueRank{
		Name: q.name, Priority: q.spec.Priority, ShareOfMin: ofMin, ShareOfMax: ofMax, Head: first.head.item(),
	}, first.leaf, true
}

// reranked wakes what a queue stops by claims, and what of the queue claims stop. Its own claimants may be short now
// at gates that they did not claim at, or not be short any more, on their whole path.
func (s *State) reranked(q *unitLine) {
	for _, ln := range q.lines {
		if ln.claim == nil {
			continue
		}
		for _, gt := range ln.claim.path {
			s.review(gt, true)
		}
		s.wakeBorrowersOn(ln.claim.path)
	}
	if !q.moved {
		q.moved = true
		s.moved = append(s.moved, q)
	}
}

// wakeMoved wakes the groups of queues at a new place that claims do not stop there.
func (s *State) wakeMoved() {
	for _, q := range s.moved {
		q.moved = false
		for g := range q.groups {
			if g.wait.forClaim && !g.dirty && !s.stopped(g) {
				s.markDirty(g)
			}
			s.wakeBorrower(g)
		}
		for w := range q.waits {
			s.wakeWaiters(w.at, w.resource, w.free())
		}
	}
	clear(s.moved)
	s.moved = s.moved[:0]
}

func sameQueue(a, b Queue) bool {
	return a.Name == b.Name && a.Policy == b.Policy && a.Priority == b.Priority && a.Threshold == b.Threshold &&
		a.Held == b.Held && a.MaxAdmitted == b.MaxAdmitted &&
		slices.Equal(a.Quotas, b.Quotas) && (a.Quotas == nil) == (b.Quotas == nil) // nil accepts all, an empty list none
}
