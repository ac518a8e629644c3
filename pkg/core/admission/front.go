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
	"slices"
	"sort"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// front says which of the claims in a book are short at its gate, taken in order: one that is takes what it asks for from
// those behind it, one that is not takes nothing, unless it is short nowhere and about to be decided. All are short behind
// one with which nothing is left of a resource that everybody asks for, so most often the first is all that has to be known.
type front struct {
	known bool
	// takers are the first claims that take something, and totals what they ask for of each resource of gate.free.
	takers []*claim
	totals []int64
	// rest: all behind the last of takers are short as well.
	rest bool
	// before is what all claims up to the last of shorts ask for of each resource of gate.free, negative where that has not
	// been added up.
	before []int64
	// left is memory.
	left []int64
}

// frontOf is the front of a gate as of now.
func (s *State) frontOf(gt *gate) *front {
	f, b := &gt.book.front, &gt.book
	if f.known {
		return f
	}
	clear(f.takers)
	f.known, f.rest, f.takers = true, false, f.takers[:0]
	f.totals, f.before, f.left = f.totals[:0], f.before[:0], f.left[:0]
	for _, it := range gt.free {
		f.totals, f.before, f.left = append(f.totals, 0), append(f.before, -1), append(f.left, it.Amount)
	}
	first, found := s.firstTaker(gt)
	if !found {
		return f
	}
	b.claims.WalkFrom(
		func(c *claim) bool { return s.compareClaims(c, first) < 0 },
		func(c *claim) bool {
			if !c.deciding && !gt.lacks(c, f.left) {
				return true
			}
			f.takers = append(f.takers, c)
			gt.take(c, f.left)
			for i, it := range gt.free {
				f.totals[i] = resources.SaturatingAdd(f.totals[i], c.unit.needs(it.Name))
			}
			f.rest = gt.exhausted(f.left)
			return !f.rest
		},
	)
	return f
}

// firstTaker is a claim that none which takes something is before; if there is none, nobody does.
func (s *State) firstTaker(gt *gate) (first *claim, found bool) {
	for _, it := range gt.free {
		if (it.Name == resources.Jobs && it.Amount < 1) || (it.Amount < 0 && gt.book.own > 0) {
			return gt.book.claims.Min()
		}
	}
	first, found = gt.book.claims.FirstAbove(gt.free)
	for _, c := range gt.book.deciding {
		if !found || s.compareClaims(c, first) < 0 {
			first, found = c, true
		}
	}
	return first, found
}

// lacks says whether a claim is short at a gate if so much is left for it of each resource of gate.free.
func (gt *gate) lacks(c *claim, left []int64) bool {
	leaf := gt.level == c.group.leaf
	for i, it := range gt.free {
		if need := c.unit.needs(it.Name); need > left[i] && (need > 0 || (leaf && it.Amount < 0)) {
			return true
		}
	}
	return false
}

func (gt *gate) take(c *claim, left []int64) {
	for i, it := range gt.free {
		left[i] = resources.SaturatingSub(left[i], c.unit.needs(it.Name))
	}
}

// exhausted says that nobody who claims has enough if no more than this is left.
func (gt *gate) exhausted(left []int64) bool {
	for i, it := range gt.free {
		if (left[i] <= 0 && gt.book.allAsk(it.Name)) || (it.Amount < 0 && gt.book.own == gt.book.claims.Len()) {
			return true
		}
	}
	return false
}

// takenBefore says whether claims ahead of a group of a list take so much of what is free that nothing in the list that is
// served no earlier has enough. They stay as they are then: they would only wait for claims instead, and whatever makes
// claims leave more has the list looked at again.
func (s *State) takenBefore(w *waitList, g *group, free int64) bool {
	least, ok := w.byNeed.Min()
	if !ok || w.at.waitOf(least).need == 0 {
		return false // what a unit does not ask for no claim takes from it
	}
	left := free - w.at.waitOf(least).need
	if w.at.book.claimed(w.resource) <= left {
		return false
	}
	taken, _ := s.takenAhead(w.at, w.resource, g.head)
	return taken > left
}

// wakeLeft has Decide look again at those that wait for an amount at a gate that is there, after claims leave more.
func (s *State) wakeLeft(gt *gate) {
	for _, it := range gt.free {
		s.wakeWaiters(gt, it.Name, it.Amount)
	}
}

// claimsAt says whether a claim in the book of a gate is short there; it must not be about to be decided.
func (s *State) claimsAt(gt *gate, c *claim) bool {
	f := s.frontOf(gt)
	n := len(f.takers)
	if n == 0 {
		return false
	}
	if order := s.compareClaims(c, f.takers[n-1]); order > 0 {
		return f.rest
	}
	i := sort.Search(n, func(i int) bool { return s.compareClaims(f.takers[i], c) >= 0 })
	return f.takers[i] == c
}

// walkTakers visits the claims that take something at a gate, in order, until visit returns false.
func (s *State) walkTakers(gt *gate, visit func(*claim) bool) {
	f := s.frontOf(gt)
	for _, c := range f.takers {
		if !visit(c) {
			return
		}
	}
	if f.rest {
		last := f.takers[len(f.takers)-1]
		gt.book.claims.WalkFrom(func(c *claim) bool { return s.compareClaims(c, last) <= 0 }, visit)
	}
}

// claimedBeyond says whether units ahead of this one claim more of a resource at a gate than is left over.
func (s *State) claimedBeyond(gt *gate, resource string, u *unit, left int64) bool {
	if gt.book.claimed(resource) <= left {
		return false
	}
	// Most often the first claims, which are known, are enough.
	claimed, more := s.takenAhead(gt, resource, u)
	return claimed > left || (more && resources.SaturatingAdd(claimed, s.restAhead(gt, resource, u)) > left)
}

