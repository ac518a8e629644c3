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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

const mpiJobSuspended = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  runPolicy: {suspend: true, cleanPodPolicy: Running, backoffLimit: 3}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template: {metadata: {labels: {mine: "1"}}, spec: {containers: [{name: launcher, image: mpi}]}}
    Worker:
      replicas: 2
      template: {metadata: {labels: {mine: "2"}}, spec: {containers: [{name: worker, image: mpi}]}}
`

func mpiState(t *testing.T, w *world) string { return w.conditions(t) }

var (
	mpiLauncherJob = "Job pi-launcher of MPIJob pi"
	mpiWaiting     = []string{"Job pi-launcher suspended of MPIJob pi"}
	mpiRunning     = []string{
		mpiLauncherJob, "Pod pi-launcher-pod Running of Job pi-launcher",
		"Pod pi-worker-0 Running of MPIJob pi", "Pod pi-worker-1 Running of MPIJob pi",
	}
)

func mpiStart(t *testing.T, w *world) {
	w.play(t, "worker", corev1.PodRunning)
	w.startJob(t, "pi-launcher")
}

func TestMPIJob(t *testing.T) {
	begin := []step{
		{
			name: "created suspended: a suspended launcher and no pods", children: mpiWaiting,
			state: "Created=True Running=False Suspended=True",
		},
		{
			name: "resumed", do: changing("spec.runPolicy.suspend", false),
			children: []string{mpiLauncherJob, "Pod pi-worker-0 of MPIJob pi", "Pod pi-worker-1 of MPIJob pi"},
			state:    "Created=True Running=False Suspended=False",
		},
		{name: "running", do: mpiStart, children: mpiRunning, state: "Created=True Running=True Suspended=False"},
		{
			name: "suspended while running: the workers are gone",
			do:   changing("spec.runPolicy.suspend", true),
			children: []string{
				"Job pi-launcher suspended of MPIJob pi", "Pod pi-launcher-pod Running of Job pi-launcher",
			},
			state: "Created=True Running=False Suspended=True",
		},
		{
			name:     "the Job controller takes the launcher's pod away",
			do:       func(t *testing.T, w *world) { w.stopJob(t, "pi-launcher") },
			children: mpiWaiting, state: "Created=True Running=False Suspended=True",
		},
		{
			name: "resumed again", do: changing("spec.runPolicy.suspend", false),
			children: []string{mpiLauncherJob, "Pod pi-worker-0 of MPIJob pi", "Pod pi-worker-1 of MPIJob pi"},
			state:    "Created=True Running=False Suspended=False",
		},
		{name: "running again", do: mpiStart, children: mpiRunning, state: "Created=True Running=True Suspended=False"},
	}
	for name, last := range map[string]step{
		"ends well": {
			do:       func(t *testing.T, w *world) { w.endJob(t, "pi-launcher", batchv1.JobComplete) },
			children: []string{mpiLauncherJob, "Pod pi-launcher-pod Succeeded of Job pi-launcher"},
			state:    "Created=True Running=False Succeeded=True Suspended=False",
		},
		"ends badly": {
			do:       func(t *testing.T, w *world) { w.endJob(t, "pi-launcher", batchv1.JobFailed) },
			children: []string{mpiLauncherJob, "Pod pi-launcher-pod Failed of Job pi-launcher"},
			state:    "Created=True Failed=True Running=False Suspended=False",
		},
	} {
		t.Run(name, func(t *testing.T) {
			last.name = name
			tell(t, newWorld(t, mpiJobSuspended, MPIJob), mpiState, append(begin[:len(begin):len(begin)], last))
		})
	}
}

func TestMPIJobPods(t *testing.T) {
	w := newWorld(t, mpiJobSuspended, MPIJob)
	w.change(t, "spec.runPolicy.suspend", false)
	w.settle(t)
	w.startJob(t, "pi-launcher")
	worker, launcher := w.podNamed(t, "worker-1"), w.podNamed(t, "launcher")
	require.Equal(t, map[string]string{
		"mine": "2", "training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "pi",
		"training.kubeflow.org/job-role": "worker", "training.kubeflow.org/replica-index": "1",
	}, worker.Labels)
	require.Equal(t, corev1.RestartPolicyNever, worker.Spec.RestartPolicy)
	require.Equal(t, map[string]string{
		"mine": "1", "training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "pi",
		"training.kubeflow.org/job-role": "launcher",
	}, launcher.Labels)
	require.Equal(t, int32(3), *w.listJobs(t)[0].Spec.BackoffLimit)
}

func TestMPIJobStartTime(t *testing.T) {
	w := newWorld(t, mpiJobSuspended, MPIJob)
	start := func() string { w.settle(t); return text(w.object(t).Object, "status", "startTime") }
	require.Empty(t, start())
	for _, at := range []string{"2026-11-23T12:00:00Z", "2026-11-23T13:00:00Z"} {
		w.change(t, "spec.runPolicy.suspend", false)
		require.Equal(t, at, start())
		w.change(t, "spec.runPolicy.suspend", true)
		require.Equal(t, at, start(), "it stays while the job is suspended")
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
	}
}

func TestMPIJobPolicies(t *testing.T) {
	for name, test := range map[string]struct {
		path  string
		value any
		want  []string
	}{
		"launcher at startup": {want: []string{
			mpiLauncherJob, "Pod pi-worker-0 of MPIJob pi", "Pod pi-worker-1 of MPIJob pi",
		}},
		"launcher waits for workers": {
			path: "spec.launcherCreationPolicy", value: "WaitForWorkersReady",
			want: []string{"Pod pi-worker-0 of MPIJob pi", "Pod pi-worker-1 of MPIJob pi"},
		},
		"somebody else's": {path: "spec.runPolicy.managedBy", value: "kueue.x-k8s.io/multikueue"},
		"expressly ours": {path: "spec.runPolicy.managedBy", value: "kubeflow.org/mpi-operator", want: []string{
			mpiLauncherJob, "Pod pi-worker-0 of MPIJob pi", "Pod pi-worker-1 of MPIJob pi",
		}},
		"fewer workers": {path: "spec.mpiReplicaSpecs.Worker.replicas", value: int64(1), want: []string{
			mpiLauncherJob, "Pod pi-worker-0 of MPIJob pi",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mpiJobSuspended, MPIJob)
			w.change(t, "spec.runPolicy.suspend", false)
			if test.path != "" {
				w.change(t, test.path, test.value)
			}
			tell(t, w, func(*testing.T, *world) string { return "" }, []step{{name: "created", children: test.want}})
		})
	}
	t.Run("workers are ready", func(t *testing.T) {
		w := newWorld(t, mpiJobSuspended, MPIJob)
		w.change(t, "spec.launcherCreationPolicy", "WaitForWorkersReady")
		w.change(t, "spec.runPolicy.suspend", false)
		w.settle(t)
		require.Empty(t, w.listJobs(t))
		w.play(t, "worker", corev1.PodRunning)
		w.settle(t)
		require.Len(t, w.listJobs(t), 1)
	})
}
