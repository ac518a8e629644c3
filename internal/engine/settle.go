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

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
)

// landed takes what became of a write.
func (d *decisions) landed(now time.Time, r statuswrite.Result) {
	w := r.Write
	d.reasons.Seen(r.Took, r.AtOnce)
	if w.Kind == statuswrite.QueueStatus {
		d.facts.statuses.Written(now, w, r.Outcome)
		return
	}
	rec := d.units.Get(w.Key.String())
	if rec == nil || rec.Object.UID != w.Base.UID {
		return // gone since then; a watch says what there is now
	}
	if r.Gone {
		d.tally.Attempt("gone", w)
		d.facts.forgetUnit(now, w.Key.String(), rec)
		return
	}
	if r.Fresh != nil {
		d.facts.updateUnit(now, rec, r.Fresh)
	}
	switch {
	case !w.Decides():
		d.reportWritten(now, rec, r)
	case rec.Flight == nil || rec.Flight.ID != w.ID:
		// settled by the object already
	case r.Outcome == transition.Unknown:
		rec.Act().Unknown = true
		d.tally.Attempt(statuswrite.LabelOf(r.Outcome), w)
		key := rec.Object.Key()
		d.core.Call("", func(s *admission.State) { s.Settle(now, key, w.Attempt, transition.Unknown) })
		if w.AppliedTo(rec.Object) {
			d.settle(now, rec, transition.Confirmed)
		}
	default:
		if r.Outcome == transition.Refused {
			d.Log.Error(r.Err, "The API server refuses a status write", "queueUnit", w.Key, "kind", w.Kind, "attempt", w.Attempt)
		}
		d.settle(now, rec, r.Outcome)
	}
}

// settle lands the decision in flight with a definite outcome.
func (d *decisions) settle(now time.Time, rec *unitbook.Record, outcome transition.Outcome) {
	w, key := rec.Flight, rec.Object.Key()
	w.Cancel()
	rec.Act().Flight, rec.Act().Unknown = nil, false
	known := true
	d.core.Call(key, func(s *admission.State) {
		known = s.InFlight(key)
		s.Settle(now, key, w.Attempt, outcome)
		if !known { // the state was rebuilt while the decision was in flight
			s.UpsertUnit(now, d.facts.resolve(rec.Object))
		}
	})
	d.facts.touch(now, key, rec)
	if !known {
		d.facts.pods.LookAgain(rec.Object) // grants of that time were not published
	}
	stage := w.Decision.Kind().From
	if outcome == transition.Confirmed {
		stage = w.Decision.Kind().To
	}
	if stage == transition.Waiting {
		rec.Act().Seq = 0
	}
	d.tally.Landed(now, rec, w, outcome)
}
