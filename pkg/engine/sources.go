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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

var priorityClasses = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}

const (
	listPage     = 1000
	syncPoll     = 10 * time.Millisecond
	listRetry    = time.Second
	readDeadline = 60 * time.Second
)

// sources are the informers that the engine owns, and what tells that they have delivered.
type sources struct {
	units  cache.SharedIndexInformer
	owned  []cache.SharedIndexInformer
	synced []cache.InformerSynced
	kinds  jobKinds
}

func (s *sources) hasUnit(key string) bool {
	if s.units == nil {
		return false
	}
	_, ok, err := s.units.GetStore().GetByKey(key)
	return ok || err != nil
}

// connect makes the informers and registers the handlers. Every object is converted on its own when it arrives, so one
// that cannot be read never breaks the reading of others.
func (e *Engine) connect() error {
	units := e.bytesInformer(v1alpha1.QueueUnitResource, "", func() objectText { return &unitText{} })
	e.sources.units = units
	err := e.follow(units, "queue units", transform(decodeUnit), handlers(
		func(u *unitObject) { e.box.unit(u) },
		func(u *unitObject) { e.box.unitGone(u) },
		func(key string) { e.box.put(func(b *batch) { b.units.put(key, unitEvent{}) }) },
	))
	if err != nil {
		return err
	}
	policy := e.opts.Config.DefaultQueuePolicy
	queues := e.bytesInformer(v1alpha1.QueueResource, e.opts.Config.QueueNamespace, func() objectText { return &queueText{policy: policy} })
	decode := func(obj *unstructured.Unstructured) *queueObject { return decodeQueue(obj, policy) }
	err = e.follow(queues, "queues", transform(decode), handlers(
		func(q *queueObject) { e.putQueue(q.Name, q) },
		func(q *queueObject) { e.putQueue(q.Name, nil) },
		func(key string) { e.putQueue(nameOfKey(key), nil) },
	))
	if err != nil {
		return err
	}
	err = e.follow(e.dynamicInformer(priorityClasses, ""), "priority classes", transform(decodeClass), handlers(
		func(c *classObject) { e.putClass(c.Name, c) },
		func(c *classObject) { e.putClass(c.Name, nil) },
		func(key string) { e.putClass(key, nil) },
	))
	if err != nil {
		return err
	}
	if err := e.followJobs(); err != nil {
		return err
	}
	return e.followPods()
}

func (e *Engine) putQueue(name string, q *queueObject) {
	e.box.put(func(b *batch) { b.queues.put(name, q) })
}

func (e *Engine) putClass(name string, c *classObject) {
	e.box.put(func(b *batch) { b.classes.put(name, c) })
}

func nameOfKey(key string) string {
	_, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return key
	}
	return name
}

// follow sets up one informer of our own. It is started by Run.
func (e *Engine) follow(informer cache.SharedIndexInformer, what string, f cache.TransformFunc, h cache.ResourceEventHandler) error {
	if err := informer.SetTransform(f); err != nil {
		return fmt.Errorf("watching %s: %w", what, err)
	}
	registration, err := informer.AddEventHandler(h)
	if err != nil {
		return fmt.Errorf("watching %s: %w", what, err)
	}
	e.sources.owned = append(e.sources.owned, informer)
	e.sources.synced = append(e.sources.synced, registration.HasSynced)
	return nil
}

// transform makes the conversion idempotent, as informers ask for.
func transform[T any](decode func(*unstructured.Unstructured) *T) cache.TransformFunc {
	return func(obj any) (any, error) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			return decode(u), nil
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

func (e *Engine) dynamicInformer(gvr schema.GroupVersionResource, namespace string) cache.SharedIndexInformer {
	objects := e.opts.Dynamic.Resource(gvr).Namespace(namespace)
	return e.informer(gvr, objects, objects.Watch, &unstructured.Unstructured{})
}

// bytesInformer takes objects from their bytes where it can.
func (e *Engine) bytesInformer(gvr schema.GroupVersionResource, namespace string, text func() objectText) cache.SharedIndexInformer {
	client := e.opts.REST
	if client == nil {
		return e.dynamicInformer(gvr, namespace)
	}
	objects := e.opts.Dynamic.Resource(gvr).Namespace(namespace)
	return e.informer(gvr, objects, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return watchObjects(ctx, client, pathOf(gvr, namespace), text(), o)
	}, nil) // objects, and bookmarks of another type
}

func (e *Engine) informer(
	gvr schema.GroupVersionResource, objects dynamic.ResourceInterface,
	watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error), example runtime.Object,
) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) },
		WatchFuncWithContext: watchFunc,
	}, e.opts.Dynamic), example, cache.SharedIndexInformerOptions{ObjectDescription: gvr.String()})
}

func (e *Engine) followPods() error {
	if e.opts.Pods == nil {
		return nil
	}
	registration, err := e.opts.Pods.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) { e.onPod(obj, false, initial) },
		UpdateFunc: func(_, obj any) {
			e.onPod(obj, false, false)
		},
		DeleteFunc: func(obj any) { e.onPod(obj, true, false) },
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	e.sources.synced = append(e.sources.synced, registration.HasSynced)
	return nil
}

func (e *Engine) onPod(obj any, gone, initial bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		e.FeedPod(pod, gone, initial)
	}
}

