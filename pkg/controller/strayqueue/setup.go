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

package strayqueue

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

const (
	// perSecond and burst bound the writes: whoever makes Queues by the thousands is told late.
	perSecond, burst = 5, 10
)

// Setup tells Queues outside of the namespace that nobody reads them, by the leader. It watches their metadata alone,
// and never those in the namespace. Where the right to do so is missing nothing is told, and nothing else waits.
func Setup(mgr manager.Manager, namespace string) error {
	reader, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	informer := newInformer(reader, namespace)
	if err := informer.SetTransform(trim); err != nil {
		return err
	}
	store := informer.GetStore()
	r := &Reconciler{
		Namespace: namespace, Client: mgr.GetClient(),
		Pace: flowcontrol.NewTokenBucketRateLimiter(perSecond, burst).Wait,
		Stored: func(key types.NamespacedName) *metav1.PartialObjectMetadata {
			object, _, _ := store.GetByKey(key.String())
			queue, _ := object.(*metav1.PartialObjectMetadata)
			return queue
		},
	}
	return ctrl.NewControllerManagedBy(mgr).Named("stray-queue").WatchesRawSource(sourceOf(informer)).Complete(r)
}

func newInformer(reader metadata.Interface, namespace string) toolscache.SharedIndexInformer {
	outside := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("metadata.namespace", namespace).String()
	}
	return metadatainformer.NewFilteredMetadataInformer(reader, v1alpha1.QueueResource, metav1.NamespaceAll, 0,
		toolscache.Indexers{}, outside).Informer()
}

// trim keeps what the condition is made of. Annotations may be long.
func trim(object any) (any, error) {
	queue, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil // the last known state of a deleted Queue
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: queue.Namespace, Name: queue.Name, UID: queue.UID, ResourceVersion: queue.ResourceVersion,
		Generation: queue.Generation, CreationTimestamp: queue.CreationTimestamp,
		DeletionTimestamp: queue.DeletionTimestamp,
	}}, nil
}

// sourceOf runs the informer while the controller runs. It does not wait for the first list: without the right to list
// that never comes.
func sourceOf(informer toolscache.SharedIndexInformer) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		add := func(object any) {
			if q, ok := object.(*metav1.PartialObjectMetadata); ok {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: q.Namespace, Name: q.Name}})
			}
		}
		_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: add,
			UpdateFunc: func(before, after any) {
				if differs(before, after) {
					add(after)
				}
			},
		})
		if err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
		return nil
	})
}

// differs says whether the condition would be another one: not after a write of a status.
func differs(before, after any) bool {
	a, ok := before.(*metav1.PartialObjectMetadata)
	b, ok2 := after.(*metav1.PartialObjectMetadata)
	return !ok || !ok2 || a.UID != b.UID || a.Generation != b.Generation
}
