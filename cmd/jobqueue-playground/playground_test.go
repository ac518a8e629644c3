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

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/cases"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

func jobsOf(t *testing.T, n int, seed uint64) []cases.Submission {
	t.Helper()
	all, err := workload(n, seed)
	require.NoError(t, err)
	return all
}

func TestWorkloadIsTheSameForTheSameSeed(t *testing.T) {
	require.Equal(t, jobsOf(t, 50, 7), jobsOf(t, 50, 7))
	require.NotEqual(t, jobsOf(t, 50, 7), jobsOf(t, 50, 8))
}

func TestWorkloadIsMixedAndFits(t *testing.T) {
	limits := map[string]float64{"team-research": 24, "team-platform": 24, "employees": 20, "interns": 12, gpuQuota: 4}
	total := map[string]float64{}
	names := map[string]bool{}
	for _, s := range jobsOf(t, 300, 1) {
		job := &batchv1.Job{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(s.Object.Object, job))
		quota := job.Labels[v1alpha1.LabelQuotaName]
		requests, name := job.Spec.Template.Spec.Containers[0].Resources.Requests, corev1.ResourceCPU
		if quota == gpuQuota {
			name = cardName
		}
		amount := requests[name]
		cores := amount.AsApproximateFloat64() * float64(*job.Spec.Completions)
		require.LessOrEqual(t, cores, limits[quota], "a job that can never fit would never end")
		total[quota] += cores
		require.False(t, names[job.Namespace+"/"+job.Name])
		names[job.Namespace+"/"+job.Name] = true
		require.Equal(t, quota, job.Spec.Template.Labels[v1alpha1.LabelQuotaName])
	}
	for quota, limit := range limits {
		require.Greater(t, total[quota], 3*limit, "more than fits at once in %s", quota)
	}
}

func TestPercentile(t *testing.T) {
	require.Zero(t, percentile(nil, 50))
	ten := make([]time.Duration, 10)
	for i := range ten {
		ten[i] = time.Duration(i+1) * time.Second
	}
	require.Equal(t, 5*time.Second, percentile(ten, 50))
	require.Equal(t, 10*time.Second, percentile(ten, 95))
	require.Equal(t, time.Second, percentile(ten[:1], 95))
}

