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

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/patch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/witness"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// decide lets the core decide and turns its plan into writes.
func (d *decisions) decide(now time.Time) {
	begun := d.Clock.Now()
	plan, ok := d.core.Decide(now)
	if !ok {
		d.pace.Failed()
		d.facts.retry(now, d.core.RebuildDelay())
		return
	}
	d.cycle++
	d.Log.V(3).Info("Decided", "cycle", d.cycle, "writes", len(plan.Writes), "examined", plan.Examined)
	d.startup.NoteDecision(now)
	d.pace.Decided(begun, d.Clock.Now(), plan.WakeAt)
	d.Metrics.Observe(metrics.CycleExaminedUnits, float64(plan.Examined))
	d.Metrics.Add(plan.ClaimsEnded, metrics.ClaimsEndedTotal)
	d.Metrics.Add(plan.PreemptedInVain, metrics.TakenInVainTotal)
	for range plan.Panics {
		d.Metrics.Inc(metrics.PanicsTotal, "extension")
	}
	if plan.Tried {
		d.facts.gauges.Mark(now, "")
	}
	for _, w := range plan.Writes {
		d.fly(now, w)
	}
	for i := range plan.Foresee {
		d.foresee(&plan.Foresee[i])
	}
}

// foresee asks whether the pods of a unit would find nodes without those of others.
func (d *decisions) foresee(f *transition.Foresee) {
	q := witness.Question{Key: f.Unit.Key, UID: types.UID(f.Unit.UID), Answer: func(found bool, why string) {
		d.box.Call(func() {
			now := d.Clock.Now()
			d.core.Call(f.Unit.Key, func(s *admission.State) {
				s.Foreseen(now, f, found, objects.Shorten(why))
			})
		})
	}}
	for _, key := range f.Victims {
		if rec := d.units.Get(key); rec != nil {
			q.Gone = append(q.Gone, d.facts.pods.OnNodes(rec.Object)...)
		}
	}
	d.facts.opts.Witness.Foresee(q)
}

// fly puts a decision in flight. A decision about an absent unit, or one with a write in flight, is returned. A
// decision that the unit's phase does not allow is refused before it is sent.
func (d *decisions) fly(now time.Time, next transition.Write) {
	key, attempt := next.Of().Key, next.Attempt()
	rec := d.units.Get(key)
	if rec == nil || rec.Flight != nil {
		d.core.Call(key, func(s *admission.State) { s.Settle(now, key, attempt, transition.Refuted) })
		return
	}
	d.dropReport(now, key, rec)
	d.facts.touch(now, key, rec)
	w := d.writers.Unit(rec.Object, statuswrite.Kind(next.Kind().Name), patch.Of(next, d.subject(rec), now), now)
	if d.unlawful(w) {
		d.core.Call(key, func(s *admission.State) { s.Settle(now, key, attempt, transition.Refused) })
		return
	}
	w.Decision, w.Attempt, w.Reason, w.Cycle = next, attempt, next.Label(), d.cycle
	rec.Act().Flight, rec.Act().Unknown = w, false
	if w.Admits() {
		rec.Act().Seq = d.facts.publisher.Place()
	}
	d.writers.Later(w)
}

// subject of a patch is a unit as it is known now.
func (d *decisions) subject(rec *unitbook.Record) *patch.Subject {
	return &patch.Subject{Object: rec.Object, Queue: rec.Queue, Quota: rec.Quota, Named: d.facts.queues[rec.Queue]}
}

// unlawful says that the scheduler may not change the phase as a write would (I9). Then decision and object contradict
// each other, which is an error of ours.
func (d *decisions) unlawful(w *statuswrite.Write) bool {
	from, to := w.Base.Phase, w.Phase()
	if to == "" || from.CanBecome(to, unit.WriterScheduler) {
		return false
	}
	w.Cancel()
	d.Metrics.Inc(metrics.RefusedTransitionsTotal, string(w.Kind))
	d.Log.Error(nil, "Refused to write a change of phase that is not allowed", "queueUnit", w.Key, "kind", w.Kind,
		"from", from, "to", to)
	return true
}
