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

package stray

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/kubernetes"
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
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/outage"
)

const (
	// perSecond and burst bound what is written for each kind: a user who makes objects by the thousands is told late.
	perSecond, burst = 5, 10
)

// Setup watches, in the leader, the metadata of Queues outside of the namespace, and the labels of CronJobs. Where the
// right to do so is missing nothing is told, and nothing else waits.
func Setup(mgr manager.Manager, namespace string) error {
	if err := setupQueues(mgr, namespace); err != nil {
		return err
	}
	return setupCronJobs(mgr)
}

func setupQueues(mgr manager.Manager, namespace string) error {
	reader, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	outside := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("metadata.namespace", namespace).String()
	}
	informer := metadatainformer.NewFilteredMetadataInformer(reader, v1alpha1.QueueResource, metav1.NamespaceAll, 0,
		toolscache.Indexers{}, outside).Informer()
	if err := informer.SetTransform(trimQueue); err != nil {
		return err
	}
	r := &Queues{
		Namespace: namespace, Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(v1alpha1.CreatedByController),
		Pace:   pace(),
		Stored: stored[metav1.PartialObjectMetadata](informer),
	}
	return ctrl.NewControllerManagedBy(mgr).Named("stray-queue").WatchesRawSource(sourceOf(informer, queueDiffers)).
		Complete(outage.Retried(r))
}

func setupCronJobs(mgr manager.Manager) error {
	reader, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	informer := batchinformers.NewCronJobInformer(reader, metav1.NamespaceAll, 0, toolscache.Indexers{})
	if err := informer.SetTransform(trimCronJob); err != nil {
		return err
	}
	r := &CronJobs{
		Recorder: mgr.GetEventRecorder(v1alpha1.CreatedByController), Pace: pace(),
		Stored: stored[batchv1.CronJob](informer),
	}
	return ctrl.NewControllerManagedBy(mgr).Named("stray-cronjob").WatchesRawSource(sourceOf(informer, cronJobDiffers)).
		Complete(outage.Retried(r))
}

func pace() func(context.Context) error {
	return flowcontrol.NewTokenBucketRateLimiter(perSecond, burst).Wait
}

// stored reads from the store of an informer; nil is gone.
func stored[T any](informer toolscache.SharedIndexInformer) func(types.NamespacedName) *T {
	store := informer.GetStore()
	return func(key types.NamespacedName) *T {
		object, _, _ := store.GetByKey(key.String())
		known, _ := object.(*T)
		return known
	}
}

// sourceOf runs the informer while the controller runs, and passes on what differs. It does not wait for the first
// list: without the right to list that never comes.
func sourceOf(informer toolscache.SharedIndexInformer, differs func(before, after any) bool) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		add := func(object any) {
			if o, err := meta.Accessor(object); err == nil {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}})
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

// trimQueue keeps what the condition is made of. Annotations may be long.
func trimQueue(object any) (any, error) {
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

// queueDiffers says whether the condition would be another one: not after a write of a status.
func queueDiffers(before, after any) bool {
	a, ok := before.(*metav1.PartialObjectMetadata)
	b, ok2 := after.(*metav1.PartialObjectMetadata)
	return !ok || !ok2 || a.UID != b.UID || a.Generation != b.Generation
}
