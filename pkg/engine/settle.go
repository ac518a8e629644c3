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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// applyResult takes what became of a write.
func (e *Engine) applyResult(now time.Time, r Result) {
	w := r.write
	e.reasons.Seen(r.took, r.beside)
	if w.kind == writeQueueStatus {
		e.statuses.written(now, w, r.outcome)
		return
	}
	rec := e.units.get(w.key.String())
	if rec == nil || rec.object.UID != w.base.UID {
		return // gone since then; a watch says what there is now
	}
	if r.gone {
		e.countAttempt("gone", w)
		e.forgetUnit(now, w.key.String(), rec)
		return
	}
	if r.fresh != nil {
		e.updateUnit(now, rec, r.fresh)
	}
	switch {
	case !w.decides():
		e.reportWritten(now, rec, r)
	case rec.flight == nil || rec.flight.id != w.id:
		// settled by the object already
	case r.outcome == admission.OutcomeUnknown:
		rec.act().unknown = true
		e.countAttempt(results[r.outcome], w)
		key := rec.object.Key()
		e.core.call("", func(s *admission.State) { s.Settle(now, key, w.attempt, admission.OutcomeUnknown) })
		if w.appliedTo(rec.object) {
			e.settle(now, rec, admission.OutcomeConfirmed)
		}
	default:
		if r.outcome == admission.OutcomeRefused {
			e.log.Error(r.err, "The API server refuses a status write", "queueUnit", w.key, "kind", w.kind, "attempt", w.attempt)
		}
		e.settle(now, rec, r.outcome)
	}
}

// results are labels of metrics.
var results = map[admission.Outcome]string{
	admission.OutcomeConfirmed: "confirmed", admission.OutcomeRefuted: "refuted",
	admission.OutcomeRefused: "refused", admission.OutcomeUnknown: "unknown",
}

// settle lands the decision in flight with a definite outcome.
func (e *Engine) settle(now time.Time, rec *unitRecord, outcome admission.Outcome) {
	w, key := rec.flight, rec.object.Key()
	w.cancel()
	rec.act().flight, rec.act().unknown = nil, false
	e.countAttempt(results[outcome], w)
	known := true
	e.core.call(key, func(s *admission.State) {
		known = s.InFlight(key)
		s.Settle(now, key, w.attempt, outcome)
		if !known { // the state was rebuilt while the decision was in flight
			s.UpsertUnit(now, e.resolve(rec.object))
		}
	})
	e.touch(now, key, rec)
	if !known {
		e.pods.lookAgain(rec.object) // what was granted to them then was not published
	}
	w.decision.settled(e, now, rec, w, outcome)
}

// noteAdmitted tells of a confirmed admission.
func (e *Engine) noteAdmitted(now time.Time, rec *unitRecord, w *Write) {
	rec.act().admittedAt = now
	queue, quota := e.gauges.labels(rec)
	waited := w.decided.Sub(objects.WaitsSince(w.base))
	if rec.object.Observed {
		e.opts.Metrics.Observe(metrics.ObservedWaitSeconds, waited.Seconds(), queue)
		return
	}
	e.opts.Metrics.Inc(metrics.AdmissionsTotal, queue, quota)
	e.waits.Admitted(queue, rec.object.Namespace, waited)
	e.log.V(2).Info("Admitted", "queueUnit", w.key, "queue", rec.queue, "quota", rec.quota, "attempt", w.attempt)
}

func (e *Engine) countAttempt(result string, w *Write) {
	e.opts.Metrics.Inc(metrics.AttemptsTotal, string(w.kind)+"-"+result, w.reason)
}
