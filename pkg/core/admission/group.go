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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// groupKey is what makes two waiting units of equal standing: when the first of them does not fit, the
// others do not either.
type groupKey struct {
	queue, quota           string
	request                string
	nonPreemptible, blocks bool
	// checks are the equivalence keys of the extensions' checks.
	checks string
}

// group is an ordered set of units that are decided alike.
type group struct {
	key      groupKey
	sequence uint64
	queue    *unitLine
	leaf     *level
	line     *line
	request  resources.List

	units *queue.Tree[spot]
	head  *unit
	// spot is that of head.
	spot spot

	// parked: no unit of the group is eligible, for this reason.
	parked Reason
	// dirty: Decide is to look at it. A group that is not empty, parked or dirty is blocked.
	dirty bool
	// reason why the head was last found not to fit.
	reason Reason
	// wait is where a blocked group is registered, also while it is dirty again. A group whose head claims, or
	// that a check or the bound of its queue stops, waits nowhere.
	wait wait
	// borrow is where a group that fits within no limit is registered for what it could borrow.
	borrow wait

	// gates that a unit of the group has to pass, as of State.tree.
	gates   []*gate
	gatesOf int64
}

// wait registers a blocked group with a gate: for an amount of a resource to be free, or for any
// relaxation of the claims there.
type wait struct {
	at       *gate
	resource string
	need     int64
	forClaim bool
}

// line is the blocking units of one queue that draw on one quota. The first of them that does not fit claims.
type line struct {
	queue  *unitLine
	leaf   *level
	groups map[*group]struct{}
	// active holds those with eligible units, by their heads.
	active *queue.Tree[*group]
	claim  *claim
}

// join puts an eligible unit into its group.
func (s *State) join(now time.Time, u *unit) {
	var g *group
	fault := s.tryPolicy(u)
	if fault == "" {
		g, fault = s.groupFor(u)
	}
	if fault != "" {
		s.refuse(now, u, ReasonInternalError, fault)
		s.placeWaiting(now, u)
		return
	}
	at := g.queue.spot(u)
	g.units.Insert(at)
	g.queue.waiting.Insert(at)
	u.group = g
	if g.head == nil || g.queue.compare(at, g.spot) < 0 {
		s.setHead(now, g, u)
		s.markDirty(g)
	}
	switch {
	case g.parked != "":
		s.armParked(now, u)
	case u.told != "":
		// What the object says is not true any more.
		s.tellAt(u, later(now.Add(s.cfg.ExplainAfter), u.toldAt.Add(s.cfg.ExplainEvery)))
	default:
		s.tellAt(u, time.Time{})
	}
}

// part takes a unit out of its group.
func (s *State) part(now time.Time, u *unit) {
	g := u.group
	at := g.queue.spot(u)
	g.units.Delete(at)
	g.queue.waiting.Delete(at)
	u.group = nil
	u.headSince = 0
	if g.head == u {
		next, _ := g.units.Min()
		s.setHead(now, g, next.unit)
	}
	if g.head == nil {
		s.dropGroup(g)
	}
}

func compareGroups(a, b *group) int { return cmp.Compare(a.sequence, b.sequence) }

// groupFor finds or makes the group of a unit. A check of an extension that panics is reported as a fault.
func (s *State) groupFor(u *unit) (g *group, fault string) {
	q := s.queue(u.spec.Queue)
	checks, fault := s.checkKeys(u)
	if fault != "" {
		return nil, fault
	}
	key := groupKey{
		queue: u.spec.Queue, quota: u.spec.Quota, request: u.spec.requestKey,
		nonPreemptible: u.spec.NonPreemptible, blocks: q.policy.Blocks(u.spec.Priority), checks: checks,
	}
	if g, ok := s.groups[key]; ok {
		return g, ""
	}
	s.sequence++
	leaf := s.level(u.spec.Quota)
	g = &group{
		key: key, sequence: s.sequence,
		queue: q, leaf: leaf, request: u.spec.Request,
	}
	g.units = queue.NewTree(q.compare)
	if key.blocks {
		g.line = q.line(leaf)
		g.line.groups[g] = struct{}{}
	}
	s.groups[key] = g
	q.groups[g] = struct{}{}
	leaf.groups[g] = struct{}{}
	g.parked, _ = s.checkGroup(g)
	return g, ""
}

// dropGroup forgets an empty group.
func (s *State) dropGroup(g *group) {
	delete(s.groups, g.key)
	delete(g.queue.groups, g)
	delete(g.leaf.groups, g)
	if g.line != nil {
		delete(g.line.groups, g)
		if len(g.line.groups) == 0 {
			delete(g.queue.lines, g.leaf.name)
		}
	}
	s.pruneLevel(g.leaf)
}

