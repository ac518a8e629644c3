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

// Stage is where a unit is while no write of it is in flight.
type Stage uint8

const (
	// Waiting units are in line, or parked.
	Waiting Stage = iota
	// Admitted units hold what their objects say.
	Admitted
	// Over is terminal.
	Over
)

func (s Stage) String() string { return [...]string{"waiting", "admitted", "over"}[s] }

// StageOf an object of which no write is in flight. A phase of another version that holds something is taken to hold
// it.
func StageOf(in *unit.Unit) Stage {
	switch {
	case in.Phase.Terminal():
		return Over
	case in.Phase.Waits():
		return Waiting
	case in.Phase.Holds() || in.Held.Len() > 0:
		return Admitted
	default:
		return Waiting
	}
}

// Kind is what all writes of one kind have in common.
type Kind struct {
	// Name is a label of metrics.
	Name string
	// From and To are the stages of the unit before the write and after it.
	From, To Stage
	// KeepsPods: pods of the unit may start during the write, as before it and after it.
	KeepsPods bool
	// Doing completes the sentence "the API server refuses ...". Writing says what is in flight.
	Doing, Writing string
}

// Reserves says that the unit holds quota from the moment in which the write is launched.
func (k *Kind) Reserves() bool { return k.From == Waiting && k.To == Admitted }

// StaysInLine says that the unit keeps its place in its line during the write.
func (k *Kind) StaysInLine() bool { return k.From == Waiting && k.To == Waiting }

// Write is one status write of a unit. It is in flight from the decision until its outcome is known.
type Write interface {
	Kind() *Kind
	// Label of metrics, in addition to the name of the kind.
	Label() string
	// Of is the unit as it was when that was decided.
	Of() *unit.Unit
	// Attempt is the number of the admission that the object names after the write.
	Attempt() int64
	// Apply has a unit say what its object says after the write.
	Apply(now time.Time, in *unit.Unit)
	// AppliedTo says whether an object that names the right attempt, in such a phase, says what the write does.
	AppliedTo(phase unit.Phase, says *unit.Stated) bool
	// Hold has a unit, as its object is now, hold all that it may hold while the outcome is not known.
	Hold(in *unit.Unit)
}

// Older says that an object is from before a write that is known to be applied.
func Older(in *unit.Unit, w Write) bool {
	return StageOf(in) == w.Kind().From && in.Attempts <= w.Of().Attempts
}

// holdRequest is for writes before or after which a unit holds its request.
func holdRequest(in *unit.Unit, attempt int64) {
	in.Phase, in.Held, in.Attempts = unit.PhaseDequeued, in.Request, max(attempt, in.Attempts)
}
