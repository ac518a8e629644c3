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

package reservation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/koordinator-sh/koordinator/apis/extension"
	koordinatorv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"
	reservationutil "github.com/koordinator-sh/koordinator/pkg/util/reservation"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const hostile = `{"metadata": {
  "labels": {"app": "x", "koordinator.sh/qosClass": "LSR", "quota.scheduling.koordinator.sh/name": "team",
    "pod-group.scheduling.sigs.k8s.io": "gang", "scheduling.koordinator.sh/reservation-ignored": "true",
    "koord-queue/queue-name": "other"},
  "annotations": {"scheduling.koordinator.sh/resource-spec": "{}", "gang.scheduling.koordinator.sh/name": "gang",
    "scheduling.koordinator.sh/is-pre-allocation": "true"}},
"spec": {"priority": 2000000000, "priorityClassName": "system-node-critical", "schedulerName": "koord-scheduler",
  "nodeSelector": {"zone": "a"}, "schedulingGates": [{"name": "g"}],
  "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
  "containers": [{"name": "c", "image": "i", "env": [{"name": "SECRET", "value": "s"}],
    "resources": {"requests": {"cpu": "1"}}}]}}`

// reserved is a unit with two pods that waits for the check "nodes".
func reserved() *v1alpha1.QueueUnit {
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "u-1"},
		Spec: v1alpha1.QueueUnitSpec{
			Priority:    ptr.To[int32](7),
			ConsumerRef: &corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "job-1"},
			PodSets:     []v1alpha1.PodSet{{Name: "main", Count: 2, Template: runtime.RawExtension{Raw: []byte(hostile)}}},
		},
		Status: v1alpha1.QueueUnitStatus{
			Phase: v1alpha1.PhaseReserved, Attempts: 1,
			Admissions: []v1alpha1.Admission{{Name: v1alpha1.DefaultRequirementPodSet, Resources: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("500")}}},
			AdmissionChecks: []v1alpha1.AdmissionCheckState{{Name: "nodes", State: admissioncheck.Pending}},
		},
	}
}

// world has a checker on objects in memory.
type world struct {
	*checker
	clock *testingclock.FakeClock
	unit  *v1alpha1.QueueUnit
}

func newWorld(t *testing.T, funcs interceptor.Funcs) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(v1alpha1.AddToScheme(scheme), koordinatorv1alpha1.AddToScheme(scheme)))
	fakeClock := testingclock.NewFakeClock(start)
	objects := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).
		WithIndex(&koordinatorv1alpha1.Reservation{}, byUnit, indexUnit).
		WithObjects(&koordinatorv1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{
			Name: "jobqueue-u-1-forged", Labels: map[string]string{labelJobNamespace: "ns"},
			Annotations: map[string]string{annotationUnit: "j"},
		}}).Build()
	return &world{
		checker: &checker{client: objects, kinds: jobkind.Builtin(), clock: fakeClock}, clock: fakeClock, unit: reserved(),
	}
}

func (w *world) ask(t *testing.T) admissioncheck.Answer {
	t.Helper()
	a, err := w.check(t.Context(), w.unit, &v1beta1.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "nodes"}})
	require.NoError(t, err)
	return a
}

// made are the Reservations of the unit.
func (w *world) made(t *testing.T) []koordinatorv1alpha1.Reservation {
	t.Helper()
	list, err := w.list(t.Context(), types.NamespacedName{Namespace: "ns", Name: "j"})
	require.NoError(t, err)
	return list
}

// say sets the status of one Reservation, as koord-scheduler does, and its creation.
func (w *world) say(t *testing.T, i int, so func(r *koordinatorv1alpha1.Reservation)) {
	t.Helper()
	r := w.made(t)[i]
	r.CreationTimestamp = metav1.NewTime(start)
	so(&r)
	require.NoError(t, w.client.Update(t.Context(), &r))
}

func available(r *koordinatorv1alpha1.Reservation) {
	r.Status.Phase, r.Status.NodeName = koordinatorv1alpha1.ReservationAvailable, "node"
}

func unschedulable(r *koordinatorv1alpha1.Reservation) {
	reservationutil.SetReservationUnschedulable(r, "0/2 nodes are available: 2 Insufficient cpu. preemption: none")
}

