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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
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

// Write is one status patch. It is immutable, so sending it again is the same request.
type Write struct {
	id       int64
	kind     writeKind
	resource schema.GroupVersionResource
	key      types.NamespacedName
	attempt  int64
	base     *unitObject // nil for a queue
	status   map[string]any
	reason   unit.Reason
	decided  time.Time
	// borrows: the admission goes beyond the runtime of a quota.
	borrows bool
	// inPart: the admission is for fewer pods than are asked for.
	inPart bool
	// deactivates: the unit must be made inactive for this reason.
	deactivates unit.Reason
	// held is what a resize writes that the unit holds.
	held resources.List
	// takes is what a take writes, joined.
	takes string
	// said and tries belong to the writing of a reason.
	said   unit.Saying
	tries  int
	ctx    context.Context // ends with the unit or with the process, whichever is first
	cancel context.CancelFunc
}

// decides says whether the write carries a decision: then its outcome must become known.
func (w *Write) decides() bool {
	return w.kind != writeReport && w.kind != writeQueueStatus
}

// keepsAdmission says that pods of the unit may go while the write is in flight, as they may before and after it.
func (w *Write) keepsAdmission() bool { return w == nil || w.kind == writeResize }

// phase that is written; empty if the write leaves it as it is.
func (w *Write) phase() unit.Phase {
	phase, _ := w.status["phase"].(string)
	return unit.Phase(phase)
}

// Result of one attempt of a write.
type Result struct {
	write   *Write
	outcome admission.Outcome
	// fresh is the object after the write, or as it was read back; nil when it is not known.
	fresh *unitObject
	// gone: the object does not exist.
	gone bool
	// conflict: the object had changed.
	conflict bool
	err      error
	// retryAfter is what the server asks for.
	retryAfter time.Duration
	final      bool // for unknown outcomes: nothing further follows
	// took is how long the attempt took. The other field is how many attempts were under way at the same time, itself
	// included. Both are zero if nobody measured.
	took   time.Duration
	beside int
}

// data of the merge patch. The resource version makes the request idempotent: it applies at most once (I3). The UID
// says the same to a reader of audit logs.
func (w *Write) data() ([]byte, error) {
	patch := map[string]any{"status": w.status}
	if w.base != nil {
		patch["metadata"] = map[string]any{"resourceVersion": w.base.ResourceVersion, "uid": string(w.base.UID)}
	}
	return json.Marshal(patch)
}

// Do sends the patch once and says what became of it. On a conflict the object is read back: the patch may have been
// applied by an earlier attempt whose answer was lost.
func (w *Write) Do(ctx context.Context, client rest.Interface) Result {
	data, err := w.data()
	if err != nil {
		return Result{write: w, outcome: admission.OutcomeRefused, err: err}
	}
	fresh, err := w.patch(ctx, client, data)
	switch {
	case err == nil:
		return Result{write: w, outcome: admission.OutcomeConfirmed, fresh: fresh}
	case apierrors.IsConflict(err):
		return w.readBack(ctx, client, err)
	default:
		return w.failed(err)
	}
}

// patch returns the unit after it. What a queue is after it is not read.
func (w *Write) patch(ctx context.Context, client rest.Interface, data []byte) (*unitObject, error) {
	result := at(client.Patch(types.MergePatchType), w.resource, w.key.Namespace).
		Name(w.key.Name).SubResource("status").Body(data).Do(ctx)
	if err := result.Error(); err != nil || w.base == nil {
		return nil, err
	}
	u := &wireUnit{}
	if err := result.Into(u); err != nil {
		return nil, err
	}
	return decodeUnit(u), nil
}

func (w *Write) readBack(ctx context.Context, client rest.Interface, conflict error) Result {
	refuted := Result{write: w, outcome: admission.OutcomeRefuted, conflict: true, err: conflict}
	if !w.decides() {
		return refuted
	}
	fresh, err := getUnit(ctx, client, w.key)
	if err != nil {
		r := w.failed(err)
		if r.outcome == admission.OutcomeRefused {
			// It was the reading that was refused; the write is not settled by that.
			r.outcome = admission.OutcomeUnknown
		}
		r.conflict = true
		return r
	}
	refuted.fresh = fresh
	if refuted.fresh.UID != w.base.UID {
		return Result{write: w, outcome: admission.OutcomeRefuted, gone: true, conflict: true, err: conflict}
	}
	if w.appliedTo(refuted.fresh) {
		refuted.outcome, refuted.err = admission.OutcomeConfirmed, nil
	}
	return refuted
}

// appliedTo says whether the object holds what was written.
func (w *Write) appliedTo(u *unitObject) bool {
	if u.UID != w.base.UID || u.attempts != w.attempt {
		return false
	}
	switch w.kind {
	case writeAdmit:
		return u.phase.Holds()
	case writeDequeue:
		return u.phase.Releases()
	case writeResize:
		return u.phase.Holds() && u.Recorded && u.Held.Equal(w.held)
	case writeTake:
		return u.TakesFrom == w.takes
	default:
		return u.phase.Waits() && u.Held.IsZero()
	}
}

