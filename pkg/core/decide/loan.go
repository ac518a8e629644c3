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

package decide

import "github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"

// Loans keep shares from starving jobs that are larger than a share (I6).
//
// If the limit of a quota is its runtime, the capacity above all min is divided among all quotas that ask for it. A job
// is admitted whole or not at all. So each share can be too small for its job, and all jobs wait while nothing runs.
// Therefore the pass lends capacity that no unit can use within the limits. A unit is admitted beyond the runtime, up
// to max, if all of this holds:
//
//   - No pending unit fits within its limits: a round of lending follows a pass that admitted none.
//   - No level of the loan is shut. Otherwise small loans could keep a unit pending without end. A pending unit that
//     would fit on all its levels with nothing in use shuts the first level where it is short. A unit that claims
//     beyond its share also shuts its levels to the units behind it.
//   - On each level up to the total the unit fits together with four amounts, as if no other unit were pending. These
//     are the admitted, the used, the requested by pods of other workloads, and the part that quotas without lending
//     keep.
//   - On each level the unit fits together with the whole request of each blocking unit ahead of it, and min allows it.
//
// Units borrow one after the other in the order in which they are served, with a pass in between. A loan ends with its
// job.

// Borrower returns the first head that may borrow, if there is one. It borrows with its own ask or, if other is not
// nil, with that. The call follows a pass in which no head fit.
func (p *Pass[T]) Borrower(others func(T) []Ask) (of T, other *Ask, some bool) {
	if !p.tree.AnyShared() {
		return of, nil, false
	}
	p.lendAgain(func(T) bool { return true })
	next := 0 // claim that is not counted yet
	for i := range p.heads {
		h := &p.heads[i]
		if i == p.observed {
			p.shadow.OnLent(p.lending)
			shut(p.lending, p.heads[i:], func(T) bool { return true })
		}
		if h.stopped != "" || h.together {
			continue
		}
		behindOwn := h.blocks && !h.claims
		for ; next < h.ahead; next++ {
			p.claims[next].bindLoans(p.lending)
		}
		if behindOwn || h.ofMin {
			continue
		}
		if p.lending.Allows(h.ask.Route, h.ask.Need) {
			return h.Of, nil, true
		}
		if other := allowed(p.lending, others(h.Of)); other != nil {
			return h.Of, other, true
		}
	}
	return of, nil, false
}

// allowed is the first of these asks that may borrow; nil if none may. Nobody lends min.
func allowed(by capacity.Lending, asks []Ask) *Ask {
	for i := range asks {
		if a := &asks[i]; !a.NonPreemptible && by.Allows(a.Route, a.Need) {
			return a
		}
	}
	return nil
}

// bindLoans takes the claim out of what is lent. A head that goes beyond a share does not leave room on its path for
// others that do.
func (c *Claim[T]) bindLoans(lending capacity.Lending) {
	levels := c.Ask.Route.Levels
	lending.Claim(c.Ask.Route, c.Ask.Need)
	for _, l := range levels[:len(levels)-1] {
		if c.beyond {
			lending.Shut(l)
		}
	}
}

// Lends says whether another request may be lent to the head that Borrower has found. A non-preemptible one draws on
// min, which nobody lends.
func (p *Pass[T]) Lends(a *Ask, need []int64) bool {
	return !a.NonPreemptible && p.lending.Allows(a.Route, need)
}

// lendAgain begins a round of lending, in which the levels are shut where heads that still wait are entitled.
func (p *Pass[T]) lendAgain(waits func(T) bool) {
	p.lending.Begin()
	shut(p.lending, p.heads[:min(p.observed, len(p.heads))], waits)
}

func shut[T any](lending capacity.Lending, heads []Head[T], waits func(T) bool) {
	for i := range heads {
		if h := &heads[i]; h.entitled() && waits(h.Of) {
			lending.Shut(h.first.Level())
		}
	}
}

// entitled says that a head would fit on all levels with nothing in use. The first level where it is short must be
// above its own quota. Then nothing is lent on that level.
func (h *Head[T]) entitled() bool {
	if h.together || h.ofMin || h.Beyond() || h.first == nil || !h.inUse || h.first.Level() == h.ask.Leaf() {
		return false
	}
	for _, l := range h.ask.Route.Levels {
		if !l.Within(h.ask.Need) {
			return false
		}
	}
	return true
}

// NoLoan says why a head that waits for its share is not admitted beyond it. Missing is how much of Resource lacks at
// Level for a loan. If nothing is missing, claims ahead take what is free there, or else the level is shut.
type NoLoan struct {
	Level    *capacity.Level
	Resource string
	Missing  int64
	Claimed  bool
}

// WhyNoLoan compares an ask with what may be lent. ahead are the claims that bind it, and waits says whether a head of
// the last pass still waits. Without an obstacle the level is nil.
func (p *Pass[T]) WhyNoLoan(a *Ask, ahead []Ahead[T], waits func(T) bool) NoLoan {
	p.lendAgain(waits)
	if o, some := p.lending.Obstacle(a.Route, a.Need); some {
		return NoLoan{Level: o.Level, Resource: o.Resource, Missing: o.Missing}
	}
	for _, by := range ahead {
		by.Claim.bindLoans(p.lending)
	}
	for depth, l := range a.Route.Levels {
		if p.lending.ShortAt(l, a.Need, depth == 0) {
			return NoLoan{Level: l, Claimed: true}
		}
	}
	for _, l := range a.Route.Levels {
		if p.lending.IsShut(l) {
			return NoLoan{Level: l}
		}
	}
	return NoLoan{}
}
