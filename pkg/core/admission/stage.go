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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// The stage of a unit is written in this file and nowhere else. With the write in flight it says where the unit is (I2:
// in exactly one place).

// becomeAsItSays takes the object for the truth.
func (u *record) becomeAsItSays(in *unit.Unit) {
	u.spec = in
	to := transition.StageOf(in)
	u.observed = u.observed || to == transition.Admitted && u.stage != transition.Admitted
	u.stage = to
}

func (u *record) becomeOver() {
	if u.stage = transition.Over; u.flight != nil {
		u.tenure.flight = nil
	}
}

// land ends the write in flight: the object says what was written.
func (u *record) land(now time.Time) {
	w := u.flight
	k := w.Kind()
	u.spec = written(now, w, u.spec)
	u.stage, u.tenure.flight = k.To, nil
	if k.Reserves() {
		u.observed, u.refusals = false, u.refusals.Accepted()
		u.listener.Forget()
	}
	switch w := w.(type) {
	case *transition.Resize:
		u.tenure.growsSince = 0
		if said := u.listener.Said(); said != nil && !said.Reason.OfPods() {
			u.listener.Forget()
		}
	case *transition.Evict:
		if w.ForOthers() {
			u.tenure.preempted++
		}
	}
}

// fail ends the write in flight: the object does not say what was written. observed: it was seen to be something else.
func (u *record) fail(observed bool) {
	if u.flight.Kind().From == transition.Admitted {
		u.observed = u.observed || observed
	} else if u.spec.Chosen {
		moved := *u.spec
		moved.Move()
		u.spec = &moved
	}
	u.tenure.flight = nil
}

// inFlight says that a write is not settled.
func (u *record) inFlight() bool { return u.flight != nil }

// reserves says that an admission is in flight.
func (u *record) reserves() bool { return u.flight != nil && u.flight.Kind().Reserves() }

// waits says that the unit holds nothing, and is not over.
func (u *record) waits() bool { return u.stage == transition.Waiting && !u.reserves() }

// mayHold says that the unit holds quota, or may.
func (u *record) mayHold() bool { return u.stage == transition.Admitted || u.reserves() }

// isOlder says that an object is from before the admission that was confirmed last.
func (u *record) isOlder(in *unit.Unit) bool {
	return u.isAdmitted() && !u.observed && in.Phase.Waits() && in.Attempts < u.spec.Attempts
}

// soon is what the unit will be when the write in flight is confirmed.
func (u *record) soon(now time.Time) *unit.Unit {
	if !u.inFlight() {
		return u.spec
	}
	return written(now, u.flight, u.spec)
}

// written is a unit as its object says it after a write.
func written(now time.Time, w transition.Write, to *unit.Unit) *unit.Unit {
	in := *to
	w.Apply(now, &in)
	return &in
}

// isAdmitted says that the unit is admitted, and no write is in flight.
func (u *record) isAdmitted() bool { return u.stage == transition.Admitted && u.flight == nil }

// confirmed says that the unit is admitted and the API has it so, and that no write in flight ends that.
func (u *record) confirmed() bool {
	return u.stage == transition.Admitted && (u.flight == nil || u.flight.Kind().KeepsPods)
}

// leaves says that the write in flight ends the admission.
func (u *record) leaves() bool {
	return u.flight != nil && u.stage == transition.Admitted && u.flight.Kind().To == transition.Waiting
}

// isPreempting says that the write is in flight that names the victims of the unit.
func (u *record) isPreempting() bool { return u.flight != nil && u.flight.Kind().StaysInLine() }

// begins are the holds that the unit is about to preempt, joined by commas; empty for none.
func (u *record) begins() string {
	if w, is := u.flight.(*transition.Preempt); is {
		return w.Joined()
	}
	return ""
}
