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
	"maps"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Borrowing keeps shares from starving jobs that are larger than them (I6).
//
// Where the limit of a quota is its runtime, what is above all min is divided among all that ask for it. A job is
// admitted whole or not at all, so every one of these shares may be too small for the job that it is kept for, and
// everybody waits while nothing runs. So what nobody can use within the limits is lent: a unit is admitted beyond
// the runtime, up to max, if
//
//   - no unit waits that fits within its limits (Decide asks for loans last) or that would on all levels, and finds the
//     capacity in use first on one that the loan would be taken from (shut): small loans could keep it waiting for ever;
//   - on every level up to the total it fits beside all that is admitted, used, asked for by pods outside of waiting units,
//     or kept by quotas that lend nothing: as if nobody else waited (asked);
//   - on every level it fits beside the whole request of each blocking unit ahead of it, and min allows it as ever.
//
// Units borrow in the order in which they are served. A loan is not taken back; it ends with the job.

// beyond is what bounds an item of the limit where units borrow.
func (q *Quota) beyond(limit resources.Item) int64 {
	if most, ok := q.Max.Get(limit.Name); ok && q.Shared {
		return most
	}
	return limit.Amount
}

// lent says whether the head of a group that fits within no limit may borrow what it asks for.
func (s *State) lent(g *group, v *verdict) bool {
	if !s.borrows(g, v) {
		return false
	}
	s.mend(g.leaf)
	s.mendClaimed(g.leaf)
	_, ready := s.loan(g, v)
	return ready
}

// awaitLoan registers a blocked group where a change can make it borrow; one that can borrow already, where Decide
// lends.
func (s *State) awaitLoan(g *group, v *verdict) {
	if s.borrows(g, v) {
		s.mend(g.leaf)
	}
	w, _ := s.loan(g, v)
	if w != g.borrow {
		s.leaveWait(g, &g.borrow)
	}
	if w.at == nil {
		return
	}
	if w != g.borrow {
		g.borrow = w
		s.borrowers++
		if w.forClaim {
			w.at.level.behind.enter(g)
		} else {
			w.at.enter(g)
		}
	}
	if !w.forClaim {
		s.note(w.at.waiters[w.resource])
	}
}

// loan says whether the head of a group may borrow, and if not, where to wait until it may; nowhere if something stops it
// that stops it within the limits too, or a unit of its own line does.
func (s *State) loan(g *group, v *verdict) (w wait, ready bool) {
	if !s.borrows(g, v) {
		return wait{}, false
	}
	path, _ := s.pathTo(g.leaf)
	for _, l := range path {
		var m verdict
		if s.measure(&m, &l.beyond, g.head) {
			return wait{at: &l.beyond, resource: m.short.resource, need: m.short.need}, false
		}
	}
	for _, l := range path {
		if s.behindClaims(l, g) {
			return wait{at: &l.beyond, forClaim: true}, false
		}
	}
	for _, l := range path {
		if s.shut(l) {
			return wait{at: &l.beyond}, false
		}
	}
	return wait{at: &path[len(path)-1].beyond}, true
}

// borrows says whether the group is of those to whom anything is ever lent.
func (s *State) borrows(g *group, v *verdict) bool {
	behind := g.key.blocks && (g.line.claim == nil || g.line.claim.group != g)
	if v.stopped != "" || v.min.at != nil || behind {
		return false
	}
	path, _ := s.pathTo(g.leaf)
	return slices.ContainsFunc(path, func(l *level) bool { return l.spec.Shared })
}

