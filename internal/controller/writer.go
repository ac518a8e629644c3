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

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/overlay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/inflight"
)

var (
	// errUnitOnItsWay: the unit exists, and its event is still to come.
	errUnitOnItsWay = errors.New("the unit was created and has not been seen yet")
	// errChanged: the object has changed since the decision.
	errChanged = errors.New("the object has changed")
)

// writer does what was decided about one job, which is nil where there is none any more.
type writer struct {
	client   client.Client
	live     client.Reader
	recorder event.Recorder
	shared   *Shared
	now      time.Time
	job      *jobs.Job
	unit     *v1alpha1.QueueUnit
	known    *remembered
}

func (r *JobReconciler) writer(s *jobplan.Situation) *writer {
	w := &writer{
		client: r.Client, live: r.Live, recorder: r.Recorder, shared: &r.Shared, now: r.Options.Clock.Now(),
		job: s.Job, unit: s.Unit, known: &remembered{},
	}
	if s.Job != nil {
		w.known = r.memory.Of(s.Job.Object)
	}
	return w
}

// do one action. It says when to decide again if that is not before some time.
func (w *writer) do(ctx context.Context, action jobplan.Action) (time.Duration, error) {
	switch a := action.(type) {
	case jobplan.CreateUnit:
		return 0, w.createUnit(ctx, a)
	case jobplan.PatchUnit:
		w.known.patched = w.now
		return 0, w.patch(ctx, a.Before, a.After.DeepCopy(), a.Event, w.client.Patch)
	case jobplan.PatchUnitStatus:
		return 0, w.patchUnitStatus(ctx, a)
	case jobplan.Report:
		if w.shared.Reports != nil && !w.shared.Reports.TryAccept() {
			return jobplan.ReportInterval, nil
		}
		return 0, w.patch(inflight.Report(ctx), a.Before, a.After.DeepCopy(), nil, w.patchStatus)
	case jobplan.DeleteUnit:
		return 0, w.deleteUnit(ctx, a)
	case jobplan.PatchJob:
		return 0, w.patchJobInTurn(ctx, a)
	case jobplan.ResetStart:
		return 0, w.resetStart(ctx, a)
	case jobplan.Tell:
		w.once(a.Event)
		return 0, nil
	case jobplan.EndPods:
		return 0, w.endPods(ctx, a)
	case jobplan.Notify:
		return 0, w.notify(ctx, a)
	default:
		return 0, fmt.Errorf("unknown action %T", action)
	}
}

func (w *writer) patchUnitStatus(ctx context.Context, a jobplan.PatchUnitStatus) error {
	if err := a.Lawful(); err != nil {
		return reconcile.TerminalError(err) // the same would be decided again: another event can lead elsewhere
	}
	err := w.patch(ctx, a.Before, a.After.DeepCopy(), a.Event, w.patchStatus)
	if err == nil && a.Event != nil && a.Event.Reason == unitcondition.ReasonCannotSuspend {
		counted.Inc(metrics.ControllerCannotSuspendTotal)
	}
	return err
}

// patchJobInTurn patches a job. A job is resumed in its turn, and its unit says if the API server refuses that.
func (w *writer) patchJobInTurn(ctx context.Context, a jobplan.PatchJob) error {
	if !a.Before.Suspended() || a.After.Suspended() {
		return w.patchJob(ctx, a)
	}
	if err := w.shared.Turns.May(&w.known.turn, w.unit); err != nil {
		return err
	}
	err := w.patchJob(ctx, a)
	// Until its controller has noted the suspension, the pod templates of a job cannot be changed.
	if w.unit == nil || !refused(err) || apierrors.IsInvalid(err) && !a.Before.SuspensionSeen() {
		return err
	}
	for _, step := range jobplan.NotResumed(w.unit, err, metav1.NewTime(w.now)) {
		_, unsaid := w.do(ctx, step)
		err = errors.Join(err, unsaid)
	}
	return err
}

// refused says whether the API server would answer the same write with the same error. Such errors come from
// validation, a policy, a webhook or a permission.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "webhook")
}

// tell records an event on the job; nil is none.
func (w *writer) tell(e *event.Event) {
	if w.job != nil {
		event.Record(w.recorder, w.job.Object, e)
	}
}

// once tells an event unless it was the last that was told of the job without a write.
func (w *writer) once(e *event.Event) { w.tell(w.known.said.Once(e)) }

