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

package writes

import (
	"time"

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

// Foresee asks whether the pods of a unit that waits would find nodes, if all units were gone from which it takes.
// Takes are their holds, as reclaim.Join joins them. State.Foreseen takes the answer.
type Foresee struct {
	Unit  unit.Unit
	Takes string
	From  []string
}

// Plan is what Decide wants written. Order is the order of decision.
type Plan struct {
	Admit   []Admit
	Dequeue []Dequeue
	Evict   []Evict
	Resize  []Resize
	Take    []Take
	Foresee []Foresee
	// Examined counts the units that were evaluated against quota.
	Examined int
	// Panics counts those of extensions that were recovered since the last Decide; their units are parked.
	Panics int
	// ClaimsEnded counts the units that no longer claim, because their time is over.
	ClaimsEnded int
	// TakenInVain counts how often units took what others held, and gave it back before a pod of theirs was on a node.
	TakenInVain int
	// Tried: for a unit of a queue with dryRun was searched what it would take.
	Tried bool
	// WakeAt is when Decide wants to run again though nothing happens; zero means never.
	WakeAt time.Time
}