// failed sorts errors by what they say about the object, not by what they say about the request: unless it is certain
// that nothing was and will be applied, the outcome is unknown.
func (w *Write) failed(err error) Result {
	r := Result{write: w, outcome: admission.OutcomeUnknown, err: err}
	switch {
	case isGone(err, w.key.Name):
		r.outcome, r.gone = admission.OutcomeRefuted, true
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err),
		apierrors.IsRequestEntityTooLargeError(err):
		r.outcome = admission.OutcomeRefused
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		r.retryAfter = time.Duration(seconds) * time.Second
	}
	return r
}

// isGone tells a missing object from a missing resource: while a CRD is being replaced every path is not found.
func isGone(err error, name string) bool {
	if !apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// lentMessage follows what is reserved for a unit that borrows.
const lentMessage = "; part of it is beyond the runtime of its quota, " +
	"and lent because no job could use it within its share"

// admitStatus is what an admission writes.
func admitStatus(u *unitObject, d *admission.Admit, now time.Time) map[string]any {
	at, attempt := metav1.NewTime(now), d.Attempt
	reserved := "quota is reserved: " + d.Request.String()
	if d.Counts != nil {
		reserved = fmt.Sprintf("quota is reserved for %d of %d pods: %s", d.Pods, u.pods, d.Request)
	}
	if d.Borrows {
		reserved += lentMessage
	}
	phase, admitted := unit.PhaseDequeued, admittedCondition(attempt, "")
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
	if evicted := u.condition(v1alpha1.ConditionEvicted); evicted != nil && evicted.Status == metav1.ConditionTrue {
		meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: v1alpha1.ConditionEvicted, Status: metav1.ConditionFalse, Reason: "Admitted",
			Message: "admitted again", ObservedGeneration: u.Generation, LastTransitionTime: at,
		})
	}
	status := map[string]any{
		"phase":            string(phase),
		"attempts":         attempt,
		"admissions":       admissionsOf(u.admittedSets(d.Counts), d.Request, d.Pods),
		"lastAllocateTime": at,
		"lastUpdateTime":   at,
		"conditions":       conditions,
	}
	if u.message != "" {
		status["message"] = "" // most have none, and a field that is not there costs nothing
	}
	if len(d.Checks) > 0 || u.wasAsked {
		status["admissionChecks"] = u.askedChecks(d.Checks, at)
	}
	return status
}

// admittedCondition says that a unit may run, and what it passed before.
func admittedCondition(attempt int64, passed string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionTrue, Reason: "Admitted",
		Message: fmt.Sprintf("admitted, attempt %d%s", attempt, passed)}
}