func expired(r *koordinatorv1alpha1.Reservation) { reservationutil.SetReservationExpired(r) }

// Of the template of a tenant, only the fields that say where pods can run reach the scheduler.
func TestReservation(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	w.unit.Status.AdmissionChecks = append(w.unit.Status.AdmissionChecks, v1alpha1.AdmissionCheckState{
		Name: "zone", State: admissioncheck.Ready, PodSetUpdates: []v1alpha1.PodSetUpdate{{
			Name: "main", NodeSelector: map[string]string{"pool": "p", "zone": "a"},
			Tolerations: []corev1.Toleration{{Key: "pool"}},
		}},
	})
	require.Equal(t, admissioncheck.Pending, w.ask(t).State)
	list := w.made(t)
	require.Len(t, list, 2)
	r := &list[0]
	require.Equal(t, map[string]string{
		"reserved-job-namespace": "ns", "reserved-job-name": "j", v1alpha1.LabelCreatedBy: v1alpha1.CreatedByController,
	}, r.Labels)
	require.Equal(t, map[string]string{"reserved-queueunit-name": "j"}, r.Annotations)
	require.True(t, *r.Spec.AllocateOnce)
	require.Equal(t, time.Hour, r.Spec.TTL.Duration)

	pod := reservationutil.NewReservePod(r)
	require.Equal(t, "ns", pod.Namespace)
	require.Equal(t, "x", pod.Labels["app"])
	require.Equal(t, "LSR", pod.Labels[extension.LabelPodQoS])
	require.Equal(t, extension.DefaultQuotaName, extension.GetQuotaName(pod))
	for _, key := range []string{"pod-group.scheduling.sigs.k8s.io", extension.LabelReservationIgnored,
		v1alpha1.QueueNameKey} {
		require.NotContains(t, pod.Labels, key)
	}
	require.Contains(t, pod.Annotations, extension.AnnotationResourceSpec)
	require.NotContains(t, pod.Annotations, extension.AnnotationGangName)
	require.False(t, reservationutil.IsReservePodPreAllocation(pod))
	require.EqualValues(t, 7, *pod.Spec.Priority)
	require.Equal(t, corev1.PreemptNever, *pod.Spec.PreemptionPolicy)
	require.Equal(t, "koord-scheduler", pod.Spec.SchedulerName)
	require.Equal(t, map[string]string{"pool": "p", "zone": "a"}, pod.Spec.NodeSelector)
	require.Equal(t, []corev1.Toleration{{Key: "pool"}}, pod.Spec.Tolerations)
	require.Empty(t, pod.Spec.Volumes)
	require.Empty(t, pod.Spec.SchedulingGates)
	require.Empty(t, pod.Spec.PriorityClassName)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(text), "SECRET")
}

// Pods of the job may use its Reservations, and no others.
func TestOwners(t *testing.T) {
	podOf := func(namespace string, labels map[string]string, kind, name string, uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch/v1", Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}}}
	}
	set := map[string]string{"jobset.sigs.k8s.io/jobset-name": "j"}
	for _, tc := range []struct {
		name, kind string
		job, other *corev1.Pod
	}{
		{"the UID of the job", "Job", podOf("ns", nil, "Job", "j", "job-1"), podOf("ns", nil, "Job", "j", "job-2")},
		{"the namespace", "Job", podOf("ns", nil, "Job", "j", "job-1"), podOf("other", nil, "Job", "j", "job-1")},
		{"a label, with a Job between", "JobSet", podOf("ns", set, "Job", "j-0", "x"), podOf("ns", nil, "Job", "j-0", "x")},
		{"a label and the namespace", "JobSet", podOf("ns", set, "Job", "j-0", "x"), podOf("other", set, "Job", "j-0", "x")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := reserved()
			if u.Spec.ConsumerRef.Kind = tc.kind; tc.kind == "JobSet" {
				u.Spec.ConsumerRef.APIVersion = "jobset.x-k8s.io/v1alpha2"
			}
			owner, err := ownerOf(u, jobkind.Builtin())
			require.NoError(t, err)
			matchers, err := reservationutil.ParseReservationOwnerMatchers([]koordinatorv1alpha1.ReservationOwner{owner})
			require.NoError(t, err)
			require.True(t, reservationutil.MatchReservationOwners(tc.job, matchers))
			require.False(t, reservationutil.MatchReservationOwners(tc.other, matchers))
		})
	}
}

