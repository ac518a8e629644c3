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

// Package intake fills the mailbox of the engine: informers of units, queues, classes, checks, namespaces, pods and
// jobs, and consistent lists of units. It decides nothing, and runs in goroutines of its own.
package intake

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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/managed"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/priorities"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

var PriorityClasses = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1",
	Resource: "priorityclasses"}

const (
	ListPage     = 1000
	syncPoll     = 10 * time.Millisecond
	readDeadline = 60 * time.Second
)

// Options is where objects come from; see Options.
type Options struct {
	Client             rest.Interface
	Metadata           metadata.Interface
	Jobs               metadatainformer.SharedInformerFactory
	Pods, Namespaces   cache.SharedIndexInformer
	Predicate          *managedjobs.Predicate
	QueueNamespace     string
	DefaultQueuePolicy string
	Timeouts           queue.Timeouts
	AdmissionChecksOff bool
	// NamespaceGone is called when the informer says that a namespace is gone.
	NamespaceGone func(namespace string)
}

// Sources are the informers that the engine owns, and what tells that they have delivered.
type Sources struct {
	*env.Env
	from    Options
	managed *managed.Kinds
	box     *mail.Box
	Units   cache.SharedIndexInformer
	Owned   []cache.SharedIndexInformer
	synced  []cache.InformerSynced
	kinds   atomic.Pointer[Following]
	checks  *checkWatch
}

func New(v *env.Env, o Options, m *managed.Kinds, box *mail.Box) *Sources {
	return &Sources{Env: v, from: o, managed: m, box: box}
}

func (s *Sources) HasUnit(key string) bool {
	if s.Units == nil {
		return false
	}
	_, ok, err := s.Units.GetStore().GetByKey(key)
	return ok || err != nil
}

// WatchIsBefore says that the watch of units has not reached this version yet, for example after an outage of the API
// server. Then an unreported unit is no difference.
func (s *Sources) WatchIsBefore(version string) bool {
	return s.Units != nil && objects.VersionAfter(version, s.Units.LastSyncResourceVersion())
}

// Connect makes the informers and registers the handlers. Every object is read on its own when it arrives, so one
// that cannot be read never breaks the reading of others.
func (s *Sources) Connect() error {
	units := s.informer(v1alpha1.QueueUnitResource, "", &objects.WireUnit{})
	s.Units = units
	err := s.follow(units, "queue units", transform(objects.DecodeUnit), handlers(
		func(u *objects.Unit) { s.box.Unit(u) },
		func(u *objects.Unit) { s.box.UnitGone(u) },
		func(key string) { s.box.Put(func(b *mail.Batch) { b.PutUnit(key, mail.UnitEvent{Gone: true}) }) },
	))
	if err != nil {
		return err
	}
	queues := s.informer(v1alpha1.QueueResource, s.from.QueueNamespace, &objects.WireQueue{})
	decode := func(w *objects.WireQueue) *objects.Queue {
		return objects.DecodeQueue(w, s.from.DefaultQueuePolicy, s.from.Timeouts)
	}
	err = s.follow(queues, "queues", transform(decode), handlers(
		func(q *objects.Queue) { s.box.Queue(q.Name, q) },
		func(q *objects.Queue) { s.box.Queue(q.Name, nil) },
		func(key string) { s.box.Queue(nameOfKey(key), nil) },
	))
	if err != nil {
		return err
	}
	classes := s.informer(PriorityClasses, "", &schedulingv1.PriorityClass{})
	err = s.follow(classes, "priority classes", transform(objects.DecodeClass), handlers(
		func(c *objects.Class) { s.box.Class(c.Name, c) },
		func(c *objects.Class) { s.box.Class(c.Name, nil) },
		func(key string) { s.box.Class(key, nil) },
	))
	if err != nil {
		return err
	}
	if err := s.followChecks(); err != nil {
		return err
	}
	f, err := s.FollowJobs(s.from.Jobs, s.from.Predicate)
	if err != nil {
		return err
	}
	s.kinds.Store(f)
	s.synced = append(s.synced, f.Settled)
	if err := s.hear(s.from.Namespaces, "namespaces", priorities.Handler(s.box.Bound, s.from.NamespaceGone)); err != nil {
		return err
	}
	return s.hear(s.from.Pods, "pods", cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { s.onPod(obj, false, initial) },
		UpdateFunc: func(_, obj any) { s.onPod(obj, false, false) },
		DeleteFunc: func(obj any) { s.onPod(obj, true, false) },
	})
}

func nameOfKey(key string) string {
	_, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return key
	}
	return name
}

// follow sets up one informer of our own. It is started by Run.
func (s *Sources) follow(
	informer cache.SharedIndexInformer, what string, f cache.TransformFunc, h cache.ResourceEventHandler,
) error {
	if err := informer.SetTransform(f); err != nil {
		return fmt.Errorf("watching %s: %w", what, err)
	}
	s.Owned = append(s.Owned, informer)
	return s.hear(informer, what, h)
}

// hear registers a handler; nil is one that somebody feeds by hand.
func (s *Sources) hear(informer cache.SharedIndexInformer, what string, h cache.ResourceEventHandler) error {
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

func (s *Sources) informer(
	resource schema.GroupVersionResource, namespace string, example runtime.Object,
) cache.SharedIndexInformer {
	client := s.from.Client
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

func (s *Sources) onPod(obj any, gone, initial bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		s.PutPod(pod, gone, initial)
	}
}

// PutPod takes a pod. initial says that it existed before anything was watched: if it is on a node, it is counted.
func (s *Sources) PutPod(pod *corev1.Pod, gone, initial bool) {
	if s.managed.Concerns(pod) {
		s.box.Pod(pod, gone, initial)
	}
}

// Start runs the informers. It calls loaded in the engine's goroutine when they have delivered all existing objects. It
// calls listed when a kind of jobs is followed that could not be listed before.
func (s *Sources) Start(ctx context.Context, background *sync.WaitGroup, loaded, listed func()) {
	for _, informer := range s.Owned {
		background.Go(func() { informer.RunWithContext(ctx) })
	}
	background.Go(func() {
		if s.AwaitSync(ctx) {
			s.box.Call(loaded)
		}
	})
	background.Go(func() { s.awaitKinds(ctx, listed) })
}

// AwaitSync waits until all handlers have been given all that existed; false when the context ended before.
func (s *Sources) AwaitSync(ctx context.Context) bool {
	for !s.HasSynced() {
		if !s.Sleep(ctx, syncPoll) {
			return false
		}
	}
	return true
}

func (s *Sources) HasSynced() bool {
	for _, has := range s.synced {
		if !has() {
			return false
		}
	}
	return true
}

// ListUnits reads all units consistently, and says of which version the list is.
func (s *Sources) ListUnits(ctx context.Context) (units []*objects.Unit, version string, err error) {
	err = s.EachUnitPage(ctx, func(page []*objects.Unit, listVersion string) error {
		units, version = append(units, page...), listVersion
		return nil
	})
	return units, version, err
}

// EachUnitPage reads all units consistently, page by page.
func (s *Sources) EachUnitPage(ctx context.Context, visit func(page []*objects.Unit, version string) error) error {
	o := metav1.ListOptions{Limit: ListPage}
	for {
		list, err := within(ctx, func(ctx context.Context) (*objects.WireList[objects.WireUnit], error) {
			list := &objects.WireList[objects.WireUnit]{}
			return list, objects.With(objects.At(s.from.Client.Get(), v1alpha1.QueueUnitResource, ""), &o).Do(ctx).Into(list)
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
