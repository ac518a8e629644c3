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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/victims"
)

// Preempt says that a pending unit preempts the units with these holds, see unit.Unit.Hold. None ends that.
type Preempt struct {
	Unit *unit.Unit
	// Holds in order, each once.
	Holds []string
}

var preempt = &Kind{
	Name: "take", From: Waiting, To: Waiting,
	Doing: "what this unit takes from others", Writing: "what it takes is being written",
}

// Kind implements Write.
func (w *Preempt) Kind() *Kind { return preempt }

// Label implements Write.
func (w *Preempt) Label() string { return "Reclaims" }

// Of implements Write.
func (w *Preempt) Of() *unit.Unit { return w.Unit }

// Attempt implements Write.
func (w *Preempt) Attempt() int64 { return w.Unit.Attempts }

// Joined are the holds as an object of the core has them.
func (w *Preempt) Joined() string { return victims.Join(w.Holds) }

// Apply implements Write.
func (w *Preempt) Apply(_ time.Time, in *unit.Unit) { in.Preempts = w.Joined() }

// AppliedTo implements Write.
func (w *Preempt) AppliedTo(_ unit.Phase, says *unit.Stated) bool { return says.Preempts == w.Joined() }

// Hold implements Write: a unit that waits holds no quota.
func (w *Preempt) Hold(*unit.Unit) {}
