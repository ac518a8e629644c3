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

package jobs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

func partialJob(t *testing.T, kind, text string) (*jobkind.Kind, *unstructured.Unstructured) {
	t.Helper()
	k, ok := jobkind.Find(kind)
	require.True(t, ok)
	job := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &job.Object))
	return k, job
}

const partialTemplate = "template: {spec: {containers: [{name: c}]}}"

// TestHowFewPodsAJobCanDoWith and what is written into it when it is admitted with three, where it may be.
func TestHowFewPodsAJobCanDoWith(t *testing.T) {
	job := func(annotations, spec string) string {
		return "{apiVersion: batch/v1, kind: Job, metadata: {name: j, annotations: {" + annotations + "}}, spec: {" + spec +
			", template: {spec: {template: {}}}}}"
	}
	const ours, kueues = `koord-queue/min-parallelism: "2"`, `kueue.x-k8s.io/job-min-parallelism: "2"`
	ray := func(annotations, spec, group string) string {
		return "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r, annotations: {" + annotations + "}}, spec: {" +
			spec + "headGroupSpec: {" + partialTemplate + "}, workerGroupSpecs: [{groupName: g, " + group + ", " +
			partialTemplate + "}]}}"
	}
	const asks = `koord-queue/partial-admission: "true"`
	torch := func(policy string) string {
		return "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: p}, spec: {" + policy +
			"pytorchReplicaSpecs: {Master: {replicas: 1, " + partialTemplate + "}, Worker: {replicas: 4, " + partialTemplate +
			"}}}}"
	}
	for name, tc := range map[string]struct {
		kind, text string
		set        string
		least      *int32
		// now is what the field has that the number is written to, along that which goes along with it.
		now, along int64
	}{
		"a Job that says nothing": {kind: "Job.v1.batch", text: job("", "parallelism: 5")},
		"a Job":                   {kind: "Job.v1.batch", text: job(ours, "parallelism: 5"), least: ptr.To(int32(2)), now: 3},
		"as Kueue says it": {kind: "Job.v1.batch", text: job(kueues, "parallelism: 5"),
			least: ptr.To(int32(2)), now: 3},
		"with as many completions": {kind: "Job.v1.batch", text: job(ours, "parallelism: 5, completions: 5"),
			least: ptr.To(int32(2)), now: 3, along: 5},
		"Indexed": {kind: "Job.v1.batch", text: job(ours, "parallelism: 5, completions: 5, completionMode: Indexed"),
			least: ptr.To(int32(2)), now: 3, along: 3},
		"Indexed with more completions": {kind: "Job.v1.batch",
			text:  job(ours, "parallelism: 5, completions: 9, completionMode: Indexed"),
			least: ptr.To(int32(2)), now: 3, along: 9},
		"as few as it has": {kind: "Job.v1.batch", text: job(ours, "parallelism: 2")},
		"no more is left":  {kind: "Job.v1.batch", text: job(ours, "parallelism: 5, completions: 2")},
		"a cluster":        {kind: "RayCluster.v1.ray.io", text: ray("", "", "replicas: 5, minReplicas: 1"), set: "g"},
		"a cluster that asks": {kind: "RayCluster.v1.ray.io",
			text: ray(asks, "", "replicas: 5, minReplicas: 1"), set: "g", least: ptr.To(int32(1)), now: 3},
		"one that scales itself": {kind: "RayCluster.v1.ray.io",
			text: ray(asks, "enableInTreeAutoscaling: true, ", "replicas: 5, minReplicas: 1"), set: "g",
			least: ptr.To(int32(1)), now: 3},
		"two hosts for each replica": {kind: "RayCluster.v1.ray.io",
			text: ray(asks, "", "replicas: 5, minReplicas: 0, numOfHosts: 2"), set: "g", least: ptr.To(int32(2)), now: 1},
		"an elastic PyTorchJob": {kind: "PyTorchJob.v1.kubeflow.org", text: torch("elasticPolicy: {minReplicas: 2}, "),
			set: "worker", least: ptr.To(int32(2)), now: 3},
		"another PyTorchJob": {kind: "PyTorchJob.v1.kubeflow.org", text: torch(""), set: "worker"},
	} {
		t.Run(name, func(t *testing.T) {
			k, job := partialJob(t, tc.kind, tc.text)
			sets, err := Open(k, job).podSets()
			require.NoError(t, err)
			if tc.set == "" {
				tc.set = sets[0].Called
			}
			for i := range sets {
				var set PodSet
				set.Count, set.MinCount, err = sets[i].Counts()
				require.NoError(t, err)
				require.NoError(t, sets[i].readPartial(&set))
				if sets[i].Called == tc.set {
					require.Equal(t, tc.least, set.Least)
				} else {
					require.Nil(t, set.Least)
				}
			}
			if tc.least == nil {
				return
			}
			before := job.DeepCopy()
			require.NoError(t, EditOf(k, job).SetCounts(map[string]int32{tc.set: 3, "head": 0, "no such": 1}))
			now, along := countsOf(t, k, job, tc.set)
			require.Equal(t, tc.now, now)
			require.Equal(t, tc.along, along)
			written := job.DeepCopy()
			require.NoError(t, EditOf(k, job).SetCounts(map[string]int32{tc.set: 3}), "it is the same when it is done again")
			require.Equal(t, written.Object, job.Object)
			require.True(t, EditOf(k, job).RestoreCounts())
			require.False(t, EditOf(k, job).RestoreCounts())
			require.Equal(t, before.Object, job.Object)
			require.NoError(t, EditOf(k, job).SetCounts(map[string]int32{tc.set: 99}))
			require.Equal(t, before.Object, job.Object, "it has no more than it asks for")
		})
	}
}