// whyNotLent says in words why a unit that waits for its share is not admitted beyond it. It is empty where that is not the
// question.
func (s *State) whyNotLent(g *group, v *verdict) string {
	if v.short.at == nil || v.short.at.isMin() {
		return ""
	}
	if _, bound := v.short.at.bound(v.short.resource); bound != BoundRuntime {
		return ""
	}
	w, ready := s.loan(g, v)
	switch {
	case w.at == nil || ready:
		return ""
	case w.forClaim:
		return fmt.Sprintf("; not lent: blocked units ahead claim what is free at %q", w.at.level.name)
	case w.resource == "":
		return fmt.Sprintf("; not lent: units within their share wait at %q", w.at.level.name)
	}
	free, _ := w.at.freeOf(w.resource)
	return fmt.Sprintf("; not lent: %s of %s would be missing at %q",
		resources.Format(w.resource, resources.SaturatingSub(w.need, free)), w.resource, w.at.level.name)
}

// behindClaims says whether what blocking units ahead ask for on this level leaves too little beside it. They claim all of
// it here, also where they are not short.
func (s *State) behindClaims(l *level, g *group) bool {
	for _, f := range l.beyond.free {
		if need := g.head.needs(f.Name); need > 0 && s.claimedFrom(l, f.Name, g, f.Amount-need) {
			return true
		}
	}
	return false
}

func (s *State) claimedFrom(l *level, resource string, g *group, left int64) bool {
	book := &l.main.book
	if left < 0 {
		return true
	}
	return book.claimed(resource) > left &&
		book.claimedBy(func(c *claim) bool { return s.ahead(c, g.head) }, resource) > left
}

// shut says whether a level lends nothing, because a unit from below it that is within its limits waits for what is in use
// here.
func (s *State) shut(l *level) bool {
	if len(s.below[l.name]) == 0 {
		return false
	}
	shut := s.shutByClaims(l)
	for _, resource := range slices.Sorted(maps.Keys(l.main.waiters)) {
		if shut {
			break
		}
		s.visitEntitled(l, l.main.waiters[resource], func(_ *group, first wait) bool {
			shut = first.at == &l.main && !first.forClaim
			return !shut
		})
	}
	return shut
}

// shutByClaims says so of the units that claim. One that is short here first is watched here, or above, where it was short
// first before.
func (s *State) shutByClaims(l *level) (shut bool) {
	visit := func(c *claim) bool {
		shut = s.entitledClaim(l, c)
		return !shut
	}
	path, _ := s.pathTo(l)
	for _, above := range path[1:] {
		if above.main.book.watched.Len() > 0 || above.min.book.watched.Len() > 0 {
			s.walkTakers(&l.main, visit)
			return shut
		}
	}
	l.main.book.watched.Walk(visit)
	return shut
}

// lends says whether units may borrow at a gate; where they stay within the limits nothing is shut.
func (s *State) lends(gt *gate) bool {
	if gt.kind != gateBeyond {
		return true
	}
	s.mend(gt.level)
	s.mendClaimed(gt.level)
	return !s.shut(gt.level)
}

// mend registers the groups that wait at a level or above it, though they are short below by now, where they are short
// first. So those that shut a level wait there, and each is looked at once.
func (s *State) mend(l *level) {
	path, _ := s.pathTo(l)
	for _, at := range path {
		for _, resource := range slices.Sorted(maps.Keys(at.main.waiters)) {
			s.mendList(at, at.main.waiters[resource])
		}
	}
}

// mendList does so for one list, up to the first group that shuts the level. One that claims alone stop by now shuts nothing.
func (s *State) mendList(l *level, w *waitList) {
	type move struct {
		group *group
		to    wait
	}
	var stale []move // the list does not change while it is visited
	s.visitEntitled(l, w, func(g *group, first wait) bool {
		if first.at == &l.main && !first.forClaim {
			return false
		}
		stale = append(stale, move{g, first})
		return true
	})
	for _, m := range stale {
		if m.to.at != nil {
			s.register(m.group, m.to)
		}
	}
}

// mendClaimed does so for the groups that wait for claims at a level or above it and are short by now, there or below. That
// is looked at where something is about to be lent, and not at each admission that leaves less beside claims.
func (s *State) mendClaimed(l *level) {
	path, _ := s.pathTo(l)
	for _, at := range path {
		var stale []*group
		for _, queues := range at.main.book.waiting {
			for _, groups := range queues {
				for g := range groups {
					if v := s.measureAll(g, g.head); v.short.at != nil && v.first(g) != g.wait {
						stale = append(stale, g)
					}
				}
			}
		}
		slices.SortFunc(stale, compareGroups)
		for _, g := range stale {
			v := s.measureAll(g, g.head)
			s.registerShort(g, &v)
		}
	}
}

