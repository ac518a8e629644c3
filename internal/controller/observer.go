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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobpods"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/parts"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/pathfinder"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitcache"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/priority"
)

// observer reads what decisions depend on.
type observer struct {
	kind    *jobkind.Kind
	options *Options
	shared  *Shared
	begun   event.Begun
	// cache has all but jobs, which jobs has. live and liveJobs are the API server.
	cache, jobs, live, liveJobs client.Reader
}

func (r *JobReconciler) observer() *observer {
	return &observer{
		kind: &r.Kind, options: &r.Options, shared: &r.Shared, begun: r.begun,
		cache: r.Client, jobs: r.Jobs, live: r.Live, liveJobs: r.LiveJobs,
	}
}

// observe reads what is cached.
func (o *observer) observe(ctx context.Context, key types.NamespacedName) (jobplan.Situation, error) {
	s := jobplan.Situation{Now: metav1.NewTime(o.options.Clock.Now()), Kind: o.kind, Options: o.options.Plan}
	s.EndsLeft = managedjobs.EndsLeftPods(o.options.Predicate)
	if !o.kind.OfPods() { // a group of pods cannot change its grace period
		s.Terms.Termination = o.shared.Tenancy.Termination()
	}
	var err error
	unit := types.NamespacedName{Namespace: key.Namespace, Name: o.kind.UnitName(key.Name)}
	if s.Unit, err = o.unit(ctx, unit); err != nil {
		return s, err
	}
	job, err := o.job(ctx, key)
	if err != nil {
		return s, client.IgnoreNotFound(err)
	}
	if err = o.judge(ctx, &s, job); err == nil {
		err = o.askQueue(ctx, &s)
	}
	return s, err
}

// look fills in what a decision asks for.
func (o *observer) look(ctx context.Context, s *jobplan.Situation, at jobplan.Look) (err error) {
	switch at {
	case jobplan.LookAtPods:
		s.Bound, err = o.bound(ctx, s.Job)
	case jobplan.LookAtRefusals:
		said := o.refusal(ctx, s.Job, time.Time{})
		s.Refusal = &said
	case jobplan.LookAtUnit:
		err = o.readUnit(ctx, s)
	case jobplan.LookAtJob:
		err = o.readJob(ctx, s)
	case jobplan.LookAtRunning:
		s.Running, err = jobpods.Running(ctx, o.live, s.Job)
	case jobplan.LookAtLeft:
		s.Left, err = jobpods.Left(ctx, o.live, s)
	case jobplan.LookAtStall:
		s.Stall, err = o.stalled(ctx, s)
	case jobplan.LookNowhere:
	}
	return err
}

// askQueue fills in what the queue says about suspended jobs and about the grace of evicted ones. A queue that is not
// there says nothing.
func (o *observer) askQueue(ctx context.Context, s *jobplan.Situation) error {
	s.RequeuesSuspended, s.QueuePreempts, s.MostGrace = false, false, 0
	if s.Unit == nil || !s.Job.Suspended() && !unitstatus.Evicted(s.Unit) {
		return nil
	}
	key := types.NamespacedName{Namespace: o.options.QueueNamespace, Name: s.Unit.Spec.Queue}
	if e := s.Unit.Status.Effective; e != nil && e.Queue != "" {
		key.Name = e.Queue
	}
	if key.Name == "" {
		return nil
	}
	queue := &v1alpha1.Queue{}
	if err := o.cache.Get(ctx, key, queue); err != nil {
		return client.IgnoreNotFound(err)
	}
	s.RequeuesSuspended = ptr.Deref(queue.Spec.OnOwnerSuspend, "") == v1alpha1.OwnerSuspendRequeue
	if p := queue.Spec.Preemption; p != nil {
		s.MostGrace = time.Duration(ptr.Deref(p.MaxGraceSeconds, 0)) * time.Second
		s.QueuePreempts = ptr.Deref(p.WithinQueue, v1alpha1.PreemptNever) != v1alpha1.PreemptNever
	}
	return nil
}

// unit reads a unit from the cache, nil if there is none. A unit that is too large for the cache is read from the API
// server.
func (o *observer) unit(ctx context.Context, key types.NamespacedName) (*v1alpha1.QueueUnit, error) {
	unit := &v1alpha1.QueueUnit{}
	if err := (unitcache.Reader{Cache: o.cache, Live: o.live}).Get(ctx, key, unit); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return unit, nil
}

// job is what the cache has of a job; one that is larger than caches keep is read from the API server.
func (o *observer) job(ctx context.Context, key types.NamespacedName) (*jobs.Job, error) {
	job := newObject(o.kind.GVK)
	if err := o.jobs.Get(ctx, key, job); err != nil {
		return nil, err
	}
	expanded, err := compact.Expand(job)
	if errors.Is(err, compact.ErrNotKept) {
		expanded = newObject(o.kind.GVK)
		err = o.live.Get(ctx, key, expanded)
	}
	if err != nil {
		return nil, err
	}
	return open(ctx, o.jobs, o.kind, expanded)
}

