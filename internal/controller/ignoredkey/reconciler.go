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

package ignoredkey

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
)

// conflictDelay is the time after a conflict until the condition is decided again by the new state.
const conflictDelay = time.Second

// Queues keeps the condition KeysIgnored of Queues. The scheduler writes the other conditions of the same list, so a
// write has the resourceVersion that it was decided on.
type Queues struct {
	// Client reads from the cache.
	Client client.Client
	Clock  clock.PassiveClock
	// Pace waits until the next write may go out.
	Pace func(context.Context) error
}

// Reconcile one Queue.
func (r *Queues) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	queue := &v1alpha1.Queue{}
	if err := r.Client.Get(ctx, req.NamespacedName, queue); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	after := told(queue, metav1.NewTime(r.Clock.Now()))
	if after == nil {
		return ctrl.Result{}, nil
	}
	if err := r.Pace(ctx); err != nil {
		return ctrl.Result{}, err
	}
	err := r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(queue, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(v1alpha1.CreatedByController))
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// untold says whether the condition has to be written.
func untold(o client.Object) bool {
	queue, ok := o.(*v1alpha1.Queue)
	return ok && told(queue, metav1.Time{}) != nil
}

// told is the Queue with the condition that it should have, nil if it has that already (I12).
func told(queue *v1alpha1.Queue, now metav1.Time) *v1alpha1.Queue {
	message := formerkey.Ignored(formerkey.Queue, queue.Labels, queue.Annotations)
	has := meta.FindStatusCondition(queue.Status.Conditions, formerkey.Condition)
	after := queue.DeepCopy()
	switch {
	case queue.DeletionTimestamp != nil:
		return nil
	case message == "" && has == nil:
		return nil
	case message == "":
		meta.RemoveStatusCondition(&after.Status.Conditions, formerkey.Condition)
		return after
	case has != nil && has.Status == metav1.ConditionTrue && has.Reason == formerkey.Reason && has.Message == message:
		return nil
	}
	meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
		Type: formerkey.Condition, Status: metav1.ConditionTrue, Reason: formerkey.Reason, Message: message,
		LastTransitionTime: now,
	})
	return after
}

// Others tells objects that have no condition for it.
type Others struct {
	Of formerkey.Object
	// New is an object to read metadata into.
	New func() *metav1.PartialObjectMetadata
	// Client reads from the cache.
	Client   client.Client
	Recorder events.EventRecorder
	// Pace waits until the next event may go out.
	Pace func(context.Context) error
}

// Reconcile one object.
func (r *Others) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	message := r.ignored(object)
	if message == "" || object.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if err := r.Pace(ctx); err != nil {
		return ctrl.Result{}, err
	}
	r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, formerkey.Reason, "Queue", "%s", message)
	return ctrl.Result{}, nil
}