func (s *State) entitledClaim(l *level, c *claim) bool {
	if c.group.leaf == l || !s.within(c.group) {
		return false
	}
	below := true
	for _, gt := range c.path {
		below = below && gt.level != l
		if (below || gt.isMin()) && s.claimsAt(gt, c) {
			return false
		}
	}
	var v verdict
	s.measure(&v, &l.main, c.unit)
	return v.short.at != nil
}

// visitEntitled visits the groups that wait in a list of a level and are within their limits, with how they wait by now,
// until visit returns false.
func (s *State) visitEntitled(l *level, w *waitList, visit func(g *group, first wait) bool) {
	limit, _ := l.spec.Limit.Get(w.resource)
	w.byNeed.Walk(func(g *group) bool {
		switch {
		case g.wait.need > limit:
			return false
		case g.leaf == l || !s.within(g):
			return true
		}
		v := s.measureAll(g, g.head)
		return visit(g, v.first(g))
	})
}

// within says whether a unit of the group would fit on all levels if nothing were in use there.
func (s *State) within(g *group) bool {
	path, _ := s.pathTo(g.leaf)
	for _, l := range path {
		for _, it := range l.spec.Limit.Items() {
			if g.head.needs(it.Name) > it.Amount {
				return false
			}
		}
	}
	return true
}

// wakeBorrowers has Decide look at those that wait to borrow at a level, after something changed that may have shut it.
func (s *State) wakeBorrowers(l *level) {
	if len(l.beyond.waiters) == 0 {
		return
	}
	for _, resource := range slices.Sorted(maps.Keys(l.beyond.waiters)) {
		s.note(l.beyond.waiters[resource])
	}
}

// wakeBorrowersUp does so for a level and all above it.
func (s *State) wakeBorrowersUp(l *level) {
	if s.borrowers == 0 {
		return
	}
	path, _ := s.pathTo(l)
	for _, at := range path {
		s.wakeBorrowers(at)
	}
}

// wakeBorrowersBelow does so for all below a level whose limit became less: who exceeds it shuts nothing there any more.
func (s *State) wakeBorrowersBelow(l *level) {
	if s.borrowers == 0 {
		return
	}
	var below []*level
	s.visitBelow(l, func(at *level) { below = append(below, at) })
	slices.SortFunc(below, func(a, b *level) int { return strings.Compare(a.name, b.name) })
	for _, at := range below {
		s.wakeBorrowers(at)
	}
}

// wakeBorrowersOn does so on the path of a claim that changed, for those that wait for claims too.
func (s *State) wakeBorrowersOn(path []*gate) {
	if s.borrowers == 0 {
		return
	}
	for _, gt := range path {
		if gt.kind != gateLimit {
			continue
		}
		s.wakeBorrowers(gt.level)
		s.wakeBehind(gt.level)
	}
}

// wakeBehind has Decide look, before it lends, at those that wait for claims to borrow. The claims of all queues may change
// in one decision, and each change may concern everybody; so they are looked at when no more of them is to come.
func (s *State) wakeBehind(l *level) {
	if l.behind.groups > 0 && !l.eased {
		l.eased = true
		s.eased = append(s.eased, l)
	}
}

// wakeEased wakes those that claims do not keep from borrowing any more and says whether there was anybody to look at.
func (s *State) wakeEased() (looked bool) {
	for _, l := range s.eased {
		looked, l.eased = true, false
		s.wakeBehindOf(l)
	}
	s.eased = s.eased[:0]
	return looked
}

