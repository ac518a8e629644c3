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

package placementcheck

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	compmetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/witness"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/placement"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// nodes are a placer with room for so many pods.
type nodes struct {
	room     int
	err      error
	endless  bool   // a search ends with its context
	during   func() // happens during a search
	search   func(of *corev1.Pod)
	asked    []placement.PodSet
	gone     [][]*corev1.Pod
	promised map[types.UID]int
}

func (n *nodes) Place(ctx context.Context, r placement.Request) (a placement.Answer, err error) {
	n.asked, n.gone = append(n.asked, r.Sets...), append(n.gone, r.Gone)
	if n.during != nil {
		n.during()
	}
	if n.search != nil {
		n.search(r.Sets[0].Template)
	}
	if n.endless {
		<-ctx.Done()
		return placement.Answer{Placed: []placement.Placed{{Count: 2}, {Count: 1}}, Nodes: 7}, ctx.Err()
	}
	free := n.room
	for _, count := range n.promised {
		free -= count
	}
	for _, set := range r.Sets {
		if free -= set.Count; free < 0 {
			a.Shortage = &placement.Shortage{Set: set.Name, Count: set.Count}
			return a, n.err
		}
		a.Placed = append(a.Placed, placement.Placed{Unit: set.Unit, Set: set.Name, Count: set.Count})
	}
	a.Fits = true
	return a, n.err
}

func (n *nodes) Promise(a placement.Answer) {
	for _, placed := range a.Placed {
		n.promised[placed.Unit] += placed.Count
	}
}

func (n *nodes) Promised(of types.UID) bool { return n.promised[of] > 0 }

// Bound takes the node n0 for one that was promised.
func (n *nodes) Bound(of types.UID, node string) (missed bool) {
	missed = n.promised[of] > 0 && node != "n0"
	n.promised[of] = max(n.promised[of]-1, 0)
	return missed
}

func (n *nodes) Forget(of types.UID) (open int) {
	open = n.promised[of]
	delete(n.promised, of)
	return open
}

// unreadable is a template with an amount that nobody can count.
const unreadable = `{"spec":{"containers":[{"resources":{"requests":{"cpu":"1e999999999"}}}]}}`

type world struct {
	t       *testing.T
	nodes   *nodes
	objects client.Client
	clock   *clocktesting.FakeClock
	*Checker
}

func newWorld(t *testing.T, room int, units ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, v1beta1.AddToScheme(scheme))
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1beta1.SchemeGroupVersion})
	mapper.Add(v1beta1.SchemeGroupVersion.WithKind("AdmissionCheck"), meta.RESTScopeRoot)
	check := &v1beta1.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes"},
		Spec:       v1beta1.AdmissionCheckSpec{ControllerName: v1alpha1.PlacementController},
	}
	w := &world{
		t: t, nodes: &nodes{room: room, promised: map[types.UID]int{}},
		clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)),
	}
	w.objects = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(append(units, check)...).
		WithStatusSubresource(check, &v1alpha1.QueueUnit{}).Build()
	w.Checker = New(w.nodes, w.objects, nil, w.clock)
	w.started.Store(true)
	return w
}

// reserved is a unit that waits for the check, with two pod sets of so many pods.
func reserved(name string, first, second int32) *v1alpha1.QueueUnit {
	template := runtime.RawExtension{Raw: []byte(
		`{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"resources":{"limits":{"cpu":"2"}},"command":["c"]}]}}`)}
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{
			{Name: "first", Count: first, Template: template}, {Name: "second", Count: second, Template: template},
		}},
		Status: v1alpha1.QueueUnitStatus{
			Phase: v1alpha1.PhaseReserved, AdmissionChecks: []v1alpha1.AdmissionCheckState{{Name: "nodes"}},
		},
	}
}

