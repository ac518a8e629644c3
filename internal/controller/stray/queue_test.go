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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

var made = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

func queue(namespace, name, uid string) *v1alpha1.Queue {
	return &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(uid), CreationTimestamp: made, Generation: 2,
	}}
}

func newReconciler(t *testing.T, stored []*v1alpha1.Queue, existing ...client.Object) *Queues {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	return &Queues{
		Namespace: "koord-queue", Recorder: events.NewFakeRecorder(10),
		Client: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Queue{}).
			WithObjects(existing...).Build(),
		Pace: func(context.Context) error { return nil },
		Stored: func(key types.NamespacedName) *metav1.PartialObjectMetadata {
			for _, q := range stored {
				if client.ObjectKeyFromObject(q) == key {
					return &metav1.PartialObjectMetadata{ObjectMeta: q.ObjectMeta}
				}
			}
			return nil
		},
	}
}

func reconcileAndGet(t *testing.T, r *Queues, key types.NamespacedName) *v1alpha1.Queue {
	t.Helper()
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	got := &v1alpha1.Queue{}
	if err := r.Client.Get(t.Context(), key, got); err != nil {
		require.NoError(t, client.IgnoreNotFound(err))
		return nil
	}
	return got
}

func TestAQueueOutsideOfTheQueueNamespaceSaysSo(t *testing.T) {
	stray, home := queue("team-a", "q", "1"), queue("koord-queue", "q", "2")
	r := newReconciler(t, []*v1alpha1.Queue{stray, home}, stray.DeepCopy(), home.DeepCopy())
	got := reconcileAndGet(t, r, client.ObjectKeyFromObject(stray))
	active := meta.FindStatusCondition(got.Status.Conditions, "Active")
	require.NotNil(t, active)
	require.True(t, active.LastTransitionTime.Equal(&made), "it was outside from its creation on")
	require.Equal(t, metav1.Condition{
		Type: "Active", Status: metav1.ConditionFalse, Reason: Reason, ObservedGeneration: 2,
		Message:            "the queue is ignored: queues live in the namespace koord-queue; make it there",
		LastTransitionTime: active.LastTransitionTime,
	}, *active)

	require.Equal(t, "Warning "+Reason+" "+active.Message, <-r.Recorder.(*events.FakeRecorder).Events)

	again := reconcileAndGet(t, r, client.ObjectKeyFromObject(stray))
	require.Equal(t, got.Status.Conditions, again.Status.Conditions, "the same write changes nothing (I12)")

	require.Empty(t, reconcileAndGet(t, r, client.ObjectKeyFromObject(home)).Status.Conditions,
		"in the queue namespace the scheduler writes the condition")
}

func TestAQueueThatIsGoneGetsNothing(t *testing.T) {
	gone := queue("team-a", "q", "1")
	r := newReconciler(t, []*v1alpha1.Queue{gone})
	require.Nil(t, reconcileAndGet(t, r, client.ObjectKeyFromObject(gone)), "none is made")

	leaving := queue("team-a", "q", "1")
	leaving.DeletionTimestamp, leaving.Finalizers = &made, []string{"example.com/x"}
	r = newReconciler(t, []*v1alpha1.Queue{leaving}, leaving.DeepCopy())
	require.Empty(t, reconcileAndGet(t, r, client.ObjectKeyFromObject(leaving)).Status.Conditions)
}

func TestAWriteOfAStatusIsNoReasonToWrite(t *testing.T) {
	before := &metav1.PartialObjectMetadata{ObjectMeta: queue("team-a", "q", "1").ObjectMeta}
	for name, tc := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		want   bool
	}{
		"status":         {func(q *metav1.PartialObjectMetadata) { q.ResourceVersion = "7" }, false},
		"spec":           {func(q *metav1.PartialObjectMetadata) { q.Generation++ }, true},
		"another object": {func(q *metav1.PartialObjectMetadata) { q.UID = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(after)
			require.Equal(t, tc.want, queueDiffers(before, after))
		})
	}
}
