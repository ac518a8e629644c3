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

// Package unitstate says in one word of the glossary in which state a unit is.
package unitstate

import "github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"

// State of a unit, for people.
type State string

// The states.
const (
	Pending     State = "Pending"
	Backoff     State = "Backoff"     // waits for a time before it is tried again
	Deactivated State = "Deactivated" // waits until somebody makes it active
	Reserved    State = "Reserved"    // holds quota and is not released
	Admitted    State = "Admitted"
	Running     State = "Running"
	Succeeded   State = "Succeeded"
	Failed      State = "Failed"
)

// All states, from the first to the last of a unit.
func All() []State {
	return []State{Pending, Backoff, Deactivated, Reserved, Admitted, Running, Succeeded, Failed}
}

// Over says whether the job has ended.
func (s State) Over() bool { return s == Succeeded || s == Failed }

// Of a unit in a phase. inactive units have spec.active: false.
func Of(phase unit.Phase, inactive bool) State {
	switch phase {
	case unit.PhaseReserved, unit.PhaseSchedReady:
		return Reserved
	case unit.PhaseDequeued, unit.PhaseSchedSucceed:
		return Admitted
	case unit.PhaseRunning:
		return Running
	case unit.PhaseSucceed:
		return Succeeded
	case unit.PhaseFailed:
		return Failed
	case unit.PhaseNone, unit.PhaseEnqueued, unit.PhaseSchedFailed, unit.PhaseTimeoutBackoff, unit.PhasePreempted,
		unit.PhaseOther:
	}
	switch {
	case inactive:
		return Deactivated
	case phase == unit.PhaseTimeoutBackoff:
		return Backoff
	}
	return Pending
}
