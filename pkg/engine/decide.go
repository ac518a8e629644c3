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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
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
	for range plan.ClaimsEnded {
		e.opts.Metrics.Inc(metrics.ClaimsEndedTotal)
	}
	for range plan.Panics {
		e.opts.Metrics.Inc(metrics.PanicsTotal, "extension")
	}
	e.carryOut(now, &plan)
}

// carryOut makes the writes of a plan.
func (e *Engine) carryOut(now time.Time, plan *admission.Plan) {
	for i := range plan.Evict {
		d := &plan.Evict[i]
		if rec := e.decided(now, d.Unit.Key, d.Unit.Attempts); rec != nil {
			status := evictStatus(rec.object, d, now)
			status["effective"] = effective(rec, resources.List{})
			if w := e.fly(rec, writeEvict, d.Unit.Attempts, status, now); w != nil {
				w.reason, w.deactivates = d.Reason, d.Deactivate
			}
		}
	}
	for i := range plan.Admit {
		d := &plan.Admit[i]
		if rec := e.decided(now, d.Unit.Key, d.Attempt); rec != nil {
			status := admitStatus(rec.object, d, now)
			status["effective"] = effective(rec, d.Request)
			e.inherit(status, rec.object, now)
			if w := e.fly(rec, writeAdmit, d.Attempt, status, now); w != nil {
				rec.act().seq, w.borrows, w.inPart = e.publisher.place(), d.Borrows, len(d.Counts) > 0
			}
		}
	}
	for i := range plan.Take {
		d := &plan.Take[i]
		if rec := e.decided(now, d.Unit.Key, d.Unit.Attempts); rec != nil {
			if w := e.fly(rec, writeTake, d.Unit.Attempts, takeStatus(d, now), now); w != nil {
				w.takes = reclaim.Join(d.Holds)
			}
		}
	}
	for i := range plan.Dequeue {
		d := &plan.Dequeue[i]
		if rec := e.decided(now, d.Unit.Key, d.Unit.Attempts); rec != nil {
			e.fly(rec, writeDequeue, d.Unit.Attempts, dequeueStatus(rec.object, now), now)
		}
	}
	for i := range plan.Resize {
		d := &plan.Resize[i]
		if rec := e.decided(now, d.Unit.Key, d.Attempt); rec != nil {
			status := resizeStatus(rec.object, d, now)
			status["effective"] = effective(rec, d.Held)
			if w := e.fly(rec, writeResize, d.Attempt, status, now); w != nil {
				w.held, w.borrows = d.Held, d.Borrows
			}
		}
	}
}

// decided prepares the record of a unit for the write of a decision. A decision about a unit that is not there, or that
// has one in flight, cannot be carried out and is given back.
func (e *Engine) decided(now time.Time, key string, attempt int64) *unitRecord {
	rec := e.units.get(key)
	if rec == nil || rec.flight != nil {
		e.core.call(key, func(s *admission.State) { s.Settle(now, key, attempt, admission.OutcomeRefuted) })
		return nil
	}
	e.dropReport(now, key, rec)
	e.touch(now, key, rec)
	return rec
}

// fly puts a decision in flight. One that the unit's phase does not allow is refused before it is sent, and nil
// returned.
func (e *Engine) fly(rec *unitRecord, kind writeKind, attempt int64, status map[string]any, now time.Time) *Write {
	w := e.writers.unit(rec.object, kind, status, now)
	if e.unlawful(w) {
		key := rec.object.key()
		e.core.call(key, func(s *admission.State) { s.Settle(now, key, attempt, admission.OutcomeRefused) })
		return nil
	}
	w.attempt = attempt
	rec.act().flight, rec.act().unknown = w, false
	e.writers.later(w)
	return w
}

// unlawful says that a write would change the phase as the scheduler may not (I9). What the core decided and what the
// object says contradict each other then, which is an error of ours.
func (e *Engine) unlawful(w *Write) bool {
	from, to := w.base.phase, w.phase()
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
