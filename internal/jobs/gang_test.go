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
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

func job(t *testing.T, text string) (*jobkind.Kind, *unstructured.Unstructured) {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	kind, ok := jobkind.Find(jobkind.KindString(object.GroupVersionKind()))
	require.True(t, ok, object.GroupVersionKind())
	return kind, WithChild(kind, object, nil)
}

func TestGangs(t *testing.T) {
	const (
		pyTorch = `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  runPolicy: {schedulingPolicy: {minAvailable: 3}}
  elasticPolicy: {minReplicas: 2}
  pytorchReplicaSpecs:
    Master: {template: {metadata: {labels: {a: b}}}}
    Worker: {replicas: 4, template: {spec: {}}}
`
		mpi = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train}
spec:
  runPolicy: {schedulingPolicy: {minAvailable: 5}}
  mpiReplicaSpecs:
    Launcher: {template: {}}
    Worker: {replicas: 4, template: {}}
`
		ray = `
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: train, labels: {ray.io/gang-scheduling-enabled: ""}}
spec:
  rayClusterSpec:
    headGroupSpec: {template: {}}
    workerGroupSpecs:
    - {groupName: small, replicas: 3, numOfHosts: 2, minReplicas: 1, template: {}}
  submitterPodTemplate: {spec: {}}
`
		jobSet = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - {name: a, replicas: 2, template: {spec: {template: {metadata: {labels: {scheduling.x-k8s.io/pod-group: one}}}}}}
  - {name: b, template: {spec: {parallelism: 3, completions: 6, template: {}}}}
`
		job137 = `
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec: {parallelism: 4, scheduling: {schedulingPolicy: {gang: {minCount: 3}}}, template: {}}
`
		spark = `
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: pi}
spec: {mode: cluster, driver: {}, executor: {instances: 4}}
`
	)
	with := func(text string, value any, path ...string) string {
		_, object := job(t, text)
		require.NoError(t, unstructured.SetNestedField(object.Object, value, path...))
		changed, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		return string(changed)
	}
	whole := func(minimum int32, sets ...string) []Gang { return []Gang{{PodSets: sets, Minimum: minimum}} }
	minAvailable := []string{"spec", "runPolicy", "schedulingPolicy", "minAvailable"}
	worker := func(path ...string) []string {
		return append([]string{"spec", "pytorchReplicaSpecs", "Worker", "template", "spec"}, path...)
	}
	unasked := with(pyTorch, nil, "spec", "runPolicy")
	for name, tc := range map[string]struct {
		text     string
		everyJob bool
		want     []Gang
	}{
		"as many as it asks for": {pyTorch, false, whole(3, "master", "worker")},
		"no more than it can do without, where it does not say": {
			unasked, true, whole(3, "master", "worker"),
		},
		"it does not ask for one": {unasked, false, nil},
		"a PodGroup of Kubernetes 1.36": {
			with(unasked, "workers", worker("schedulingGroup", "podGroupName")...), false, whole(3, "master", "worker"),
		},
		"a PodGroup of Kubernetes 1.35": {
			with(unasked, map[string]any{"name": "w", "podGroup": "workers"}, worker("workloadRef")...), false,
			whole(3, "master", "worker"),
		},
		"a PodGroup of Kubernetes without a name": {
			with(unasked, "", worker("schedulingGroup", "podGroupName")...), false, nil,
		},
		"a PodGroup of Kubernetes that is none": {
			with(unasked, []any{"w"}, worker("workloadRef")...), false, nil,
		},
		"a Job of Kubernetes 1.37":                {job137, false, whole(3, "train")},
		"it needs more pods than it has":          {with(mpi, int64(9), minAvailable...), false, whole(4, "worker")},
		"its launcher cannot be told of the gang": {mpi, false, whole(4, "worker")},
		"one pod is no gang":                      {with(mpi, int64(1), minAvailable...), false, nil},
		"without the submitter":                   {ray, false, whole(7, "head", "small")},
		"a cluster that is scaled needs its least": {
			with(ray, true, "spec", "rayClusterSpec", "enableInTreeAutoscaling"), false, whole(3, "head", "small"),
		},
		"the driver comes first":         {spark, true, nil},
		"templates that name a PodGroup": {jobSet, false, []Gang{{PodGroup: "one", PodSets: []string{"a"}, Minimum: 2}}},
		"and those that name none": {jobSet, true, []Gang{
			{PodGroup: "one", PodSets: []string{"a"}, Minimum: 2}, {PodSets: []string{"b"}, Minimum: 3},
		}},
		"Jobs of a JobSet that wait for others": {
			with(jobSet, "InOrder", "spec", "startupPolicy", "startupPolicyOrder"), true, nil,
		},
		"templates that name a gang of Koordinator": {
			with(pyTorch, "mine", "spec", "pytorchReplicaSpecs", "Master", "template", "metadata", "annotations",
				"gang.scheduling.koordinator.sh/name"), true, nil,
		},
		"templates that name a PodGroup of Koordinator": {
			with(pyTorch, "mine", "spec", "pytorchReplicaSpecs", "Master", "template", "metadata", "labels",
				"pod-group.scheduling.sigs.k8s.io"), true, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, object := job(t, tc.text)
			require.Equal(t, tc.want, Gangs(Open(kind, object), tc.everyJob))
			compact, err := compact.Expand(compact.Job(kind, object.DeepCopy(), false))
			require.NoError(t, err)
			require.Equal(t, tc.want, Gangs(Open(kind, compact), tc.everyJob), "as a cache has it")
		})
	}
}

// TestKeepMaps: a patch that takes the last annotation of ours away leaves those that are not kept.
func TestKeepMaps(t *testing.T) {
	kind := batchJob(t)
	before := object(t, "metadata: {labels: {a: b}, annotations: {c: d}}\n"+
		"spec: {template: {metadata: {labels: {a: b}, annotations: {c: d}}, spec: {}}}")
	after := before.DeepCopy()
	after.SetAnnotations(nil)
	unstructured.RemoveNestedField(after.Object, "spec", "template", "metadata")
	EditOf(kind, after).KeepMaps(Open(kind, before))
	const ofPods = ".spec.template.metadata"
	for _, p := range []string{".metadata.annotations", ofPods + ".annotations", ofPods + ".labels"} {
		require.Equal(t, map[string]any{}, jobkind.Lookup(after.Object, jobkind.PathOf(p)), p)
	}
	require.Equal(t, before.GetLabels(), after.GetLabels())
}
