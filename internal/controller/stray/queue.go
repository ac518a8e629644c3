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
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Reason of the condition Active of a Queue that is outside of the queue namespace.
const Reason = "OutsideOfQueueNamespace"

var queueKind = schema.GroupVersionKind{
	Group: v1alpha1.SchemeGroupVersion.Group, Version: v1alpha1.SchemeGroupVersion.Version, Kind: "Queue",
}

// Queues writes a condition and an event for each stray Queue. Both follow from the generation and from metadata that
// never changes. So a repeated write changes nothing (I12), and nobody has to read the status.
type Queues struct {
	// Namespace is where Queues live.
	Namespace string
	// Stored returns the metadata of a Queue, nil if it is gone.
	Stored   func(key types.NamespacedName) *metav1.PartialObjectMetadata
	Client   client.Client
	Recorder events.EventRecorder
	// Pace waits until the next write may go out.
	Pace func(context.Context) error
}

// Reconcile one Queue.
func (r *Queues) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	queue := r.Stored(req.NamespacedName)
	if queue == nil || queue.Namespace == r.Namespace || queue.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if err := r.Pace(ctx); err != nil {
		return ctrl.Result{}, err
	}
	status := r.status(queue)
	err := r.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status),
		client.ForceOwnership, client.FieldOwner(v1alpha1.CreatedByController))
	switch {
	case err == nil:
		klog.FromContext(ctx).V(4).Info("Told a queue that nobody reads it", "queue", req.String())
		r.Recorder.Eventf(status, nil, corev1.EventTypeWarning, Reason, "Queue", "%s", r.message())
	case apierrors.IsInvalid(err): // somebody filled its conditions, and reads the same there again
		return ctrl.Result{}, reconcile.TerminalError(err)
	case apierrors.IsConflict(err): // the object has changed, and its event follows
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func (r *Queues) message() string {
	return fmt.Sprintf("the queue is ignored: queues live in the namespace %s; make it there", r.Namespace)
}

// status is the object with its UID, so that no other of its name gets the condition, and none is made.
func (r *Queues) status(queue *metav1.PartialObjectMetadata) *unstructured.Unstructured {
	since := queue.CreationTimestamp
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": "Active", "status": string(metav1.ConditionFalse), "reason": Reason,
		"message": r.message(),
		// A Queue is outside from its creation on. A time of today would be a change with every write.
		"lastTransitionTime": since.UTC().Format("2006-01-02T15:04:05Z"),
		"observedGeneration": queue.Generation,
	}}}}}
	u.SetGroupVersionKind(queueKind)
	u.SetNamespace(queue.Namespace)
	u.SetName(queue.Name)
	u.SetUID(queue.UID)
	return u
}
