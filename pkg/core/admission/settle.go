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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Settle reports the outcome of the write of Admit, Dequeue, Resize or Evict of this unit and attempt. An outcome of a
// write that is not in flight is ignored.
func (s *State) Settle(now time.Time, unitKey string, attempt int64, o Outcome) {
	u, ok := s.units[unitKey]
	if !ok || !u.inFlight() || u.attempt != attempt || o == OutcomeUnknown {
		return
	}
	remembered := u.remembered
	u.forgetRemembered()
	s.contest(now, u, func() {
		news := false
		s.change(u, func() {
			switch base := s.cfg.RefusedBackoff; u.stage {
			case stageAdmitting:
				u.settleAdmission(now, base, remembered, o)
			case stageResizing:
				u.settleResize(now, base, remembered, o)
			case stageDequeuing:
				u.settleDequeue(now, base, o)
			default:
				u.settleEviction(now, base, remembered, o)
			}
			s.owners.Moved(u)
			if remembered != nil {
				s.hear(now, u, remembered)
			}
			if news = remembered != nil && !u.spec.Same(remembered); !news {
				s.place(now, u)
			}
		})
		if remembered != nil {
			s.replay(now, u, remembered) // if it is news the unit is placed by it, and not by what it said before
		}
	})
}

func (u *record) settleAdmission(now time.Time, base time.Duration, remembered *unit.Unit, o Outcome) {
	if remembered != nil && remembered.Phase.Holds() {
		// The object itself says so, whatever the write seemed to come to.
		o = OutcomeConfirmed
	}
	u.stage = stageWaiting
	switch o {
	case OutcomeConfirmed:
		u.stage, u.observed = stageAdmitted, false
		if u.refusal.times > 0 {
			u.refusal = &refusal{until: u.refusal.until, reason: u.refusal.reason, message: u.refusal.message}
		}
		u.spec.Phase, u.spec.Attempts, u.spec.Checks = unit.PhaseDequeued, u.attempt, nil
		u.spec.Said, u.report = nil, noReport
		if len(u.tenure.checks) > 0 {
			u.spec.Phase, u.spec.Checks = unit.PhaseReserved, unit.Asked(u.tenure.checks)
		}
		u.spec.Admitted, u.tenure.left, u.spec.TemplatesWritten = now, time.Time{}, false
		u.spec.Become(u.tenure.next, u.tenure.nextPods)
		u.spec.SetHeld(u.held, u.spec.Pods)
	case OutcomeRefused:
		u.refuse(now, base, unit.ReasonWriteRefused,
			"the API server refuses the admission of this unit; it is tried again later")
	case OutcomeRefuted, OutcomeUnknown:
	}
}

func (u *record) settleEviction(now time.Time, base time.Duration, remembered *unit.Unit, o Outcome) {
	u.stage = stageAdmitted
	switch o {
	case OutcomeConfirmed:
		u.stage = stageWaiting
		requeue(&u.spec, u.eviction)
		if remembered != nil && remembered.Phase.Holds() && remembered.Attempts <= u.attempt {
			// Older than the eviction: only its other fields can be news.
			requeue(remembered, u.eviction)
		}
	case OutcomeRefused:
		u.refuse(now, base, unit.ReasonWriteRefused,
			"the API server refuses the eviction of this unit; it is tried again later")
	case OutcomeRefuted, OutcomeUnknown:
		u.observed = true
	}
}

// requeued is what an object says after the eviction of its unit.
func requeue(in *unit.Unit, d *Evict) {
	in.Phase = unit.PhaseEnqueued
	if !d.RequeueAt.IsZero() {
		in.Phase, in.RequeueAt, in.Requeues = unit.PhaseTimeoutBackoff, d.RequeueAt, d.Requeues
	}
	if in.Deactivate = nil; d.Deactivate != "" {
		in.Deactivate, in.Requeues = &unit.Deactivation{Reason: d.Deactivate, Message: d.Message}, 0
	}
	in.Executed, in.Ready, in.NotReadySince, in.Checks = d.Executed, false, time.Time{}, nil
	in.SetNothingHeld()
	in.BecomeWhole()
	in.Move()
}

// refuse keeps a unit from being tried for a while that doubles with every refusal in a row.
func (u *record) refuse(now time.Time, base time.Duration, reason unit.Reason, message string) {
	backoff := base << min(u.refusal.times, 5)
	u.refusal = &refusal{times: u.refusal.times + 1, until: now.Add(backoff), reason: reason, message: message}
}
