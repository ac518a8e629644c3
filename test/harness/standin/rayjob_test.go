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

package standin

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

const rayJobManifest = `
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: count, labels: {queue: q}}
spec:
  suspend: true
  shutdownAfterJobFinishes: true
  entrypoint: python count.py
  rayClusterSpec:
    headGroupSpec:
      template: {spec: {containers: [{name: head, image: ray}]}}
    workerGroupSpecs:
    - groupName: cpu
      replicas: 1
      template: {spec: {containers: [{name: worker, image: ray}]}}
`

func rayJobState(t *testing.T, w *world) string {
	t.Helper()
	st := part(w.object(t).Object, "status")
	return fmt.Sprintf("%s/%s %s %s", text(st, "jobDeploymentStatus"), text(st, "jobStatus"), text(st, "rayClusterName"),
		text(st, "reason"))
}

// rayJobChildren are those of the cluster with the suffix, in the phase, and others.
func rayJobChildren(suffix, phase string, others ...string) []string {
	cluster := "count-" + suffix
	if phase != "" {
		phase = " " + phase
	}
	return append(others, "RayCluster "+cluster+" of RayJob count",
		"Pod "+cluster+"-head-*"+phase+" of RayCluster "+cluster,
		"Pod "+cluster+"-cpu-worker-*"+phase+" of RayCluster "+cluster)
}

const (
	raySubmitterJob = "Job count of RayJob count"
	raySubmitterPod = "Pod count-pod Running of Job count"
)

func TestRayJob(t *testing.T) {
	begin := []step{
		{name: "created suspended: nothing", state: "Suspended/  "},
		{
			name: "resumed: a cluster, no submitter", do: changing("spec.suspend", false),
			children: rayJobChildren("00004", ""), state: "Initializing/ count-00004 ",
		},
		{
			name: "the cluster is ready: the submitter", do: playing("count", corev1.PodRunning),
			children: rayJobChildren("00004", "Running", raySubmitterJob), state: "Running/RUNNING count-00004 ",
		},
		{
			name:     "running",
			do:       func(t *testing.T, w *world) { w.startJob(t, "count") },
			children: rayJobChildren("00004", "Running", raySubmitterJob, raySubmitterPod),
			state:    "Running/RUNNING count-00004 ",
		},
		{
			name: "suspended while running",
			do: func(t *testing.T, w *world) {
				w.change(t, "spec.suspend", true)
				w.settle(t)
				w.collect(t)
			},
			state: "Suspended/  ",
		},
		{
			name: "resumed again: a new cluster", do: changing("spec.suspend", false),
			children: rayJobChildren("00006", ""), state: "Initializing/ count-00006 ",
		},
		{
			name: "running again",
			do: func(t *testing.T, w *world) {
				w.play(t, "count", corev1.PodRunning)
				w.settle(t)
				w.startJob(t, "count")
			},
			children: rayJobChildren("00006", "Running", raySubmitterJob, raySubmitterPod),
			state:    "Running/RUNNING count-00006 ",
		},
	}
	ends := func(how batchv1.JobConditionType) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			w.endJob(t, "count", how)
			w.settle(t)
			w.collect(t)
		}
	}
	for _, last := range []step{
		{
			name: "ends well: the cluster goes, the submitter stays", do: ends(batchv1.JobComplete),
			children: []string{raySubmitterJob, "Pod count-pod Succeeded of Job count"},
			state:    "Complete/SUCCEEDED count-00006 ",
		},
		{
			name: "ends badly", do: ends(batchv1.JobFailed),
			children: []string{raySubmitterJob, "Pod count-pod Failed of Job count"},
			state:    "Failed/FAILED count-00006 AppFailed",
		},
	} {
		t.Run(last.name, func(t *testing.T) {
			tell(t, newWorld(t, rayJobManifest, RayJob, RayCluster), rayJobState,
				append(begin[:len(begin):len(begin)], last))
		})
	}
}

// The states that a job passes through, one write each.
func TestRayJobStates(t *testing.T) {
	w := newWorld(t, rayJobManifest, RayJob, RayCluster)
	expect := func(states ...string) {
		t.Helper()
		for _, want := range states {
			w.once(t)
			require.Equal(t, want, text(w.object(t).Object, "status", "jobDeploymentStatus"))
			require.Empty(t, w.view(t))
		}
	}
	expect("Initializing", "Suspending", "Suspended", "Suspended")
	w.change(t, "spec.suspend", false)
	expect("", "Initializing")
}