// answered handles the queue, and returns the answer about a unit.
func (w *world) answered(name string) v1alpha1.AdmissionCheckState {
	w.t.Helper()
	for w.queue.Len() > 0 {
		require.True(w.t, w.answer(w.t.Context()))
	}
	qu := &v1alpha1.QueueUnit{}
	require.NoError(w.t, w.objects.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, qu))
	return qu.Status.AdmissionChecks[0]
}

func TestNodesArePromisedOnce(t *testing.T) {
	w := newWorld(t, 5, reserved("a", 2, 1), reserved("b", 2, 1))
	w.Unit("ns/a", "a", unit.PhaseReserved)
	require.Equal(t, admissioncheck.Ready, w.answered("a").State)
	pod := w.nodes.asked[0].Template
	require.Equal(t, "ns", pod.Namespace)
	require.Equal(t, map[string]string{"app": "a"}, pod.Labels)
	require.Empty(t, pod.Spec.Containers[0].Command)
	require.Equal(t, "2", pod.Spec.Containers[0].Resources.Requests.Cpu().String(), "a limit is asked for")

	w.Unit("ns/b", "b", unit.PhaseReserved)
	no := w.answered("b")
	require.Equal(t, admissioncheck.Retry, no.State)
	require.Contains(t, no.Message, `pod set "second"`)
	require.EqualValues(t, 5, *no.RequeueAfterSeconds)

	// Asked again, the first unit keeps what it has. Released, it does until its pods are bound, or it loses its quota.
	before := len(w.nodes.asked)
	w.Unit("ns/a", "a", unit.PhaseReserved)
	require.Equal(t, admissioncheck.Ready, w.answered("a").State)
	require.Len(t, w.nodes.asked, before)
	w.Unit("ns/a", "a", unit.PhaseDequeued)
	w.Bound("a", "n0")
	require.Equal(t, 2, w.nodes.promised["a"])
	for _, phase := range []unit.Phase{unit.PhaseEnqueued, ""} {
		w.nodes.promised["a"] = 2
		w.Unit("ns/a", "a", phase)
		require.NotContains(t, w.nodes.promised, types.UID("a"), phase)
	}
}

// A search without an end gives the quota back, as one that finds no nodes does.
func TestASearchThatRunsOutOfTime(t *testing.T) {
	w := newWorld(t, 9, reserved("a", 2, 3))
	w.nodes.endless, w.searchTime = true, time.Nanosecond
	w.Unit("ns/a", "a", unit.PhaseReserved)
	no := w.answered("a")
	require.Equal(t, admissioncheck.Retry, no.State)
	require.Equal(t, "the search for nodes is not over after 1ns: 3 of 5 pods have found one of 7 nodes", no.Message)
	require.EqualValues(t, 5, *no.RequeueAfterSeconds)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.check(ctx, reserved("a", 2, 3), &v1beta1.AdmissionCheck{})
	require.ErrorIs(t, err, context.Canceled, "the end of the process is no answer")
}

// Nodes that were kept for pods of a released unit are missed if the pods are elsewhere, or never came.
func TestMisses(t *testing.T) {
	w := newWorld(t, 9)
	w.metrics = metrics.New(metrics.Scheduler)
	registry := compmetrics.NewKubeRegistry()
	w.metrics.MustRegister(registry.MustRegister)
	for _, life := range []struct {
		promised int
		bound    []string
		phases   []unit.Phase
	}{
		{3, []string{"n0", "elsewhere", "n0", "beyond"}, []unit.Phase{unit.PhaseDequeued, unit.PhaseSucceed}},
		{3, []string{"n0"}, []unit.Phase{unit.PhaseDequeued, unit.PhaseTimeoutBackoff, unit.PhaseEnqueued}},
		{4, nil, []unit.Phase{unit.PhaseDequeued, unit.PhaseEnqueued, unit.PhaseNone}},
		{5, nil, []unit.Phase{unit.PhaseRunning, unit.PhaseFailed}},
		{6, nil, []unit.Phase{unit.PhaseRunning, unit.PhaseNone}},
		{7, nil, []unit.Phase{unit.PhaseReserved, unit.PhaseTimeoutBackoff, unit.PhaseNone}}, // another check
		{0, []string{"elsewhere"}, []unit.Phase{unit.PhaseDequeued, unit.PhaseNone}},
	} {
		w.nodes.promised["a"] = life.promised
		for i, phase := range life.phases {
			w.Unit("ns/a", "a", phase)
			for _, node := range life.bound {
				if i == 0 {
					w.Bound("a", node)
				}
			}
		}
		require.Empty(t, w.released)
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(
		"# HELP scheduler_jobqueue_placement_misses_total [ALPHA] Number of pods that are not on the node which "+
			"placement found: on an OtherNode, or on none until the job Ended or LostQuota.\n"+`
# TYPE scheduler_jobqueue_placement_misses_total counter
scheduler_jobqueue_placement_misses_total{reason="OtherNode"} 1
scheduler_jobqueue_placement_misses_total{reason="LostQuota"} 6
scheduler_jobqueue_placement_misses_total{reason="Ended"} 11
`), string(metrics.PlacementMissesTotal)))
}

