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
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/memory"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/survey"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/unitcache"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// fieldOwner of all writes.
const fieldOwner = client.FieldOwner(v1alpha1.CreatedByController)

// conflictDelay before a decision that was made on a state that is no more is made again. The watch usually is faster.
const conflictDelay = 500 * time.Millisecond

// settleDelay until a process that has just started is asked again whether it knows the cluster's profiles.
const settleDelay = time.Second

// errUnitOnItsWay: the unit exists, and its event is still to come.
var errUnitOnItsWay = errors.New("the unit was created and has not been seen yet")

// errChanged: what was decided on is not what there is now.
var errChanged = errors.New("the object has changed")

// maxLooks bounds how often one reconciliation may ask for more to decide on: the unit, the job and its pods, once
// each.
const maxLooks = 4

// JobReconciler keeps the jobs of one kind and their units in step.
type JobReconciler struct {
	Kind jobs.Kind
	// Options of the process; the predicate in them is the one in force.
	Options Options
	// Client reads from caches, Jobs reads jobs and their children from one. Live and LiveJobs read from the API server.
	Client   client.Client
	Jobs     client.Reader
	Live     client.Reader
	LiveJobs client.Reader
	Recorder event.Recorder
	Shared   Shared

	begun  event.Begun
	memory memory.Memory[remembered]
}

// Shared is what the reconcilers of all kinds of a process have in common. Nothing is read, bounded or warned of where
// it is nil.
type Shared struct {
	// Profiles of the cluster.
	Profiles *Profiles
	// Reports is the pace of all reports, Events that of all events about what jobs wait for.
	Reports flowcontrol.PassiveRateLimiter
	Events  *event.Slots
	// Survey of nodes and quotas, for warnings.
	Survey *survey.Survey
}

// correctionDelay is for how long a unit that was set right is not set right again on cached news.
const correctionDelay = 5 * time.Second

// NewJobReconciler of one kind. What units were in before it is made counts as told.
func NewJobReconciler(
	kind jobs.Kind, o Options, c client.Client, live client.Reader, recorder event.Recorder,
) *JobReconciler {
	return &JobReconciler{
		Kind: kind, Options: o, Client: c, Jobs: c, Live: live, LiveJobs: live, Recorder: recorder,
		begun: event.BegunAt(o.Clock.Now()),
	}
}

// Reconcile brings one job and its unit in step.
func (r *JobReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if p := r.Shared.Profiles; p != nil && !p.Settled() {
		return ctrl.Result{RequeueAfter: settleDelay}, nil
	}
	o, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if known, _ := r.memory.Named(req.NamespacedName); known.behind(o) {
		return ctrl.Result{}, nil // the event with our own write is on its way
	}
	if o.Job == nil {
		r.memory.Forget(req.NamespacedName)
		return r.carryOut(ctx, o)
	}
	waits, again := r.memory.Of(o.Job).said.Waits(o.Unit, r.begun, r.Shared.Events, r.Options.Clock.Now())
	event.Record(r.Recorder, o.Job, waits)
	result, err := r.carryOut(ctx, o)
	if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
		result.RequeueAfter = again
	}
	return result, err
}

// carryOut plans and does, and plans again while the plan asks for more to look at.
func (r *JobReconciler) carryOut(ctx context.Context, o Observation) (ctrl.Result, error) {
	for range maxLooks {
		actions := Plan(o)
		if after := r.later(actions); after > 0 {
			r.tell(o.Job, actions)
			return ctrl.Result{RequeueAfter: after}, nil
		}
		again, err := r.steps(ctx, &o, actions)
		if err != nil {
			return r.failed(ctx, err)
		}
		if !again {
			return ctrl.Result{}, nil
		}
	}
	return ctrl.Result{}, fmt.Errorf("no decision after %d looks", maxLooks)
}

// later is when the plan is to be made again before anything is done; zero if it is now.
func (r *JobReconciler) later(actions []Action) time.Duration {
	for _, action := range actions {
		switch a := action.(type) {
		case PlanLater:
			return a.After
		case Report:
			if r.Shared.Reports != nil && !r.Shared.Reports.TryAccept() {
				return reportInterval
			}
		}
	}
	return 0
}

// tell says what a plan has to say, which waits for nothing.
func (r *JobReconciler) tell(job *unstructured.Unstructured, actions []Action) {
	for _, action := range actions {
		if a, ok := action.(Tell); ok && job != nil {
			r.once(job, a.Event)
		}
	}
}

// once records an event unless it was the last that was told of the job without a write.
func (r *JobReconciler) once(job *unstructured.Unstructured, e *event.Event) {
	event.Record(r.Recorder, job, r.memory.Of(job).said.Once(e))
}

