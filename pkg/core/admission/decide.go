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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// mostAdmissions bounds the admissions of one Decide, growth included, which asks to be called again for the rest.
const mostAdmissions = 256

// Decide admits until nothing more fits. Where nothing has changed it looks at nothing. A panic in the evaluation of a
// unit parks that unit with InternalError. After any other panic the state is broken; Suspect says over which unit.
func (s *State) Decide(now time.Time) (plan Plan) {
	s.endReplacements(now)
	s.resume(now)
	s.changed = s.changed || s.pass.endsClaim(now)
	s.evict(now, &plan)
	s.dequeue(now, &plan)
	s.resize(&plan)
	resized := len(plan.Resize)
	for s.changed && len(plan.Admit)+len(plan.Resize)-resized < mostAdmissions {
		s.settleShares(now)
		s.refresh()
		g, whole := s.pass.firstFitting(now)
		switch {
		case !whole: // a unit was parked in the middle
		case g != nil:
			for _, u := range s.pass.together(g.Head()) {
				s.admit(u, s.pass.fitting(u.group), false, &plan)
			}
		default:
			// Nobody fits within the limits: what is left is lent.
			if g = s.pass.firstBorrower(); g != nil {
				s.admit(g.Head(), s.pass.lent(g), true, &plan)
			} else {
				s.pass.noteCauses(now)
				s.changed = false
			}
		}
	}
	plan.WakeAt = s.wakeAt(now)
	plan.Examined, s.pass.examined = s.pass.examined, 0
	plan.Panics, s.panics = s.panics, 0
	plan.ClaimsEnded, s.pass.ended = s.pass.ended, 0
	return plan
}

// resume places the units again whose time has come.
func (r *roster) resume(now time.Time) {
	for {
		u, ok := r.retries.First()
		if !ok || u.retryAt > ordered.MomentOf(now) {
			return
		}
		r.change(u, func() {
			r.retryAt(u, time.Time{})
			r.place(now, u)
		})
	}
}

// evict puts the evictions in flight, last those of units that were admitted first. What a unit holds is free only when
// its eviction is confirmed.
func (r *roster) evict(now time.Time, plan *Plan) {
	units := inOrder(r.evictions)
	slices.SortStableFunc(units, func(a, b *record) int { return b.spec.Admitted.Compare(a.spec.Admitted) })
	for _, u := range units {
		before := r.look(u)
		reason, message, _ := checkAdmitted(r, u)
		d := Evict{Unit: u.spec, Reason: reason, Message: message}
		if reason == "" {
			d = r.outstay(now, u)
		}
		r.looked = before
		if d.Reason == "" {
			// Its reason went, as when a clock is set back. What else is to be done with it waited for the eviction.
			r.change(u, func() { r.place(now, u) })
			continue
		}
		r.change(u, func() {
			d.Executed = r.executed(now, u, &d)
			u.stage, u.own().attempt, u.tenure.eviction = stageEvicting, u.spec.Attempts, &d
			r.place(now, u) // it clears nobody of its gang group any more
		})
		plan.Evict = append(plan.Evict, d)
	}
}

// inOrder empties a set of units and returns them in the order of their keys.
func inOrder(set map[*record]struct{}) []*record {
	units := make([]*record, 0, len(set))
	for u := range set {
		units = append(units, u)
	}
	clear(set)
	slices.SortFunc(units, compareKeys)
	return units
}

// admit reserves what the unit gets of what it asks for and puts its admission in flight.
func (r *roster) admit(u *record, gets portion, borrows bool, plan *Plan) {
	u.forgetClaim()
	if u.holding {
		r.grow(u, borrows, plan)
		return
	}
	r.change(u, func() {
		r.leave(u)
		r.hold(u, gets.request)
		r.telling.move(u, 0)
		u.stage, u.own().attempt = stageAdmitting, u.spec.Attempts+1
		u.tenure.next, u.tenure.nextPods, u.tenure.checks = gets.request, gets.pods, nil
		for _, c := range r.admissionChecks(u) {
			u.tenure.checks = append(u.tenure.checks, c.Name)
		}
		r.owners.Moved(u)
	})
	plan.Admit = append(plan.Admit, Admit{
		Unit: u.spec, Attempt: u.attempt, Request: gets.request, Pods: gets.pods, Counts: gets.counts,
		Checks: u.tenure.checks, Borrows: borrows,
	})
}

// wakeAt is when Decide wants to run again though nothing happens.
func (s *State) wakeAt(now time.Time) time.Time {
	if s.changed || s.resizes.Len() > 0 || len(s.dequeues) > 0 || len(s.evictions) > 0 {
		return now
	}
	var at time.Time
	if u, ok := s.retries.First(); ok {
		at = u.retryAt.Time()
	}
	if l, ok := s.leavers.due.First(); ok {
		at = earlier(at, l.until.Time())
	}
	if end := s.pass.firstEnd; !end.IsZero() && (at.IsZero() || end.Before(at)) {
		at = end
	}
	return at
}
