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

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// What follows is for whoever drives Step himself and takes the writes by Options.Submit, in place of Run and of the
// pool of writers.

// Decides says whether the write carries a decision: its Do is called until the outcome is definite. Of other writes
// every outcome is final.
func (w *Write) Decides() bool { return w.decides() }

// Admits says whether the write admits its unit.
func (w *Write) Admits() bool { return w.kind == writeAdmit }

// Object is what the write changes, and the UID that it was decided for; empty for a Queue.
func (w *Write) Object() (types.NamespacedName, types.UID) {
	if w.base == nil {
		return w.key, ""
	}
	return w.key, w.base.UID
}

// Dropped says that nobody waits for the write any more, so that it is not sent, or not again.
func (w *Write) Dropped() bool { return w.ctx.Err() != nil }

// Definite says whether the outcome is known: the write was applied, or never will be.
func (r Result) Definite() bool { return r.outcome != admission.OutcomeUnknown }

// ExtendNow replaces what extensions give to the core; it is for before anything was fed.
func (e *Engine) ExtendNow(policies map[string]queue.Factory, checks []admission.Check) {
	e.core.Policies, e.core.Checks = policies, checks
	e.state = e.newState()
}

// PlacesNow lists the units that the engine has, and what is wrong with the places that they have in the core: a unit is in
// exactly one, and the one that its object says (I2). While the state waits to be built anew nothing is.
func (e *Engine) PlacesNow() (units map[string]types.UID, wrong []admission.Mismatch) {
	units = make(map[string]types.UID, len(e.units))
	for key, rec := range e.units {
		units[key] = rec.object.UID
	}
	if e.rebuild {
		return units, nil
	}
	for _, key := range sortedKeys(e.units) {
		if rec := e.units[key]; rec.flight == nil {
			wrong = append(wrong, e.state.VerifyUnit(e.resolve(rec.object))...)
		}
	}
	return units, append(wrong, e.state.VerifyPlaces()...)
}

// GatherNow is how long Run waits for more news of the kind that can only take room away.
func (e *Engine) GatherNow() time.Duration { return e.gather() }

// VerifyNow is Verify in the goroutine of Step.
func (e *Engine) VerifyNow() []admission.Difference { return e.state.Verify() }
