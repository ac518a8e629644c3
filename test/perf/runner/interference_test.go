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

package runner

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

func TestSpread(t *testing.T) {
	require.Equal(t, Spread{}, spreadOf(nil))
	require.Equal(t, Spread{Median: 2, Min: 1, Max: 9}, spreadOf([]float64{9, 1, 2}))
	require.Equal(t, Spread{Median: 3, Min: 1, Max: 9}, spreadOf([]float64{9, 4, 1, 2}))
}

func TestLossIsThatOfRoundsThatWereNextToEachOther(t *testing.T) {
	run := func(v variant, round int, perSecond, cpu float64) InterferenceRun {
		return InterferenceRun{
			Variant: v.name, Round: round, PodsPerSecond: perSecond, SchedulerCPUMsPerPod: cpu,
			PacedLatency: workload.Times{P50: 1}, Attempts: Attempts{ByResult: map[string]int{"scheduled": 7, "error": 1}},
		}
	}
	// The machine became slower: the medians say less than the rounds.
	r := InterferenceReport{Runs: []InterferenceRun{
		run(variantOff, 1, 200, 1), run(variantIdle, 1, 190, 1.1),
		run(variantIdle, 2, 95, 2.2), run(variantOff, 2, 100, 2),
		run(variantOff, 3, 50, 4), run(variantIdle, 3, 45, 5),
	}}
	r.summarize()
	require.Equal(t, Spread{Median: 100, Min: 50, Max: 200}, r.Variants[0].PodsPerSecond)
	require.Equal(t, 3, r.Variants[0].NotScheduled)
	loss := r.Losses[0]
	require.Equal(t, "idle", loss.Variant)
	require.Equal(t, []float64{5, 5, 10}, loss.ThroughputByRound)
	require.Equal(t, []float64{10, 10, 25}, loss.SchedulerCPUByRound)
	require.Equal(t, 5.0, loss.ThroughputPercent)
	require.Equal(t, 10.0, loss.SchedulerCPUPercent)
	require.Equal(t, 5.0, loss.ThroughputOfMedians)
	require.True(t, loss.PluginDiffersOnly)
	require.False(t, r.Losses[2].PluginDiffersOnly)

	var table bytes.Buffer
	r.Print(&table)
	require.Contains(t, table.String(), "+5.0 (+5.0, +5.0, +10.0)")
}

// Pending units must never fit while another one holds quota, and always fit alone. The pods must always fit.
func TestUnitsWaitAndPodsFit(t *testing.T) {
	for _, o := range []InterferenceOptions{
		{Pods: 10_000, Groups: 10, QueuesPerGroup: 10, Shapes: 8},
		{Pods: 1, Groups: 1, QueuesPerGroup: 1, Shapes: 1},
		{Pods: 7, Groups: 3, QueuesPerGroup: 5, Shapes: 1000},
	} {
		s := o.sizes()
		free := s.leaf - s.held
		require.GreaterOrEqual(t, free, int64((o.Pods+o.queues()-1)/o.queues()*podCPU))
		shapes := map[string]bool{}
		for i := range 3 * o.Shapes {
			request := s.request(i, o.Shapes)
			shapes[request] = true
			amount := resource.MustParse(request)
			require.Greater(t, amount.MilliValue(), free)
			require.LessOrEqual(t, amount.MilliValue(), s.leaf)
		}
		require.LessOrEqual(t, len(shapes), o.Shapes)
	}
}

func TestInterferenceOptionsThatCannotWork(t *testing.T) {
	good := InterferenceOptions{
		Nodes: 1, Pods: 10, Paced: 2, PacedPerSecond: 1, Groups: 1, QueuesPerGroup: 1, Units: 5, Gated: 10,
		PodsPerJob: 2, Shapes: 1, Rounds: 1,
	}
	require.NoError(t, good.validate())
	require.Equal(t, 5, good.jobs())
	for name, spoil := range map[string]func(*InterferenceOptions){
		"no nodes":             func(o *InterferenceOptions) { o.Nodes = 0 },
		"only paced pods":      func(o *InterferenceOptions) { o.Paced = 9 },
		"more jobs than units": func(o *InterferenceOptions) { o.Gated = 11 },
		"less than none":       func(o *InterferenceOptions) { o.Gated = -1 },
	} {
		bad := good
		spoil(&bad)
		require.Error(t, bad.validate(), name)
	}
}

func TestBindingsAreSeenOnce(t *testing.T) {
	b := newBindings(1)
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	pod := func(node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{NodeName: node}}
	}
	b.take(watch.Added, pod(""), at(1))
	created, bound := b.counts()
	require.Equal(t, []int{1, 0}, []int{created, bound})
	b.take(watch.Modified, pod("n"), at(2))
	b.take(watch.Modified, pod("n"), at(3))
	b.take(watch.Deleted, pod("n"), at(4))
	require.Equal(t, map[string]binding{"a": {created: at(1), bound: at(2)}}, b.result())
	_, bound = b.counts()
	require.Equal(t, 1, bound)
}

// A unit stands for its Job by the Job's name; pods have names of their own.
func TestTheUnitOfAJobHasItsName(t *testing.T) {
	unit := unitObject("waits-000007", "q", 0, "1")
	ownedByJob(unit, 7, "uid")
	metadata, ok := unit["metadata"].(map[string]any)
	require.True(t, ok)
	require.Equal(t, jobName(7), metadata["name"])
	require.Contains(t, string(gatedPodBody("pod-1", "q", 7, "uid", false)), `"name":"pod-1"`)
}