// wakeBehindOf does so at one level, in the order of queues, up to the one whose claim leaves nothing to those behind it.
func (s *State) wakeBehindOf(l *level) {
	last, some := s.lastLent(l)
	switch {
	case !some:
	case last == nil:
		for q := range l.behind.of {
			s.wakeBorrowersOf(l, q)
		}
	default:
		s.ranked.Walk(func(q *unitLine) bool {
			s.wakeBorrowersOf(l, q)
			return q != last.group.queue
		})
	}
}

func (s *State) wakeBorrowersOf(l *level, q *unitLine) {
	for g := range l.behind.of[q] {
		s.wakeBorrower(g)
	}
}

// lastLent is the claim with which nothing is left at a level of what all groups behind ask for; nil if there is none. some
// is false where there is nothing anyway.
func (s *State) lastLent(l *level) (last *claim, some bool) {
	left := s.left[:0]
	for _, f := range l.beyond.free {
		if l.behind.allAsk(f.Name) {
			if f.Amount <= 0 {
				return nil, false
			}
			if l.main.book.claimed(f.Name) >= f.Amount {
				left = append(left, f)
			}
		}
	}
	s.left = left
	if len(left) == 0 {
		return nil, true
	}
	l.main.book.claims.Walk(func(c *claim) bool {
		for i := range left {
			if left[i].Amount -= c.unit.needs(left[i].Name); left[i].Amount <= 0 {
				last = c
			}
		}
		return last == nil
	})
	return last, true
}

// wakeBorrower wakes a group that waits for claims to borrow, if they leave enough now.
func (s *State) wakeBorrower(g *group) {
	if w := g.borrow; w.forClaim && !g.dirty && !s.behindClaims(w.at.level, g) {
		s.markDirty(g)
	}
}

// behind are the groups that what blocking units claim at a level keeps from borrowing.
type behind struct {
	groups int
	of     map[*unitLine]map[*group]struct{}
	// asking counts those that ask for a resource at all.
	asking map[string]int
}

func newBehind() behind {
	return behind{of: map[*unitLine]map[*group]struct{}{}, asking: map[string]int{}}
}

func (b *behind) enter(g *group) {
	if b.of[g.queue] == nil {
		b.of[g.queue] = map[*group]struct{}{}
	}
	b.of[g.queue][g] = struct{}{}
	b.count(g, 1)
}

func (b *behind) exit(g *group) {
	delete(b.of[g.queue], g)
	if len(b.of[g.queue]) == 0 {
		delete(b.of, g.queue)
	}
	b.count(g, -1)
}

func (b *behind) count(g *group, n int) {
	b.groups += n
	for _, it := range g.request.Items() {
		if it.Amount <= 0 {
			continue
		}
		if b.asking[it.Name] += n; b.asking[it.Name] == 0 {
			delete(b.asking, it.Name)
		}
	}
}

// allAsk says whether every group asks for something of a resource.
func (b *behind) allAsk(resource string) bool {
	return resource == resources.Jobs || b.asking[resource] == b.groups
}

// asks is what a quota asks of its parent if nobody waits: what its pods and admitted units ask for, here and below, up to
// max, and what it keeps.
func (s *State) asks(l *level) []resources.Item {
	own, asked := s.additions[l.name], s.asked[:0]
	if own == nil {
		own = &resources.Sum{}
	}
	ask := func(name string) {
		if i, there := slices.BinarySearchFunc(asked, name, compareName); !there {
			if amount, kept := l.asksFor(own, name); amount != 0 || kept {
				asked = slices.Insert(asked, i, resources.Item{Name: name, Amount: amount})
			}
		}
	}
	for i := range own.Len() {
		name, _ := own.At(i)
		ask(name)
	}
	for _, it := range l.spec.Requested.Items() {
		ask(it.Name)
	}
	for i := range l.askedBelow.Len() {
		name, _ := l.askedBelow.At(i)
		ask(name)
	}
	if l.spec.KeepsMin {
		for _, it := range l.spec.Min.Items() {
			ask(it.Name)
		}
	}
	s.asked = asked
	return asked
}

