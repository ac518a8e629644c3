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

package unitevents

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func TestAUnitByHandIsToldWhatAJobWouldBe(t *testing.T) {
	ctx, now := context.Background(), metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j", UID: "u-1"}}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(u).WithStatusSubresource(u).Build()
	recorder := events.NewFakeRecorder(100)
	r := newReconciler(Options{Units: c, Recorder: recorder, Clock: clocktesting.NewFakePassiveClock(now.Time)})
	look := func() (reasons []string) {
		for range 2 {
			_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(u)})
			require.NoError(t, err)
		}
		for len(recorder.Events) > 0 {
			reasons = append(reasons, strings.Fields(<-recorder.Events)[1])
		}
		return reasons
	}
	require.Empty(t, look(), "nobody has judged it yet")

	require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(u), u))
	u.Status.Phase, u.Status.LastUpdateTime = v1alpha1.PhaseEnqueued, &now
	u.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionFalse,
		Reason: "QuotaExceeded", Message: "cpu is short", LastTransitionTime: now}}
	require.NoError(t, c.Status().Update(ctx, u))
	require.Equal(t, []string{"Pending"}, look(), "once")

	for attempt := range int64(2) {
		u.Status.Phase, u.Status.Attempts = v1alpha1.PhaseDequeued, attempt+1
		require.NoError(t, c.Status().Update(ctx, u))
		require.Equal(t, []string{"Admitted"}, look(), "once for each admission")
	}
}
