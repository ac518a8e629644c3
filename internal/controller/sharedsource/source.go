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

// Package sharedsource wakes controllers that start and stop from the informers of a cache that stays.
package sharedsource

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Informers of a cache.
type Informers interface {
	GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

// Source of events from a cache that outlives the controller. It takes its handler back when the controller ends.
type Source struct {
	Informers Informers
	Object    client.Object
	Handle    handler.EventHandler
	// Updates says which updates are of interest; nil is all.
	Updates predicate.Predicate
}

// Start implements source.Source.
func (s *Source) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	informer, err := s.Informers.GetInformer(ctx, s.Object)
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if o, ok := obj.(client.Object); ok {
				s.Handle.Create(ctx, event.CreateEvent{Object: o, IsInInitialList: initial}, queue)
			}
		},
		UpdateFunc: func(before, after any) {
			old, was := before.(client.Object)
			o, is := after.(client.Object)
			if e := (event.UpdateEvent{ObjectOld: old, ObjectNew: o}); was && is && (s.Updates == nil || s.Updates.Update(e)) {
				s.Handle.Update(ctx, e, queue)
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if o, ok := obj.(client.Object); ok {
				s.Handle.Delete(ctx, event.DeleteEvent{Object: o}, queue)
			}
		},
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() {
		if err := informer.RemoveEventHandler(registration); err != nil {
			klog.FromContext(ctx).Error(err, "A handler of a cache could not be taken back")
		}
	})
	return nil
}

// String names the source in logs.
func (s *Source) String() string { return fmt.Sprintf("shared: %T", s.Object) }