func sampleView(t *testing.T) *view {
	t.Helper()
	v := newView(nil)
	take := func(object any) { require.NoError(t, v.take(observer.Change{Object: object})) }
	for name, parent := range map[string]string{"team-research": "department-research", "department-research": ""} {
		quota := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(`
kind: ElasticQuota
metadata: {name: `+name+`, labels: {quota.scheduling.koordinator.sh/parent: "`+parent+`"}}
spec: {max: {cpu: 24}}
`), &quota.Object))
		take(quota)
	}
	for _, seed := range []struct {
		name, phase, reason, asks string
	}{
		{"running", "Running", "", "8"}, {"waiting", "Enqueued", "QuotaExceeded", "20"},
		{"over", "Enqueued", "ExceedsMax", "8"},
	} {
		u := &v1alpha1.QueueUnit{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(`
metadata:
  namespace: research
  name: `+seed.name+`
  uid: unit-`+seed.name+`
  labels: {quota.scheduling.koordinator.sh/name: team-research}
spec:
  queue: team-research
  request: {cpu: "`+seed.asks+`"}
  consumerRef: {uid: job-`+seed.name+`}
status:
  phase: `+seed.phase+`
  conditions:
  - {type: QuotaReserved, status: "False", reason: "`+seed.reason+`", message: "needs 8, free 2"}
`), u))
		take(u)
		require.Equal(t, seed.reason == "ExceedsMax", v.checks.UnitFor("job-"+seed.name).Parked)
		require.Equal(t, seed.phase == "Running", v.checks.UnitFor("job-"+seed.name).Admitted)
	}
	pod := &corev1.Pod{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
metadata:
  namespace: research
  name: p
  uid: pod
  labels: {quota.scheduling.koordinator.sh/name: team-research}
  ownerReferences:
  - {apiVersion: batch/v1, kind: Job, name: running, uid: job-running, controller: true}
spec:
  nodeName: node-0001
  containers:
  - {name: main, resources: {requests: {cpu: "2"}}}
`), pod))
	take(pod)
	return v
}

// The order in which the answer to a submission and the sight of its admission come does not matter.
func TestWaits(t *testing.T) {
	v := sampleView(t)
	for _, name := range []string{"running", "waiting"} {
		v.submitted(object("Job", name, nil), nil, time.Now())
	}
	require.Len(t, v.waits()["team-research"], 1)
	u := &v1alpha1.QueueUnit{}
	u.UID, u.Spec.Queue, u.Status.Phase = "unit-waiting", "team-research", v1alpha1.PhaseDequeued
	u.Spec.ConsumerRef = &corev1.ObjectReference{UID: "job-waiting"}
	require.NoError(t, v.take(observer.Change{Object: u}))
	require.Len(t, v.waits()["team-research"], 2)
	require.NoError(t, v.take(observer.Change{Object: u, Deleted: true}))
	require.Empty(t, v.checks.UnitFor("job-waiting"))
	done, _, events, violations := v.verdict()
	require.Zero(t, done)
	require.Equal(t, 8, events)
	require.NotEmpty(t, violations)
	require.Equal(t, checker.Lost, violations[len(violations)-1].Rule)
}

func TestBoard(t *testing.T) {
	v := sampleView(t)
	b := v.board(time.Now(), map[string][]place{"team-research": {
		{position: 1, key: "research/running"}, // the scheduler's answer is older than the watch
		{position: 2, key: "research/waiting"},
	}})
	row := b.queues[0]
	require.Equal(t, "team-research", row.name)
	require.Equal(t, []int{2, 1, 1, 0}, []int{row.pending, row.admitted, row.running, row.done})
	require.Equal(t, []quotaBar{{name: "team-research", used: 2, promised: 6, max: 24}}, row.quotas)
	require.Len(t, row.waiting, 1)
	require.Equal(t, 2, row.waiting[0].position)
	require.Equal(t, "QuotaExceeded: team-research has 16.0 of 24 cores free, 4.0 are missing", row.waiting[0].reason)

	text := strings.Join(b.lines(screen.Screen{}), "\n")
	require.Contains(t, text, "[##++++++................]  8.0 of 24  team-research")
	require.Contains(t, text, "    2. waiting ")
	require.NotContains(t, text, "\x1b")
	require.Contains(t, text, "no violation")

	b.violations = []checker.Violation{{Rule: checker.RanTwice, Subject: "lab/x", Message: "why"}}
	require.Contains(t, strings.Join(b.lines(screen.Screen{}), "\n"), "VIOLATIONS 1, the last: RanTwice lab/x: why")
}

func TestSummaryNamesViolations(t *testing.T) {
	text := strings.Join(summary(screen.Screen{}, verdict{
		done: 2, submitted: 3, allPods: 7, peak: 4,
		violations: []checker.Violation{{Rule: checker.Lost, Subject: "lab/x", Message: "did not complete"}},
		waits:      map[string][]time.Duration{"shared-lab": {time.Second, 3 * time.Second}},
	}), "\n")
	require.Contains(t, text, "2 of 3, lost 1")
	require.Contains(t, text, "Lost lab/x: did not complete")
	require.Contains(t, text, "shared-lab     p50   1.0s  p95   3.0s")
}

func TestVisiblePlaces(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		if r.URL.Path == "/apis/visibility.koord-queue.x-k8s.io/v1alpha1/queues/shared-lab/waitingunits" {
			_, _ = w.Write([]byte(`{"items":[{"position":1,"namespace":"lab","name":"x",` +
				`"reason":"QuotaExceeded","message":"m"}]}`))
			return
		}
		_, _ = w.Write([]byte(`{"items":[]}`))
	}))
	defer server.Close()
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
	require.Equal(t, map[string][]place{
		"shared-lab": {{position: 1, key: "lab/x", reason: "QuotaExceeded", message: "m"}},
	}, visiblePlaces(t.Context(), client.RESTClient()))

	status = http.StatusServiceUnavailable
	require.Nil(t, visiblePlaces(t.Context(), client.RESTClient()), "the table falls back to the API server")
}
