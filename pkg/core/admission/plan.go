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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Admit tells the shell to write one admission. The core has reserved it in the ledger already.
type Admit struct {
	Unit    unit.Unit
	Attempt int64 // value for status.attempts
	Request resources.List
	Pods    int64 // that it is for
	// Counts, where it is less than the whole, are the numbers of pods of each pod set of its Sizes.
	Counts []int64
	// Checks to be asked: with any of them its phase is Reserved, and its pods do not go yet.
	Checks []string
	// Borrows: it is beyond the runtime of its quota, or of one above it.
	Borrows bool
}

// Dequeue tells the shell to write that a reserved unit has passed its checks: phase Dequeued.
type Dequeue struct{ Unit unit.Unit }

// Resize tells the shell to write that an admitted unit holds another amount than it does. The core holds the greater
// of both until that is settled.
type Resize struct {
	Unit    unit.Unit
	Attempt int64 // that of its admission, which stays
	Held    resources.List
	Pods    int64 // that it is for
	// Asked: the unit waited for it in its line. Borrows is as that of Admit.
	Asked, Borrows bool
}

// Explain tells the shell to write why a unit is not admitted or, if it holds quota, why it does not get more.
type Explain struct {
	Unit unit.Unit
	unit.Saying
}

// Evict tells the shell to take an admission back: phase Enqueued, admissions cleared. Used when an
// admitted unit becomes inactive, loses its consumer or is found to be a duplicate.
type Evict struct {
	Unit unit.Unit
	life.Loss
}

// Take tells the shell to write that a unit that waits takes back these holds, see unit.Unit.Hold.
type Take struct {
	Unit  unit.Unit
	Holds []string
}

// Plan is what Decide wants written. Order is the order of decision.
type Plan struct {
	Admit   []Admit
	Dequeue []Dequeue
	Evict   []Evict
	Resize  []Resize
	Take    []Take
	// Examined counts the units that were evaluated against quota.
	Examined int
	// Panics counts those of extensions that were recovered since the last Decide; their units are parked.
	Panics int
	// ClaimsEnded counts the units that no longer claim, because their time is over.
	ClaimsEnded int
	// WakeAt is when Decide wants to run again though nothing happens; zero means never.
	WakeAt time.Time
}

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

// Grant says whether a pod of a unit may go.
type Grant = ledger.Grant

// Difference is one place where the ledger and its rebuild disagree.
type Difference = ledger.Difference

// Row is one unit in line, copied: it stays true of its moment whatever happens to the state.
type Row struct {
	Key, Quota string
	// Position in the queue from 1.
	Position int
	Priority int32
	Created  time.Time
	// Request is what the unit waits for. Holding: it is admitted, and waits for more than it holds.
	Request resources.List
	Holding bool
	// Finding is what the last pass found of the unit's group. Its reason is never empty.
	unit.Finding
}
