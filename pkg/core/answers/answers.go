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

// Package answers has what a state says about a unit to those who ask.
package answers

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

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
	// DryRun has the victims that the unit would have. Of units that are decided alike, the first has it.
	DryRun reclaim.DryRun
}

// Explanation says why a unit waits, with the numbers of now.
type Explanation struct {
	Reason  unit.Reason
	Message string
	// Remarks are the last part of a message about a shortage: loans, preemption and other quotas of its list.
	Remarks string
	// Position in the queue from 1, out of Waiting; zero for a unit that is not in line. First is the unit at the
	// front, if that is another one.
	Position, Waiting int
	First             string
	// Until: the unit is not tried before that time; zero if time alone does not keep it.
	Until time.Time
	// Shortages are all that the unit lacks, its leaf first, by resource. They are listed as well where something
	// else keeps the unit from its turn, unless it is parked by itself.
	Shortages []decide.Shortage
}