func compareName(it resources.Item, name string) int { return strings.Compare(it.Name, name) }

// asksFor is asks of one resource; kept says that the quota keeps some of it, if only nothing.
func (l *level) asksFor(own *resources.Sum, resource string) (amount int64, kept bool) {
	requested, _ := l.spec.Requested.Get(resource)
	amount = max(0, resources.SaturatingAdd(own.Get(resource), requested))
	amount = resources.SaturatingAdd(amount, l.askedBelow.Get(resource))
	if least, named := l.spec.Min.Get(resource); named && l.spec.KeepsMin {
		amount, kept = max(amount, least), true
	}
	if most, ok := l.spec.Max.Get(resource); ok && l.spec.Parent != "" {
		amount = min(amount, most)
	}
	return amount, kept
}

// askedDepth bounds how far a change of what is asked goes up: parents may form a circle.
const askedDepth = 64

// refreshAsked brings what a level asks of its parent up to date, and then its ancestors, as far as that moves them.
func (s *State) refreshAsked(l *level) {
	for range askedDepth {
		parent, asked := s.levels[l.spec.Parent], s.asks(l)
		same := slices.Equal(asked, l.asked.Items())
		if same && parent == l.askedOf {
			return
		}
		former := l.askedOf
		if former != nil {
			former.askedBelow.Sub(l.asked)
		}
		l.asked, l.askedOf = resources.FromSorted(append(l.asked.Items()[:0], asked...)), parent
		if parent != nil {
			parent.askedBelow.Add(l.asked)
		}
		if !same && l.known {
			s.refreshGate(&l.beyond, s.ledger.Read(l.name))
		}
		if former != nil && former != parent {
			s.refreshAsked(former)
		}
		if parent == nil {
			return
		}
		l = parent
	}
}

// adopt takes in what the children ask for of a level that was not there when they came.
func (s *State) adopt(l *level) {
	for child := range s.below[l.name] {
		if child.askedOf != l {
			s.refreshAsked(child)
		}
	}
}

// withdraw takes a level that is forgotten out of what its parent is asked for.
func (s *State) withdraw(l *level) {
	if parent := l.askedOf; parent != nil {
		parent.askedBelow.Sub(l.asked)
		l.asked, l.askedOf = resources.List{}, nil
		s.refreshAsked(parent)
	}
}

// addition is what a unit adds to what the pods of its quota request.
type addition struct {
	quota      string
	more, less resources.List
}

// clone keeps what is only looked at most of the time off the heap.
func (a addition) clone() *addition { return &a }

// updateAsks keeps what units add to the requests of the pods of a quota: admitted ones what they ask for beyond their pods,
// others take away their own pods, which the gate holds.
func (s *State) updateAsks(u *unit) {
	next := addition{quota: u.spec.Quota}
	switch bag, ok := s.pods[u.spec.Key]; {
	case u.holding && u.demand != nil:
		next.more = u.demand.amount
	case ok && u.stage == stageWaiting:
		if pods, ok := bag.unassigned[u.spec.Quota]; ok {
			next.less = pods.List()
		}
	}
	former := u.adds
	switch empty := next.more.IsZero() && next.less.IsZero(); {
	case empty && former == nil:
		return
	case empty:
		u.adds = nil
	case former != nil && former.quota == next.quota && former.more.Equal(next.more) && former.less.Equal(next.less):
		return
	default:
		u.adds = next.clone()
		s.addAsks(u.adds, 1)
	}
	if former != nil {
		s.addAsks(former, -1)
	}
}

func (s *State) addAsks(a *addition, sign int) {
	sum := sumOf(s.additions, a.quota)
	if sign > 0 {
		sum.Add(a.more)
		sum.Sub(a.less)
	} else {
		sum.Sub(a.more)
		sum.Add(a.less)
	}
	if sum.IsZero() {
		delete(s.additions, a.quota)
	}
	if l, ok := s.levels[a.quota]; ok {
		s.refreshAsked(l)
	}
}