// Nodes are looked at each time that the scheduler reserves quota for a unit. No event of its job has to come when a
// taint has gone, a label has come, or another job has ended.
func TestAUnitFindsNodesThatHaveChanged(t *testing.T) {
	a := reserved("a", 2, 1)
	w := newWorld(t, 0, a)
	again := func() { // the scheduler takes the quota back, and reserves it after a while
		require.NoError(t, w.objects.Get(t.Context(), client.ObjectKeyFromObject(a), a))
		w.Unit("ns/a", "a", unit.PhaseTimeoutBackoff)
		a.Status.AdmissionChecks[0].State = ""
		require.NoError(t, w.objects.Status().Update(t.Context(), a))
		w.Unit("ns/a", "a", unit.PhaseReserved)
	}
	w.Unit("ns/a", "a", unit.PhaseReserved)
	require.Equal(t, admissioncheck.Retry, w.answered("a").State)
	again()
	require.Equal(t, admissioncheck.Retry, w.answered("a").State)
	w.nodes.room = 3
	again()
	require.Equal(t, admissioncheck.Ready, w.answered("a").State)
}

// A search that panics is a no to one unit, and others are answered.
func TestAPanicIsANo(t *testing.T) {
	w := newWorld(t, 5, reserved("a", 2, 1), reserved("b", 2, 1))
	w.nodes.during = func() {
		w.nodes.during = nil
		panic("a filter cannot cope")
	}
	w.Unit("ns/a", "a", unit.PhaseReserved)
	w.Unit("ns/b", "b", unit.PhaseReserved)
	is := w.answered("a")
	require.Equal(t, admissioncheck.Retry, is.State)
	require.Equal(t, "internal error while nodes were looked for: a filter cannot cope", is.Message)
	require.Equal(t, admissioncheck.Ready, w.answered("b").State)
}

// A unit that is lost during its search was to be forgotten before anything was promised to it.
func TestAUnitIsLostDuringItsSearch(t *testing.T) {
	for name, lose := range map[string]func(w *world, a *v1alpha1.QueueUnit){
		"deleted": func(w *world, a *v1alpha1.QueueUnit) {
			require.NoError(w.t, w.objects.Delete(w.t.Context(), a))
			w.Unit("ns/a", "a", unit.PhaseNone)
		},
		"evicted": func(w *world, a *v1alpha1.QueueUnit) {
			a.Status.Phase = v1alpha1.PhaseTimeoutBackoff
			require.NoError(w.t, w.objects.Status().Update(w.t.Context(), a))
			w.Unit("ns/a", "a", unit.PhaseTimeoutBackoff)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := reserved("a", 1, 1)
			w := newWorld(t, 2, a, reserved("b", 1, 1))
			w.nodes.during = func() {
				w.nodes.during = nil
				require.NoError(t, w.objects.Get(t.Context(), client.ObjectKeyFromObject(a), a))
				lose(w, a)
			}
			w.Unit("ns/a", "a", unit.PhaseReserved)
			w.Unit("ns/b", "b", unit.PhaseReserved)
			require.Equal(t, admissioncheck.Ready, w.answered("b").State)
		})
	}
}

