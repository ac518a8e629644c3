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

// Plan is what Decide wants written.
type Plan struct {
	// Writes in the order in which they were decided.
	Writes  []Write
	Foresee []Foresee
	// Examined counts the units that were evaluated against quota.
	Examined int
	// Panics counts those of extensions that were recovered since the last Decide; their units are parked.
	Panics int
	// ClaimsEnded counts the units that no longer claim, because their time is over.
	ClaimsEnded int
	// PreemptedInVain counts the units that preempted others, and gave the quota back before a pod of theirs was on a
	// node.
	PreemptedInVain int
	// Tried: a search for victims was made for a unit of a queue with dryRun.
	Tried bool
	// WakeAt is when Decide wants to run again though nothing happens; zero means never.
	WakeAt time.Time
}

// Explain tells the shell to write why a unit is not admitted or, if it holds quota, why it does not get more.
type Explain struct {
	Unit *unit.Unit
	unit.Saying
}

// Foresee asks whether the pods of a pending unit would find nodes if all its victims were gone. Holds are those of the
// victims, as victims.Join joins them. Victims are their keys. State.Foreseen gets the answer.
type Foresee struct {
	Unit    *unit.Unit
	Holds   string
	Victims []string
}
