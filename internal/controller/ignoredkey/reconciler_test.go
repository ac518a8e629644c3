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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
)

var (
	now     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ignored = map[string]string{"koord-queue/queue-args": "x: y"}
	message = formerkey.Ignored(formerkey.Queue, nil, ignored)
)

func promptly(context.Context) error { return nil }

// TestQueue: the condition comes and goes with the annotations, and the conditions of the scheduler stay.
func TestQueue(t *testing.T) {
	active := metav1.Condition{Type: "Active", Status: metav1.ConditionTrue, Reason: "Admits"}
	is := metav1.Condition{
		Type: formerkey.Condition, Status: metav1.ConditionTrue, Reason: formerkey.Reason, Message: message,
	}
	other := is
	other.Message = "of another version"
	for name, tc := range map[string]struct {
		annotations  map[string]string
		before, want []metav1.Condition
		writes       bool
	}{
		"nothing to tell": {nil, []metav1.Condition{active}, []metav1.Condition{active}, false},
		"told":            {ignored, []metav1.Condition{active}, []metav1.Condition{active, is}, true},
		"told before":     {ignored, []metav1.Condition{active, is}, []metav1.Condition{active, is}, false},
		"told otherwise":  {ignored, []metav1.Condition{other, active}, []metav1.Condition{is, active}, true},
		"honoured now":    {nil, []metav1.Condition{active, is}, []metav1.Condition{active}, true},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &v1alpha1.Queue{
				ObjectMeta: metav1.ObjectMeta{Namespace: "koord-queue", Name: "q", Annotations: tc.annotations},
				Status:     v1alpha1.QueueStatus{Conditions: tc.before},
			}
			require.Equal(t, tc.writes, untold(queue))
			scheme := runtime.NewScheme()
			require.NoError(t, v1alpha1.AddToScheme(scheme))
			c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(queue).WithObjects(queue).Build()
			r := &Queues{Client: c, Clock: clocktesting.NewFakePassiveClock(now), Pace: promptly}
			key := client.ObjectKeyFromObject(queue)
			var got v1alpha1.Queue
			require.NoError(t, c.Get(t.Context(), key, &got))
			version := got.ResourceVersion
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			require.NoError(t, err)
			require.NoError(t, c.Get(t.Context(), key, &got))
			require.Equal(t, tc.writes, version != got.ResourceVersion)
			require.False(t, untold(&got), "the own write is no reason to write (I12)")
			if c := meta.FindStatusCondition(got.Status.Conditions, formerkey.Condition); tc.writes && len(tc.before) == 1 {
				require.True(t, c.LastTransitionTime.Time.Equal(now))
			}
			for i := range got.Status.Conditions {
				got.Status.Conditions[i].LastTransitionTime = metav1.Time{}
			}
			require.Equal(t, tc.want, got.Status.Conditions)
		})
	}
}

func TestOthers(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	quota := elasticquota.New()
	quota.Namespace, quota.Name, quota.Annotations = "n", "q", ignored
	recorder := events.NewFakeRecorder(1)
	r := &Others{
		Of: formerkey.Quota, New: elasticquota.New, Recorder: recorder, Pace: promptly,
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(quota).Build(),
	}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(quota)})
	require.NoError(t, err)
	require.Equal(t, "Warning IgnoredKey "+formerkey.Ignored(formerkey.Quota, nil, ignored), <-recorder.Events)

	plain, used := elasticquota.New(), quota.DeepCopy()
	used.Annotations = map[string]string{"koord-queue/queue-args": "x: y", "used": "1"}
	p := r.changes()
	require.True(t, p.Create(event.CreateEvent{Object: quota}))
	require.False(t, p.Create(event.CreateEvent{Object: plain}))
	require.True(t, p.Update(event.UpdateEvent{ObjectOld: plain, ObjectNew: quota}))
	require.False(t, p.Update(event.UpdateEvent{ObjectOld: quota, ObjectNew: used}), "its use is written all the time")
	require.False(t, p.Update(event.UpdateEvent{ObjectOld: quota, ObjectNew: plain}))
}