// However many pods a job has, nobody searches for nodes for more than mostPods.
func TestTooManyPods(t *testing.T) {
	w := newWorld(t, mostPods, reserved("most", mostPods-1, 1), reserved("more", mostPods, 1),
		reserved("overflow", math.MaxInt32, math.MaxInt32))
	w.Unit("ns/more", "more", unit.PhaseReserved)
	no := w.answered("more")
	require.Equal(t, admissioncheck.Rejected, no.State)
	require.Equal(t, "10001 pods of the job need a node, and the scheduler looks for nodes for at most 10000 pods of a "+
		"job", no.Message)
	w.Unit("ns/overflow", "overflow", unit.PhaseReserved)
	require.Contains(t, w.answered("overflow").Message, "4294967294 pods")
	require.Equal(t, []string{no.Message}, w.foresees(witness.Question{Key: "ns/more", UID: "more"}))
	require.Empty(t, w.nodes.asked)

	w.Unit("ns/most", "most", unit.PhaseReserved)
	require.Equal(t, admissioncheck.Ready, w.answered("most").State)
}

func TestPodsThatHaveYetToCome(t *testing.T) {
	partial := reserved("a", 4, 3)
	partial.Status.Admissions = []v1alpha1.Admission{{Name: "first", Replicas: 2}, {Name: "second", Replicas: 3}}
	partial.Status.ReclaimablePods = []v1alpha1.ReclaimablePod{{Name: "second", Count: 3}}
	w := newWorld(t, 2, partial)
	w.Unit("ns/a", "a", unit.PhaseReserved)
	require.Equal(t, admissioncheck.Ready, w.answered("a").State)
	require.Len(t, w.nodes.asked, 1)
	require.Equal(t, 2, w.nodes.asked[0].Count)
}

func TestRetryAfter(t *testing.T) {
	for retries, seconds := range map[int32]int{-1: 5, 0: 5, 1: 10, 5: 160, 6: 300, 1 << 30: 300} {
		qu := reserved("a", 1, 1)
		qu.Status.AdmissionChecks[0].RetryCount = &retries
		require.Equal(t, time.Duration(seconds)*time.Second, retryAfter(qu, "nodes"))
	}
}

// A check that fails is asked again. A unit whose template cannot be read waits for another template.
func TestFaults(t *testing.T) {
	broken := reserved("broken", 1, 1)
	broken.Spec.PodSets[1].Template.Raw = []byte(unreadable)
	w := newWorld(t, 9, reserved("a", 1, 1), broken)
	w.nodes.err = errors.New("no snapshot")
	w.Unit("ns/a", "a", unit.PhaseReserved)
	require.Empty(t, w.answered("a").State)
	require.Equal(t, 1, w.queue.NumRequeues(item{namespace: "ns", name: "a"}))
	w.nodes.err = nil
	w.Unit("ns/a", "a", unit.PhaseReserved)
	require.Equal(t, admissioncheck.Ready, w.answered("a").State)
	w.Unit("ns/broken", "broken", unit.PhaseReserved)
	require.Contains(t, w.answered("broken").Message, `pod set "second"`)
	w.Unit("ns/gone", "gone", unit.PhaseReserved)
	w.answered("a")
}

func TestTheCheckIsActive(t *testing.T) {
	w := newWorld(t, 0)
	w.Check("nodes")
	require.True(t, w.answer(t.Context()))
	check := &v1beta1.AdmissionCheck{}
	require.NoError(t, w.objects.Get(t.Context(), client.ObjectKey{Name: "nodes"}, check))
	require.True(t, meta.IsStatusConditionTrue(check.Status.Conditions, v1beta1.ConditionActive))
}
