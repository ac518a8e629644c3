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
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/writes"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/intern"
)

// maxReportTries bounds how often a reason is written again after a conflict or an error.
const maxReportTries = 5

// report is a reason whose writing failed. It will be tried again at that time.
type report struct {
	unit.Saying
	at    time.Time
	tries int
}

// reports are the reasons that are to be written again, by unit. There are at most as many as were told in the time of
// a few tries.
type reports map[string]report

// next is when one of them is due; zero for never.
func (r reports) next() time.Time {
	var first time.Time
	for _, x := range r {
		first = pace.Earliest(first, x.at)
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

// again has a write that failed tried once more, later each time.
func (r reports) again(now time.Time, key string, w *Write) {
	r[key] = report{Saying: w.said, at: now.Add(time.Second << w.tries), tries: w.tries + 1}
}

// tell has the core say which units should be told why they wait, as many as the pace allows, and writes that.
func (e *Engine) tell(now time.Time) {
	if e.reasons.Want(time.Time{}); !e.core.sound() {
		return
	}
	var list []writes.Explain
	var wanted time.Time
	e.core.call("", func(s *admission.State) {
		wanted = s.Telling().At(now)
		if most := e.reasons.Allowance(now); most > 0 && !wanted.IsZero() && !wanted.After(now) {
			list, wanted = s.Telling().Next(now, most)
			e.reasons.Spend(len(list))
		}
	})
	e.reasons.Want(wanted)
	for i := range list {
		delete(e.reports, list[i].Unit.Key) // it is older
		e.writeReport(now, list[i].Unit.Key, report{Saying: list[i].Saying})
	}
}

// writeReport writes a reason if it still holds and the object does not say it already: a restart writes nothing that
// is there (I8, I12).
func (e *Engine) writeReport(now time.Time, key string, x report) {
	rec := e.units.get(key)
	if rec == nil || reported(rec.object, &x.Saying) {
		return
	}
	if reason, _ := objects.Told(rec.object, x.Reason, ""); reason != x.Reason {
		return
	}
	holds := false
	e.core.call(key, func(s *admission.State) {
		said, some := s.Telling().Of(key)
		holds = some && said == x.Saying
	})
	if rec.flight != nil || !holds {
		e.unsaid(now, key)
		return
	}
	status := reportStatus(rec.object, &x.Saying, now)
	status["effective"] = effective(rec, rec.object.Held)
	e.inherit(status, rec.object, now)
	w := e.writers.unit(rec.object, writeReport, status, now)
	if e.unlawful(w) {
		return
	}
	w.reason, w.said, w.tries = string(x.Reason), x.Saying, x.tries
	rec.act().reporting = w
	e.writers.submit(w)
}

// unsaid has the core say again what was not written.
func (e *Engine) unsaid(now time.Time, key string) {
	e.core.call(key, func(s *admission.State) { s.Telling().Failed(now, key) })
}

// dropReport gives up what was to be written of why a unit waits: it would change the version that a decision is
// written on.
func (e *Engine) dropReport(now time.Time, key string, rec *unitRecord) {
	_, planned := e.reports[key]
	delete(e.reports, key)
	if rec.reporting != nil {
		rec.reporting.cancel()
		rec.act().reporting = nil
	} else if !planned {
		return
	}
	e.unsaid(now, key)
}

// reportWritten takes the result of writing a reason. It is tried a few times. One that the API server refuses is told
// again when it changes.
func (e *Engine) reportWritten(now time.Time, rec *unitRecord, r Result) {
	w := r.write
	if rec.reporting == w {
		w.cancel()
		rec.act().reporting = nil
	}
	switch {
	case r.outcome == admission.OutcomeConfirmed:
		e.countAttempt("confirmed", w)
	case r.outcome == admission.OutcomeRefused:
		e.countAttempt("refused", w)
	case rec.flight != nil:
		e.unsaid(now, rec.object.Key())
	case w.tries >= maxReportTries:
		e.countAttempt("refused", w)
		e.unsaid(now, rec.object.Key())
	default:
		e.reports.again(now, rec.object.Key(), w)
	}
}

// conditionFor is the condition that says a reason, and its status while it is so. An admitted unit has no pod on a
// node, or waits for more than it holds.
func conditionFor(u *objects.Unit, reason unit.Reason) (conditionType string, status metav1.ConditionStatus) {
	switch {
	case !u.Phase.Holds():
		return v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse
	case reason == unit.ReasonIdleReservation || reason == unit.ReasonUnschedulable:
		return v1alpha1.ConditionPodsReady, metav1.ConditionFalse
	default:
		return v1alpha1.ConditionResizePending, metav1.ConditionTrue
	}
}

// reportStatus is what saying why a unit waits writes. An admitted unit without a reason waits for nothing.
func reportStatus(u *objects.Unit, said *unit.Saying, now time.Time) map[string]any {
	about := metav1.Condition{Reason: string(said.Reason), Message: said.Message}
	about.Type, about.Status = conditionFor(u, said.Reason)
	if said.Reason == "" {
		about.Status, about.Reason = metav1.ConditionFalse, "NotNeeded"
		about.Message = "the job asks for at most what the unit holds"
	}
	conditions := withConditions(u, now, about)
	if c := u.Condition(about.Type); c != nil && unit.Reason(c.Reason).Notice() && !said.Reason.Notice() {
		// It is in line for more since it asks for that, not since it was told of something else.
		meta.FindStatusCondition(conditions, about.Type).LastTransitionTime = metav1.NewTime(now)
	}
	status := map[string]any{
		"lastUpdateTime": metav1.NewTime(now),
		"message":        said.Message,
		"conditions":     conditions,
	}
	switch over := !now.Before(u.RequeueAt); {
	case u.Phase == unit.PhaseNone, u.Phase == unit.PhasePreempted,
		u.Phase == unit.PhaseTimeoutBackoff && over:
		status["phase"] = string(unit.PhaseEnqueued)
	}
	return status
}

// reported says whether the object says this already.
func reported(u *objects.Unit, said *unit.Saying) bool {
	about, status := conditionFor(u, said.Reason)
	c := u.Condition(about)
	if said.Reason == "" {
		return c == nil || c.Status != status
	}
	return c != nil && c.Status == status && c.Reason == string(said.Reason) && c.Message == said.Message
}

// saidIn an object is what it says of why the unit waits, or waits for more than it holds; nil if it says nothing.
func saidIn(u *objects.Unit) *unit.Saying {
	for i := range u.Conditions {
		c := &u.Conditions[i]
		said := unit.Saying{Reason: unit.Reason(c.Reason), Message: c.Message}
		if about, status := conditionFor(u, said.Reason); c.Type == about && c.Status == status {
			return sharedSayings.Of(&said)
		}
	}
	return nil
}

var sharedSayings = intern.NewPool(hashSaying, func(a, b *unit.Saying) bool { return *a == *b })

func hashSaying(seed maphash.Seed, said *unit.Saying) uint64 { return maphash.Comparable(seed, *said) }
