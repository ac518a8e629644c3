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
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/priorities"
)

var priorityClasses = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1",
	Resource: "priorityclasses"}

const (
	listPage     = 1000
	syncPoll     = 10 * time.Millisecond
	readDeadline = 60 * time.Second
)

// sources are the informers that the engine owns, and what tells that they have delivered.
type sources struct {
	*env
	box    *mailbox
	units  cache.SharedIndexInformer
	owned  []cache.SharedIndexInformer
	synced []cache.InformerSynced
	kinds  atomic.Pointer[Following]
	checks *checkWatch
}

func (s *sources) hasUnit(key string) bool {
	if s.units == nil {
		return false
	}
	_, ok, err := s.units.GetStore().GetByKey(key)
	return ok || err != nil
}

// watchIsBefore says that the watch of units has not come to this version yet, as for a while after the API server was
// away: what it has not said is no difference.
func (s *sources) watchIsBefore(version string) bool {
	return s.units != nil && versionAfter(version, s.units.LastSyncResourceVersion())
}

// versionAfter says whether version a is after b; false if they cannot be compared.
func versionAfter(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c > 0
}

// connect makes the informers and registers the handlers. Every object is read on its own when it arrives, so one
// that cannot be read never breaks the reading of others.
func (s *sources) connect() error {
	units := s.informer(v1alpha1.QueueUnitResource, "", &objects.WireUnit{})
	s.units = units
	err := s.follow(units, "queue units", transform(objects.DecodeUnit), handlers(
		func(u *objects.Unit) { s.box.unit(u) },
		func(u *objects.Unit) { s.box.unitGone(u) },
		func(key string) { s.box.put(func(b *batch) { b.putUnit(key, unitEvent{gone: true}) }) },
	))
	if err != nil {
		return err
	}
	config := &s.opts.Config
	queues := s.informer(v1alpha1.QueueResource, s.opts.Config.QueueNamespace, &objects.WireQueue{})
	decode := func(w *objects.WireQueue) *objects.Queue {
		return objects.DecodeQueue(w, config.DefaultQueuePolicy, config.Timeouts)
	}
	err = s.follow(queues, "queues", transform(decode), handlers(
		func(q *objects.Queue) { s.putQueue(q.Name, q) },
		func(q *objects.Queue) { s.putQueue(q.Name, nil) },
		func(key string) { s.putQueue(nameOfKey(key), nil) },
	))
	if err != nil {
		return err
	}
	classes := s.informer(priorityClasses, "", &schedulingv1.PriorityClass{})
	err = s.follow(classes, "priority classes", transform(objects.DecodeClass), handlers(
		func(c *objects.Class) { s.putClass(c.Name, c) },
		func(c *objects.Class) { s.putClass(c.Name, nil) },
		func(key string) { s.putClass(key, nil) },
	))
	if err != nil {
		return err
	}
	if err := s.followChecks(); err != nil {
		return err
	}
	f, err := s.followJobs(s.opts.Jobs, s.opts.Predicate)
	if err != nil {
		return err
	}
	s.kinds.Store(f)
	s.synced = append(s.synced, f.Settled)
	if err := s.hear(s.opts.Namespaces, "namespaces", priorities.Handler(s.box.bound, s.waits.NamespaceGone)); err != nil {
		return err
	}
	return s.hear(s.opts.Pods, "pods", cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { s.onPod(obj, false, initial) },
		UpdateFunc: func(_, obj any) { s.onPod(obj, false, false) },
		DeleteFunc: func(obj any) { s.onPod(obj, true, false) },
	})
}

func (s *sources) putQueue(name string, q *objects.Queue) {
	s.box.put(func(b *batch) { b.queues.put(name, q) })
}

func (s *sources) putClass(name string, c *objects.Class) {
	s.box.put(func(b *batch) { b.classes.put(name, c) })
}

func (s *sources) putCheck(name string, c *objects.Check) {
	s.box.put(func(b *batch) { b.checks.put(name, c) })
}

func nameOfKey(key string) string {
	_, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return key
	}
	return name
}

// follow sets up one informer of our own. It is started by Run.
func (s *sources) follow(
	informer cache.SharedIndexInformer, what string, f cache.TransformFunc, h cache.ResourceEventHandler,
) error {
	if err := informer.SetTransform(f); err != nil {
		return fmt.Errorf("watching %s: %w", what, err)
	}
	s.owned = append(s.owned, informer)
	return s.hear(informer, what, h)
}