// countsOf are the numbers in the fields that are written; zero where there is none.
func countsOf(t *testing.T, k *jobkind.Kind, job *unstructured.Unstructured, set string) (now, along int64) {
	t.Helper()
	sets, err := Open(k, job).podSets()
	require.NoError(t, err)
	for i := range sets {
		if s := &sets[i]; s.Called == set {
			now, _, _ = s.Number(s.Partial.Field)
			if len(s.Partial.Along.Path) > 0 {
				along, _, _ = s.Number(s.Partial.Along)
			}
		}
	}
	return now, along
}

// TestAnIndexedJobKeepsItsIndexes: once some are complete, the rest has to run as it is.
func TestAnIndexedJobKeepsItsIndexes(t *testing.T) {
	k, job := partialJob(t, "Job.v1.batch", `{metadata: {name: j, annotations: {koord-queue/min-parallelism: "1"}},
		spec: {parallelism: 5, completions: 5, completionMode: Indexed, `+partialTemplate+`}, status: {succeeded: 1}}`)
	sets, err := Open(k, job).PodSets()
	require.NoError(t, err)
	require.Nil(t, sets[0].Least)
	require.NoError(t, unstructured.SetNestedField(job.Object, int64(9), "spec", "completions"))
	sets, err = Open(k, job).PodSets()
	require.NoError(t, err)
	require.Equal(t, ptr.To(int32(1)), sets[0].Least, "pods are not indexes then")
}

// TestMorePodsAtTheLeastThanInAll: the job is admitted whole, and the words name the field.
func TestMorePodsAtTheLeastThanInAll(t *testing.T) {
	const text = "%s asks for at least 11 pods of %s, and the job has 10"
	k, job := partialJob(t, "Job.v1.batch", `{metadata: {name: j, annotations: {koord-queue/min-parallelism: "11"}},
		spec: {parallelism: 10, `+partialTemplate+`}}`)
	sets, err := Open(k, job).PodSets()
	require.NoError(t, err)
	require.Nil(t, sets[0].Least)
	require.Equal(t, fmt.Sprintf(text, "annotation koord-queue/min-parallelism", "j"), sets[0].Beyond)
	k, job = partialJob(t, "PyTorchJob.v1.kubeflow.org", `{metadata: {name: j}, spec: {elasticPolicy: {minReplicas: 11},
		pytorchReplicaSpecs: {Worker: {replicas: 10, `+partialTemplate+`}}}}`)
	sets, err = Open(k, job).PodSets()
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf(text, ".spec.elasticPolicy.minReplicas", "worker"), sets[0].Beyond)
}

