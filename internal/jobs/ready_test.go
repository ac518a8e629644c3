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
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

// A failure that the operator tries again is no end.
func TestSparkApplicationsEnd(t *testing.T) {
	kind, ok := jobkind.Find("SparkApplication.v1beta2.sparkoperator.k8s.io")
	require.True(t, ok)
	for state, want := range map[string]bool{
		"": false, "SUBMITTED": false, "RUNNING": false, "SUBMISSION_FAILED": false, "FAILING": false,
		"PENDING_RERUN": false, "FAILED": true,
	} {
		_, ended := Open(kind, object(t, `{status: {applicationState: {state: "`+state+`"}}}`)).Ended()
		require.Equal(t, want, ended, state)
	}
}

// In the mode SidecarMode KubeRay puts the submitter into the head, and nothing else submits.
func TestSubmitterBesideTheHead(t *testing.T) {
	kind, ok := jobkind.Find("RayJob.v1.ray.io")
	require.True(t, ok)
	sets, err := Open(kind, object(t, `
spec:
  submissionMode: SidecarMode
  rayClusterSpec:
    headGroupSpec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: 300m, memory: 512Mi}}}]}}}
`)).PodSets()
	require.NoError(t, err)
	require.Len(t, sets, 1)
	request, err := (&podrequest.Creation{}).Request(sets[0].Template)
	require.NoError(t, err)
	require.Equal(t, "800m 712Mi", request.Cpu().String()+" "+request.Memory().String())
}

// KubeRay says of a RayJob that it refuses that it is ValidationFailed, and does nothing more.
func TestRayJobsEnd(t *testing.T) {
	kind, ok := jobkind.Find("RayJob.v1.ray.io")
	require.True(t, ok)
	for state, want := range map[string]bool{
		"": false, "Initializing": false, "Running": false, "Retrying": false, "Suspended": false,
		"Failed": true, "ValidationFailed": true,
	} {
		_, ended := Open(kind, object(t, `{status: {jobDeploymentStatus: "`+state+`"}}`)).Ended()
		require.Equal(t, want, ended, state)
	}
}

// A pod of a group that has ended well is ready enough.
func TestEndedPodsOfAGroupAreReady(t *testing.T) {
	kind, ok := jobkind.Find("Pod.v1.")
	require.True(t, ok)
	for phaseOfFirst, want := range map[corev1.PodPhase]bool{corev1.PodSucceeded: true, corev1.PodPending: false} {
		group, err := podgroup.Of([]*corev1.Pod{
			grouped(1, "g", "2", phase(phaseOfFirst)), grouped(2, "g", "2", onNode),
		})
		require.NoError(t, err)
		require.Equal(t, want, Open(kind, group).AllReady(2), phaseOfFirst)
	}
}

// KubeRay makes no pod of a head without containers, so the workers would wait for it and hold quota.
func TestAHeadWithoutContainers(t *testing.T) {
	const workers = "workerGroupSpecs: [{groupName: g, replicas: 8, template: {spec: {containers: [{name: c}]}}}]"
	for _, scales := range []string{"", "enableInTreeAutoscaling: true, "} {
		for _, head := range []string{"{}", "{containers: []}"} {
			kind, ok := jobkind.Find("RayCluster.v1.ray.io")
			require.True(t, ok)
			cluster := "spec: {" + scales + "headGroupSpec: {template: {spec: " + head + "}}, " + workers + "}"
			_, err := Open(kind, object(t, cluster)).PodSets()
			require.ErrorIs(t, err, podtemplate.ErrMalformed, "%s%s", scales, head)
		}
	}
}

