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
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/writes"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// writeKind says what a write is for; it is a metric label.
type writeKind string

const (
	writeAdmit       writeKind = "admit"
	writeDequeue     writeKind = "dequeue"
	writeEvict       writeKind = "evict"
	writeResize      writeKind = "resize"
	writeTake        writeKind = "take"
	writeReport      writeKind = "report"
	writeQueueStatus writeKind = "queueStatus"
)

// decision is a status write that the core decided on. A kind of decision is a type below, with its name above and its
// loop in carryOut.
type decision interface {
	// subject is the unit, and the attempt that its object shows after the write.
	subject() (key string, attempt int64)
	// label is what the write counts as in metrics.
	label() (kind writeKind, reason string)
	// status is the patch.
	status(e *Engine, rec *unitRecord, now time.Time) map[string]any
	// appliedTo says whether an object of the right attempt holds what was written.
	appliedTo(u *objects.Unit) bool
	// keepsAdmission says whether pods of the unit may go while the write is in flight.
	keepsAdmission() bool
	// hold makes the unit hold all that it may hold when the write in flight is settled.
	hold(c *unit.Unit)
	// settled is called when the core knows the outcome, which is definite.
	settled(e *Engine, now time.Time, rec *unitRecord, w *Write, outcome admission.Outcome)
}

// manyEvictions is the number of evictions of a unit beyond which each is counted as repeated.
const manyEvictions = 5

// evictWrite takes an admission back.
type evictWrite writes.Evict

func (d *evictWrite) subject() (key string, attempt int64)   { return d.Unit.Key, d.Unit.Attempts }
func (d *evictWrite) label() (kind writeKind, reason string) { return writeEvict, string(d.Reason) }
func (d *evictWrite) appliedTo(u *objects.Unit) bool         { return u.Phase.Waits() && u.Held.IsZero() }
func (d *evictWrite) keepsAdmission() bool                   { return false }
func (d *evictWrite) hold(c *unit.Unit)                      { holdRequest(c, d.Unit.Attempts) }

func (d *evictWrite) status(_ *Engine, rec *unitRecord, now time.Time) map[string]any {
	u, reason, message := rec.object, d.Reason, objects.Shorten(d.Message)
	if reason == unit.ReasonInactive && u.ParkedFor != "" {
		// Nobody made it inactive but the controller, which says why.
		reason, message = u.ParkedFor, "the controller took the admission back: "+string(u.ParkedFor)
	}
	set := []metav1.Condition{
		{Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionFalse},
		{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionFalse},
		{Type: v1alpha1.ConditionEvicted, Status: metav1.ConditionTrue},
	}
	if d.Deactivate != "" {
		set = append(set, metav1.Condition{Type: v1alpha1.ConditionDeactivationTarget, Status: metav1.ConditionTrue})
	}
	for _, ofAdmitted := range []string{v1alpha1.ConditionPodsReady, v1alpha1.ConditionResizePending} {
		if u.Condition(ofAdmitted) != nil {
			set = append(set, metav1.Condition{Type: ofAdmitted, Status: metav1.ConditionFalse})
		}
	}
	for i := range set {
		set[i].Reason, set[i].Message = string(reason), message
		if of := set[i].Type; d.Deactivate != "" &&
			(of == v1alpha1.ConditionDeactivationTarget || of == v1alpha1.ConditionQuotaReserved) {
			set[i].Reason = string(d.Deactivate)
		}
	}
	status := map[string]any{
		"phase":          string(unit.PhaseEnqueued),
		"admissions":     []v1alpha1.Admission{},
		"lastUpdateTime": metav1.NewTime(now),
		"message":        message,
		"conditions":     withConditions(u, now, set...),
		"effective":      effective(rec, resources.List{}),
	}
	objects.LeaveQuota(status, d.Unit.MovesTo, u.Choice)
	if !d.RequeueAt.IsZero() {
		status["phase"] = string(unit.PhaseTimeoutBackoff)
		status["requeueState"] = map[string]any{"count": d.Requeues, "requeueAt": metav1.NewTime(d.RequeueAt)}
	} else if d.Deactivate != "" {
		status["requeueState"] = nil
	}
	if !u.RanSince.IsZero() {
		status["executionStartTime"] = nil
	}
	if d.Executed != u.Executed {
		status["accumulatedPastExecutionTimeSeconds"] = int64(d.Executed.Round(time.Second) / time.Second)
	}
	return status
}

