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

package compact

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/jobobjects"
)

// ordinary is a job as the API server sends it, %s its name.
const ordinary = `
apiVersion: batch/v1
kind: Job
metadata:
  name: %[1]s
  namespace: team-of-somebody
  uid: 5c8f7a52-0000-4000-8000-%[1]s
  resourceVersion: "123456789"
  generation: 2
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {quota.scheduling.koordinator.sh/name: team-of-somebody, app: training, stage: production}
  annotations:
    koord-queue/queue-name: everybody
    scheduling.x-k8s.io/priority: "7"
    kubectl.kubernetes.io/last-applied-configuration: '{"apiVersion":"batch/v1","kind":"Job"}'
    notes: for nobody who schedules
  managedFields: [{manager: kubectl, operation: Update, fieldsType: FieldsV1, fieldsV1: {f:spec: {}}}]
  finalizers: [example.com/keep]
spec:
  suspend: true
  parallelism: 4
  completions: 8
  backoffLimit: 6
  completionMode: NonIndexed
  podReplacementPolicy: TerminatingOrFailed
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: 5c8f7a52-0000-4000-8000-000000000000}}
  template:
    metadata:
      labels: {app: training}
      annotations: {notes: of the pods, koord-queue/related-podset-name: main}
    spec:
      restartPolicy: Never
      nodeSelector: {pool: gpu}
      priorityClassName: high
      containers:
      - name: main
        image: registry.example.com/training/image@sha256:00000000000000000000000000000000000000000000000000000000
        command: [python, -m, train, --epochs=10]
        env: [{name: TOKEN, value: secret}, {name: RANK, value: "0"}]
        resources: {requests: {cpu: "4", memory: 16Gi, nvidia.com/gpu: "1"}, limits: {nvidia.com/gpu: "1"}}
status:
  active: 0
  ready: 0
  uncountedTerminatedPods: {succeeded: [a, b]}
  conditions: [{type: Suspended, status: "True", reason: JobSuspended, message: Job suspended}]
`

func jobFrom(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	job := &unstructured.Unstructured{}
	require.NoError(t, job.UnmarshalJSON(raw))
	return job
}

// TestCompactJobsSayWhatIsRead: of a compact job everything that is read is what it is of the whole one, and nothing
// else is kept.
func TestCompactJobsSayWhatIsRead(t *testing.T) {
	kind := jobobjects.BatchJob(t)
	whole, same := jobFrom(t, fmt.Sprintf(ordinary, "j")), jobFrom(t, fmt.Sprintf(ordinary, "j"))
	compact := Job(kind, same, false)
	require.Equal(t, "j", compact.GetName())
	require.Equal(t, whole.GetUID(), compact.GetUID())
	require.Equal(t, whole.GetResourceVersion(), compact.GetResourceVersion())
	require.Same(t, compact, Job(kind, compact, false), "what is compact stays so")
	require.Equal(t, compact, compact.DeepCopy())
	job, err := Expand(compact)
	require.NoError(t, err)
	for _, p := range pathsOf(kind) {
		if value := jobkind.Lookup(whole.Object, p); len(p) > 0 && p[len(p)-1] != "template" {
			require.Equal(t, value, jobkind.Lookup(job.Object, p), p)
		}
	}
	require.Equal(t, whole.GetLabels(), job.GetLabels())
	require.Equal(t, map[string]string{
		"koord-queue/queue-name": "everybody", "scheduling.x-k8s.io/priority": "7",
	}, job.GetAnnotations())
	require.Equal(t, whole.GetCreationTimestamp(), job.GetCreationTimestamp())
	text, err := json.Marshal(job.Object)
	require.NoError(t, err)
	for _, gone := range []string{"secret", "notes", "managedFields", "uncounted", "python", "last-applied"} {
		require.NotContains(t, string(text), gone)
	}
	reducedOf := func(job *unstructured.Unstructured) string {
		sets, err := jobs.Open(kind, job).PodSets()
		require.NoError(t, err)
		raw, err := podtemplate.Reduce(sets[0].Raw)
		require.NoError(t, err)
		return string(raw)
	}
	require.Equal(t, reducedOf(whole), reducedOf(job))
	again, err := Expand(job)
	require.NoError(t, err)
	require.Same(t, job, again)

	keepsAll, err := Expand(Job(kind, jobFrom(t, fmt.Sprintf(ordinary, "j")), true))
	require.NoError(t, err)
	template := jobkind.PathOf(".spec.template")
	require.Equal(t, jobkind.Lookup(whole.Object, template), jobkind.Lookup(keepsAll.Object, template))
}

