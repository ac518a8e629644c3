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
	"cmp"
	"math"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// waitList holds the blocked groups that wait for one resource at one gate.
//
// Many queues may wait where all compete, at the root above all, and what comes free there is seldom enough for more than
// one of them. So the groups are not woken when it does: the gate is noted, and Decide takes from it the first queue in
// the order of queues that has a group for which it is enough, then the next if anything is left.
type waitList struct {
	at       *gate
	resource string
	// byNeed holds all, ordered by how much has to be free for them.
	byNeed *queue.Tree[*group]
	// queues are those of the groups, first served first; each is measured by the least that has to be free.
	queues *queue.Tree[*waiters]
	// woken: in State.woken, or State.lendable.
	woken bool
}

// waiters are the groups of one queue in a waitList, in the order of the queue, each measured by how much has to be free for
// it. A queue with waiters is ranked.
type waiters struct {
	queue  *unitLine
	byHead *queue.Tree[*group]
	// least that one of them needs.
	least int64
}

// needOf is how much has to be free for a group that waits at a gate.
func (gt *gate) needOf(g *group) int64 { return gt.waitOf(g).need }

// waitOf is how a group waits at a gate.
func (gt *gate) waitOf(g *group) *wait {
	if gt.kind == gateBeyond {
		return &g.borrow
	}
	return &g.wait
}

func (gt *gate) compareNeeds(a, b *group) int {
	if c := cmp.Compare(gt.needOf(a), gt.needOf(b)); c != 0 {
		return c
	}
	return compareGroups(a, b)
}

func (gt *gate) newWaitList(resource string) *waitList {
	return &waitList{
		at: gt, resource: resource, byNeed: queue.NewTree(gt.compareNeeds),
		queues: queue.NewMeasuredTree(
			func(a, b *waiters) int { return gt.compareQueues(a.queue, b.queue) },
			func(own *waiters) int64 { return own.least },
		),
	}
}

// enter adds a group that waits as its wait says.
func (gt *gate) enter(g *group) {
	resource, need := gt.waitOf(g).resource, gt.waitOf(g).need
	w, ok := gt.waiters[resource]
	if !ok {
		w = gt.newWaitList(resource)
		gt.waiters[resource] = w
	}
	w.byNeed.Insert(g)
	own, ok := g.queue.waits[w]
	if !ok {
		own = &waiters{queue: g.queue, byHead: queue.NewMeasuredTree(g.queue.byHead, gt.need), least: need}
		g.queue.waits[w] = own
		w.queues.Insert(own)
	}
	own.byHead.Insert(g)
	w.remeasure(own)
}

// exit takes a group out.
func (gt *gate) exit(g *group) {
	w := gt.waiters[gt.waitOf(g).resource]
	w.byNeed.Delete(g)
	own := g.queue.waits[w]
	own.byHead.Delete(g)
	if own.byHead.Len() > 0 {
		w.remeasure(own)
	} else {
		w.queues.Delete(own)
		delete(g.queue.waits, w)
	}
	if w.byNeed.Len() == 0 {
		delete(gt.waiters, w.resource)
	}
}

// remeasure finds out how little one of the groups of a queue needs.
func (w *waitList) remeasure(own *waiters) {
	if former, least := own.least, own.byHead.Least(); least != former {
		own.least = least
		w.queues.Remeasured(own, former)
	}
}

// places visits the trees where a group that waits for an amount is found by its head.
func (g *group) places(visit func(byHead *queue.Tree[*group])) {
	for _, w := range [...]*wait{&g.wait, &g.borrow} {
		if w.at != nil && !w.forClaim {
			visit(g.queue.waits[w.at.waiters[w.resource]].byHead)
		}
	}
}

// enough says whether there is a group for which what is free is enough.
func (w *waitList) enough(free int64) bool {
	first, ok := w.byNeed.Min()
	return ok && w.at.waitOf(first).need <= free
}

// free is how much there is now; a resource that is not limited any more is enough for everybody.
func (w *waitList) free() int64 {
	if free, limited := w.at.freeOf(w.resource); limited {
		return free
	}
	return math.MaxInt64
}

// wakeWaiters notes that groups that wait for at most this much of a resource are to be looked at.
func (s *State) wakeWaiters(gt *gate, resource string, free int64) {
	if w, ok := gt.waiters[resource]; ok && w.enough(free) {
		s.note(w)
	}
}

// note keeps a list for Decide to look at.
func (s *State) note(w *waitList) {
	if w.woken {
		return
	}
	w.woken = true
	if w.at.kind == gateBeyond {
		s.lendable = append(s.lendable, w)
	} else {
		s.woken = append(s.woken, w)
	}
}

// wakeNext marks of every noted gate the first group of the first queue for which there is enough, unless a queue that comes
// before it is dirty already. What is served first of all that could fit now is dirty then.
func (s *State) wakeNext(lists *[]*waitList) {
	// Looking at a list may note others.
	noted := *lists
	*lists = nil
	kept := noted[:0]
	for _, w := range noted {
		if free := w.free(); w.enough(free) && s.lends(w.at) && s.wakeFirst(w, free) {
			kept = append(kept, w)
		} else {
			w.woken = false
		}
	}
	clear(noted[len(kept):])
	*lists = append(kept, *lists...)
}

// wakeFirst says whether anything is dirty after it: when nothing is, nobody waits at the gate who is served.
func (s *State) wakeFirst(w *waitList, free int64) bool {
	first, found := w.queues.FirstWithin(free)
	served, any := s.dirty.Min()
	if found && (!any || s.compareQueues(first.queue, served) <= 0) {
		if g, ok := first.byHead.FirstWithin(free); ok && !s.takenBefore(w, g, free) {
			s.markDirty(g)
		}
	}
	return s.dirty.Len() > 0
}
