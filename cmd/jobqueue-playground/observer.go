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

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/checker"
)

var (
	podResource   = corev1.SchemeGroupVersion.WithResource("pods")
	jobResource   = batchv1.SchemeGroupVersion.WithResource("jobs")
	quotaResource = schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "elasticquotas"}
	unitResource  = v1alpha1.SchemeGroupVersion.WithResource("queueunits")
	queueResource = v1alpha1.SchemeGroupVersion.WithResource("queues")
)

// settleDelay is how long an event waits for those of other watches before the checks look at it.
const settleDelay = 3 * time.Second

// observer watches quotas, queues, units, pods and jobs as a client of the API server, hands them to the checks,
// and remembers what the table shows. It asks nobody but the API server.
type observer struct {
	mu       sync.Mutex
	sequence *checker.Sequence
	live     *checker.Checker
	broken   error // an object that could not be understood

	quotas   map[string]checker.Quota
	queues   map[string]*v1alpha1.Queue
	units    map[string]unitView      // by UID
	pods     map[string]checker.Pod   // by UID
	jobs     map[string]checker.Job   // by UID
	jobUnit  map[string]string        // UID of a job -> UID of its unit
	sent     map[string]time.Time     // UID of a job -> when it was submitted
	names    map[string]string        // UID of a job -> its name
	admitted map[string]time.Duration // UID of a job -> from its submission to the sight of its admission
}

// unitView is what the table shows of a unit.
type unitView struct {
	checker.Unit
	phase           v1alpha1.QueueUnitPhase
	reason, message string
}

func newObserver() *observer {
	return &observer{
		sequence: checker.NewSequence(settleDelay),
		live:     checker.New(blockingQueues()),
		quotas:   map[string]checker.Quota{},
		queues:   map[string]*v1alpha1.Queue{},
		units:    map[string]unitView{},
		pods:     map[string]checker.Pod{},
		jobs:     map[string]checker.Job{},
		jobUnit:  map[string]string{},
		sent:     map[string]time.Time{},
		names:    map[string]string{},
		admitted: map[string]time.Duration{},
	}
}

// run watches until ctx ends; it returns once all watches have delivered what exists.
func (o *observer) run(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	kinds := map[schema.GroupVersionResource]func(*unstructured.Unstructured) (any, error){
		quotaResource: o.quota,
		unitResource:  o.unit,
		podResource:   o.pod,
		jobResource:   o.job,
		queueResource: o.queue,
	}
	for gvr, read := range kinds {
		handler := o.handler(read)
		if _, err := factory.ForResource(gvr).Informer().AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	for gvr, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("watch of %s: %w", gvr.Resource, context.Cause(ctx))
		}
	}
	return nil
}

// handler reads objects with read, which is called with the lock held, keeps what the table needs and returns
// what the checks are to see, or nil.
func (o *observer) handler(read func(*unstructured.Unstructured) (any, error)) cache.ResourceEventHandler {
	handle := func(object any, deleted bool) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return
		}
		now := time.Now()
		o.mu.Lock()
		defer o.mu.Unlock()
		seen, err := read(u)
		if err == nil && seen != nil {
			var version uint64
			version, err = strconv.ParseUint(u.GetResourceVersion(), 10, 64)
			o.sequence.Add(now, checker.Event{Version: version, Deleted: deleted, Object: seen})
		}
		if err != nil && o.broken == nil {
			o.broken = fmt.Errorf("%s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
		}
		if deleted {
			o.forget(seen)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { handle(object, false) },
		UpdateFunc: func(_, object any) { handle(object, false) },
		DeleteFunc: func(object any) { handle(object, true) },
	}
}

func (o *observer) forget(seen any) {
	switch object := seen.(type) {
	case checker.Quota:
		delete(o.quotas, object.Name)
	case checker.Unit:
		delete(o.units, object.UID)
	case checker.Pod:
		delete(o.pods, object.UID)
	case checker.Job:
		delete(o.jobs, object.UID)
	}
}

func (o *observer) quota(u *unstructured.Unstructured) (any, error) {
	q, err := checker.QuotaOf(u)
	if err != nil {
		return nil, err
	}
	o.quotas[q.Name] = q
	return q, nil
}

func (o *observer) queue(u *unstructured.Unstructured) (any, error) {
	q := &v1alpha1.Queue{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, q); err != nil {
		return nil, err
	}
	o.queues[q.Name] = q
	return nil, nil
}

func (o *observer) unit(u *unstructured.Unstructured) (any, error) {
	qu := &v1alpha1.QueueUnit{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, qu); err != nil {
		return nil, err
	}
	view := unitView{Unit: checker.UnitOf(qu), phase: qu.Status.Phase}
	view.reason, view.message = checker.WhyNot(qu)
	o.units[view.UID] = view
	o.jobUnit[view.Job] = view.UID
	if sent, ok := o.sent[view.Job]; ok && view.Admitted {
		if _, known := o.admitted[view.Job]; !known {
			o.admitted[view.Job] = time.Since(sent)
		}
	}
	return view.Unit, nil
}

func (o *observer) pod(u *unstructured.Unstructured) (any, error) {
	p := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
		return nil, err
	}
	view := checker.PodOf(p)
	o.pods[view.UID] = view
	return view, nil
}

func (o *observer) job(u *unstructured.Unstructured) (any, error) {
	j := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, j); err != nil {
		return nil, err
	}
	view := checker.JobOf(j)
	o.jobs[view.UID] = view
	return view, nil
}

// submitted takes note of a job that the API server has accepted. The order in which this and the sight of the
// job's unit come does not matter.
func (o *observer) submitted(uid, name string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent[uid], o.names[uid] = at, name
	if unit, ok := o.units[o.jobUnit[uid]]; ok && unit.Admitted {
		o.admitted[uid] = time.Since(at)
	}
}

// ended returns how many submitted jobs have ended, in whatever way.
func (o *observer) ended() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for uid := range o.sent {
		if job := o.jobs[uid]; job.Complete || job.Failed {
			n++
		}
	}
	return n
}

// check feeds the checks with what has settled and returns what they found so far.
func (o *observer) check(now time.Time) []checker.Violation {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.sequence.Ready(now) {
		o.live.Apply(e)
	}
	return o.live.Violations()
}

// verdict replays the whole history in its exact order.
func (o *observer) verdict() (done int, peak int, violations []checker.Violation, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	final := checker.New(blockingQueues())
	for _, e := range o.sequence.History() {
		final.Apply(e)
	}
	done, violations = final.Finish(maps.Clone(o.names))
	return done, final.PeakPods(), violations, o.broken
}

// events is the number of changes that the checks have seen.
func (o *observer) events() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sequence.History())
}

// waits returns the times from submission to admission by queue, sorted.
func (o *observer) waits() map[string][]time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	result := map[string][]time.Duration{}
	for job, wait := range o.admitted {
		queue := o.units[o.jobUnit[job]].Queue
		result[queue] = append(result[queue], wait)
	}
	for _, waits := range result {
		slices.Sort(waits)
	}
	return result
}

// name returns the part of a key after its namespace.
func name(key string) string {
	_, after, _ := strings.Cut(key, "/")
	return after
}
