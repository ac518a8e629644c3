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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Settle reports the outcome of the write of Admit or Evict of this unit and attempt. An outcome of a write
// that is not in flight is ignored.
func (s *State) Settle(now time.Time, unitKey string, attempt int64, o Outcome) {
	u, ok := s.units[unitKey]
	if !ok || !u.inFlight() || u.attempt != attempt || o == OutcomeUnknown {
		return
	}
	remembered := u.remembered
	u.forgetRemembered()
	if u.stage == stageAdmitting {
		s.settleAdmission(now, u, remembered, o)
	} else {
		s.settleEviction(now, u, remembered, o)
	}
	s.rejudge(now, u.spec.consumerUID)
}

func (s *State) settleAdmission(now time.Time, u *unit, remembered *Unit, o Outcome) {
	if remembered != nil && remembered.Phase.Holds() {
		// The object itself says so, whatever the write seemed to come to.
		o = OutcomeConfirmed
	}
	switch o {
	case OutcomeConfirmed:
		u.stage, u.observed = stageAdmitted, false
		if u.refusals > 0 {
			u.dealings.refusals = 0
		}
		s.restate(u, PhaseDequeued, u.attempt, u.held)
	case OutcomeRefused:
		u.stage = stageWaiting
		s.refuse(now, u, ReasonWriteRefused, "the API server refuses the admission of this unit; it is tried again later")
	default:
		u.stage = stageWaiting
	}
	s.place(now, u)
	if remembered != nil {
		s.replay(now, u, remembered)
	}
}

func (s *State) settleEviction(now time.Time, u *unit, remembered *Unit, o Outcome) {
	switch o {
	case OutcomeConfirmed:
		u.stage = stageWaiting
		s.restate(u, PhaseEnqueued, u.spec.Attempts, resources.List{})
		if remembered != nil && remembered.Phase.Holds() && remembered.Attempts <= u.attempt {
			// Older than the eviction: only its other fields can be news.
			remembered.Phase, remembered.Held = PhaseEnqueued, resources.List{}
		}
	case OutcomeRefused:
		u.stage = stageAdmitted
		s.refuse(now, u, ReasonWriteRefused, "the API server refuses the eviction of this unit; it is tried again later")
	default:
		u.stage, u.observed = stageAdmitted, true
	}
	s.place(now, u)
	if remembered != nil {
		s.replay(now, u, remembered)
	}
}

// restate has the record say what was written.
func (s *State) restate(u *unit, phase Phase, attempts int64, held resources.List) {
	in := u.spec.unit()
	in.Phase, in.Attempts, in.Held = phase, attempts, held
	s.state(u, s.recordOf(&in))
}

// replay applies an object to a unit with no write in flight, if it says anything new.
func (s *State) replay(now time.Time, u *unit, in *Unit) {
	if u.stage == stageAdmitted && in.Phase.Holds() {
		u.observed = true
	}
	if !sameUnit(u.spec.unit(), *in) {
		s.apply(now, u, *in)
	}
}
