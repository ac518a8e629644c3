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

package unit

// Phase is status.phase of a unit; the values are those of the API.
type Phase string

// The phases. PhaseNone is an object without status; it reads as Enqueued.
const (
	PhaseNone           Phase = ""
	PhaseEnqueued       Phase = "Enqueued"
	PhaseReserved       Phase = "Reserved"
	PhaseDequeued       Phase = "Dequeued"
	PhaseRunning        Phase = "Running"
	PhaseSucceed        Phase = "Succeed"
	PhaseFailed         Phase = "Failed"
	PhaseSchedReady     Phase = "SchedReady"
	PhaseSchedSucceed   Phase = "SchedSucceed"
	PhaseSchedFailed    Phase = "SchedFailed"
	PhaseTimeoutBackoff Phase = "TimeoutBackoff"
	// PhasePreempted is written by the stand-alone Koord-Queue only. It reads as Enqueued.
	PhasePreempted Phase = "Preempted"
)

// Phases returns all phases, PhaseNone first.
func Phases() []Phase {
	return []Phase{
		PhaseNone, PhaseEnqueued, PhaseReserved, PhaseSchedReady, PhaseSchedSucceed, PhaseDequeued, PhaseRunning,
		PhaseSucceed, PhaseFailed, PhaseSchedFailed, PhaseTimeoutBackoff, PhasePreempted,
	}
}

// Holds says whether a unit in this phase holds quota.
func (p Phase) Holds() bool {
	switch p {
	case PhaseReserved, PhaseSchedReady, PhaseSchedSucceed, PhaseDequeued, PhaseRunning:
		return true
	default:
		return false
	}
}

// Releases says whether the pods of a unit in this phase may go. Every phase that releases holds; one that holds and
// does not release waits for checks or for its placement to be confirmed.
func (p Phase) Releases() bool {
	switch p {
	case PhaseSchedSucceed, PhaseDequeued, PhaseRunning:
		return true
	default:
		return false
	}
}

// Terminal says whether the unit is over.
func (p Phase) Terminal() bool { return p == PhaseSucceed || p == PhaseFailed }

// Waits says whether a unit in this phase has a place in its queue.
func (p Phase) Waits() bool {
	switch p {
	case PhaseNone, PhaseEnqueued, PhaseSchedFailed, PhaseTimeoutBackoff, PhasePreempted:
		return true
	default:
		return false
	}
}

// Writer is the process that writes a change of phase.
type Writer string

// Writers of phases.
const (
	WriterScheduler  Writer = "scheduler"
	WriterController Writer = "controller"
)

// PhaseOther stands in the table for every phase that this version does not know: one of another version, or an error
// of who wrote it.
const PhaseOther Phase = "*"

// Transition is one legal change of phase (I9).
type Transition struct {
	From, To Phase
	When     string
	By       []Writer
}

// transitions is the one table of all changes of phase in this repository. Both processes refuse to write any other,
// and documentation is generated from it. For a new change, add a row.
var transitions = build(
	row{by: scheduler, from: []Phase{PhaseNone, PhasePreempted}, to: []Phase{PhaseEnqueued},
		when: "it cannot be admitted now; the condition QuotaReserved says why"},
	row{by: scheduler, from: []Phase{PhaseTimeoutBackoff}, to: []Phase{PhaseEnqueued},
		when: "its back-off is over and it cannot be admitted now; written together with the reason"},
	row{by: scheduler, from: waiting, to: []Phase{PhaseReserved},
		when: "quota is reserved; admission checks are asked"},
	row{by: scheduler, from: waiting, to: []Phase{PhaseDequeued},
		when: "quota is reserved, and no check is asked"},
	row{by: scheduler, from: []Phase{PhaseReserved}, to: []Phase{PhaseDequeued},
		when: "all admission checks are ready"},
	row{by: scheduler, from: []Phase{PhaseReserved}, to: []Phase{PhaseTimeoutBackoff},
		when: "a check has it tried again, contradicts another or does not answer in time; it is tried again later"},
	row{by: controller, from: []Phase{PhaseDequeued, PhaseSchedSucceed}, to: []Phase{PhaseRunning},
		when: "the job runs"},
	row{by: controller, from: []Phase{PhaseNone, PhaseEnqueued}, to: []Phase{PhaseRunning},
		when: "the job ran before its unit existed: adopted"},
	row{by: scheduler, from: append(append([]Phase{}, holding...), PhaseOther), to: []Phase{PhaseEnqueued},
		when: "held, deactivated, preempted or without its job: what it held is free"},
	row{by: scheduler, from: []Phase{PhaseDequeued, PhaseSchedSucceed, PhaseRunning}, to: []Phase{PhaseTimeoutBackoff},
		when: "a time-out of it is over, before its pods ran or since they do not, or a check takes its answer back; " +
			"it is tried again later"},
	row{by: controller, from: append(append(append([]Phase{}, waiting...), holding...), PhaseOther),
		to:   []Phase{PhaseSucceed, PhaseFailed},
		when: "the job ended; admissions are cleared"},
)

var (
	waiting    = []Phase{PhaseNone, PhaseEnqueued, PhaseTimeoutBackoff, PhaseSchedFailed, PhasePreempted}
	holding    = []Phase{PhaseReserved, PhaseSchedReady, PhaseSchedSucceed, PhaseDequeued, PhaseRunning}
	scheduler  = []Writer{WriterScheduler}
	controller = []Writer{WriterController}
)

// row is a set of transitions with one cause.
type row struct {
	from, to []Phase
	when     string
	by       []Writer
}

func build(rows ...row) []Transition {
	var out []Transition
	for _, r := range rows {
		for _, from := range r.from {
			for _, to := range r.to {
				out = append(out, Transition{From: from, To: to, When: r.when, By: r.by})
			}
		}
	}
	return out
}

// Transitions returns the table of legal changes of phase, in its order.
func Transitions() []Transition { return append([]Transition(nil), transitions...) }

// CanBecome says whether this process may change the phase so. Writing the same phase again is no change.
func (p Phase) CanBecome(to Phase, by Writer) bool {
	if !p.Waits() && !p.Holds() && !p.Terminal() {
		p = PhaseOther
	}
	for _, t := range transitions {
		if t.From != p || t.To != to {
			continue
		}
		for _, w := range t.By {
			if w == by {
				return true
			}
		}
	}
	return false
}
