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

// Resize has an admitted unit hold another amount. Until the outcome is known the unit holds the greater of both.
type Resize struct {
	Unit *unit.Unit
	Held resources.List
	// Pods that it is for.
	Pods int64
	// Asked: the unit waited for it in its line. Borrows is as that of Admit.
	Asked, Borrows bool
}

var resize = &Kind{
	Name: "resize", From: Admitted, To: Admitted, KeepsPods: true,
	Doing: "to change what this unit holds", Writing: "admitted; what it holds is being changed",
}

// Kind implements Write.
func (w *Resize) Kind() *Kind { return resize }

// Label implements Write.
func (w *Resize) Label() string { return "Resized" }

// Of implements Write.
func (w *Resize) Of() *unit.Unit { return w.Unit }

// Attempt implements Write.
func (w *Resize) Attempt() int64 { return w.Unit.Attempts }

// Apply implements Write. A reason that is about its pods stays.
func (w *Resize) Apply(_ time.Time, in *unit.Unit) {
	in.SetHeld(w.Held, w.Pods)
	if said := in.Said; said != nil && !said.Reason.OfPods() {
		in.Said = nil
	}
}

// AppliedTo implements Write.
func (w *Resize) AppliedTo(phase unit.Phase, says *unit.Stated) bool {
	return phase.Holds() && says.Recorded && says.Held.Equal(w.Held)
}

// Hold implements Write.
func (w *Resize) Hold(in *unit.Unit) {
	if !in.Recorded && !in.Adopted {
		in.Held = in.Request
	}
	in.Held, in.Recorded = in.Held.Max(w.Held), true
}