// FeedUnit, FeedQueue, FeedClass, FeedJob and FeedPod are what the informers call; who drives Step himself may call
// them instead. They only append to the mailbox.
func (e *Engine) FeedUnit(obj *unstructured.Unstructured, gone bool) {
	if u := decodeUnit(obj); gone {
		e.box.unitGone(u)
	} else {
		e.box.unit(u)
	}
}

// FeedQueue takes a Queue.
func (e *Engine) FeedQueue(obj *unstructured.Unstructured, gone bool) {
	if gone {
		e.putQueue(obj.GetName(), nil)
		return
	}
	e.putQueue(obj.GetName(), decodeQueue(obj, e.opts.Config.DefaultQueuePolicy))
}

// FeedClass takes a PriorityClass.
func (e *Engine) FeedClass(obj *unstructured.Unstructured, gone bool) {
	if gone {
		e.putClass(obj.GetName(), nil)
		return
	}
	e.putClass(obj.GetName(), decodeClass(obj))
}

// FeedJob takes the UID of the job of that name; "" when there is none. The kind is named as jobs.Kind does.
func (e *Engine) FeedJob(kind, namespace, name string, uid types.UID) {
	e.box.put(func(b *batch) { b.jobs.put(keyOfJob(kind, namespace, name), uid) })
}

// FeedPod takes a pod. initial says that it existed before anything was watched: if it is on a node, it is counted.
func (e *Engine) FeedPod(pod *corev1.Pod, gone, initial bool) {
	if e.concerns(pod) {
		e.box.pod(pod, gone, initial)
	}
}

func (e *Engine) startSources(ctx context.Context, background *sync.WaitGroup) {
	for _, informer := range e.sources.owned {
		background.Go(func() { informer.RunWithContext(ctx) })
	}
	background.Go(func() {
		if e.awaitSync(ctx) {
			e.box.call(func() { e.load() })
		}
	})
	background.Go(func() { e.awaitKinds(ctx) })
}

// awaitSync waits until all handlers have been given all that existed; false when the context ended before.
func (e *Engine) awaitSync(ctx context.Context) bool {
	for !e.synced() {
		if !e.sleep(ctx, syncPoll) {
			return false
		}
	}
	return true
}

func (e *Engine) synced() bool {
	for _, has := range e.sources.synced {
		if !has() {
			return false
		}
	}
	return true
}

func (e *Engine) sleep(ctx context.Context, d time.Duration) bool {
	timer := e.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// load opens the gate for what is admitted, with the snapshot of this step: that of the last one may lack units.
func (e *Engine) load() {
	e.loaded = true
	e.noteSynced(e.opts.Clock.Now())
}

// awaitLead waits for Lead and then asks the API server itself for all units, not a cache that may lag behind what the last
// leader wrote. Only then the engine decides (I1, I8).
func (e *Engine) awaitLead(ctx context.Context) {
	select {
	case <-e.lead:
	case <-ctx.Done():
		return
	}
	log, start := klog.FromContext(ctx), e.opts.Clock.Now()
	if !e.awaitSync(ctx) {
		return
	}
	ask := func(f func()) error { return e.Ask(ctx, func(View) { f() }) }
	units, err := e.missedUnits(ctx, ask)
	for err != nil {
		log.Error(err, "Listing all queue units failed, nothing is admitted before it succeeds")
		if !e.sleep(ctx, listRetry) {
			return
		}
		units, err = e.missedUnits(ctx, ask)
	}
	e.box.call(func() { e.takeLead(units, start) })
}

// LeadNow lists the units and leads, for whoever drives Step himself.
func (e *Engine) LeadNow(ctx context.Context) error {
	start := e.opts.Clock.Now()
	units, err := e.missedUnits(ctx, func(f func()) error {
		f()
		return nil
	})
	if err != nil {
		return err
	}
	e.box.call(func() {
		e.load()
		e.takeLead(units, start)
	})
	return nil
}

// listUnits reads all units consistently, and says of which version the list is.
func (e *Engine) listUnits(ctx context.Context) (units []*unitObject, version string, err error) {
	err = e.eachUnitPage(ctx, func(page []*unitObject, listVersion string) error {
		units, version = append(units, page...), listVersion
		return nil
	})
	return units, version, err
}

// eachUnitPage reads all units consistently, page by page.
func (e *Engine) eachUnitPage(ctx context.Context, visit func(page []*unitObject, version string) error) error {
	o := metav1.ListOptions{Limit: listPage}
	for {
		list, err := within(ctx, func(ctx context.Context) (*unstructured.UnstructuredList, error) {
			return e.opts.Dynamic.Resource(v1alpha1.QueueUnitResource).List(ctx, o)
		})
		if err != nil {
			return err
		}
		page := make([]*unitObject, 0, len(list.Items))
		for i := range list.Items {
			page = append(page, decodeUnit(&list.Items[i]))
		}
		if err := visit(page, list.GetResourceVersion()); err != nil {
			return err
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// takeLead applies what was missed and lets the engine decide from this step on; start is when it was told to lead.
func (e *Engine) takeLead(units []*unitObject, start time.Time) {
	now := e.opts.Clock.Now()
	for _, u := range units {
		key := u.key()
		rec := e.units[key]
		e.applyUnit(now, key, unitEvent{object: u})
		if rec == nil && e.sources.units != nil {
			e.ghosts[key] = 0
		}
	}
	e.leading, e.quotas.all = true, true
	e.findMissingConsumers(now)
	for _, uid := range sortedUIDs(e.pods.idle) {
		e.activate.put(uid, struct{}{})
	}
	e.noteDeciding(now, start)
}