// TestCompactJobsOfEachKindNameTheirScheduler: pods of a compact job name the same scheduler as those of the whole job.
// That holds for each recorded job, even if a field outside of the template names the scheduler.
func TestCompactJobsOfEachKindNameTheirScheduler(t *testing.T) {
	files, err := filepath.Glob("../testdata/kinds/*/suspended-at-creation.yaml")
	require.NoError(t, err)
	outside := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		whole := jobFrom(t, string(text))
		for k := range jobkind.Builtin() {
			kind := &jobkind.Builtin()[k]
			if kind.GVK != whole.GroupVersionKind() {
				continue
			}
			for i := range kind.Sets {
				s := &kind.Sets[i]
				at := s.SchedulerName.Path
				if len(at) == 0 {
					continue
				}
				if !s.SchedulerName.OfJob {
					at = append(s.Path.Child(), at...)
				}
				outside++
				require.NoError(t, unstructured.SetNestedField(whole.Object, "mine", at...))
			}
			wants, err := jobs.Open(kind, whole).PodSets()
			require.NoError(t, err, file)
			job, err := Expand(Job(kind, whole.DeepCopy(), false))
			require.NoError(t, err)
			has, err := jobs.Open(kind, job).PodSets()
			require.NoError(t, err, file)
			require.Len(t, has, len(wants), file)
			for i := range wants {
				require.Equal(t, wants[i].Template.Spec.SchedulerName, has[i].Template.Spec.SchedulerName, file)
			}
		}
	}
	require.NotZero(t, outside)
}

// TestNobodyForgesACompactJob: what somebody writes into the field is dropped like any other.
func TestNobodyForgesACompactJob(t *testing.T) {
	kind := jobobjects.BatchJob(t)
	job := jobFrom(t, fmt.Sprintf(ordinary, "j"))
	job.Object[compactKey] = `{"spec":{"suspend":false}}`
	expanded, err := Expand(Job(kind, job, false))
	require.NoError(t, err)
	require.True(t, jobs.Open(kind, expanded).Suspended())
	require.NotContains(t, expanded.Object, compactKey)
}

// TestALargeJobIsNotKept (M1): whatever its author makes large, the cache keeps its name.
func TestALargeJobIsNotKept(t *testing.T) {
	kind := jobobjects.BatchJob(t)
	large := strings.Repeat("x", 1<<20)
	for name, enlarge := range map[string]func(job *unstructured.Unstructured){
		"label": func(job *unstructured.Unstructured) { job.SetLabels(map[string]string{"a": large}) },
		"selector": func(job *unstructured.Unstructured) {
			set(t, job, large, "spec", "template", "spec", "nodeSelector", "a")
		},
		"annotation": func(job *unstructured.Unstructured) {
			job.SetAnnotations(map[string]string{"koord-queue/queue-name": large})
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobFrom(t, fmt.Sprintf(ordinary, "j"))
			enlarge(job)
			compact := Job(kind, job, false)
			text, err := json.Marshal(compact.Object["metadata"])
			require.NoError(t, err)
			require.Less(t, len(text), 300)
			require.Empty(t, compact.Object[compactKey])
			_, err = Expand(compact)
			require.ErrorIs(t, err, ErrNotKept)
		})
	}
	for name, enlarge := range map[string]func(job *unstructured.Unstructured){
		"image": func(job *unstructured.Unstructured) { set(t, job, large, "spec", "template", "spec", "containers2") },
		"annotation": func(job *unstructured.Unstructured) {
			job.SetAnnotations(map[string]string{"example.com/notes": large})
		},
	} {
		t.Run(name+" that nobody reads", func(t *testing.T) {
			job := jobFrom(t, fmt.Sprintf(ordinary, "j"))
			enlarge(job)
			_, err := Expand(Job(kind, job, false))
			require.NoError(t, err)
		})
	}
}

func set(t *testing.T, job *unstructured.Unstructured, value any, fields ...string) {
	require.NoError(t, unstructured.SetNestedField(job.Object, value, fields...))
}

// BenchmarkBytesPerCachedJob measures what a cache holds of jobs, whole and compact, as they are after a collection.
func BenchmarkBytesPerCachedJob(b *testing.B) {
	large := strings.Repeat("x", 1<<20)
	for name, keep := range map[string]func(*unstructured.Unstructured) *unstructured.Unstructured{
		"compact, of a job of 1 MB": func(job *unstructured.Unstructured) *unstructured.Unstructured {
			job.SetLabels(map[string]string{"large": large})
			return Job(jobobjects.BatchJob(b), job, false)
		},
		"whole": func(job *unstructured.Unstructured) *unstructured.Unstructured {
			job.SetManagedFields(nil)
			return job
		},
		"compact": func(job *unstructured.Unstructured) *unstructured.Unstructured {
			return Job(jobobjects.BatchJob(b), job, false)
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(bytesPerJob(b, keep), "B/job")
			}
		})
	}
}

// TestBytesPerCachedJob: an ordinary job takes at most 4 KiB of a cache.
func TestBytesPerCachedJob(t *testing.T) {
	kind := jobobjects.BatchJob(t)
	perJob := bytesPerJob(t, func(job *unstructured.Unstructured) *unstructured.Unstructured {
		return Job(kind, job, false)
	})
	require.Less(t, perJob, 4096.0)
}

func bytesPerJob(t testing.TB, keep func(*unstructured.Unstructured) *unstructured.Unstructured) float64 {
	const n = 2000
	text, err := yaml.YAMLToJSON([]byte(fmt.Sprintf(ordinary, "NAME")))
	require.NoError(t, err)
	kept := make([]*unstructured.Unstructured, 0, n)
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	for i := range n {
		job := &unstructured.Unstructured{}
		raw := strings.ReplaceAll(string(text), "NAME", fmt.Sprintf("%012d", i))
		require.NoError(t, job.UnmarshalJSON([]byte(raw)))
		kept = append(kept, keep(job))
	}
	used := inUse() - before
	runtime.KeepAlive(kept)
	return float64(used) / n
}