func (d *evictWrite) settled(e *Engine, _ time.Time, rec *unitRecord, w *Write, outcome admission.Outcome) {
	if outcome != admission.OutcomeConfirmed {
		return
	}
	rec.act().seq = 0
	if d.Reason != unit.ReasonConsumerNotFound && d.Reason != unit.ReasonConsumerUIDMismatch {
		d.count(e, rec) // else its job was deleted
	}
	e.log.Info("Took an admission back", "queueUnit", w.key, "queue", rec.queue, "quota", rec.quota, "reason", d.Reason)
}

func (d *evictWrite) count(e *Engine, rec *unitRecord) {
	queue, _ := e.gauges.labels(rec)
	e.opts.Metrics.Inc(metrics.EvictedUnitsTotal, queue, string(d.Reason))
	// Each admission before this one ended with an eviction.
	e.opts.Metrics.CountIf(d.Unit.Attempts > manyEvictions, metrics.RepeatedEvictionsTotal, queue)
	if d.Deactivate != "" {
		e.opts.Metrics.Inc(metrics.DeactivatedUnitsTotal, queue, string(d.Deactivate))
	}
}

// admitWrite reserves quota for a unit, and releases the unit unless admission checks are asked.
type admitWrite writes.Admit

func (d *admitWrite) subject() (key string, attempt int64) { return d.Unit.Key, d.Attempt }

func (d *admitWrite) label() (kind writeKind, reason string) {
	if len(d.Checks) > 0 {
		return writeAdmit, "Reserved"
	}
	return writeAdmit, "Admitted"
}

func (d *admitWrite) appliedTo(u *objects.Unit) bool { return u.Phase.Holds() }
func (d *admitWrite) keepsAdmission() bool           { return false }
func (d *admitWrite) hold(c *unit.Unit) {
	holdRequest(c, d.Attempt)
	c.Kept = d.Unit.Kept
	c.Quota, c.MovesTo, c.Chosen = d.Unit.Quota, d.Unit.MovesTo, d.Unit.Chosen
}

func (d *admitWrite) status(e *Engine, rec *unitRecord, now time.Time) map[string]any {
	u, at, attempt := rec.object, metav1.NewTime(now), d.Attempt
	reserved, held := "quota is reserved: "+d.Request.String(), d.Request
	if d.Counts != nil {
		reserved = fmt.Sprintf("quota is reserved for %d of %d pods: %s", d.Pods, u.Pods, d.Request)
	}
	if d.Borrows {
		reserved += lentMessage
	}
	phase, admitted := unit.PhaseDequeued, admittedCondition(attempt, "")
	if u.Observed {
		held, reserved = resources.List{}, "quota would be reserved: "+d.Request.String()
		admitted.Reason, admitted.Message = v1alpha1.ReasonObserved, objects.WouldHaveWaited(u, now)
	}
	if len(d.Checks) > 0 {
		phase = unit.PhaseReserved
		admitted.Status, admitted.Reason = metav1.ConditionFalse, string(unit.ReasonWaitingForChecks)
		admitted.Message = "waits for admission checks: " + strings.Join(d.Checks, ", ")
	}
	conditions := withConditions(u, now,
		metav1.Condition{Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionTrue, Reason: "QuotaReserved",
			Message: reserved},
		admitted,
	)
	if evicted := u.Condition(v1alpha1.ConditionEvicted); evicted != nil && evicted.Status == metav1.ConditionTrue {
		meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: v1alpha1.ConditionEvicted, Status: metav1.ConditionFalse, Reason: "Admitted",
			Message: "admitted again", ObservedGeneration: u.Generation, LastTransitionTime: at,
		})
	}
	shown := effective(rec, held)
	shown["quota"] = d.Unit.Quota
	if d.Unit.Kept {
		shown["preemptable"] = false
	}
	status := map[string]any{
		"phase":            string(phase),
		"attempts":         attempt,
		"admissions":       objects.AdmissionsOf(u.AdmittedSets(d.Counts), held, d.Pods),
		"lastAllocateTime": at,
		"lastUpdateTime":   at,
		"conditions":       conditions,
		"effective":        shown,
	}
	if patch, some := objects.ChoicePatch(u.Choice, objects.ChoiceOf(&d.Unit, e.queues[rec.queue])); some {
		status["quotaChoice"] = patch
	}
	if u.Message != "" {
		status["message"] = "" // most have none, and a field that is not there costs nothing
	}
	if len(d.Checks) > 0 || u.WasAsked {
		status["admissionChecks"] = askedChecks(u, d.Checks, at)
	}
	e.inherit(status, u, now)
	return status
}

