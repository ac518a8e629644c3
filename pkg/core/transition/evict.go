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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Evict ends an admission. The quota is free only when that is confirmed.
type Evict struct {
	Unit *unit.Unit
	life.Loss
}

var evict = &Kind{
	Name: "evict", From: Admitted, To: Waiting,
	Doing: "the eviction of this unit", Writing: "its admission is being taken back",
}

// Kind implements Write.
func (w *Evict) Kind() *Kind { return evict }

// Label implements Write.
func (w *Evict) Label() string { return string(w.Reason) }

// Of implements Write.
func (w *Evict) Of() *unit.Unit { return w.Unit }

// Attempt implements Write.
func (w *Evict) Attempt() int64 { return w.Unit.Attempts }

// Apply implements Write.
func (w *Evict) Apply(_ time.Time, in *unit.Unit) { w.Loss.Apply(in) }

// AppliedTo implements Write.
func (w *Evict) AppliedTo(phase unit.Phase, says *unit.Stated) bool {
	return phase.Waits() && says.Held.IsZero()
}

// Hold implements Write.
func (w *Evict) Hold(in *unit.Unit) { holdRequest(in, w.Unit.Attempts) }