// dequeueStatus is what letting a reserved unit go writes. Its times count from now on.
func dequeueStatus(u *unitObject, now time.Time) map[string]any {
	passed := ""
	if u.checks != nil {
		names := make([]string, 0, len(u.checks.Answers))
		for _, a := range u.checks.Answers {
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
		"conditions":       withConditions(u, now, admittedCondition(u.attempts, passed)),
	}
}

// resizeStatus is what changing how much an admitted unit holds writes.
func resizeStatus(u *unitObject, d *admission.Resize, now time.Time) map[string]any {
	reserved := "quota is reserved: " + d.Held.String()
	if d.Borrows {
		reserved += lentMessage
	}
	set := []metav1.Condition{{
		Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionTrue, Reason: "QuotaReserved", Message: reserved,
	}}
	if pending := u.condition(v1alpha1.ConditionResizePending); pending != nil && pending.Status == metav1.ConditionTrue {
		set = append(set, metav1.Condition{
			Type: v1alpha1.ConditionResizePending, Status: metav1.ConditionFalse, Reason: "Resized", Message: reserved,
		})
	}
	return map[string]any{
		"admissions":     admissionsOf(u.sets, d.Held, d.Pods),
		"lastUpdateTime": metav1.NewTime(now),
		"conditions":     withConditions(u, now, set...),
	}
}

// takeStatus is what writes that a unit takes back what others hold.
func takeStatus(d *admission.Take, now time.Time) map[string]any {
	return map[string]any{
		"preemption":     v1alpha1.Preemption{Attempts: d.Unit.Attempts, Holds: d.Holds},
		"lastUpdateTime": metav1.NewTime(now),
	}
}

// admittedSets are the pod sets with so many pods each, or whole.
func (u *unitObject) admittedSets(counts []int64) []podSetTotal {
	if len(counts) != len(u.sets) {
		return u.sets
	}
	sets := slices.Clone(u.sets)
	for i := range sets {
		sets[i].shrink(counts[i])
	}
	return sets
}

// admissionsOf names what is held, for so many pods, by pod set where the pod sets add up to it, else as a whole.
func admissionsOf(sets []podSetTotal, held resources.List, pods int64) []v1alpha1.Admission {
	sum, count := resources.List{}, int64(0)
	for _, set := range sets {
		sum, count = sum.Add(set.total), count+set.count
	}
	if len(sets) == 0 || pods != count || !sum.Equal(held) {
		return []v1alpha1.Admission{{
			Name: v1alpha1.DefaultRequirementPodSet, Replicas: max(pods, 1), Resources: resourceList(held),
		}}
	}
	admissions := make([]v1alpha1.Admission, 0, len(sets))
	for _, set := range sets {
		admissions = append(admissions, v1alpha1.Admission{
			Name: set.name, Replicas: set.count, Resources: resourceList(set.total),
		})
	}
	return admissions
}

func resourceList(list resources.List) corev1.ResourceList {
	quantities := list.Quantities()
	out := make(corev1.ResourceList, len(quantities))
	for name, q := range quantities {
		out[corev1.ResourceName(name)] = q
	}
	return out
}

// evictStatus is what taking an admission back writes.
func evictStatus(u *unitObject, d *admission.Evict, now time.Time) map[string]any {
	reason, message := d.Reason, shorten(d.Message)
	if reason == unit.ReasonInactive && u.parkedFor != "" {
		// Nobody made it inactive but the controller, which says why.
		reason, message = u.parkedFor, "the controller took the admission back: "+string(u.parkedFor)
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
		if u.condition(ofAdmitted) != nil {
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
	}
	if !d.RequeueAt.IsZero() {
		status["phase"] = string(unit.PhaseTimeoutBackoff)
		status["requeueState"] = map[string]any{"count": d.Requeues, "requeueAt": metav1.NewTime(d.RequeueAt)}
	} else if d.Deactivate != "" {
		status["requeueState"] = nil
	}
	if d.Executed != u.Executed {
		status["accumulatedPastExecutionTimeSeconds"] = int64(d.Executed.Round(time.Second) / time.Second)
	}
	return status
}

// conditionFor is the condition that says a reason, and its status while it is so. An admitted unit has no pod on a
// node, or waits for more than it holds.
func conditionFor(u *unitObject, reason unit.Reason) (conditionType string, status metav1.ConditionStatus) {
	switch {
	case !u.phase.Holds():
		return v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse
	case reason == unit.ReasonIdleReservation || reason == unit.ReasonUnschedulable:
		return v1alpha1.ConditionPodsReady, metav1.ConditionFalse
	default:
		return v1alpha1.ConditionResizePending, metav1.ConditionTrue
	}
}

// reportStatus is what saying why a unit waits writes. An admitted unit without a reason waits for nothing.
func reportStatus(u *unitObject, said *unit.Saying, now time.Time) map[string]any {
	about := metav1.Condition{Reason: string(said.Reason), Message: said.Message}
	about.Type, about.Status = conditionFor(u, said.Reason)
	if said.Reason == "" {
		about.Status, about.Reason = metav1.ConditionFalse, "NotNeeded"
		about.Message = "the job asks for at most what the unit holds"
	}
	conditions := withConditions(u, now, about)
	if c := u.condition(about.Type); c != nil && unit.Reason(c.Reason).Notice() && !said.Reason.Notice() {
		// It is in line for more since it asks for that, not since it was told of something else.
		meta.FindStatusCondition(conditions, about.Type).LastTransitionTime = metav1.NewTime(now)
	}
	status := map[string]any{
		"lastUpdateTime": metav1.NewTime(now),
		"message":        said.Message,
		"conditions":     conditions,
	}
	switch over := !now.Before(u.RequeueAt); {
	case u.phase == unit.PhaseNone, u.phase == unit.PhasePreempted,
		u.phase == unit.PhaseTimeoutBackoff && over:
		status["phase"] = string(unit.PhaseEnqueued)
	}
	return status
}

// withConditions returns all conditions of the unit with these set: a merge patch replaces the list as a whole. The
// resource version guards the rest of it.
func withConditions(u *unitObject, now time.Time, set ...metav1.Condition) []metav1.Condition {
	conditions := append(make([]metav1.Condition, 0, len(u.conditions)+len(set)), u.conditions...)
	for _, c := range set {
		c.ObservedGeneration = u.Generation
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&conditions, c)
	}
	return conditions
}

// reported says whether the object says this already.
func reported(u *unitObject, said *unit.Saying) bool {
	about, status := conditionFor(u, said.Reason)
	c := u.condition(about)
	if said.Reason == "" {
		return c == nil || c.Status != status
	}
	return c != nil && c.Status == status && c.Reason == string(said.Reason) && c.Message == said.Message
}