func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		unit    func(u *v1alpha1.QueueUnit) // before it is asked
		said    [2]func(r *koordinatorv1alpha1.Reservation)
		after   time.Duration
		later   func(u *v1alpha1.QueueUnit) // before it is asked again
		state   v1alpha1.CheckState
		message string
		left    int
	}{
		{name: "no word yet", state: admissioncheck.Pending, message: "0 of 2 pods have a Reservation on a node", left: 2},
		{name: "all are on nodes", said: [2]func(*koordinatorv1alpha1.Reservation){available, available},
			state: admissioncheck.Ready, message: "each pod has a Reservation on a node", left: 2},
		{name: "one finds no node", said: [2]func(*koordinatorv1alpha1.Reservation){available, unschedulable},
			after: patience - time.Second, state: admissioncheck.Pending, message: "1 of 2 pods have", left: 2},
		{name: "one finds no node for long", said: [2]func(*koordinatorv1alpha1.Reservation){available, unschedulable},
			after: patience, state: admissioncheck.Retry,
			message: "1 of 2 pods find no node: 0/2 nodes are available: 2 Insufficient cpu.", left: 2},
		{name: "one has expired", said: [2]func(*koordinatorv1alpha1.Reservation){available, expired},
			state: admissioncheck.Retry, message: "is lost: its phase is Failed", left: 2},
		{name: "another reservation of quota", said: [2]func(*koordinatorv1alpha1.Reservation){available, available},
			later: func(u *v1alpha1.QueueUnit) { u.Status.Attempts++ }, state: admissioncheck.Pending,
			message: "0 of 2", left: 2},
		{name: "another template", said: [2]func(*koordinatorv1alpha1.Reservation){available, available},
			later: func(u *v1alpha1.QueueUnit) {
				u.Spec.PodSets[0].Template.Raw = []byte(strings.Replace(hostile, `"zone": "a"`, `"zone": "b"`, 1))
			}, state: admissioncheck.Pending, message: "0 of 2", left: 2},
		{name: "another unit of the name", said: [2]func(*koordinatorv1alpha1.Reservation){available, available},
			later: func(u *v1alpha1.QueueUnit) { u.UID = "u-2" }, state: admissioncheck.Pending, message: "0 of 2", left: 2},
		{name: "another check is not ready", said: [2]func(*koordinatorv1alpha1.Reservation){available, available},
			later: func(u *v1alpha1.QueueUnit) {
				u.Status.AdmissionChecks = append(u.Status.AdmissionChecks,
					v1alpha1.AdmissionCheckState{Name: "budget", State: admissioncheck.Pending})
			}, state: admissioncheck.Pending, message: `when check "budget" is ready`},
		{name: "released", said: [2]func(*koordinatorv1alpha1.Reservation){available, expired},
			later: func(u *v1alpha1.QueueUnit) { u.Status.Phase = v1alpha1.PhaseDequeued }, left: 1},
		{name: "all pods are ready", said: [2]func(*koordinatorv1alpha1.Reservation){available, available},
			later: func(u *v1alpha1.QueueUnit) {
				u.Status.Phase = v1alpha1.PhaseRunning
				meta.SetStatusCondition(&u.Status.Conditions, metav1.Condition{
					Type: v1alpha1.ConditionPodsReady, Status: metav1.ConditionTrue, Reason: "PodsReady"})
			}},
		{name: "as many pods as may be", unit: func(u *v1alpha1.QueueUnit) { u.Spec.PodSets[0].Count = mostPods },
			state: admissioncheck.Pending, message: "0 of 500", left: mostPods},
		{name: "too many pods", unit: func(u *v1alpha1.QueueUnit) { u.Spec.PodSets[0].Count = mostPods + 1 },
			state: admissioncheck.Rejected, message: "Reservations are created for at most 500"},
		{name: "too large a template", unit: func(u *v1alpha1.QueueUnit) {
			u.Spec.PodSets[0].Template.Raw = []byte(`{"metadata": {"labels": {"x": "` + strings.Repeat("x", mostBytes) + `"}}}`)
		}, state: admissioncheck.Rejected, message: "a Reservation at most 16384"},
		{name: "no template", unit: func(u *v1alpha1.QueueUnit) { u.Spec.PodSets[0].Template.Raw = []byte(`[]`) },
			state: admissioncheck.Rejected, message: `template of pod set "main"`},
		{name: "more than the unit holds", unit: func(u *v1alpha1.QueueUnit) {
			u.Status.Admissions[0].Resources[corev1.ResourceCPU] = resource.MustParse("1999m")
		}, state: admissioncheck.Rejected, message: "Reservations would take cpu 2, and the unit holds 1999m"},
		{name: "a resource that the unit does not hold", unit: func(u *v1alpha1.QueueUnit) {
			u.Status.Admissions[0].Resources = nil
		}, state: admissioncheck.Rejected, message: "Reservations would take cpu 2, and the unit holds 0"},
		{name: "a negative amount", unit: func(u *v1alpha1.QueueUnit) {
			u.Spec.PodSets[0].Template.Raw = []byte(strings.Replace(hostile, `"cpu": "1"`, `"cpu": "-1"`, 1))
		}, state: admissioncheck.Rejected, message: "is negative"},
		{name: "no job", unit: func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef = nil },
			state: admissioncheck.Rejected, message: "names no job"},
		{name: "a job of another namespace", unit: func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef.Namespace = "other" },
			state: admissioncheck.Rejected, message: "names no job"},
		{name: "no pod sets", unit: func(u *v1alpha1.QueueUnit) { u.Spec.PodSets = nil },
			state: admissioncheck.Rejected, message: "has no pod sets"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{})
			if tc.unit != nil {
				tc.unit(w.unit)
			}
			a := w.ask(t)
			for i, said := range tc.said {
				if said != nil {
					w.say(t, i, said)
				}
			}
			w.clock.Step(tc.after)
			if tc.later != nil {
				tc.later(w.unit)
			}
			if tc.said[0] != nil {
				a = w.ask(t)
			}
			require.Equal(t, tc.state, a.State, a.Message)
			require.Contains(t, a.Message, tc.message)
			require.NotContains(t, a.Message, "preemption")
			require.Len(t, w.made(t), tc.left)
			forged := &koordinatorv1alpha1.Reservation{}
			require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Name: "jobqueue-u-1-forged"}, forged),
				"a Reservation of somebody else stays")
		})
	}
}