// claimedAhead sums what units ahead of this one claim of a resource at a gate.
func (s *State) claimedAhead(gt *gate, resource string, u *unit) int64 {
	claimed, more := s.takenAhead(gt, resource, u)
	if more {
		claimed = resources.SaturatingAdd(claimed, s.restAhead(gt, resource, u))
	}
	return claimed
}

// takenAhead sums what those of the first claims at a gate ask for that are ahead of a unit; more says that some behind
// them may be, too.
func (s *State) takenAhead(gt *gate, resource string, u *unit) (claimed int64, more bool) {
	f := s.frontOf(gt)
	n := sort.Search(len(f.takers), func(i int) bool { return !s.ahead(f.takers[i], u) })
	if i := gt.indexOf(resource); i >= 0 && n == len(f.takers) {
		return f.totals[i], f.rest
	}
	for _, c := range f.takers[:n] {
		claimed = resources.SaturatingAdd(claimed, c.unit.needs(resource))
	}
	return claimed, f.rest && n == len(f.takers)
}

// restAhead sums it for the claims behind the first, all of which are short.
func (s *State) restAhead(gt *gate, resource string, u *unit) int64 {
	f := s.frontOf(gt)
	last := f.takers[len(f.takers)-1]
	i, before := gt.indexOf(resource), int64(-1)
	if i >= 0 {
		before = f.before[i]
	}
	if before < 0 {
		before = gt.book.claimedBy(func(c *claim) bool { return s.compareClaims(c, last) <= 0 }, resource)
		if i >= 0 {
			f.before[i] = before
		}
	}
	all := gt.book.claimedBy(func(c *claim) bool { return s.ahead(c, u) }, resource)
	return resources.SaturatingSub(all, before)
}

// firstClaim is the first unit ahead of this one that claims some of a resource at a gate; nil if there is none.
func (s *State) firstClaim(gt *gate, resource string, u *unit) (first *unit) {
	s.walkTakers(gt, func(c *claim) bool {
		if s.ahead(c, u) && c.unit.needs(resource) > 0 {
			first = c.unit
		}
		return first == nil && s.ahead(c, u)
	})
	return first
}

// claimedBy is what the claims at the front, those for which ahead says so, ask for of a resource, short or not.
func (b *book) claimedBy(ahead func(*claim) bool, resource string) int64 {
	claims, amount := b.claims.Before(ahead, resource)
	if resource == resources.Jobs {
		return int64(claims)
	}
	return amount
}

func (gt *gate) indexOf(resource string) int {
	for i := range gt.free {
		if gt.free[i].Name == resource {
			return i
		}
	}
	return -1
}

// review has Decide look at the claims at a gate after they, their order, or what is free changed. eased: they may leave
// more to others than before.
func (s *State) review(gt *gate, eased bool) {
	b := &gt.book
	b.front.known, b.eased = false, b.eased || eased
	if !b.noted {
		b.noted = true
		s.reviews = append(s.reviews, gt)
	}
}

// reviewClaims wakes what may fit after the claims changed at some gates.
func (s *State) reviewClaims() {
	for _, gt := range s.reviews {
		s.wakeWatched(gt)
	}
	s.wakeMoved()
	for _, gt := range s.reviews {
		if gt.book.eased {
			s.wakeClaimWaiters(gt)
			s.wakeLeft(gt)
		}
		gt.book.noted, gt.book.eased = false, false
	}
	clear(s.reviews)
	s.reviews = s.reviews[:0]
}

// wakeWatched wakes those whose claims are watched at a gate and that are short nowhere any more, as many as there is enough
// for, and has the others watched where they are short.
func (s *State) wakeWatched(gt *gate) {
	elsewhere := s.elsewhere[:0]
	gt.book.watched.Walk(func(c *claim) bool {
		f := s.frontOf(gt)
		switch {
		case f.rest && s.compareClaims(c, f.takers[len(f.takers)-1]) > 0:
			return false
		case c.deciding || s.claimsAt(gt, c):
		case s.shortOf(c) != nil:
			elsewhere = append(elsewhere, c)
			if gt.isMin() && !s.shortOf(c).isMin() {
				s.markDirty(c.group) // it may borrow
			}
		default:
			s.decideSoon(c, true)
			s.markDirty(c.group)
		}
		return true
	})
	for _, c := range elsewhere {
		s.watch(c, s.shortOf(c))
	}
	clear(elsewhere)
	s.elsewhere = elsewhere
}

// decideSoon says whether a claimant is about to be decided because it is short nowhere. Until then it takes what it asks
// for: what is behind it is decided later.
func (s *State) decideSoon(c *claim, soon bool) {
	if c.deciding == soon {
		return
	}
	c.deciding = soon
	for _, gt := range c.path {
		b := &gt.book
		b.front.known = false
		if soon {
			b.deciding = append(b.deciding, c)
		} else {
			i := slices.Index(b.deciding, c)
			b.deciding = slices.Delete(b.deciding, i, i+1)
		}
	}
}

// shortOf is the first min that stops a claimant, which it has to pass also to borrow, or the first gate where it is short;
// nil if it fits.
func (s *State) shortOf(c *claim) (first *gate) {
	for _, gt := range c.path {
		if (gt.isMin() || first == nil) && s.claimsAt(gt, c) {
			if first = gt; gt.isMin() {
				break
			}
		}
	}
	return first
}

// watch has a claimant looked at when it is not short at a gate any more, where it is short now.
func (s *State) watch(c *claim, at *gate) {
	if c.watch == at {
		return
	}
	if c.watch != nil {
		c.watch.book.watched.Delete(c)
	}
	c.watch = at
	if at != nil {
		at.book.watched.Insert(c)
	}
}
