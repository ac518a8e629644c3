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

package admissioncheck

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// world has a unit "a", which has to pass "mine" and "theirs", and a controller that answers the first.
type world struct {
	t *testing.T
	*Controller
	answer Answer
	// asked and idle count calls.
	asked, idle int
}

func newWorld(t *testing.T, phase v1alpha1.QueueUnitPhase, state v1alpha1.CheckState) *world {
	t.Helper()
	w := &world{t: t}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, v1beta1.AddToScheme(scheme))
	unit := &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
		Status: v1alpha1.QueueUnitStatus{Phase: phase, AdmissionChecks: []v1alpha1.AdmissionCheckState{
			{Name: "mine", State: state, RetryCount: ptr.To[int32](2),
				PodSetUpdates: []v1alpha1.PodSetUpdate{{Name: "main"}}},
			{Name: "theirs", State: Pending},
		}},
	}
	objects := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(unit).WithObjects(unit,
		checkOf("mine", "example.com/mine"), checkOf("theirs", "example.com/theirs")).Build()
	w.Controller = &Controller{
		ControllerName: "example.com/mine",
		Check: func(context.Context, *v1alpha1.QueueUnit, *v1beta1.AdmissionCheck) (Answer, error) {
			w.asked++
			return w.answer, nil
		},
		Idle: func(context.Context, *v1alpha1.QueueUnit) error {
			w.idle++
			return nil
		},
	}
	w.Use(objects, v1beta1.SchemeGroupVersion.WithKind("AdmissionCheck"))
	return w
}

func checkOf(name, controller string) *v1beta1.AdmissionCheck {
	return &v1beta1.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.AdmissionCheckSpec{ControllerName: controller},
	}
}

func (w *world) reconcile(a Answer) (state v1alpha1.AdmissionCheckState, again time.Duration) {
	w.t.Helper()
	w.answer = a
	result, err := w.ReconcileUnit(w.t.Context(), reconcile.Request{
		NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}})
	require.NoError(w.t, err)
	checks := w.unit().Status.AdmissionChecks
	require.Equal(w.t, v1alpha1.AdmissionCheckState{Name: "theirs", State: Pending}, checks[1])
	return checks[0], result.RequeueAfter
}

func (w *world) unit() *v1alpha1.QueueUnit {
	w.t.Helper()
	unit := &v1alpha1.QueueUnit{}
	require.NoError(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, unit))
	return unit
}

func TestAReservedUnitIsAsked(t *testing.T) {
	w := newWorld(t, v1alpha1.PhaseReserved, Pending)
	state, again := w.reconcile(Answer{Message: "soon", RequeueAfter: time.Second})
	require.Equal(t, Pending, state.State)
	require.Equal(t, time.Second, again)
	state, again = w.reconcile(Answer{State: Retry, Message: "later", RequeueAfter: time.Minute})
	require.Equal(t, Retry, state.State)
	require.EqualValues(t, 3, *state.RetryCount, "it goes on counting")
	require.EqualValues(t, 60, *state.RequeueAfterSeconds)
	require.Zero(t, again)
	asked := w.asked
	w.reconcile(Answer{State: Ready})
	require.Equal(t, asked, w.asked, "the scheduler acts on it first")
	require.Zero(t, w.idle)
}

// Only who withdraws is asked about units that were let go, and only no counts.
func TestAReadyIsTakenBack(t *testing.T) {
	w := newWorld(t, v1alpha1.PhaseRunning, Ready)
	state, _ := w.reconcile(Answer{State: Retry})
	require.Equal(t, Ready, state.State)
	require.Zero(t, w.asked)

	w.Withdraws = true
	before := w.unit().ResourceVersion
	for _, a := range []Answer{
		{}, {State: Pending, Message: "hm"}, {State: Ready, Message: "hm", RequeueAfter: time.Hour},
	} {
		state, again := w.reconcile(a)
		require.Equal(t, Ready, state.State)
		require.Equal(t, a.RequeueAfter, again)
	}
	require.Equal(t, before, w.unit().ResourceVersion, "nothing is written")
	state, _ = w.reconcile(Answer{State: Retry, Message: "gone"})
	require.Equal(t, Retry, state.State)
	require.EqualValues(t, 3, *state.RetryCount)
	require.Len(t, state.PodSetUpdates, 1, "they have to be taken out of templates yet")
	require.Zero(t, w.idle)

	w = newWorld(t, v1alpha1.PhaseDequeued, Pending)
	w.Withdraws = true
	state, _ = w.reconcile(Answer{State: Rejected})
	require.Equal(t, Pending, state.State, "it was not asked about this reservation")
}

func TestRetriesBeginAnewOnceAllPodsWereReady(t *testing.T) {
	w := newWorld(t, v1alpha1.PhaseRunning, Ready)
	w.Withdraws = true
	unit := w.unit()
	unit.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodsReady, Status: metav1.ConditionTrue}}
	require.NoError(t, w.client.Status().Update(t.Context(), unit))
	state, _ := w.reconcile(Answer{State: Retry})
	require.EqualValues(t, 1, *state.RetryCount)
}

func TestAUnitThatHoldsNothingIsIdle(t *testing.T) {
	for i, phase := range []v1alpha1.QueueUnitPhase{
		"", v1alpha1.PhaseEnqueued, v1alpha1.PhaseTimeoutBackoff, v1alpha1.PhaseSucceed, v1alpha1.PhaseFailed,
	} {
		w := newWorld(t, phase, Ready)
		w.Withdraws = i%2 == 0
		w.reconcile(Answer{State: Retry})
		require.Equal(t, 1, w.idle, phase)
		require.Zero(t, w.asked)
	}
}

func TestAUnitThatDoesNotExistIsGone(t *testing.T) {
	w := newWorld(t, v1alpha1.PhaseReserved, Pending)
	key := client.ObjectKey{Namespace: "ns", Name: "other"}
	_, err := w.ReconcileUnit(t.Context(), reconcile.Request{NamespacedName: key})
	require.NoError(t, err)
	var gone []client.ObjectKey
	w.Gone = func(_ context.Context, unit client.ObjectKey) error {
		gone = append(gone, unit)
		return nil
	}
	_, err = w.ReconcileUnit(t.Context(), reconcile.Request{NamespacedName: key})
	require.NoError(t, err)
	require.Equal(t, []client.ObjectKey{key}, gone)
	w.reconcile(Answer{State: Ready})
	require.Len(t, gone, 1)
}

// A unit with a new reservation gets no answer about its former one.
func TestAnAnswerIsAboutTheUnitThatWasRead(t *testing.T) {
	w := newWorld(t, v1alpha1.PhaseReserved, Pending)
	w.Check = func(ctx context.Context, u *v1alpha1.QueueUnit, _ *v1beta1.AdmissionCheck) (Answer, error) {
		changed := u.DeepCopy()
		changed.Status.Attempts++
		return Answer{State: Ready}, w.client.Status().Update(ctx, changed)
	}
	_, err := w.ReconcileUnit(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.Equal(t, Pending, w.unit().Status.AdmissionChecks[0].State)
}
