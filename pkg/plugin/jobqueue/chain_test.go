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
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// chain is a pod and what is above it, from its controller upwards; each has the UID "o" and its place, from one on.
func (w *world) chain(pods *[]*corev1.Pod, owners ...[2]string) *corev1.Pod {
	names := []string{"o1", "o2", "o3", "o4", "o5"}
	ref := func(i int) *metav1.OwnerReference { return ownedBy(owners[i][0], owners[i][1], names[i]) }
	for i := range owners {
		var above *metav1.OwnerReference
		if i+1 < len(owners) {
			above = ref(i + 1)
		}
		if owners[i][0] == "Pod" {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: names[i], UID: types.UID(names[i])}}
			pod.OwnerReferences = []metav1.OwnerReference{*above}
			*pods = append(*pods, pod)
			continue
		}
		w.jobs[types.UID(names[i])] = Job{Owner: above}
	}
	pod := jobPod("j", quotaLabel)
	pod.OwnerReferences = []metav1.OwnerReference{*ref(0)}
	return pod
}

var (
	aJob         = [2]string{"Job", "batch/v1"}
	aJobSet      = [2]string{"JobSet", "jobset.x-k8s.io/v1alpha2"}
	aTrainJob    = [2]string{"TrainJob", "trainer.kubeflow.org/v1alpha1"}
	aRayJob      = [2]string{"RayJob", "ray.io/v1"}
	aRayCluster  = [2]string{"RayCluster", "ray.io/v1"}
	anMPIJob     = [2]string{"MPIJob", "kubeflow.org/v2beta1"}
	aSpark       = [2]string{"SparkApplication", "sparkoperator.k8s.io/v1beta2"}
	aWorkflow    = [2]string{"Workflow", "argoproj.io/v1alpha1"}
	aPod         = [2]string{"Pod", "v1"}
	aReplicaSet  = [2]string{"ReplicaSet", "apps/v1"}
	aDeployment  = [2]string{"Deployment", "apps/v1"}
	aStatefulSet = [2]string{"StatefulSet", "apps/v1"}
	anLWS        = [2]string{"LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"}
)

// Pods of grandchildren find the unit of the topmost job, and what is in between is not queued by itself.
func TestGateFollowsOwners(t *testing.T) {
	for name, tt := range map[string]struct {
		kinds  []string
		chain  [][2]string
		top    types.UID
		policy managedjobs.UnmanagedJobs
		want   verdict
	}{
		"JobSet": {[]string{"JobSet.v1alpha2.jobset.x-k8s.io"}, [][2]string{aJob, aJobSet}, "o2", "", admitted},
		"JobSet, with Jobs managed too": {[]string{"Job.v1.batch", "JobSet.v1alpha2.jobset.x-k8s.io"},
			[][2]string{aJob, aJobSet}, "o2", "", admitted},
		"TrainJob": {[]string{"TrainJob.v1alpha1.trainer.kubeflow.org"}, [][2]string{aJob, aJobSet, aTrainJob}, "o3", "",
			admitted},
		"RayJob": {[]string{"RayJob.v1.ray.io", "RayCluster.v1.ray.io"}, [][2]string{aRayCluster, aRayJob}, "o2", "",
			admitted},
		"RayJob's submitter": {[]string{"RayJob.v1.ray.io", "Job.v1.batch"}, [][2]string{aJob, aRayJob}, "o2", "", admitted},
		"MPIJob's launcher": {[]string{"MPIJob.v2beta1.kubeflow.org", "Job.v1.batch"}, [][2]string{aJob, anMPIJob}, "o2",
			"", admitted},
		"Spark's executor": {[]string{"SparkApplication.v1beta2.sparkoperator.k8s.io"}, [][2]string{aPod, aSpark}, "o2",
			"", admitted},
		"Deployment": {[]string{"Deployment.v1.apps"}, [][2]string{aReplicaSet, aDeployment}, "o2", "", admitted},
		"LeaderWorkerSet's worker": {[]string{"LeaderWorkerSet.v1.leaderworkerset.x-k8s.io", "StatefulSet.v1.apps"},
			[][2]string{aStatefulSet, aPod, aStatefulSet, anLWS}, "o4", "", admitted},

		"the JobSet's unit waits": {[]string{"Job.v1.batch", "JobSet.v1alpha2.jobset.x-k8s.io"}, [][2]string{aJob, aJobSet},
			"", "", unknown},
		"JobSets are not managed": {[]string{"Job.v1.batch"}, [][2]string{aJob, aJobSet}, "",
			managedjobs.UnmanagedPass, foreign},
		"JobSets are not managed, and nobody may run so": {[]string{"Job.v1.batch"}, [][2]string{aJob, aJobSet}, "",
			managedjobs.UnmanagedGate, unmanaged},
		"a ReplicaSet of nobody": {[]string{"Deployment.v1.apps"}, [][2]string{aReplicaSet}, "", "", foreign},
		"a Job that names any owner": {[]string{"Job.v1.batch"}, [][2]string{aJob, {"ConfigMap", "v1"}}, "", "",
			unknown},
		"a Job that names a Job":          {[]string{"Job.v1.batch"}, [][2]string{aJob, aJob}, "o2", "", unknown},
		"a Job of a Workflow":             {[]string{"Job.v1.batch"}, [][2]string{aJob, aWorkflow}, "", "", unknown},
		"a Job that names a Deployment":   {[]string{"Job.v1.batch"}, [][2]string{aJob, aDeployment}, "", "", unknown},
		"a pod that names somebody's pod": {[]string{"Job.v1.batch"}, [][2]string{aPod, aJob}, "o2", "", foreign},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			var pods []*corev1.Pod
			pod := w.chain(&pods, tt.chain...)
			if tt.top != "" {
				w.snapshot.consumers[tt.top] = true
			}
			gate := w.gate(t, managedjobs.Jobs{Kinds: managedjobs.KindsNamed(tt.kinds...), UnmanagedJobs: tt.policy})
			gate.Pod = func(namespace, name string) *corev1.Pod {
				for _, p := range pods {
					if p.Namespace == namespace && p.Name == name {
						return p
					}
				}
				return nil
			}
			require.Equal(t, tt.want, gate.verdict(pod))
		})
	}
}

// An author of owner references can make pods own each other. The gate follows controllers alone, and so many at most.
func TestTheGateEndsWherePodsOwnEachOther(t *testing.T) {
	for name, tt := range map[string]struct {
		controls bool
		asked    int
	}{"as controllers": {true, jobkind.MostOwners}, "not as controllers": {false, 0}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			ref := ownedBy("Pod", "v1", "o1")
			ref.Controller = &tt.controls
			pod := jobPod("j", quotaLabel)
			pod.OwnerReferences = []metav1.OwnerReference{*ref}
			gate := w.gate(t, managedjobs.Jobs{Kinds: managedjobs.KindsNamed(
				"Job.v1.batch", "SparkApplication.v1beta2.sparkoperator.k8s.io")})
			asked := 0
			gate.Pod = func(namespace, name string) *corev1.Pod {
				asked++
				return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: name, UID: types.UID(name), OwnerReferences: pod.OwnerReferences,
				}}
			}
			require.Equal(t, foreign, gate.verdict(pod))
			require.Equal(t, tt.asked, asked)
		})
	}
}
