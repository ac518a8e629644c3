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

package transition

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Admit reserves quota for a unit that waits, and lets its pods go unless admission checks are asked.
type Admit struct {
	Unit *unit.Unit
	// Number of the admission: status.attempts.
	Number  int64
	Request resources.List
	// Pods that it is for. Counts, where it is less than the whole, are those of each pod set of the unit's Sizes.
	Pods   int64
	Counts []int64
	// Checks to be asked: with any of them the phase is Reserved, and the pods do not go yet.
	Checks []string
	// Borrows: it is beyond the runtime of its quota, or of one above it.
	Borrows bool
}

var admit = &Kind{
	Name: "admit", From: Waiting, To: Admitted,
	Doing: "the admission of this unit", Writing: "its admission is being written",
}

// Kind implements Write.
func (w *Admit) Kind() *Kind { return admit }

// Label implements Write.
func (w *Admit) Label() string {
	if len(w.Checks) > 0 {
		return "Reserved"
	}
	return "Admitted"
}

// Of implements Write.
func (w *Admit) Of() *unit.Unit { return w.Unit }

// Attempt implements Write.
func (w *Admit) Attempt() int64 { return w.Number }

// Apply implements Write.
func (w *Admit) Apply(now time.Time, in *unit.Unit) {
	in.Phase, in.Attempts, in.Checks = unit.PhaseDequeued, w.Number, nil
	if len(w.Checks) > 0 {
		in.Phase, in.Checks = unit.PhaseReserved, unit.Asked(w.Checks)
	}
	w.place(in)
	in.Said, in.Preempts = nil, ""
	in.Admitted, in.TemplatesWritten = now, false
	in.Become(w.Request, w.Pods)
	held := w.Request
	if in.Observed {
		held = resources.List{}
	}
	in.SetHeld(held, w.Pods)
}

// Keep has an object that is from before an admission say what the unit was admitted with.
func Keep(in, admitted *unit.Unit) {
	in.Phase, in.Attempts, in.Held = admitted.Phase, admitted.Attempts, admitted.Held
	in.HeldPods, in.Recorded = admitted.HeldPods, admitted.Recorded
	in.Admitted, in.Checks = admitted.Admitted, admitted.Checks
	in.Quota, in.MovesTo, in.Chosen = admitted.Quota, admitted.MovesTo, admitted.Chosen
	if in.Sizes != nil {
		in.Become(admitted.Request, admitted.Pods)
	}
}

// AppliedTo implements Write.
func (w *Admit) AppliedTo(phase unit.Phase, _ *unit.Stated) bool { return phase.Holds() }

// Hold implements Write.
func (w *Admit) Hold(in *unit.Unit) {
	holdRequest(in, w.Number)
	w.place(in)
}

// place has a unit be in the quota in which it is admitted, and be kept as it is then.
func (w *Admit) place(in *unit.Unit) {
	in.Kept, in.Chosen = w.Unit.Kept, w.Unit.Chosen
	if in.Quota != w.Unit.Quota {
		in.Quota, in.MovesTo = w.Unit.Quota, in.Quota
	}
}