func (w *writer) createUnit(ctx context.Context, a jobplan.CreateUnit) error {
	// For no longer than that: a watch that begins again tells nothing of a unit that has come and gone in between.
	if lately(w.known.created, w.now, conflictDelay) {
		return errUnitOnItsWay
	}
	u := a.Unit.DeepCopy()
	if err := w.client.Create(ctx, u, fieldOwner); err != nil {
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			w.once(event.Warning("CannotQueue", "Queue", event.Short(err.Error())))
		}
		return err
	}
	w.known.created, w.known.lastCreated = w.now, w.now
	klog.FromContext(ctx).Info("Created the unit of a job", "queueUnit", klog.KObj(u),
		"adopted", u.Annotations[v1alpha1.AnnotationAdopted] != "")
	w.tell(a.Event)
	return nil
}

type patchFunc func(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error

func (w *writer) patchStatus(ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return w.client.Status().Patch(ctx, o, patch, fieldOwner)
}

// patch sends the difference, with the resourceVersion of before as precondition.
func (w *writer) patch(ctx context.Context, before, after client.Object, e *event.Event, send patchFunc) error {
	if err := send(ctx, after, optimistic(before), fieldOwner); err != nil {
		return err
	}
	w.known.written.Note(after)
	w.tell(e)
	if e != nil {
		klog.FromContext(ctx).Info("Wrote a transition", "event", e.Reason)
	}
	return nil
}

func optimistic(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func (w *writer) patchJob(ctx context.Context, a jobplan.PatchJob) error {
	err := w.patchBoth(ctx, a.Before, a.After, a.Event)
	if a.Bare != nil {
		return w.suspendBare(ctx, a, err)
	}
	if apierrors.IsInvalid(err) && a.Plain != nil {
		return w.patchBoth(ctx, a.Before, a.Plain, a.Event)
	}
	return err
}

// suspendBare writes only the suspension, after the API server refused a larger write with err. So a job whose
// annotations have no room left is suspended like others.
func (w *writer) suspendBare(ctx context.Context, a jobplan.PatchJob, err error) error {
	if isTooLarge(err) {
		err = w.patchBoth(ctx, a.Before, a.Bare, a.Event)
	}
	w.known.refusal = ""
	if err != nil && !apierrors.IsConflict(err) {
		w.known.refusal = event.Short(err.Error())
	}
	return err
}

// isTooLarge says whether the API server, or its store, may take a smaller object. The store says so in words alone.
func isTooLarge(err error) bool {
	return err != nil && (apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		strings.Contains(err.Error(), "too large") || strings.Contains(err.Error(), "larger than max"))
}

// patchBoth sends the changes of the child, then those of the job, so that a job is never resumed before its child is
// ready.
func (w *writer) patchBoth(ctx context.Context, before, after *jobs.Job, e *event.Event) error {
	edit := after.Edit()
	edit.KeepMaps(before)
	own, child := jobs.Split(before.Object)
	changed, changedChild := jobs.Split(edit.Job().Object)
	if child != nil && changedChild != nil && !equality.Semantic.DeepEqual(child.Object, changedChild.Object) {
		if err := w.patchObject(ctx, child, changedChild, nil); err != nil {
			return err
		}
	}
	return w.patchObject(ctx, own, changed, e)
}

// patchObject sends what changed of a job or a child, of which caches keep parts. A change inside of a list is made on
// the whole list.
func (w *writer) patchObject(ctx context.Context, before, after *unstructured.Unstructured, e *event.Event) error {
	if overlay.InLists(before, after) {
		whole := newObject(before.GroupVersionKind())
		if err := w.live.Get(ctx, client.ObjectKeyFromObject(before), whole); err != nil {
			return err
		}
		if whole.GetUID() != before.GetUID() || whole.GetResourceVersion() != before.GetResourceVersion() {
			resource := schema.GroupResource{Group: before.GroupVersionKind().Group, Resource: before.GetKind()}
			return apierrors.NewConflict(resource, before.GetName(), errChanged)
		}
		before, after = whole, overlay.Of(whole, before, after)
	}
	return w.patch(ctx, before, after, e, w.client.Patch)
}

// resetStart clears the start time in the status of a suspended job.
func (w *writer) resetStart(ctx context.Context, a jobplan.ResetStart) error {
	edit := a.Job.Edit()
	edit.ClearStart()
	before, _ := jobs.Split(a.Job.Object)
	after, _ := jobs.Split(edit.Job().Object)
	return w.patch(ctx, before, after, nil, w.patchStatus)
}

func (w *writer) deleteUnit(ctx context.Context, a jobplan.DeleteUnit) error {
	// With its version, too: the state that was decided on may be outdated when the request arrives.
	uid, version := a.Unit.UID, a.Unit.ResourceVersion
	err := w.client.Delete(ctx, a.Unit.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil {
		return err
	}
	w.known.written.Forget(uid)
	klog.FromContext(ctx).Info("Deleted a unit", "queueUnit", klog.KObj(a.Unit), "phase", a.Unit.Status.Phase)
	w.tell(a.Event)
	return nil
}
