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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// What a unit holds is what was asked for when it was admitted; for one that was adopted it is what was bound then. Its
// job may ask for other than that while it runs, and its pods may. What is asked for beyond is new demand: the unit
// waits for it in its line, behind those that came before it asked, and goes on meanwhile with what it holds. It may
// never get it; it never loses what it has over it. What is not asked for any more is given back without waiting.
// Either way the unit holds what its object says: until a write of that is confirmed, the greater of both. A unit with
// several sizes asks for no more than it was admitted with: whoever wants it to grow gives it one size.

// expected bounds what the unit holds by its pods that are still to come. While it holds quota these are as many as its
// object says: what a job that has become smaller does not need is free once that is written, and not before, since it
// may become greater again meanwhile (I1).
func (u *record) expected() unit.Expected {
	x := u.spec.Expected
	if u.holding && x.Pods > 0 {
		x.Pods = max(x.Pods, u.spec.HeldPods)
	}
	return x
}

// growth is what a unit that holds quota asks for beyond it.
type growth struct {
	// need is neither held nor used by its pods yet; total is what the unit would hold with it.
	need, total resources.List
}

func (g *growth) same(o *growth) bool { return g.need.Same(o.need) && g.total.Same(o.total) }

// size is how much an admitted unit holds, and how much it ought to.
type size struct {
	held, used, asked resources.List
	// late use what the unit holds besides: pods that have been leaving for long. What they use is asked for, and not
	// taken for the unit's without asking.
	late resources.List
	// pods that it is for: those that its job asks for, or has still.
	pods int64
	// shrinks says that it may be less than what is held: its job has become smaller. Pods that are away for a moment
	// are no reason. fewer: it is for fewer pods than its object says. anew: it asks for more, and not for successors of
	// pods that have been leaving for long alone.
	shrinks, fewer, anew bool
	// unrecorded: the object does not say what it holds. adopted: then it is what is bound, else what is asked for.
	unrecorded, adopted bool
}

func (r *roster) sizeOf(u *record) size {
	charges := r.ledger.Charges(u.spec.Key, u.spec.Quota)
	s := size{
		held: u.held, used: charges.Assigned.Sub(charges.Late), late: charges.Late, asked: u.spec.Request,
		pods: max(u.spec.Pods, charges.Pods), shrinks: u.spec.Pods < u.spec.HeldPods,
		unrecorded: !u.spec.SaysHeld(), adopted: u.spec.Adopted,
		anew: !u.held.Covers(u.spec.Request) || !u.held.Covers(charges.All.Sub(charges.Late)),
	}
	if u.spec.Sizes != nil && charges.Pods > u.spec.Pods {
		// The number that it was admitted with has to do: those beyond it wait in the gate, or are of a run before and go.
		s.pods = u.spec.Pods
	} else if !s.asked.Covers(charges.All) {
		s.asked = s.asked.Max(charges.All)
	}
	s.fewer = s.pods < u.spec.HeldPods
	return s
}

// write is what the unit is to hold without asking for anything: less than now, or what its pods use already.
func (s *size) write() (next resources.List, other bool) {
	switch {
	case s.unrecorded && s.adopted && !s.used.IsZero():
		return s.used, true
	case s.unrecorded && !s.adopted && !s.held.IsZero():
		return s.held, true
	case s.fewer && s.held.Covers(s.asked), s.shrinks && !s.asked.Covers(s.held):
		return s.held.Min(s.asked), true
	case !s.held.Covers(s.asked) && s.held.Max(s.used).Covers(s.asked):
		return s.held.Max(s.asked), true
	}
	return resources.List{}, false
}

// growth is what the unit has to ask for.
func (s *size) growth() growth {
	if s.held.Covers(s.asked) {
		return growth{}
	}
	total := s.held.Max(s.asked)
	need := total.Sub(s.held.Max(s.used.Add(s.late))).Floor0()
	if need.IsZero() {
		return growth{} // its pods use it already
	}
	return growth{need: need, total: total}
}

