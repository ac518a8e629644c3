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
)

// Outcome of a status write.
type Outcome int

const (
	// OutcomeConfirmed: the object holds what was written.
	OutcomeConfirmed Outcome = iota
	// OutcomeRefuted: it was not and will never be applied (conflict and read back, gone).
	OutcomeRefuted
	// OutcomeRefused: the API server refuses it for good (invalid, forbidden); parked for RefusedBackoff.
	OutcomeRefused
	// OutcomeUnknown: it may have been or may yet be applied; the reservation stays and a further
	// outcome follows. Unknown outcomes are a state, not an error.
	OutcomeUnknown
)

// settling is the end of a write in flight: what came of it, and the object as it was seen in the meantime.
type settling struct {
	now        time.Time
	base       time.Duration // of the back-off
	outcome    Outcome
	remembered *unit.Unit
}

// end moves a unit to where it belongs after its write.
func (w *settling) end(u *record) {
	switch u.stage {
	case stageAdmitting:
		written := w.remembered != nil && w.remembered.Phase.Holds()
		w.endWait(u, written, "the admission of this unit", func() { u.becomeAdmitted(w.now) })
	case stageTaking:
		written := w.remembered != nil && w.remembered.TakesFrom == u.taking
		w.endWait(u, written, "what this unit takes from others", u.becomeTaker)
	case stageResizing:
		w.endResize(u)
	case stageReleasing:
		if w.outcome != OutcomeConfirmed {
			w.keep(u, "the release of this unit")
			return
		}
		u.becomeReleased(w.now)
	default:
		w.endEviction(u)
	}
}

// endWait is for a unit that waited until the write. written: the object itself says what the write does, whatever that
// seemed to come to.
func (w *settling) endWait(u *record, written bool, what string, become func()) {
	if !written && w.outcome != OutcomeConfirmed {
		u.becomeWaiting()
		w.refuse(u, what)
		return
	}
	become()
}

func (w *settling) endEviction(u *record) {
	if w.outcome != OutcomeConfirmed {
		w.keep(u, "the eviction of this unit")
		return
	}
	u.becomeEvicted()
	if seen := w.remembered; seen != nil && seen.Phase.Holds() && seen.Attempts <= u.attempt {
		// Older than the eviction: only its other fields can be news.
		u.eviction.Apply(seen)
	}
}

func (w *settling) endResize(u *record) {
	if w.outcome != OutcomeConfirmed {
		w.keep(u, "to change what this unit holds")
	} else if u.becomeResized(); w.remembered != nil {
		w.remembered.ResizePending = 0 // what it asks for by now it began to ask for since
	}
	u.tenure.next = resources.List{}
}

// keep has a unit stay admitted as it is.
func (w *settling) keep(u *record, what string) {
	u.stayAdmitted(w.outcome != OutcomeRefused)
	w.refuse(u, what)
}

// refuse keeps a unit from being tried for a while if the API server refuses what is written of it.
func (w *settling) refuse(u *record, what string) {
	if w.outcome == OutcomeRefused {
		u.refuse(w.now, w.base, unit.ReasonWriteRefused, "the API server refuses "+what+"; it is tried again later")
	}
}