// setHead changes the first unit of a group, in all the trees that are ordered by it.
func (s *State) setHead(now time.Time, g *group, head *unit) {
	if g.head == head {
		return
	}
	if head == nil {
		s.unregister(g)
	}
	s.unlist(g)
	if g.head != nil {
		g.head.headSince = 0
	}
	claimed := g.line != nil && g.line.claim != nil && g.line.claim.group == g
	g.head, g.spot = head, spot{}
	if head != nil {
		g.spot = g.queue.spot(head)
	}
	if head == nil {
		g.dirty = false
	}
	s.list(g)
	if claimed {
		s.dropClaim(g.line)
	}
	s.succeed(g.line)
	if g.blocked() {
		s.armHead(now, g)
	}
	s.touch(g.queue)
}

// list enters a group into the trees of its queue; unlist takes it out.
func (s *State) list(g *group) {
	if g.head == nil || g.parked != "" {
		return
	}
	q := g.queue
	q.active.Insert(g)
	g.places(func(byHead *queue.Tree[*group]) { byHead.Insert(g) })
	if g.line != nil {
		g.line.active.Insert(g)
	}
	if g.dirty {
		q.dirty.Insert(g)
		s.listDirty(q)
	}
}

func (s *State) unlist(g *group) {
	if g.head == nil || g.parked != "" {
		return
	}
	q := g.queue
	q.active.Delete(g)
	g.places(func(byHead *queue.Tree[*group]) { byHead.Delete(g) })
	if g.line != nil {
		g.line.active.Delete(g)
	}
	if g.dirty {
		q.dirty.Delete(g)
		s.unlistDirty(q)
	}
}

// markDirty makes Decide look at a group. The group stays registered: most often it will wait for the same.
func (s *State) markDirty(g *group) {
	if g.dirty || !g.listable() {
		return
	}
	g.dirty = true
	g.queue.dirty.Insert(g)
	s.listDirty(g.queue)
}

// listable groups are those that markDirty marks.
func (g *group) listable() bool { return g.head != nil && g.parked == "" }

func (g *group) blocked() bool { return g.head != nil && g.parked == "" && !g.dirty }

// markBlocked ends the state dirty; the caller registers the group.
func (s *State) markBlocked(g *group) {
	g.queue.dirty.Delete(g)
	g.dirty = false
	s.unlistDirty(g.queue)
}

// register enters a blocked group with the gate that stops it, in place of where it waited before; unregister
// takes it out.
func (s *State) register(g *group, w wait) {
	if g.wait == w {
		return
	}
	s.leaveWait(g, &g.wait)
	g.wait = w
	if w.forClaim {
		w.at.book.wait(g)
		return
	}
	w.at.enter(g)
}

func (s *State) unregister(g *group) {
	s.leaveWait(g, &g.wait)
	s.leaveWait(g, &g.borrow)
}

func (s *State) leaveWait(g *group, w *wait) {
	at := w.at
	switch {
	case at == nil:
		return
	case w.forClaim:
		if at.kind == gateBeyond {
			at.level.behind.exit(g)
		} else {
			at.book.waitNoMore(g)
		}
	default:
		at.exit(g)
	}
	*w = wait{}
	if at.kind == gateBeyond {
		s.borrowers--
	} else {
		// It may have been the one for which nobody could borrow here.
		s.wakeBorrowers(at.level)
	}
}

// repark takes the checks of a whole group again after what they depend on changed.
func (s *State) repark(now time.Time, g *group) {
	reason, _ := s.checkGroup(g)
	if reason == g.parked {
		return
	}
	wasParked := g.parked != ""
	if reason != "" && !wasParked {
		if g.line != nil && g.line.claim != nil && g.line.claim.group == g {
			s.dropClaim(g.line)
		}
		s.unregister(g)
		s.unlist(g)
		g.dirty = false
	}
	g.parked = reason
	if reason == "" {
		g.dirty = false
		s.list(g)
		s.markDirty(g)
	}
	s.succeed(g.line)
	s.touch(g.queue)
	g.units.Walk(func(at spot) bool {
		u := at.unit
		s.account(u)
		if reason != "" {
			s.armParked(now, u)
		} else if u.told != "" {
			s.tellAt(u, later(now.Add(s.cfg.ExplainAfter), u.toldAt.Add(s.cfg.ExplainEvery)))
		} else {
			s.tellAt(u, time.Time{})
		}
		return true
	})
}
