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

package jobqueue

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwktype "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/coscheduling"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

func testPlugin(t *testing.T, w *world) *Plugin {
	t.Helper()
	return &Plugin{core: &core{gate: w.gate(t, managedjobs.Jobs{}), handle: &waitingPods{}}}
}

// waitingPods is a handle that knows which pods wait at Permit.
type waitingPods struct {
	fwktype.Handle
	waiting map[types.UID]bool
}

func (w *waitingPods) GetWaitingPod(uid types.UID) fwktype.WaitingPod {
	if w.waiting[uid] {
		return struct{ fwktype.WaitingPod }{}
	}
	return nil
}

// Kubernetes writes the nominated node of each pod for which a plugin announces work.
func TestPreBindIsAnnouncedWhereItHasSomethingToDo(t *testing.T) {
	w := newWorld()
	p := testPlugin(t, w)
	pod := jobPod("j", quotaLabel)
	w.snapshot.consumers["j"] = true
	announced := func() fwktype.Code { return p.PreBindPreFlight(t.Context(), nil, pod, "n").Code() }
	require.Equal(t, fwktype.Skip, announced(), "Reserve has just asked the gate, and nothing is to be written")
	p.core.handle = &waitingPods{waiting: map[types.UID]bool{pod.UID: true}}
	require.Equal(t, fwktype.Success, announced(), "its admission may be taken back while it waits for its gang")
	p.core.handle = &waitingPods{}
	w.snapshot.until = map[types.UID]time.Time{pod.UID: epoch.Add(time.Minute)}
	require.Equal(t, fwktype.Success, announced(), "it gets its deadline")
}

func TestEveryExtensionPointAsksTheGate(t *testing.T) {
	w := newWorld()
	p := testPlugin(t, w)
	ctx := context.Background()
	free, held := jobPod("free", quotaLabel), jobPod("held", quotaLabel)
	w.snapshot.consumers["free"], w.snapshot.consumers["held"] = true, false

	require.True(t, p.PreEnqueue(ctx, free).IsSuccess())
	require.Equal(t, fwktype.UnschedulableAndUnresolvable, p.PreEnqueue(ctx, held).Code())
	_, status := p.PreFilter(ctx, nil, free, nil)
	require.True(t, status.IsSkip())
	_, status = p.PreFilter(ctx, nil, held, nil)
	require.Equal(t, fwktype.UnschedulableAndUnresolvable, status.Code(), "a status that does not lead to preemption")
	require.True(t, p.Reserve(ctx, nil, free, "n").IsSuccess())
	require.True(t, p.Reserve(ctx, nil, held, "n").IsRejected())

	assumed := free.DeepCopy()
	assumed.Spec.NodeName = "n"
	require.True(t, p.PreBind(ctx, nil, assumed, "n").IsSuccess())
	require.Equal(t, "n", assumed.Spec.NodeName)

	w.snapshot.consumers["free"] = false
	require.True(t, p.Reserve(ctx, nil, free, "n").IsRejected(), "its admission was taken back in between")
	require.True(t, p.PreBind(ctx, nil, assumed, "n").IsRejected(), "and while it waited for its gang")
}

// A pod of a unit whose time is bounded is bound with what is left of it and a margin.
func TestAPodIsBoundWithItsDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		left  time.Duration // zero for no bound
		named *int64
		want  *int64
	}{
		"no bound":                      {},
		"no bound, its own deadline":    {named: ptr.To[int64](5), want: ptr.To[int64](5)},
		"ten minutes are left":          {left: 10 * time.Minute, want: ptr.To[int64](660)},
		"parts of a second":             {left: time.Second + 1, want: ptr.To[int64](62)},
		"a time of its own, shorter":    {left: 10 * time.Minute, named: ptr.To[int64](5), want: ptr.To[int64](5)},
		"a time of its own, longer":     {left: 10 * time.Minute, named: ptr.To[int64](9999), want: ptr.To[int64](660)},
		"its time is over":              {left: -time.Hour, want: ptr.To[int64](60)},
		"longer than Kubernetes counts": {left: 100 * 365 * 24 * time.Hour, want: ptr.To[int64](math.MaxInt32)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			p := testPlugin(t, w)
			pod := jobPod("j", quotaLabel)
			pod.Spec.NodeName, pod.Spec.ActiveDeadlineSeconds = "n", tt.named
			w.snapshot.consumers["j"] = true
			if tt.left != 0 {
				w.snapshot.until = map[types.UID]time.Time{pod.UID: epoch.Add(tt.left)}
			}
			require.True(t, p.PreBind(t.Context(), nil, pod, "n").IsSuccess())
			require.Equal(t, tt.want, pod.Spec.ActiveDeadlineSeconds)
		})
	}
}

