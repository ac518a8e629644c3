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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
)

// Decide admits until nothing more fits. Where nothing has changed it looks at nothing. A panic in the evaluation of a
// unit parks that unit with InternalError. After any other panic the state is broken; Suspect says over which unit.
func (s *State) Decide(now time.Time) (plan transition.Plan) {
	s.roster.endReplacements(now)
	s.roster.touchDue(now)
	s.roster.settle(now)
	s.progress.changed = s.progress.changed || s.pass.watch.Due(now)
	s.roster.writeDue(now, &plan)
	most := len(plan.Writes) + cmp.Or(s.roster.cfg.MostAdmissions, 256)
	s.lines.refresh() // limits may follow from what units ask for
	for s.progress.changed && len(plan.Writes) < most {
		s.roster.settleBounds(now)
		s.lines.refresh()
		g, fault := s.pass.firstFitting(now)
		switch {
		case fault != "":
			s.roster.blame(now, fault)
		case g != nil:
			beyond := s.pass.asks.Beyond()
			for _, u := range s.pass.together(g.Head()) {
				s.roster.admit(u, s.pass.fitting(u.group), beyond, &plan)
			}
			s.roster.settle(now)
		default:
			// Nobody fits within the limits: what is left is lent.
			if g = s.pass.firstBorrower(); g != nil && !g.Head().isPreempting() {
				s.roster.admit(g.Head(), s.pass.lent(g), true, &plan)
				s.roster.settle(now)
			} else {
				moved := s.pass.noteFirst()
				s.pass.noteCauses(now)
				s.progress.changed = s.preemptors.decide(now, &plan) || moved
			}
		}
	}
	plan.WakeAt = s.pass.wakeAt(now, s.roster)
	plan.Examined, s.pass.examined = s.pass.examined, 0
	plan.Panics, s.progress.panics = s.progress.panics, 0
	plan.ClaimsEnded, s.pass.watch.Ended = s.pass.watch.Ended, 0
	plan.PreemptedInVain = s.roster.preemptions.vain.Noted()
	return plan
}

// wakeAt is when Decide wants to run again though nothing happens.
func (p *pass) wakeAt(now time.Time, r *roster) time.Time {
	if p.progress.changed {
		return now
	}
	var at time.Time
	if u, ok := r.due.First(); ok {
		at = ordered.Later(now, u.dueAt.Time())
	}
	return ordered.Earlier(ordered.Earlier(at, r.holdings.NextLate()), p.watch.Next)
}