func (d *admitWrite) settled(e *Engine, now time.Time, rec *unitRecord, w *Write, outcome admission.Outcome) {
	if outcome != admission.OutcomeConfirmed {
		rec.act().seq = 0
		return
	}
	e.startup.noteAdmission(now, w)
	queue, quota := e.gauges.labels(rec)
	if d.Borrows {
		e.opts.Metrics.Inc(metrics.LoansTotal, queue, quota)
	}
	if len(d.Counts) > 0 {
		e.opts.Metrics.Inc(metrics.PartialAdmissionsTotal, queue, quota)
	}
	if !w.phase().Releases() {
		e.opts.Metrics.Inc(metrics.ReservationsTotal, queue, quota)
		e.log.V(2).Info("Reserved quota; admission checks are asked", "queueUnit", w.key, "queue", rec.queue,
			"quota", rec.quota, "attempt", w.attempt)
		return
	}
	e.noteAdmitted(now, rec, w)
}

// lentMessage follows what is reserved for a unit that borrows.
const lentMessage = "; part of it is beyond the runtime of its quota"

// admittedCondition says that a unit may run, and what it passed before.
func admittedCondition(attempt int64, passed string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionTrue, Reason: "Admitted",
		Message: fmt.Sprintf("admitted, attempt %d%s", attempt, passed)}
}

// takeWrite says that a pending unit takes back what other units hold.
type takeWrite writes.Take

func (d *takeWrite) subject() (key string, attempt int64)   { return d.Unit.Key, d.Unit.Attempts }
func (d *takeWrite) label() (kind writeKind, reason string) { return writeTake, "Reclaims" }
func (d *takeWrite) appliedTo(u *objects.Unit) bool         { return u.TakesFrom == reclaim.Join(d.Holds) }
func (d *takeWrite) keepsAdmission() bool                   { return false }
func (d *takeWrite) hold(*unit.Unit)                        {} // a pending unit holds no quota

func (d *takeWrite) status(_ *Engine, _ *unitRecord, now time.Time) map[string]any {
	return map[string]any{
		"preemption":     map[string]any{"attempts": d.Unit.Attempts, "holds": d.Holds}, // null takes away the former ones
		"lastUpdateTime": metav1.NewTime(now),
	}
}

func (d *takeWrite) settled(e *Engine, _ time.Time, rec *unitRecord, w *Write, outcome admission.Outcome) {
	e.log.Info("Takes back what other units hold", "queueUnit", w.key, "queue", rec.queue, "quota", rec.quota,
		"holds", reclaim.Join(d.Holds), "outcome", results[outcome])
}

// dequeueWrite releases a reserved unit. The times of the unit count from then on.
type dequeueWrite writes.Dequeue

func (d *dequeueWrite) subject() (key string, attempt int64)   { return d.Unit.Key, d.Unit.Attempts }
func (d *dequeueWrite) label() (kind writeKind, reason string) { return writeDequeue, "Dequeued" }
func (d *dequeueWrite) appliedTo(u *objects.Unit) bool         { return u.Phase.Releases() }
func (d *dequeueWrite) keepsAdmission() bool                   { return false }
func (d *dequeueWrite) hold(c *unit.Unit)                      { c.Phase = unit.PhaseDequeued } // the amount stays