func TestRayJobValidation(t *testing.T) {
	const refused = "ValidationFailed/  ValidationFailed"
	for name, test := range map[string]struct {
		path  string
		value any
		want  string
	}{
		"good":                           {"spec.ttlSecondsAfterFinished", int64(10), "Suspended/  "},
		"no shutdownAfterJobFinishes":    {"spec.shutdownAfterJobFinishes", false, refused},
		"a cluster that is there":        {"spec.clusterSelector", map[string]any{"ray.io/cluster": "a"}, refused},
		"somebody else's":                {"spec.managedBy", "kueue.x-k8s.io/multikueue", "/  "},
		"expressly the one of KubeRay's": {"spec.managedBy", "ray.io/kuberay-operator", "Suspended/  "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rayJobManifest, RayJob, RayCluster)
			w.change(t, test.path, test.value)
			w.settle(t)
			require.Equal(t, test.want, rayJobState(t, w))
			require.Empty(t, w.view(t))
		})
	}
}

func TestRayJobModes(t *testing.T) {
	for name, test := range map[string]struct {
		mode, result string
		submitter    bool
		want         string
	}{
		"HTTP, well":      {mode: "HTTPMode", result: "SUCCEEDED", want: "Complete/SUCCEEDED count-00002 "},
		"HTTP, badly":     {mode: "HTTPMode", result: "FAILED", want: "Failed/FAILED count-00002 AppFailed"},
		"HTTP, stopped":   {mode: "HTTPMode", result: "STOPPED", want: "Complete/STOPPED count-00002 "},
		"HTTP, running":   {mode: "HTTPMode", want: "Running/RUNNING count-00002 "},
		"sidecar, well":   {mode: "SidecarMode", result: "SUCCEEDED", want: "Complete/SUCCEEDED count-00002 "},
		"interactive":     {mode: "InteractiveMode", want: "Waiting/ count-00001 "},
		"Job, no end yet": {mode: "K8sJobMode", result: "SUCCEEDED", submitter: true, want: "Running/RUNNING count-00002 "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rayJobManifest, RayJob, RayCluster)
			w.change(t, "spec.suspend", false)
			w.change(t, "spec.submissionMode", test.mode)
			if test.result != "" {
				w.change(t, "metadata.annotations", map[string]any{RayJobResult: test.result})
			}
			w.settle(t)
			containers := w.podNamed(t, "head").Spec.Containers
			require.Equal(t, test.mode == "SidecarMode", containers[len(containers)-1].Name == "ray-job-submitter")
			w.play(t, "count", corev1.PodRunning)
			w.settle(t)
			require.Equal(t, test.want, rayJobState(t, w))
			require.Equal(t, test.submitter, len(w.listJobs(t)) == 1)
		})
	}
}

func TestRayJobChildren(t *testing.T) {
	w := newWorld(t, rayJobManifest, RayJob, RayCluster)
	w.change(t, "spec.suspend", false)
	w.settle(t)
	w.play(t, "count", corev1.PodRunning)
	w.settle(t)
	require.Equal(t, map[string]string{
		"queue": "q", "ray.io/originated-from-cr-name": "count", "ray.io/originated-from-crd": "RayJob",
	}, w.all(t, w.ops[1])[0].GetLabels())
	require.Equal(t, []string{"ray.io/rayjob-finalizer"}, w.object(t).GetFinalizers())
	require.Equal(t, "ready", text(w.object(t).Object, "status", "rayClusterStatus", "state"))
	submitter := w.listJobs(t)[0].Spec.Template.Spec
	require.Equal(t, corev1.RestartPolicyNever, submitter.RestartPolicy)
	resources := submitter.Containers[0].Resources
	require.Equal(t, "500m 200Mi 1 1Gi", fmt.Sprint(resources.Requests.Cpu(), " ", resources.Requests.Memory(), " ",
		resources.Limits.Cpu(), " ", resources.Limits.Memory()))
}

func TestRayJobRetriesAndDeadline(t *testing.T) {
	start := func(path string, value any) *world {
		w := newWorld(t, rayJobManifest, RayJob, RayCluster)
		w.change(t, path, value)
		w.change(t, "spec.suspend", false)
		w.settle(t)
		w.play(t, "count", corev1.PodRunning)
		w.settle(t)
		return w
	}
	t.Run("again", func(t *testing.T) {
		w := start("spec.backoffLimit", int64(1))
		w.startJob(t, "count")
		w.endJob(t, "count", batchv1.JobFailed)
		w.settle(t)
		require.Equal(t, "Initializing/ count-00004 ", rayJobState(t, w))
	})
	t.Run("too long", func(t *testing.T) {
		w := start("spec.activeDeadlineSeconds", int64(60))
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.settle(t)
		require.Equal(t, "Failed/RUNNING count-00002 DeadlineExceeded", rayJobState(t, w))
	})
}