// open a job as its kind reads it.
func open(
	ctx context.Context, from client.Reader, kind *jobkind.Kind, job *unstructured.Unstructured,
) (*jobs.Job, error) {
	return jobs.OpenWith(kind, job, func(child *unstructured.Unstructured) (bool, error) {
		err := from.Get(ctx, client.ObjectKeyFromObject(job), child)
		return err == nil, client.IgnoreNotFound(err)
	})
}

// judge fills in what follows from the job.
func (o *observer) judge(ctx context.Context, s *jobplan.Situation, job *jobs.Job) error {
	s.Job = job
	name, namespace := job.Object.GetNamespace(), newNamespace()
	if err := o.cache.Get(ctx, types.NamespacedName{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return err
	}
	var err error
	if s.Terms.Creation, err = o.creation(ctx, name, namespace.Labels); err != nil {
		return err
	}
	takers, err := elasticquota.List(ctx, o.cache, client.MatchingFields{elasticquota.MappedIndex: name})
	if err != nil {
		return err
	}
	s.Terms.Creation.Quota = elasticquota.OfNamespace(name, takers)
	predicate := o.options.Predicate
	s.Observed = managedjobs.Observes(predicate, namespace.Labels)
	s.Terms.Schedulers, s.Terms.EveryJobIsGang = predicate.Schedulers(), predicate.EveryJobIsGang(o.kind)
	s.Terms.Defaults = managedjobs.Defaults(predicate, o.kind)
	labels := podLabels(job, s.Terms.Creation)
	if predicate.AsksForMapping(namespace.Labels) {
		labels = append(labels, managedjobs.MappedNamespace(len(takers) > 0))
	}
	plain := job.Plain(nil)
	s.Terms.Alias, s.Terms.Further, s.AliasError = managedjobs.Alias(predicate, plain, namespace.Labels)
	ambiguous := errors.Is(s.AliasError, alias.ErrAmbiguous)
	entered, err := parts.Makers{Predicate: predicate, Unit: o.unit}.AsEntered(ctx, job, s.Unit)
	if err != nil {
		return err
	}
	s.Managed = predicate.ManagesJob(entered, namespace.Labels, labels...) && !ambiguous
	if !s.Managed {
		s.Elsewhere = ambiguous || predicate.QueuedElsewhere(job)
		if o.begun.Found(job.Object) {
			s.AliasError = nil
			return nil // the event was recorded before
		}
		if !s.Elsewhere && job.Suspended() && predicate.ManagesNamespace(name, namespace.Labels) {
			s.Asleep = parts.Asleep(predicate, job, predicate.ManagesJob(parts.Alone(job), namespace.Labels, labels...))
		}
		s.Unmanaged = predicate.UnmanagedJob(entered, namespace.Labels, labels...).In(s.Observed)
		return nil
	}
	if s.Unit == nil {
		s.Cluster = o.shared.Survey.Look(ctx)
	}
	s.Terms.Priorities.Most = priority.BoundOf(namespace.Annotations)
	return o.followPath(ctx, s, plain, namespace.Labels)
}

// followPath fills in the quota of a job that has a path.
func (o *observer) followPath(
	ctx context.Context, s *jobplan.Situation, plain *jobs.Job, namespaceLabels map[string]string,
) error {
	found, err := pathfinder.Find(ctx, o.cache, o.options.Predicate, plain, s.Terms.Alias, namespaceLabels)
	s.Terms.Path, s.Terms.PathError = found.Path, found.Wrong
	if found.Quota != "" {
		s.Terms.Alias.Quota = found.Quota
	}
	return err
}

// readJob replaces the job by what the API server has now.
func (o *observer) readJob(ctx context.Context, s *jobplan.Situation) error {
	s.FreshJob = true
	var key types.NamespacedName
	switch {
	case s.Job != nil:
		key = client.ObjectKeyFromObject(s.Job.Object) // the unit may name another one
	case s.Unit.Spec.ConsumerRef != nil:
		key = types.NamespacedName{Namespace: s.Unit.Namespace, Name: s.Unit.Spec.ConsumerRef.Name}
	default:
		key = types.NamespacedName{Namespace: s.Unit.Namespace, Name: o.kind.JobName(s.Unit.Name)}
	}
	object := newObject(o.kind.GVK)
	switch err := o.liveJobs.Get(ctx, key, object); {
	case apierrors.IsNotFound(err):
		s.Job = nil
		return nil
	case err != nil:
		return err
	}
	if s.Job != nil && s.Job.Object.GetUID() != object.GetUID() {
		s.Bound = jobplan.BoundUnknown // the pods were those of another job
	}
	job, err := open(ctx, o.live, o.kind, object)
	if err != nil {
		return err
	}
	return o.judge(ctx, s, job)
}

// readUnit replaces the unit by what the API server has now.
func (o *observer) readUnit(ctx context.Context, s *jobplan.Situation) error {
	s.FreshUnit = true
	unit := &v1alpha1.QueueUnit{}
	err := o.live.Get(ctx, types.NamespacedName{Namespace: s.Job.Object.GetNamespace(), Name: s.Job.UnitName()}, unit)
	if apierrors.IsNotFound(err) {
		s.Unit = nil
		return nil
	}
	if err != nil {
		return err
	}
	s.Unit = unit
	return o.askQueue(ctx, s)
}
