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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/writes"
)

// stage is where a unit is in the eyes of the core (I2: in exactly one). It is written in this file and nowhere else.
type stage uint8

const (
	stageWaiting   stage = iota // in a group, or parked
	stageAdmitting              // reserved; the write is in flight
	stageAdmitted
	stageEvicting  // still reserved; the write is in flight
	stageResizing  // admitted; the write that changes how much is held is in flight
	stageReleasing // reserved and confirmed so; the write that lets it go is in flight
	stageDone      // terminal
	stageTaking    // waits; the write that says what it takes back is in flight
)

func (st stage) String() string {
	return [...]string{"waiting", "admitting", "admitted", "evicting", "resizing", "releasing", "over", "taking"}[st]
}

func (st stage) waits() bool { return st == stageWaiting || st == stageTaking }

func (st stage) mayHold() bool { return !st.waits() && st != stageDone }

// inFlight says that a write is not settled.
func (st stage) inFlight() bool { return st == stageTaking || st.mayHold() && st != stageAdmitted }

// stageOf an object is the one that it says, when no write of it is in flight.
func stageOf(in *unit.Unit) stage {
	switch {
	case in.Phase.Terminal():
		return stageDone
	case in.Phase.Waits():
		return stageWaiting
	case in.Phase.Holds() || in.Held.Len() > 0:
		// A phase of another version that holds something is taken to hold it.
		return stageAdmitted
	default:
		return stageWaiting
	}
}

// becomeAsItSays takes the object for the truth.
func (u *record) becomeAsItSays(in *unit.Unit) {
	u.spec = *in
	to := stageOf(in)
	if to == stageAdmitted {
		if u.stage != stageAdmitted {
			u.observed = true
		}
		u.own().attempt = in.Attempts
	}
	u.stage = to
}

func (u *record) becomeDone() { u.stage = stageDone }

// becomeAdmitting: its admission with so much is written, and asks these checks.
func (u *record) becomeAdmitting(gets unit.Size, checks []string) {
	u.spec.Choose(gets.Quota)
	u.stage, u.own().attempt = stageAdmitting, u.spec.Attempts+1
	u.tenure.next, u.tenure.nextPods, u.tenure.checks = gets.Request, gets.Pods, checks
}

// becomeEvicting: that it loses what it holds is written.
func (u *record) becomeEvicting(d *writes.Evict) {
	u.stage, u.own().attempt, u.tenure.eviction = stageEvicting, u.spec.Attempts, d
}

// becomeResizing: that it holds another amount, for so many pods, is written.
func (u *record) becomeResizing(next resources.List, pods int64) {
	u.stage, u.own().attempt = stageResizing, u.spec.Attempts
	u.tenure.next, u.tenure.nextPods = next, pods
}

// becomeReleasing: that its pods may go is written.
func (u *record) becomeReleasing() { u.stage, u.own().attempt = stageReleasing, u.spec.Attempts }

// becomeTaking: that it takes these holds is written, or none.
func (u *record) becomeTaking(holds string) {
	u.stage, u.own().attempt, u.tenure.taking = stageTaking, u.spec.Attempts, holds
	if u.tenure.outOfDate = ""; holds == "" {
		u.tenure.outOfDate = u.spec.TakesFrom
	}
}

// becomeTaker: it takes them back.
func (u *record) becomeTaker() {
	u.stage, u.spec.TakesFrom = stageWaiting, u.taking
}

// becomeWaiting: its admission, or what it was to take back, came to nothing.
func (u *record) becomeWaiting() {
	if u.stage = stageWaiting; u.spec.Chosen {
		u.spec.Move()
	}
}

// becomeAdmitted: its admission was written.
func (u *record) becomeAdmitted(now time.Time) {
	u.stage, u.observed, u.refusals = stageAdmitted, false, u.refusals.Accepted()
	u.spec.Phase, u.spec.Attempts, u.spec.Checks = unit.PhaseDequeued, u.attempt, nil
	u.spec.Said, u.spec.TakesFrom = nil, ""
	u.listener.Forget()
	if len(u.tenure.checks) > 0 {
		u.spec.Phase, u.spec.Checks = unit.PhaseReserved, unit.Asked(u.tenure.checks)
	}
	u.spec.Admitted, u.tenure.left, u.spec.TemplatesWritten = now, time.Time{}, false
	u.spec.Become(u.tenure.next, u.tenure.nextPods)
	u.spec.SetHeld(u.held, u.spec.Pods)
}

// becomeEvicted: it has lost what it held.
func (u *record) becomeEvicted() {
	u.stage = stageWaiting
	if u.eviction.Loss.ForOthers() {
		u.tenure.preempted++
	}
	u.eviction.Loss.Apply(&u.spec)
}

// becomeResized: it holds another amount by now.
func (u *record) becomeResized() {
	u.stage = stageAdmitted
	u.spec.SetHeld(u.next, u.nextPods)
	u.tenure.growsSince = 0
	if said := u.listener.Said(); said != nil && !ofPods[said.Reason] {
		u.spec.Said = nil
		u.listener.Forget()
	}
}

// becomeReleased: its pods may go.
func (u *record) becomeReleased(now time.Time) {
	u.stage = stageAdmitted
	u.spec.Phase, u.spec.Admitted = unit.PhaseDequeued, now
	u.tenure.left = time.Time{}
}

// stayAdmitted: what was written of it was not taken. observed: its object was seen to be something else.
func (u *record) stayAdmitted(observed bool) {
	u.stage, u.observed = stageAdmitted, u.observed || observed
}
