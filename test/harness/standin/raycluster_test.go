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

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const rayClusterSuspended = `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray}
spec:
  suspend: true
  headGroupSpec:
    template: {metadata: {labels: {mine: "1"}}, spec: {containers: [{name: head, image: ray}]}}
  workerGroupSpecs:
  - groupName: cpu
    replicas: 1
    minReplicas: 0
    maxReplicas: 3
    template: {spec: {containers: [{name: worker, image: ray}]}}
  - groupName: tpu
    replicas: 1
    numOfHosts: 2
    template: {spec: {containers: [{name: worker, image: ray}]}}
`

func rayClusterState(t *testing.T, w *world) string {
	t.Helper()
	st := part(w.object(t).Object, "status")
	return fmt.Sprintf("%s %v/%v %s", text(st, "state"), st["readyWorkerReplicas"], st["desiredWorkerReplicas"],
		w.conditions(t))
}

const (
	rayNone         = "HeadPodReady=False RayClusterProvisioned=False RayClusterSuspended=True RayClusterSuspending=False"
	rayProvisioning = "HeadPodReady=False RayClusterProvisioned=False RayClusterSuspended=False RayClusterSuspending=False"
	rayAll          = "HeadPodReady=True RayClusterProvisioned=True RayClusterSuspended=False RayClusterSuspending=False"
)

func rayPods(phase string) []string {
	of := phase + " of RayCluster ray"
	return []string{
		"Pod ray-cpu-worker-*" + of, "Pod ray-head-*" + of, "Pod ray-tpu-worker-*" + of, "Pod ray-tpu-worker-*" + of,
	}
}

func TestRayCluster(t *testing.T) {
	tell(t, newWorld(t, rayClusterSuspended, RayCluster), rayClusterState, []step{
		{name: "created suspended: nothing", state: "suspended 0/3 " + rayNone},
		{
			name: "resumed", do: changing("spec.suspend", false), children: rayPods(""),
			// The state is not cleared.
			state: "suspended 0/3 " + rayProvisioning,
		},
		{
			name: "running", do: playing("ray", corev1.PodRunning), children: rayPods(" Running"),
			state: "ready 3/3 " + rayAll,
		},
		{
			name: "suspended while running", do: changing("spec.suspend", true), state: "suspended 0/3 " + rayNone,
		},
		{
			name: "resumed again", do: changing("spec.suspend", false), children: rayPods(""),
			state: "suspended 0/3 " + rayProvisioning,
		},
		{
			name: "running again", do: playing("ray", corev1.PodRunning), children: rayPods(" Running"),
			state: "ready 3/3 " + rayAll,
		},
		{
			name: "a pod that ended is made anew", do: playing("ray-cpu-worker", corev1.PodFailed),
			children: []string{
				"Pod ray-cpu-worker-* of RayCluster ray", "Pod ray-head-* Running of RayCluster ray",
				"Pod ray-tpu-worker-* Running of RayCluster ray", "Pod ray-tpu-worker-* Running of RayCluster ray",
			},
			// Neither the state nor Provisioned goes back.
			state: "ready 2/3 " + rayAll,
		},
	})
}

// Suspension goes through Suspending, in which the pods are deleted.
func TestRayClusterSuspending(t *testing.T) {
	w := newWorld(t, rayClusterSuspended, RayCluster)
	w.change(t, "spec.suspend", false)
	w.settle(t)
	w.change(t, "spec.suspend", true)
	w.once(t)
	require.Contains(t, w.conditions(t), "RayClusterSuspending=True")
	require.Len(t, w.listPods(t), 4)
	w.change(t, "spec.suspend", false) // what was begun is carried out
	w.once(t)
	require.Empty(t, w.listPods(t))
	require.Contains(t, w.conditions(t), "RayClusterSuspended=True")
	w.settle(t)
	require.Len(t, w.listPods(t), 4)
}

func TestRayClusterGroups(t *testing.T) {
	group := func(values map[string]any) []any {
		all := map[string]any{
			"groupName": "g", "template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "worker"}},
			}},
		}
		for key, value := range values {
			all[key] = value
		}
		return []any{all}
	}
	for name, test := range map[string]struct {
		group map[string]any
		want  int
	}{
		"replicas":          {map[string]any{"replicas": int64(2)}, 2},
		"times hosts":       {map[string]any{"replicas": int64(2), "numOfHosts": int64(4)}, 8},
		"at least":          {map[string]any{"replicas": int64(1), "minReplicas": int64(3)}, 3},
		"at most":           {map[string]any{"replicas": int64(5), "maxReplicas": int64(2)}, 2},
		"none given":        {map[string]any{"minReplicas": int64(1)}, 1},
		"a suspended group": {map[string]any{"replicas": int64(2), "suspend": true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rayClusterSuspended, RayCluster)
			w.change(t, "spec.workerGroupSpecs", group(test.group))
			w.change(t, "spec.suspend", false)
			w.settle(t)
			require.Len(t, w.listPods(t), test.want+1)
		})
	}
}

func TestRayClusterPods(t *testing.T) {
	w := newWorld(t, rayClusterSuspended, RayCluster)
	w.change(t, "spec.enableInTreeAutoscaling", true)
	w.change(t, "spec.suspend", false)
	w.settle(t)
	head, worker := w.podNamed(t, "head"), w.podNamed(t, "tpu")
	require.Equal(t, map[string]string{
		"mine": "1", "ray.io/cluster": "ray", "ray.io/group": "headgroup", "ray.io/node-type": "head",
		"ray.io/is-ray-node": "yes", "ray.io/identifier": "ray-head", "app.kubernetes.io/name": "kuberay",
		"app.kubernetes.io/created-by": "kuberay-operator",
	}, head.Labels)
	require.Len(t, head.Spec.Containers, 2)
	require.Equal(t, "500m", head.Spec.Containers[1].Resources.Requests.Cpu().String())
	require.Equal(t, "tpu", worker.Labels["ray.io/group"])
	require.Equal(t, "worker", worker.Labels["ray.io/node-type"])
	require.Len(t, worker.Spec.InitContainers, 1)
}

func TestRayClusterAutoscaling(t *testing.T) {
	for name, test := range map[string]struct {
		autoscaling bool
		named       bool
		want        int
	}{
		"without: at random":              {want: 4},
		"with: as it says":                {autoscaling: true, named: true, want: 4},
		"with: nobody says which ones go": {autoscaling: true, want: 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rayClusterSuspended, RayCluster)
			w.change(t, "spec.enableInTreeAutoscaling", test.autoscaling)
			w.change(t, "spec.suspend", false)
			groups := w.object(t).Object["spec"].(map[string]any)["workerGroupSpecs"].([]any)
			cpu := groups[0].(map[string]any)
			scale := func(replicas int64) {
				cpu["replicas"] = replicas
				w.change(t, "spec.workerGroupSpecs", groups)
				w.settle(t)
			}
			scale(2)
			require.Len(t, w.listPods(t), 5)
			if test.named {
				name := w.podNamed(t, "cpu").Name
				cpu["scaleStrategy"] = map[string]any{"workersToDelete": []any{name}}
			}
			scale(1)
			require.Len(t, w.listPods(t), test.want)
		})
	}
}