// Every write fails, once before it is made and once after it, as when the process dies or the answer is lost. The next
// attempt comes to the same (I8).
func TestEveryWriteFails(t *testing.T) {
	want, writes := lifeOf(t, 0, false)
	require.Equal(t, []string{"Pending", "2", "Retry", "2", "0", "Pending", "2", "Ready", "2", "0"}, want)
	require.Equal(t, 8, writes)
	for n := 1; n <= writes; n++ {
		for _, made := range []bool{false, true} {
			story, _ := lifeOf(t, n, made)
			require.Equal(t, want, story, "write %d, made: %t", n, made)
		}
	}
}

// lifeOf is what becomes of a unit that finds no nodes first, and then finds them and is deleted. The n-th write
// returns an error, whether it is made or not.
func lifeOf(t *testing.T, n int, made bool) (story []string, writes int) {
	t.Helper()
	write := func(do func() error) error {
		if writes++; writes != n {
			return do()
		}
		if made {
			require.NoError(t, do())
		}
		return errors.New("connection reset by peer")
	}
	w := newWorld(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, o, opts...) })
		},
	})
	again := func(do func() error) {
		t.Helper()
		if do() != nil {
			require.NoError(t, do(), "one write fails")
		}
	}
	ask := func() {
		t.Helper()
		again(func() error {
			a, err := w.check(t.Context(), w.unit, &v1beta1.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "nodes"}})
			if err == nil {
				story = append(story, string(a.State), fmt.Sprint(len(w.made(t))))
			}
			return err
		})
	}
	ask()
	w.say(t, 0, available)
	w.say(t, 1, expired)
	ask()
	again(func() error { return w.idle(t.Context(), w.unit) })
	story = append(story, fmt.Sprint(len(w.made(t))))
	w.unit.Status.Attempts++
	ask()
	w.say(t, 0, available)
	w.say(t, 1, available)
	ask()
	again(func() error { return w.gone(t.Context(), client.ObjectKeyFromObject(w.unit)) })
	return append(story, fmt.Sprint(len(w.made(t)))), writes
}