func TestOnlyTheOwnLabelsOfAPodWakeIt(t *testing.T) {
	p := testPlugin(t, newWorld())
	events, err := p.EventsToRegister(context.Background())
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, fwktype.ClusterEvent{Resource: fwktype.Pod, ActionType: fwktype.UpdatePodLabel}, events[0].Event)
	pod, other := jobPod("j", nil), jobPod("j", nil)
	other.UID = "other"
	for _, tt := range []struct {
		name string
		obj  any
		want fwktype.QueueingHint
	}{
		{"its own", pod, fwktype.Queue},
		{"another pod", other, fwktype.QueueSkip},
		{"no object", nil, fwktype.QueueSkip},
		{"a nil pod", (*corev1.Pod)(nil), fwktype.QueueSkip},
	} {
		hint, err := events[0].QueueingHintFn(klog.Background(), pod, nil, tt.obj)
		require.NoError(t, err)
		require.Equal(t, tt.want, hint, tt.name)
	}
}

func TestLessIsAStrictWeakOrder(t *testing.T) {
	p := testPlugin(t, newWorld())
	draw := func(t *rapid.T, label string) fwktype.QueuedPodInfo {
		pod := jobPod(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label+" job"), quotaLabel)
		pod.Spec.Priority = ptr.To(int32(rapid.IntRange(0, 2).Draw(t, label+" priority")))
		return &framework.QueuedPodInfo{
			PodInfo:   &framework.PodInfo{Pod: pod},
			Timestamp: epoch.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, label+" time")) * time.Second),
		}
	}
	effort.Check(t, func(t *rapid.T) {
		a, b, c := draw(t, "a"), draw(t, "b"), draw(t, "c")
		require.False(t, p.Less(a, a), "irreflexive")
		require.False(t, p.Less(a, b) && p.Less(b, a), "asymmetric")
		if p.Less(a, b) && p.Less(b, c) {
			require.True(t, p.Less(a, c), "transitive")
		}
		equal := func(x, y fwktype.QueuedPodInfo) bool { return !p.Less(x, y) && !p.Less(y, x) }
		if equal(a, b) && equal(b, c) {
			require.True(t, equal(a, c), "so is being equal")
		}
	})
}

func wiring(t *testing.T, options ...Option) *Wiring {
	t.Helper()
	w, err := NewWiring(options...)
	require.NoError(t, err)
	return w
}

func TestArguments(t *testing.T) {
	args, err := argsFrom(nil)
	require.NoError(t, err)
	require.Equal(t, config.UnknownJobsGate, args.UnknownJobs, "nothing configured, all defaults")
	args.WriteConcurrency = 0
	err = wiring(t).Validate(args)
	require.ErrorContains(t, err, "pluginConfig[JobQueue].args.writeConcurrency")
	_, err = argsFrom(&corev1.Pod{})
	require.ErrorContains(t, err, "want args to be of type JobQueueArgs")
}

func TestWithoutJobQueueThePluginsAreThoseOfKoordinator(t *testing.T) {
	w := wiring(t)
	plugins := w.Plugins()
	require.Contains(t, plugins, Name)
	require.Contains(t, plugins, elasticquota.Name)
	require.Contains(t, plugins, coscheduling.Name)
	require.Nil(t, w.gate())
	// The arguments are refused by Koordinator's own check, or the same one of ours.
	_, err := plugins[coscheduling.Name](context.Background(), nil, nil)
	require.EqualError(t, err, "want args to be of type CoschedulingArgs, got <nil>")
	_, err = plugins[elasticquota.Name](context.Background(), nil, nil)
	require.EqualError(t, err, "want args to be of type ElasticQuotaArgs, got <nil>")
}

func TestNextPodPassesOverPodsThatAreNotAdmitted(t *testing.T) {
	w := newWorld()
	gate := w.gate(t, managedjobs.Jobs{})
	w.snapshot.consumers["held"], w.snapshot.consumers["free"] = false, true
	siblings := []*corev1.Pod{jobPod("held", quotaLabel), jobPod("held", quotaLabel), jobPod("free", quotaLabel)}
	next := func() *corev1.Pod {
		if len(siblings) == 0 {
			return nil
		}
		pod := siblings[0]
		siblings = siblings[1:]
		return pod
	}
	require.Equal(t, types.UID("free"), metav1.GetControllerOf(nextPassing(gate, next)).UID)
	require.Nil(t, nextPassing(gate, next))
	require.Empty(t, w.watched, "looking over siblings does not count as holding them")

	siblings = []*corev1.Pod{jobPod("held", quotaLabel)}
	require.NotNil(t, nextPassing(nil, next), "without a gate nothing is passed over")
	siblings = []*corev1.Pod{jobPod("held", quotaLabel)}
	require.Nil(t, nextPassing(gate, next))
}

func TestGangPodsAreHeldBeforeCoschedulingSeesThem(t *testing.T) {
	w := newWorld()
	gate := w.gate(t, managedjobs.Jobs{})
	// Without Koordinator's plugin behind it, a call that went on would panic.
	c := &Coscheduling{gate: func() *Gate { return gate }}
	gang := jobPod("j", quotaLabel)
	gang.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io": "g"}
	for k, v := range quotaLabel {
		gang.Labels[k] = v
	}
	require.Equal(t, fwktype.UnschedulableAndUnresolvable, c.PreEnqueue(context.Background(), gang).Code())
	w.snapshot.consumers["j"] = true
	require.Panics(t, func() { c.PreEnqueue(context.Background(), gang) })
	require.Panics(t, func() { c.PreEnqueue(context.Background(), jobPod("held", quotaLabel)) },
		"pods without a gang are JobQueue's alone")
}
