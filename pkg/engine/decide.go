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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/writes"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/witness"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// decide lets the core decide and turns its plan into writes.
func (e *Engine) decide(now time.Time) {
	begun := e.opts.Clock.Now()
	plan, ok := e.core.decide(now)
	if !ok {
		e.pace.Failed()
		e.retryIn(now, e.core.rebuildDelay())
		return
	}
	e.startup.noteDecision(now)
	e.pace.Decided(begun, e.opts.Clock.Now(), plan.WakeAt)
	e.opts.Metrics.Observe(metrics.CycleExaminedUnits, float64(plan.Examined))
	e.opts.Metrics.Add(plan.ClaimsEnded, metrics.ClaimsEndedTotal)
	e.opts.Metrics.Add(plan.TakenInVain, metrics.TakenInVainTotal)
	for range plan.Panics {
		e.opts.Metrics.Inc(metrics.PanicsTotal, "extension")
	}
	if plan.Tried {
		e.gauges.mark(now, "")
	}
	e.carryOut(now, &plan)
}

// carryOut makes the writes of a plan, in this order.
func (e *Engine) carryOut(now time.Time, plan *writes.Plan) {
	for i := range plan.Evict {
		e.fly(now, (*evictWrite)(&plan.Evict[i]))
	}
	for i := range plan.Admit {
		e.fly(now, (*admitWrite)(&plan.Admit[i]))
	}
	for i := range plan.Take {
		e.fly(now, (*takeWrite)(&plan.Take[i]))
	}
	for i := range plan.Dequeue {
		e.fly(now, (*dequeueWrite)(&plan.Dequeue[i]))
	}
	for i := range plan.Resize {
		e.fly(now, (*resizeWrite)(&plan.Resize[i]))
	}
	for i := range plan.Foresee {
		e.foresee(&plan.Foresee[i])
	}
}

// foresee asks whether the pods of a unit would find nodes without those of others.
func (e *Engine) foresee(f *writes.Foresee) {
	q := witness.Question{Key: f.Unit.Key, UID: types.UID(f.Unit.UID), Answer: func(found bool, why string) {
		e.box.call(func() {
			now := e.opts.Clock.Now()
			e.core.call(f.Unit.Key, func(s *admission.State) {
				s.Foreseen(now, f, found, objects.Shorten(why))
			})
		})
	}}
	for _, key := range f.From {
		if rec := e.units.get(key); rec != nil {
			q.Gone = append(q.Gone, e.pods.index.onNodes(key, e.pods.kinship.Family(rec.object.ConsumerUID()))...)
		}
	}
	e.opts.Witness.Foresee(q)
}

// fly puts a decision in flight. A decision about a unit that is not there, or that has one in flight, is given back.
// One that the unit's phase does not allow is refused before it is sent.
func (e *Engine) fly(now time.Time, d decision) {
	key, attempt := d.subject()
	rec := e.units.get(key)
	if rec == nil || rec.flight != nil {
		e.core.call(key, func(s *admission.State) { s.Settle(now, key, attempt, admission.OutcomeRefuted) })
		return
	}
	e.dropReport(now, key, rec)
	e.touch(now, key, rec)
	kind, reason := d.label()
	w := e.writers.unit(rec.object, kind, d.status(e, rec, now), now)
	if e.unlawful(w) {
		e.core.call(key, func(s *admission.State) { s.Settle(now, key, attempt, admission.OutcomeRefused) })
		return
	}
	w.decision, w.attempt, w.reason = d, attempt, reason
	rec.act().flight, rec.act().unknown = w, false
	if w.Admits() {
		rec.act().seq = e.publisher.place()
	}
	e.writers.later(w)
}

// unlawful says that a write would change the phase as the scheduler may not (I9). What the core decided and what the
// object says contradict each other then, which is an error of ours.
func (e *Engine) unlawful(w *Write) bool {
	from, to := w.base.Phase, w.phase()
	if to == "" || from.CanBecome(to, unit.WriterScheduler) {
		return false
	}
	w.cancel()
	e.opts.Metrics.Inc(metrics.RefusedTransitionsTotal, string(w.kind))
	e.log.Error(nil, "Refused to write a change of phase that is not allowed", "queueUnit", w.key, "kind", w.kind,
		"from", from, "to", to)
	return true
}

// handOut gives the writers what must be written, decisions first.
func (e *Engine) handOut(now time.Time) {
	e.writers.flush()
	if !e.leading {
		return
	}
	e.tell(now)
	e.reports.take(now, func(key string, x report) { e.writeReport(now, key, x) })
	e.statuses.refresh(now, e.queues)
}