func (d *dequeueWrite) status(_ *Engine, rec *unitRecord, now time.Time) map[string]any {
	u, passed := rec.object, ""
	if u.Checks != nil {
		names := make([]string, 0, len(u.Checks.Answers))
		for _, a := range u.Checks.Answers {
			if a.State == unit.CheckReady {
				names = append(names, a.Name)
			}
		}
		passed = "; passed admission checks: " + strings.Join(names, ", ")
	}
	at := metav1.NewTime(now)
	return map[string]any{
		"phase":            string(unit.PhaseDequeued),
		"lastAllocateTime": at,
		"lastUpdateTime":   at,
		"conditions":       withConditions(u, now, admittedCondition(u.Attempts, passed)),
	}
}

func (d *dequeueWrite) settled(e *Engine, now time.Time, rec *unitRecord, w *Write, outcome admission.Outcome) {
	if outcome != admission.OutcomeConfirmed {
		return
	}
	queue, _ := e.gauges.labels(rec)
	e.opts.Metrics.Observe(metrics.AdmissionChecksSeconds, w.decided.Sub(w.base.Admitted).Seconds(), queue)
	e.noteAdmitted(now, rec, w)
}

// resizeWrite changes how much an admitted unit holds.
type resizeWrite writes.Resize

func (d *resizeWrite) subject() (key string, attempt int64)   { return d.Unit.Key, d.Attempt }
func (d *resizeWrite) label() (kind writeKind, reason string) { return writeResize, "Resized" }
func (d *resizeWrite) appliedTo(u *objects.Unit) bool {
	return u.Phase.Holds() && u.Recorded && u.Held.Equal(d.Held)
}
func (d *resizeWrite) keepsAdmission() bool { return true }

func (d *resizeWrite) hold(c *unit.Unit) {
	if !c.Recorded && !c.Adopted {
		c.Held = c.Request
	}
	c.Held, c.Recorded = c.Held.Max(d.Held), true
}

func (d *resizeWrite) status(_ *Engine, rec *unitRecord, now time.Time) map[string]any {
	u, reserved := rec.object, "quota is reserved: "+d.Held.String()
	if d.Borrows {
		reserved += lentMessage
	}
	set := []metav1.Condition{{
		Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionTrue, Reason: "QuotaReserved", Message: reserved,
	}}
	if pending := u.Condition(v1alpha1.ConditionResizePending); pending != nil && pending.Status == metav1.ConditionTrue {
		set = append(set, metav1.Condition{
			Type: v1alpha1.ConditionResizePending, Status: metav1.ConditionFalse, Reason: "Resized", Message: reserved,
		})
	}
	return map[string]any{
		"admissions":     objects.AdmissionsOf(u.Sets, d.Held, d.Pods),
		"lastUpdateTime": metav1.NewTime(now),
		"conditions":     withConditions(u, now, set...),
		"effective":      effective(rec, d.Held),
	}
}

func (d *resizeWrite) settled(e *Engine, _ time.Time, rec *unitRecord, w *Write, outcome admission.Outcome) {
	if outcome == admission.OutcomeConfirmed {
		queue, quota := e.gauges.labels(rec)
		if d.Borrows {
			e.opts.Metrics.Inc(metrics.LoansTotal, queue, quota)
		}
		switch before := w.base.Held; {
		case !before.Covers(d.Held):
			e.opts.Metrics.Inc(metrics.ResizesTotal, queue, "Grown")
		case !d.Held.Covers(before):
			e.opts.Metrics.Inc(metrics.ResizesTotal, queue, "Shrunk")
		}
	}
	e.log.V(2).Info("Changed what a unit holds", "queueUnit", w.key, "queue", rec.queue, "quota", rec.quota,
		"held", d.Held.String(), "outcome", results[outcome])
}