// Every pod set is told of its own pods where the job tells them apart.
func TestReadyBySet(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, job string
		sets      []PodSetSize
		want      []int64
		all       bool
	}{
		"workers without their master": {"PyTorchJob.v1.kubeflow.org",
			`status: {replicaStatuses: {Master: {}, Worker: {active: 3}}}`,
			[]PodSetSize{{"master", 1}, {"worker", 3}}, []int64{0, 3}, false},
		"a master that has ended": {"PyTorchJob.v1.kubeflow.org",
			`status: {replicaStatuses: {Master: {succeeded: 1}, Worker: {active: 3}}}`,
			[]PodSetSize{{"master", 1}, {"worker", 3}}, []int64{0, 3}, true},
		"more than were admitted": {"TFJob.v1.kubeflow.org",
			`status: {replicaStatuses: {PS: {active: 1}, Worker: {active: 5}}}`,
			[]PodSetSize{{"ps", 2}, {"worker", 3}}, []int64{1, 3}, true},
		"the second replicated job alone": {"JobSet.v1alpha2.jobset.x-k8s.io", `
spec:
  replicatedJobs:
  - {name: a, replicas: 2, template: {spec: {parallelism: 3}}}
  - {name: b, replicas: 2, template: {spec: {parallelism: 4, completions: 2}}}
status:
  replicatedJobsStatus:
  - {name: a, ready: 0, active: 2, succeeded: 0, failed: 0, suspended: 0}
  - {name: b, ready: 1, active: 2, succeeded: 0, failed: 0, suspended: 0}`,
			[]PodSetSize{{"a", 6}, {"b", 4}}, []int64{0, 2}, false},
		"workers of two groups, no head": {"RayCluster.v1.ray.io",
			`status: {state: ready, readyWorkerReplicas: 3, conditions: [{type: HeadPodReady, status: "False"}]}`,
			[]PodSetSize{{"head", 1}, {"cpu", 2}, {"gpu", 2}}, []int64{0, 2, 1}, false},
		"a release of Ray that tells nothing of its head": {"RayCluster.v1.ray.io",
			`status: {state: ready, readyWorkerReplicas: 2}`,
			[]PodSetSize{{"head", 1}, {"cpu", 2}}, []int64{1, 2}, true},
		"a group that lacks a worker": {"LeaderWorkerSet.v1.leaderworkerset.x-k8s.io", `
spec: {replicas: 3, leaderWorkerTemplate: {size: 3}}
status: {readyReplicas: 2}`, []PodSetSize{{"leader", 3}, {"worker", 6}}, []int64{2, 4}, false},
		"a driver without executors": {"SparkApplication.v1beta2.sparkoperator.k8s.io", `
spec: {executor: {instances: 2}}
status: {applicationState: {state: RUNNING}}`, []PodSetSize{{"driver", 1}, {"executor", 2}}, []int64{1, 0}, false},
		"an executor that was replaced": {"SparkApplication.v1beta2.sparkoperator.k8s.io", `
spec: {executor: {instances: 2}}
status: {applicationState: {state: RUNNING}, executorState: {a: FAILED, b: RUNNING, c: RUNNING}}`,
			[]PodSetSize{{"driver", 1}, {"executor", 2}}, []int64{1, 2}, true},
		"as few executors as it may have": {"SparkApplication.v1beta2.sparkoperator.k8s.io", `
spec: {executor: {}, dynamicAllocation: {enabled: true, initialExecutors: 4, minExecutors: 1}}
status: {applicationState: {state: RUNNING}, executorState: {a: RUNNING}}`,
			[]PodSetSize{{"driver", 1}, {"executors", 4}}, []int64{1, 1}, true},
		"a kind that only says that it runs": {"RayJob.v1.ray.io", `status: {jobDeploymentStatus: Running}`,
			[]PodSetSize{{"head", 1}, {"cpu", 2}}, []int64{1, 2}, true},
		"it does not run": {"RayJob.v1.ray.io", `status: {jobDeploymentStatus: Waiting}`,
			[]PodSetSize{{"head", 1}, {"cpu", 2}}, []int64{0, 0}, false},
		"a Job whose pods follow each other": {"Job.v1.batch", `
spec: {parallelism: 2, completions: 9}
status: {ready: 1, active: 2, succeeded: 5}`, []PodSetSize{{"j", 2}}, []int64{1}, true},
		"a Job that ends with the first of its pods": {"Job.v1.batch", `
spec: {parallelism: 2}
status: {ready: 1, active: 1, succeeded: 1}`, []PodSetSize{{"j", 2}}, []int64{1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			kind, ok := jobkind.Find(tc.kind)
			require.True(t, ok)
			job := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(tc.job), &job.Object))
			require.Equal(t, tc.want, Open(kind, job).ReadyOf(tc.sets))
			pods := int64(0)
			for _, set := range tc.sets {
				pods += set.Pods
			}
			require.Equal(t, tc.all, Open(kind, job).AllReady(pods))
		})
	}
}

