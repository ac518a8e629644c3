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
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func podOf(job, uid, node string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Labels: map[string]string{batchv1.JobNameLabel: job}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

func TestCensus(t *testing.T) {
	c := newCensus()
	at := time.Now()
	type step struct {
		e    watch.EventType
		pod  *corev1.Pod
		want tally
	}
	for i, s := range []step{
		{watch.Added, podOf("a", "1", "", corev1.PodPending),
			tally{Pods: 1, ActivePods: 1, UnboundPods: 1, JobsWithPods: 1, PodsCreated: 1}},
		{watch.Added, podOf("a", "2", "", corev1.PodPending),
			tally{Pods: 2, ActivePods: 2, UnboundPods: 2, JobsWithPods: 1, PodsCreated: 2}},
		{watch.Modified, podOf("a", "1", "n", corev1.PodPending),
			tally{Pods: 2, ActivePods: 2, UnboundPods: 1, JobsWithPods: 1, PodsCreated: 2}},
		{watch.Modified, podOf("a", "1", "n", corev1.PodSucceeded),
			tally{Pods: 2, ActivePods: 1, UnboundPods: 1, JobsWithPods: 1, PodsCreated: 2}},
		{watch.Deleted, podOf("a", "2", "", corev1.PodPending), tally{Pods: 1, PodsCreated: 2}},
		{watch.Added, podOf(lateJob, "3", "", corev1.PodPending),
			tally{Pods: 2, ActivePods: 1, UnboundPods: 1, JobsWithPods: 1, PodsCreated: 3}},
		{watch.Modified, podOf(lateJob, "3", "n", corev1.PodRunning),
			tally{Pods: 2, ActivePods: 1, JobsWithPods: 1, PodsCreated: 3}},
		{watch.Deleted, podOf("a", "1", "n", corev1.PodSucceeded),
			tally{Pods: 1, ActivePods: 1, JobsWithPods: 1, PodsCreated: 3}},
	} {
		c.takePod(s.e, s.pod, at.Add(time.Duration(i)))
		require.Equal(t, s.want, c.tally(), "step %d", i)
	}
	require.Equal(t, tally{Pods: 2, ActivePods: 2, UnboundPods: 2, JobsWithPods: 1}, c.peak)
	require.Equal(t, at.Add(6), c.lateRunning)

	done := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}
	c.takeJob(watch.Added, done, at)
	done.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	c.takeJob(watch.Modified, done, at)
	c.takeJob(watch.Modified, done, at)
	require.Equal(t, 1, c.tally().Submitted)
	require.Equal(t, 1, c.tally().Finished)
}

func TestTraceIsCompleteInAnyOrder(t *testing.T) {
	suspended, running := true, false
	job := func(suspend *bool) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{Suspend: suspend}}
	}
	unit := func(phase string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "job"}, "status": map[string]any{"phase": phase},
		}}
	}
	var tr tracer
	done := tr.begin("job", 1, true)
	at := time.Now()
	for i, f := range []func(time.Time){
		func(now time.Time) { tr.takeJob(watch.Added, job(&suspended), now) },
		func(now time.Time) { tr.takePod(watch.Added, podOf("other", "9", "n", corev1.PodPending), now) },
		func(now time.Time) { tr.takeUnit(watch.Added, unit("Enqueued"), now) },
		func(now time.Time) { tr.takeJob(watch.Modified, job(&running), now) },
		func(now time.Time) { tr.takePod(watch.Added, podOf("job", "1", "", corev1.PodPending), now) },
		func(now time.Time) { tr.takePod(watch.Modified, podOf("job", "1", "n", corev1.PodPending), now) },
		func(now time.Time) { tr.takePod(watch.Modified, podOf("job", "1", "n", corev1.PodRunning), now) },
	} {
		f(at.Add(time.Duration(i) * time.Millisecond))
		require.Empty(t, done)
	}
	tr.takeUnit(watch.Modified, unit("Dequeued"), at.Add(7*time.Millisecond))
	x := <-done
	v := summarizeTraces("queued", []trace{x})
	require.Equal(t, 5.0, v.CreatedToBound.P50)
	require.Equal(t, []float64{5}, v.Raw)
	sum := 0.0
	for _, s := range v.Steps {
		sum += s.Ms.P50
	}
	require.Equal(t, 5.0, sum)
}

func TestSavingsTable(t *testing.T) {
	ms := 1500.0
	x := &SavingsReport{WindowSeconds: 300, Variants: []*VariantReport{
		{Name: "queue", AllWaited: true, Peak: tally{JobsWithPods: 100}, LateToRunningMs: &ms,
			Processes: []ProcessUse{{Name: "etcd", PeakRSSBytes: 5 << 20}}},
		{Name: "none", Peak: tally{JobsWithPods: 9000}},
	}}
	var table bytes.Buffer
	x.Print(&table)
	rows := map[string]string{}
	for line := range strings.Lines(table.String()) {
		name, rest, _ := strings.Cut(line, "  ")
		rows[name] = strings.Join(strings.Fields(rest), " ")
	}
	require.Equal(t, "100 9000", rows["jobs with pods that have not ended, peak"])
	require.Equal(t, "1.50 > 300", rows["late job submitted to first pod running, s"])
	require.Equal(t, "5 (0) 0 (0)", rows["etcd: peak MiB (before the first job)"])
	content, err := json.Marshal(Sample{Seconds: 1, tally: tally{Pods: 2}})
	require.NoError(t, err)
	require.Contains(t, string(content), `"pods":2`)
}
