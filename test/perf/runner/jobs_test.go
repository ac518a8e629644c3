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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

func TestTheJobsOfTheScenario(t *testing.T) {
	o := JobsOptions{Jobs: 800, Cores: 150, RunTime: 12 * time.Second}
	pods, ideal := o.asked()
	require.Equal(t, 1760, pods)
	require.InDelta(t, 140.7, ideal.Seconds(), 0.1)
}

func TestWhatIsSeenOfJobsAndPods(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	job := func(suspend bool, conditions ...batchv1.JobConditionType) *batchv1.Job {
		pods := int32(2)
		j := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: batchv1.JobSpec{Suspend: &suspend, Parallelism: &pods},
		}
		for _, c := range conditions {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue})
		}
		return j
	}
	s := newJobsSeen()
	s.takeJob(watch.Added, job(true, batchv1.JobSuspended), at(10))
	s.takePod(watch.Added, podOf("a", "1", "n", corev1.PodPending), at(25)) // before the Job is seen resumed
	s.takeJob(watch.Modified, job(false), at(30))
	s.takePod(watch.Added, podOf("a", "2", "", corev1.PodPending), at(35))
	require.Equal(t, [3]int{1, 0, 0}, s.counts())
	s.takePod(watch.Modified, podOf("a", "2", "n", corev1.PodPending), at(50))
	s.takePod(watch.Modified, podOf("a", "2", "n", corev1.PodRunning), at(60))
	require.Equal(t, [3]int{1, 1, 0}, s.counts())
	s.takePod(watch.Added, podOf("a", "3", "n", corev1.PodPending), at(70)) // a further pod
	s.takeJob(watch.Modified, job(false, batchv1.JobComplete), at(90))
	s.takeJob(watch.Modified, job(false, batchv1.JobComplete), at(95))
	require.Equal(t, [3]int{1, 1, 1}, s.counts())

	x := &JobsReport{}
	s.summarize(x, began)
	require.Equal(t, 3, x.PodsMade)
	require.Equal(t, 0.1, x.MakespanSeconds)
	require.Equal(t, 40.0, x.CreatedToBound[2].P50)
	require.Equal(t, 20.0, x.ResumedToBound.P50)
}

func TestJobsTable(t *testing.T) {
	x := &JobsReport{
		CreateP50Ms: 120, CreateP50MsWithoutQueue: 100, PodsMade: 4, PodsAsked: 3,
		WatchesClosed: 2, WatchesClosedCreating: 1, WatchesClosedWithoutQueue: 3,
		WatchesClosedOf: map[string]int{"jobs": 2, "pods": 1}, CreatedToBound: map[int]workload.Times{4: {P50: 1500}},
		WritesPerJob: map[string]float64{"admin": 2}, EventsPerJob: map[string]float64{"admin": 1},
	}
	var table bytes.Buffer
	x.Print(&table)
	rows := map[string]string{}
	for line := range strings.Lines(table.String()) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "  ")
		rows[name] = strings.Join(strings.Fields(rest), " ")
	}
	require.Equal(t, "120.0 ms, 100.0 ms (1.20 ×)", rows["create p50 with the queue, without"])
	require.Equal(t, "2, of them 1 while Jobs were created (3 without a queue)",
		rows["watches of Jobs that the API server closed"])
	require.Equal(t, "4, 3", rows["pods made, asked for"])
	require.Equal(t, "1.5 / 0.0 s", rows["created to all pods bound, 4 pods, p50 / p95"])
	require.Equal(t, "2.00, 1.00 of them events", rows["by admin"])
}