// TestForgedRecordsOfCounts: only a number of pods is believed, and only while the job has the written number.
func TestForgedRecordsOfCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		record string
		want   int64
	}{
		"ours":               {`{"main":{"whole":5,"now":3}}`, 5},
		"changed meanwhile":  {`{"main":{"whole":5,"now":2}}`, 3},
		"less than it has":   {`{"main":{"whole":2,"now":3}}`, 3},
		"more than can be":   {`{"main":{"whole":2147483648,"now":3}}`, 3},
		"negative":           {`{"main":{"whole":5,"now":-3}}`, 3},
		"along what is not":  {`{"main":{"whole":5,"now":3,"along":true}}`, 3},
		"of others":          {`{"other":{"whole":5,"now":3}}`, 3},
		"not a record":       {`[5]`, 3},
		"not a number":       {`{"main":{"whole":"5","now":3}}`, 3},
		"no JSON":            {`{`, 3},
		"nothing":            {``, 3},
		"fields of somebody": {`{"main":{"whole":5,"now":3,"field":".spec.suspend"}}`, 5},
	} {
		t.Run(name, func(t *testing.T) {
			k, job := partialJob(t, "Job.v1.batch",
				`{metadata: {name: main}, spec: {suspend: true, parallelism: 3, completions: 9, `+partialTemplate+`}}`)
			job.SetAnnotations(map[string]string{v1alpha1.AnnotationWholeCounts: tc.record})
			require.True(t, EditOf(k, job).RestoreCounts())
			now, along := countsOf(t, k, job, "main")
			require.Equal(t, tc.want, now)
			require.EqualValues(t, 9, along)
			require.Empty(t, job.GetAnnotations())
			require.True(t, Open(k, job).Suspended())
		})
	}
}

func TestMalformedLeastNumbersOfPods(t *testing.T) {
	for _, text := range []string{"", "0", "-1", "two", "1.5", "99999999999"} {
		k, job := partialJob(t, "Job.v1.batch", `{metadata: {name: j}, spec: {parallelism: 3, `+partialTemplate+`}}`)
		job.SetAnnotations(map[string]string{v1alpha1.AnnotationMinParallelism: text})
		_, err := Open(k, job).PodSets()
		require.ErrorIs(t, err, podtemplate.ErrMalformed, text)
	}
}

// TestTheGangFollowsTheCount: the gang has the pods with which the job is resumed.
func TestTheGangFollowsTheCount(t *testing.T) {
	k, job := partialJob(t, "Job.v1.batch", `{metadata: {name: j, annotations: {koord-queue/min-parallelism: "2"}},
		spec: {suspend: true, parallelism: 5, `+partialTemplate+`}}`)
	require.EqualValues(t, 5, Gangs(Open(k, job), true)[0].Minimum)
	sets, err := Open(k, job).podSets()
	require.NoError(t, err)
	require.NoError(t, EditOf(k, job).SetCounts(map[string]int32{sets[0].Called: 3}))
	require.EqualValues(t, 3, Gangs(Open(k, job), true)[0].Minimum)
}

// TestCachedJobsSayHowFewPods: what is kept of a job has the annotations and fields.
func TestCachedJobsSayHowFewPods(t *testing.T) {
	k, job := partialJob(t, "Job.v1.batch", `{apiVersion: batch/v1, kind: Job, metadata: {name: j, annotations:
		{kueue.x-k8s.io/job-min-parallelism: "2", other: x}}, spec: {parallelism: 5, completions: 5,
		completionMode: Indexed, `+partialTemplate+`}}`)
	kept, err := compact.Expand(compact.Job(k, job, false))
	require.NoError(t, err)
	sets, err := Open(k, kept).PodSets()
	require.NoError(t, err)
	require.Equal(t, ptr.To(int32(2)), sets[0].Least)
	require.NotContains(t, kept.GetAnnotations(), "other")
	require.NoError(t, EditOf(k, kept).SetCounts(map[string]int32{sets[0].Name: 3}))
	_, along := countsOf(t, k, kept, sets[0].Name)
	require.EqualValues(t, 3, along)
}
