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

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// maxReportTries bounds how often a reason is written again after a conflict or an error.
const maxReportTries = 5

// report is a reason that is to be written into a unit.
type report struct {
	reason  admission.Reason
	message string
	at      time.Time
	tries   int
}

// reports are the reasons that wait to be written, by unit.
type reports map[string]report

// next is when one of them is due; zero for never.
func (r reports) next() time.Time {
	var first time.Time
	for _, x := range r {
		first = earliest(first, x.at)
	}
	return first
}

// take returns those that are due, in the order of their units' keys, and forgets them.
func (r reports) take(now time.Time, visit func(key string, x report)) {
	for _, key := range sortedKeys(r) {
		if x := r[key]; !x.at.After(now) {
			delete(r, key)
			visit(key, x)
		}
	}
}

// again has a write that failed tried once more, later each time, unless there is a newer reason.
func (r reports) again(now time.Time, key string, w *Write) {
	if _, newer := r[key]; !newer {
		r[key] = report{reason: w.reason, message: w.message, at: now.Add(time.Second << w.tries), tries: w.tries + 1}
	}
}

// writeReport writes a reason if it still holds and the object does not say it already: a restart writes nothing that
// is there (I8, I12).
func (e *Engine) writeReport(now time.Time, key string, x report) {
	rec := e.units.get(key)
	if rec == nil || rec.flight != nil || reported(rec.object, x.reason, x.message) {
		return
	}
	if x.reason == admission.ReasonInactive && conditionSaysParked(rec.object) {
		return
	}
	var reason admission.Reason
	e.core.call(key, func(s *admission.State) { reason, _, _ = s.Why(key) })
	if reason != x.reason {
		return
	}
	w := e.writers.unit(rec.object, writeReport, reportStatus(rec.object, x.reason, x.message, now), now)
	if e.unlawful(w) {
		return
	}
	w.reason, w.message, w.tries = x.reason, x.message, x.tries
	rec.act().reporting = w
	e.writers.submit(w)
}

// reportWritten takes the result of writing a reason. It is tried a few times; if it is lost the reason is told again
// when it changes.
func (e *Engine) reportWritten(now time.Time, rec *unitRecord, r Result) {
	w := r.write
	if rec.reporting == w {
		w.cancel()
		rec.act().reporting = nil
	}
	if r.outcome == admission.OutcomeConfirmed {
		e.countAttempt("confirmed", w)
		return
	}
	if r.outcome == admission.OutcomeRefused || w.tries >= maxReportTries {
		e.countAttempt("refused", w)
		return
	}
	if rec.flight == nil {
		e.reports.again(now, rec.object.key(), w)
	}
}

// conditionSaysParked: the controller has said why the unit is inactive, and says it better.
func conditionSaysParked(u *unitObject) bool {
	return u.parkedFor != "" && u.condition(v1alpha1.ConditionQuotaReserved) != nil
}