// hear registers a handler; nil is one that somebody feeds by hand.
func (s *sources) hear(informer cache.SharedIndexInformer, what string, h cache.ResourceEventHandler) error {
	if informer == nil {
		return nil
	}
	registration, err := informer.AddEventHandler(h)
	if err != nil {
		return fmt.Errorf("watching %s: %w", what, err)
	}
	s.synced = append(s.synced, registration.HasSynced)
	return nil
}

// transform makes the conversion idempotent, as informers ask for.
func transform[W, T any](decode func(*W) *T) cache.TransformFunc {
	return func(obj any) (any, error) {
		if w, ok := obj.(*W); ok {
			return decode(w), nil
		}
		return obj, nil
	}
}

// handlers unwraps objects; a deletion of which only the key is known is passed on as that.
func handlers[T any](put, gone func(*T), goneKey func(string)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if typed, ok := obj.(*T); ok {
				put(typed)
			}
		},
		UpdateFunc: func(_, obj any) {
			if typed, ok := obj.(*T); ok {
				put(typed)
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				if typed, ok := tombstone.Obj.(*T); ok {
					gone(typed)
				} else {
					goneKey(tombstone.Key)
				}
				return
			}
			if typed, ok := obj.(*T); ok {
				gone(typed)
			}
		},
	}
}

func (s *sources) informer(
	resource schema.GroupVersionResource, namespace string, example runtime.Object,
) cache.SharedIndexInformer {
	client := s.opts.Client
	return cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return objects.With(objects.At(client.Get(), resource, namespace), &o).Do(ctx).Get()
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			return objects.With(objects.At(client.Get(), resource, namespace), &o).Watch(ctx)
		},
	}, client), example, cache.SharedIndexInformerOptions{ObjectDescription: resource.String()})
}

func (s *sources) onPod(obj any, gone, initial bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		s.putPod(pod, gone, initial)
	}
}

// putJob takes what the job of that name is. The kind is named as jobs.Kind does.
func (s *sources) putJob(kind, namespace, name string, ev jobEvent) {
	job := owner.NameOf(unit.Consumer{Kind: kind, Namespace: namespace, Name: name})
	s.box.put(func(b *batch) { b.jobs.put(job, ev) })
}

// putPod takes a pod. initial says that it existed before anything was watched: if it is on a node, it is counted.
func (s *sources) putPod(pod *corev1.Pod, gone, initial bool) {
	if s.concerns(pod) {
		s.box.pod(pod, gone, initial)
	}
}

// start runs the informers, and calls loaded in the engine's goroutine when they have delivered what existed, and
// listed when kinds of jobs are followed that could not be.
func (s *sources) start(ctx context.Context, background *sync.WaitGroup, loaded, listed func()) {
	for _, informer := range s.owned {
		background.Go(func() { informer.RunWithContext(ctx) })
	}
	background.Go(func() {
		if s.awaitSync(ctx) {
			s.box.call(loaded)
		}
	})
	background.Go(func() { s.awaitKinds(ctx, listed) })
}

// awaitSync waits until all handlers have been given all that existed; false when the context ended before.
func (s *sources) awaitSync(ctx context.Context) bool {
	for !s.hasSynced() {
		if !s.sleep(ctx, syncPoll) {
			return false
		}
	}
	return true
}

func (s *sources) hasSynced() bool {
	for _, has := range s.synced {
		if !has() {
			return false
		}
	}
	return true
}

// listUnits reads all units consistently, and says of which version the list is.
func (s *sources) listUnits(ctx context.Context) (units []*objects.Unit, version string, err error) {
	err = s.eachUnitPage(ctx, func(page []*objects.Unit, listVersion string) error {
		units, version = append(units, page...), listVersion
		return nil
	})
	return units, version, err
}

// eachUnitPage reads all units consistently, page by page.
func (s *sources) eachUnitPage(ctx context.Context, visit func(page []*objects.Unit, version string) error) error {
	o := metav1.ListOptions{Limit: listPage}
	for {
		list, err := within(ctx, func(ctx context.Context) (*objects.WireList[objects.WireUnit], error) {
			list := &objects.WireList[objects.WireUnit]{}
			return list, objects.With(objects.At(s.opts.Client.Get(), v1alpha1.QueueUnitResource, ""), &o).Do(ctx).Into(list)
		})
		if err != nil {
			return err
		}
		page := make([]*objects.Unit, 0, len(list.Items))
		for i := range list.Items {
			page = append(page, objects.DecodeUnit(&list.Items[i]))
		}
		if err := visit(page, list.ResourceVersion); err != nil {
			return err
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return nil
		}
	}
}