// steps does the actions in their order; again asks for a new plan on the extended observation.
func (r *JobReconciler) steps(ctx context.Context, o *Observation, actions []Action) (again bool, err error) {
	for _, action := range actions {
		switch a := action.(type) {
		case LookAtPods:
			o.Bound, err = r.bound(ctx, o.Job)
			return true, err
		case LookAtRefusals:
			said := r.refusal(ctx, o.Job)
			o.Refusal = &said
			return true, nil
		case ReadJob:
			return true, r.readJob(ctx, o)
		case ReadUnit:
			return true, r.readUnit(ctx, o)
		default:
			if err := r.do(ctx, o, a); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

func (r *JobReconciler) failed(ctx context.Context, err error) (ctrl.Result, error) {
	if errors.Is(err, errUnitOnItsWay) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil // should the watch not bring it
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		klog.FromContext(ctx).V(4).Info("Decided on a state that is no more", "reason", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err) // gone: its deletion brings the next event
}

func (r *JobReconciler) do(ctx context.Context, o *Observation, action Action) error {
	switch a := action.(type) {
	case CreateUnit:
		return r.createUnit(ctx, o, a)
	case PatchUnit:
		if o.Job != nil {
			r.memory.Of(o.Job).patched = r.Options.Clock.Now()
		}
		return r.patch(ctx, o, a.Before, a.After.DeepCopy(), a.Event, r.Client.Patch)
	case PatchUnitStatus:
		if err := a.lawful(); err != nil {
			return err
		}
		return r.patch(ctx, o, a.Before, a.After.DeepCopy(), a.Event, r.patchStatus)
	case Report:
		return r.patch(ctx, o, a.Before, a.After.DeepCopy(), nil, r.patchStatus)
	case DeleteUnit:
		return r.deleteUnit(ctx, o, a)
	case PatchJob:
		return r.patchJob(ctx, o, a)
	case ResetStart:
		return r.resetStart(ctx, o, a)
	case Tell:
		r.tell(o.Job, []Action{a})
		return nil
	default:
		return fmt.Errorf("unknown action %T", action)
	}
}

func (r *JobReconciler) createUnit(ctx context.Context, o *Observation, a CreateUnit) error {
	// For no longer than that: a watch that begins anew tells nothing of a unit that has come and gone meanwhile.
	known := r.memory.Of(o.Job)
	if lately(known.created, r.Options.Clock.Now(), conflictDelay) {
		return errUnitOnItsWay
	}
	u := a.Unit.DeepCopy()
	if err := r.Client.Create(ctx, u, fieldOwner); err != nil {
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			r.once(o.Job, event.Warning("CannotQueue", "Queue", event.Short(err.Error())))
		}
		return err
	}
	known.created = r.Options.Clock.Now()
	klog.FromContext(ctx).Info("Created the unit of a job", "queueUnit", klog.KObj(u),
		"adopted", u.Annotations[v1alpha1.AnnotationAdopted] != "")
	event.Record(r.Recorder, o.Job, a.Event)
	return nil
}

type patchFunc func(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error

func (r *JobReconciler) patchStatus(
	ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption,
) error {
	return r.Client.Status().Patch(ctx, o, patch, fieldOwner)
}

// patch sends the difference, with the resourceVersion of before as precondition.
func (r *JobReconciler) patch(
	ctx context.Context, o *Observation, before, after client.Object, e *event.Event, send patchFunc,
) error {
	if err := send(ctx, after, optimistic(before), fieldOwner); err != nil {
		return err
	}
	if o.Job != nil {
		r.memory.Of(o.Job).note(after)
		event.Record(r.Recorder, o.Job, e)
	}
	if e != nil {
		klog.FromContext(ctx).Info("Wrote a transition", "event", e.Reason)
	}
	return nil
}

func optimistic(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func (r *JobReconciler) patchJob(ctx context.Context, o *Observation, a PatchJob) error {
	for _, after := range []*unstructured.Unstructured{a.After, a.Plain} {
		if after != nil {
			o.Kind.Edit(after).KeepMaps(o.Kind.Open(a.Before))
		}
	}
	err := r.patchBoth(ctx, o, a.Before, a.After, a.Event)
	if !apierrors.IsInvalid(err) {
		return err
	}
	if a.Plain != nil {
		return r.patchBoth(ctx, o, a.Before, a.Plain, a.Event)
	}
	if o.Kind.Open(a.Before).SuspensionSeen() {
		// Nothing is to come after which the API server would take it.
		r.once(o.Job, cannotResume(o.Unit, err))
	}
	return fmt.Errorf("the pod templates cannot be changed yet: %w", err)
}

// patchBoth sends what changed of the child, then what changed of the job: a job is never resumed before its child is
// as it should be.
func (r *JobReconciler) patchBoth(
	ctx context.Context, o *Observation, before, after *unstructured.Unstructured, e *event.Event,
) error {
	own, child := jobs.Split(before)
	changed, changedChild := jobs.Split(after.DeepCopy())
	if child != nil && changedChild != nil && !equality.Semantic.DeepEqual(child.Object, changedChild.Object) {
		if err := r.patchObject(ctx, o, child, changedChild, nil); err != nil {
			return err
		}
	}
	return r.patchObject(ctx, o, own, changed, e)
}

// patchObject sends what changed of a job or a child, of which caches keep parts. A change inside of a list is made on
// the whole list.
func (r *JobReconciler) patchObject(
	ctx context.Context, o *Observation, before, after *unstructured.Unstructured, e *event.Event,
) error {
	if jobs.ChangesLists(before, after) {
		whole := newObject(before.GroupVersionKind())
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(before), whole); err != nil {
			return err
		}
		if whole.GetUID() != before.GetUID() || whole.GetResourceVersion() != before.GetResourceVersion() {
			resource := schema.GroupResource{Group: before.GroupVersionKind().Group, Resource: before.GetKind()}
			return apierrors.NewConflict(resource, before.GetName(), errChanged)
		}
		before, after = whole, jobs.Overlay(whole, before, after)
	}
	return r.patch(ctx, o, before, after, e, r.Client.Patch)
}

// resetStart clears the start time in the status of a suspended job.
func (r *JobReconciler) resetStart(ctx context.Context, o *Observation, a ResetStart) error {
	before, _ := jobs.Split(a.Job)
	after := before.DeepCopy()
	r.Kind.Edit(after).ClearStart()
	return r.patch(ctx, o, before, after, nil, r.patchStatus)
}

func (r *JobReconciler) deleteUnit(ctx context.Context, o *Observation, a DeleteUnit) error {
	// With its version, too: what was decided on may be no more by the time at which the request arrives.
	uid, version := a.Unit.UID, a.Unit.ResourceVersion
	err := r.Client.Delete(ctx, a.Unit.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Deleted a unit", "queueUnit", klog.KObj(a.Unit), "phase", a.Unit.Status.Phase)
	if o.Job != nil {
		r.memory.Of(o.Job).forget(uid)
		event.Record(r.Recorder, o.Job, a.Event)
	}
	return nil
}

// observe reads what is cached.
func (r *JobReconciler) observe(ctx context.Context, key types.NamespacedName) (Observation, error) {
	o := Observation{Now: metav1.NewTime(r.Options.Clock.Now()), Kind: &r.Kind, Options: r.Options.Plan}
	var err error
	unitKey := types.NamespacedName{Namespace: key.Namespace, Name: r.Kind.UnitName(key.Name)}
	if o.Unit, err = r.cachedUnit(ctx, unitKey); err != nil {
		return o, err
	}
	job, err := r.cachedJob(ctx, key)
	if err != nil {
		return o, client.IgnoreNotFound(err)
	}
	if err = r.judge(ctx, &o, job); err == nil {
		err = r.askQueue(ctx, &o)
	}
	r.memory.Of(job).observe(&o)
	return o, err
}

// askQueue fills in what the queue says about jobs that their owners suspend. A queue that is not there says nothing.
func (r *JobReconciler) askQueue(ctx context.Context, o *Observation) error {
	if o.Unit == nil || o.Unit.Spec.Queue == "" || !r.Kind.Open(o.Job).Suspended() || r.Kind.Open(o.Job).SuspendedByUs() {
		return nil
	}
	queue := &v1alpha1.Queue{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: r.Options.QueueNamespace, Name: o.Unit.Spec.Queue}, queue)
	if err == nil && queue.Spec.OnOwnerSuspend != nil {
		o.RequeuesSuspended = *queue.Spec.OnOwnerSuspend == v1alpha1.OwnerSuspendRequeue
	}
	return client.IgnoreNotFound(err)
}

// cachedUnit is what the cache has of a unit, nil if there is none; one that is larger than caches keep is read from
// the API server.
func (r *JobReconciler) cachedUnit(ctx context.Context, key types.NamespacedName) (*v1alpha1.QueueUnit, error) {
	unit := &v1alpha1.QueueUnit{}
	if err := (unitcache.Reader{Cache: r.Client, Live: r.Live}).Get(ctx, key, unit); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return unit, nil
}

// cachedJob is what the cache has of a job; one that is larger than caches keep is read from the API server.
func (r *JobReconciler) cachedJob(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	job := r.newJob()
	if err := r.Jobs.Get(ctx, key, job); err != nil {
		return nil, err
	}
	expanded, err := jobs.Expand(job)
	if errors.Is(err, jobs.ErrNotKept) {
		expanded = r.newJob()
		err = r.Live.Get(ctx, key, expanded)
	}
	if err != nil {
		return nil, err
	}
	return withChild(ctx, r.Jobs, &r.Kind, expanded)
}

// withChild is the job as its kind reads it: with the child that it controls, if it has one.
func withChild(
	ctx context.Context, from client.Reader, kind *jobs.Kind, job *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	if kind.Child == nil {
		return kind.WithChild(job, nil), nil
	}
	child := newObject(kind.Child.GVK)
	err := from.Get(ctx, client.ObjectKeyFromObject(job), child)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || !metav1.IsControlledBy(child, job) {
		child = nil
	}
	return kind.WithChild(job, child), nil
}

// judge fills in what follows from the job.
func (r *JobReconciler) judge(ctx context.Context, o *Observation, job *unstructured.Unstructured) error {
	o.Job = job
	namespace := newNamespace()
	if err := r.Client.Get(ctx, types.NamespacedName{Name: job.GetNamespace()},
		namespace); client.IgnoreNotFound(err) != nil {
		return err
	}
	var err error
	if o.Creation, err = r.creation(ctx, job.GetNamespace(), namespace.Labels); err != nil {
		return err
	}
	takers, err := r.takers(ctx, job.GetNamespace())
	if err != nil {
		return err
	}
	o.Creation.Quota = quotaOfNamespace(job.GetNamespace(), takers)
	predicate := r.Options.Predicate
	o.Schedules, o.EveryJobIsGang = predicate.Schedules, predicate.EveryJobIsGang(&r.Kind)
	labels := podLabels(&r.Kind, job, o.Creation)
	if predicate.AsksForMapping(namespace.Labels) {
		labels = append(labels, jobs.MappedNamespace(len(takers) > 0))
	}
	o.Managed = predicate.ManagesJob(r.Kind.Open(job), namespace.Labels, labels...)
	if !o.Managed {
		o.Elsewhere = predicate.QueuedElsewhere(r.Kind.Open(job))
		o.Asleep = !o.Elsewhere && !r.begun.Found(job) && r.Kind.Open(job).Suspended() &&
			metav1.GetControllerOfNoCopy(job) == nil && predicate.ManagesNamespace(job.GetNamespace(), namespace.Labels)
		if !r.begun.Found(job) {
			o.Unmanaged = predicate.UnmanagedJob(r.Kind.Open(job), namespace.Labels, labels...)
		}
		return nil
	}
	if o.Unit == nil {
		o.Cluster = r.Shared.Survey.Look(ctx)
	}
	o.Priorities.Most = mostOf(namespace.Annotations)
	o.Priorities.Class, err = r.classOf(ctx, job)
	return err
}

func (r *JobReconciler) newJob() *unstructured.Unstructured { return newObject(r.Kind.GVK) }

// readJob replaces the job by what the API server has now.
func (r *JobReconciler) readJob(ctx context.Context, o *Observation) error {
	o.Fresh = true
	key := client.ObjectKeyFromObject(o.Unit)
	switch ref := o.Unit.Spec.ConsumerRef; {
	case o.Job != nil:
		key.Name = o.Job.GetName() // the unit may name another one
	case ref != nil:
		key.Name = ref.Name
	default:
		key.Name = r.jobNamed(key.Name)
	}
	job := r.newJob()
	switch err := r.LiveJobs.Get(ctx, key, job); {
	case apierrors.IsNotFound(err):
		o.Job = nil
		return nil
	case err != nil:
		return err
	}
	if o.Job != nil && o.Job.GetUID() != job.GetUID() {
		o.Bound = BoundUnknown // the pods were those of another job
	}
	job, err := withChild(ctx, r.Live, &r.Kind, job)
	if err != nil {
		return err
	}
	return r.judge(ctx, o, job)
}

// readUnit replaces the unit by what the API server has now.
func (r *JobReconciler) readUnit(ctx context.Context, o *Observation) error {
	o.FreshUnit = true
	unit := &v1alpha1.QueueUnit{}
	err := r.Live.Get(ctx, types.NamespacedName{
		Namespace: o.Job.GetNamespace(), Name: r.Kind.UnitName(o.Job.GetName()),
	}, unit)
	if apierrors.IsNotFound(err) {
		o.Unit = nil
		return nil
	}
	if err == nil {
		o.Unit = unit
	}
	return err
}
