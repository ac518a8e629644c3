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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Dequeue lets the pods of a unit go that has passed its admission checks.
type Dequeue struct{ Unit *unit.Unit }

var dequeue = &Kind{
	Name: "dequeue", From: Admitted, To: Admitted,
	Doing: "the release of this unit", Writing: "passed its admission checks, which is being written",
}

// Kind implements Write.
func (w *Dequeue) Kind() *Kind { return dequeue }

// Label implements Write.
func (w *Dequeue) Label() string { return "Dequeued" }

// Of implements Write.
func (w *Dequeue) Of() *unit.Unit { return w.Unit }

// Attempt implements Write.
func (w *Dequeue) Attempt() int64 { return w.Unit.Attempts }

// Apply implements Write. The times of the unit count from then on.
func (w *Dequeue) Apply(now time.Time, in *unit.Unit) {
	in.Phase, in.Admitted = unit.PhaseDequeued, now
}

// AppliedTo implements Write.
func (w *Dequeue) AppliedTo(phase unit.Phase, _ *unit.Stated) bool { return phase.Releases() }

// Hold implements Write. The amount stays.
func (w *Dequeue) Hold(in *unit.Unit) { in.Phase = unit.PhaseDequeued }