// placeSize has an admitted unit hold what it should, and puts it in line for what it lacks. It returns when to try
// again, if not now.
func (r *roster) placeSize(now time.Time, u *record) (again time.Time) {
	if reason, _ := checkSpec(u); reason != "" || !u.spec.Phase.Holds() || !u.holding {
		return again
	}
	s := r.sizeOf(u)
	next, other := s.write()
	grows := s.growth()
	if !other {
		u.noteGrowth(now, !grows.need.IsZero())
	}
	switch {
	case !other && grows.need.IsZero():
	case now.Before(u.refusal.until):
		return u.refusal.until
	case other:
		u.own().next, u.tenure.nextPods = next, s.pods
		if !r.resizes.Contains(u) {
			r.resizes.Insert(u)
		}
	default:
		u.own().grows = grows
		if r.join(now, u); u.group == nil {
			return u.refusal.until // it cannot be put in order
		}
	}
	return again
}

// noteGrowth notes since when the unit has asked for more than it holds. That is its place in the line, for as long as
// it asks for any: with the age of its job, a small one that came early would grow ahead of all that came since. A new
// process reads the time in the object, which says it soon after.
func (u *record) noteGrowth(now time.Time, grows bool) {
	switch {
	case grows == (u.growsSince != 0):
	case !grows:
		u.tenure.growsSince = 0
	case u.spec.ResizePending != 0:
		u.own().growsSince = u.spec.ResizePending
	default:
		u.own().growsSince = ordered.MomentOf(now.Truncate(time.Second))
	}
}

// sizeChanged says whether an admitted unit may have to be placed again after its pods have changed.
func (r *roster) sizeChanged(u *record) bool {
	s := r.sizeOf(u)
	next, other := s.write()
	writes := r.resizes.Contains(u)
	grows := growth{}
	if u.group != nil {
		grows = u.grows
	}
	if now := s.growth(); !other && !now.same(&grows) {
		return true
	}
	return other != writes || (other && (!next.Same(u.next) || s.pods != u.nextPods))
}

// mostResizes bounds the writes of one Decide of what units hold that need not ask for it.
const mostResizes = 256

// resize puts the writes in flight of what units hold that need not ask for it. Until then they hold what they held.
func (r *roster) resize(plan *Plan) {
	for range mostResizes {
		u, ok := r.resizes.Min()
		if !ok {
			return
		}
		plan.Resize = append(plan.Resize, r.startResize(u, u.next, u.nextPods))
	}
}

// grow reserves what a unit asks for that holds quota already.
func (r *roster) grow(u *record, borrows bool, plan *Plan) {
	total := u.grows.total
	d := r.startResize(u, total, r.sizeOf(u).pods)
	d.Asked, d.Borrows = true, borrows
	plan.Resize = append(plan.Resize, d)
}

func (r *roster) startResize(u *record, next resources.List, pods int64) Resize {
	r.change(u, func() {
		r.leave(u)
		r.hold(u, u.held.Max(next))
		r.telling.move(u, 0)
		u.stage, u.own().attempt = stageResizing, u.spec.Attempts
		u.tenure.next, u.tenure.nextPods = next, pods
	})
	return Resize{Unit: u.spec, Attempt: u.attempt, Held: next, Pods: pods}
}

func (u *record) settleResize(now time.Time, base time.Duration, remembered *unit.Unit, o Outcome) {
	u.stage = stageAdmitted
	switch o {
	case OutcomeConfirmed:
		u.spec.SetHeld(u.next, u.nextPods)
		if u.tenure.growsSince = 0; remembered != nil {
			remembered.ResizePending = 0 // what it asks for by now it began to ask for since
		}
		if said := u.report.said; said != nil && !ofPods[said.Reason] {
			u.spec.Said, u.report = nil, noReport
		}
	case OutcomeRefused:
		u.refuse(now, base, unit.ReasonWriteRefused,
			"the API server refuses to change what this unit holds; it is tried again later")
	case OutcomeRefuted, OutcomeUnknown:
		u.observed = true
	}
	u.tenure.next = resources.List{}
}