// The pods of a group that nobody owns are counted by their shape.
func TestReadyPodsOfAGroupByShape(t *testing.T) {
	group, err := podgroup.Of([]*corev1.Pod{
		grouped(1, "g", "5"), grouped(2, "g", "5", onNode), grouped(3, "g", "5", onNode),
		grouped(4, "g", "5", larger), grouped(5, "g", "5", larger, onNode),
	})
	require.NoError(t, err)
	kind, ok := jobkind.Find("Pod.v1.")
	require.True(t, ok)
	sets, err := Open(kind, group).PodSets()
	require.NoError(t, err)
	require.Len(t, sets, 2)
	sizes, want := make([]PodSetSize, len(sets)), make([]int64, len(sets))
	for i := range sets {
		sizes[i] = PodSetSize{sets[i].Name, int64(sets[i].Count)}
		want[i] = int64(sets[i].Count) - 1
	}
	require.Equal(t, want, Open(kind, group).ReadyOf(sizes), "all but one of each shape run")
}

// Pods that have ended well give their quota back where the status of the job says that they do not come again.
func TestPodsThatDoNotComeAgain(t *testing.T) {
	const ended = "\nstatus: {conditions: [{type: Running, status: \"True\"}], " +
		"replicaStatuses: {Worker: {active: 1, succeeded: 2}}}"
	for name, tc := range map[string]struct {
		kind, object string
		want         map[string]int32
	}{
		"a work queue before its first success": {"Job.v1.batch",
			"metadata: {name: j}\nspec: {parallelism: 4}\nstatus: {active: 3, failed: 1}", nil},
		"one after it": {"Job.v1.batch",
			"metadata: {name: j}\nspec: {parallelism: 4}\nstatus: {active: 1, succeeded: 2, failed: 1}",
			map[string]int32{"j": 3}},
		"one of which none runs": {"Job.v1.batch",
			"metadata: {name: j}\nspec: {parallelism: 4}\nstatus: {succeeded: 2}", map[string]int32{"j": 4}},
		"one of one pod": {"Job.v1.batch", "metadata: {name: j}\nstatus: {active: 1, succeeded: 1}", nil},
		"one that is suspended": {"Job.v1.batch",
			"metadata: {name: j}\nspec: {parallelism: 4, suspend: true}\nstatus: {active: 1, succeeded: 2}", nil},
		"completions, which the number of pods follows": {"Job.v1.batch",
			"metadata: {name: j}\nspec: {parallelism: 4, completions: 4}\nstatus: {active: 1, succeeded: 3}", nil},
		"PyTorchJob":       {"PyTorchJob.v1.kubeflow.org", "spec: {}" + ended, map[string]int32{"worker": 2}},
		"TFJob":            {"TFJob.v1.kubeflow.org", "spec: {}" + ended, map[string]int32{"worker": 2}},
		"XGBoostJob":       {"XGBoostJob.v1.kubeflow.org", "spec: {}" + ended, map[string]int32{"worker": 2}},
		"PaddleJob":        {"PaddleJob.v1.kubeflow.org", "spec: {}" + ended, map[string]int32{"worker": 2}},
		"JAXJob":           {"JAXJob.v1.kubeflow.org", "spec: {}" + ended, map[string]int32{"worker": 2}},
		"MPIJob":           {"MPIJob.v1.kubeflow.org", "spec: {}" + ended, map[string]int32{"worker": 2}},
		"it is suspended":  {"TFJob.v1.kubeflow.org", "spec: {runPolicy: {suspend: true}}" + ended, nil},
		"it was suspended": {"TFJob.v1.kubeflow.org", "spec: {}" + strings.Replace(ended, "Running", "Suspended", 1), nil},
		"some failed": {"TFJob.v1.kubeflow.org",
			"spec: {}\nstatus: {replicaStatuses: {Worker: {active: 1, failed: 2}}}", nil},
		"it has no status": {"TFJob.v1.kubeflow.org", "spec: {}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			kind, ok := jobkind.Find(tc.kind)
			require.True(t, ok)
			got := Open(kind, object(t, tc.object)).Reclaimable()
			if len(tc.want) == 0 {
				require.Empty(t, got)
				return
			}
			require.Equal(t, tc.want, got)
		})
	}
}
