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
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const sparkManifest = `
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: pi, labels: {queue: q}}
spec:
  suspend: true
  type: Scala
  mode: cluster
  image: spark
  driver: {cores: 1, memory: 512m, coreLimit: 1200m, labels: {mine: "1"}, serviceAccount: spark}
  executor: {cores: 2, instances: 2, memory: 8g}
`

func sparkStory(t *testing.T, w *world) string {
	t.Helper()
	var executors []string
	for _, state := range texts(w.object(t).Object, "status", "executorState") {
		executors = append(executors, state)
	}
	slices.Sort(executors)
	return sparkState(w.object(t)) + " " + strings.Join(executors, ",")
}

// sparkChildren are the pods of the run with the number, in phases.
func sparkChildren(run, driver, executor string) []string {
	children := []string{strings.TrimSpace("Pod pi-driver "+driver) + " of SparkApplication pi"}
	if executor != "-" {
		for i := 1; i <= 2; i++ {
			children = append(children,
				strings.TrimSpace(fmt.Sprintf("Pod pi-%s-exec-%d %s", run, i, executor))+" of Pod pi-driver")
		}
	}
	return children
}

func TestSparkApplication(t *testing.T) {
	begin := []step{
		{name: "created suspended: nothing", state: "SUSPENDED "},
		{
			name: "resumed: a driver", do: changing("spec.suspend", false), children: sparkChildren("", "", "-"),
			state: "SUBMITTED ",
		},
		{
			name: "the driver runs: executors", do: playing("driver", corev1.PodRunning),
			children: sparkChildren("00001", "Running", ""), state: "RUNNING PENDING,PENDING",
		},
		{
			name: "running", do: playing("exec", corev1.PodRunning), children: sparkChildren("00001", "Running", "Running"),
			state: "RUNNING RUNNING,RUNNING",
		},
		{name: "suspended while running: all gone", do: changing("spec.suspend", true), state: "SUSPENDED "},
		{
			name: "resumed again", do: changing("spec.suspend", false), children: sparkChildren("", "", "-"),
			state: "SUBMITTED ",
		},
		{
			name: "running again",
			do: func(t *testing.T, w *world) {
				w.play(t, "driver", corev1.PodRunning)
				w.settle(t)
				w.play(t, "exec", corev1.PodRunning)
			},
			children: sparkChildren("00003", "Running", "Running"), state: "RUNNING RUNNING,RUNNING",
		},
	}
	for _, last := range []step{
		{
			name: "ends well", do: playing("driver", corev1.PodSucceeded), children: sparkChildren("", "Succeeded", "-"),
			state: "COMPLETED FAILED,FAILED",
		},
		{
			name: "ends badly", do: playing("driver", corev1.PodFailed), children: sparkChildren("", "Failed", "-"),
			state: "FAILED FAILED,FAILED",
		},
		{
			name: "the driver is deleted",
			do: func(t *testing.T, w *world) {
				pod := w.podNamed(t, "driver")
				require.NoError(t, w.Delete(t.Context(), &pod))
			},
			state: "FAILED FAILED,FAILED",
		},
	} {
		t.Run(last.name, func(t *testing.T) {
			tell(t, newWorld(t, sparkManifest, SparkApplication), sparkStory, append(begin[:len(begin):len(begin)], last))
		})
	}
}

// The states that an application passes through, one write each.
func TestSparkApplicationStates(t *testing.T) {
	w := newWorld(t, sparkManifest, SparkApplication)
	expect := func(states ...string) {
		t.Helper()
		for _, want := range states {
			w.once(t)
			require.Equal(t, want, sparkState(w.object(t)))
		}
	}
	expect("SUSPENDING", "SUSPENDED", "SUSPENDED")
	w.change(t, "spec.suspend", false)
	expect("RESUMING", "SUBMITTED", "SUBMITTED")
	w.play(t, "driver", corev1.PodRunning)
	expect("RUNNING", "RUNNING")
	w.play(t, "driver", corev1.PodSucceeded)
	expect("SUCCEEDING", "COMPLETED", "COMPLETED")
	w.change(t, "spec.suspend", true)
	expect("COMPLETED")
}

func TestSparkApplicationRestarts(t *testing.T) {
	w := newWorld(t, sparkManifest, SparkApplication)
	w.change(t, "spec.restartPolicy", map[string]any{"type": "OnFailure", "onFailureRetries": int64(1)})
	w.change(t, "spec.suspend", false)
	w.settle(t)
	for _, want := range []string{"SUBMITTED ", "FAILED "} {
		w.play(t, "driver", corev1.PodFailed)
		w.settle(t)
		require.Equal(t, want, sparkStory(t, w))
	}
}

// A submission that finds another driver fails, and is tried again as the restart policy says.
func TestSparkApplicationSubmitsAgain(t *testing.T) {
	for policy, want := range map[string][]string{
		"Never":  {"RESUMING", "SUBMISSION_FAILED", "FAILED", "FAILED"},
		"Always": {"RESUMING", "SUBMISSION_FAILED", "PENDING_RERUN", "SUBMISSION_FAILED"},
	} {
		w := newWorld(t, sparkManifest, SparkApplication)
		w.change(t, "spec.restartPolicy", map[string]any{"type": policy})
		w.settle(t)
		other := &corev1.Pod{}
		other.Name, other.Namespace = "pi-driver", w.object(t).GetNamespace()
		require.NoError(t, w.Create(t.Context(), other))
		w.change(t, "spec.suspend", false)
		for _, state := range want {
			w.once(t)
			require.Equal(t, state, sparkState(w.object(t)), policy)
		}
		require.NoError(t, w.Delete(t.Context(), other))
		w.settle(t)
		require.Equal(t, map[string]string{"Never": "FAILED", "Always": "SUBMITTED"}[policy], sparkState(w.object(t)))
	}
}

func TestSparkApplicationReplacesExecutors(t *testing.T) {
	w := newWorld(t, sparkManifest, SparkApplication)
	w.change(t, "spec.suspend", false)
	w.settle(t)
	w.play(t, "driver", corev1.PodRunning)
	w.settle(t)
	w.play(t, "exec-2", corev1.PodFailed)
	w.settle(t)
	require.Contains(t, w.view(t), "exec-3")
	require.NotContains(t, w.view(t), "exec-4")
}

func TestSparkApplicationPods(t *testing.T) {
	w := newWorld(t, sparkManifest, SparkApplication)
	w.change(t, "spec.batchScheduler", "koord-scheduler")
	w.change(t, "spec.executor.gpu", map[string]any{"name": "nvidia.com/gpu", "quantity": int64(1)})
	w.change(t, "spec.executor.template", map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"from": "template"}},
		"spec": map[string]any{
			"nodeSelector": map[string]any{"zone": "a"},
			"containers": []any{map[string]any{
				"name": "mine", "resources": map[string]any{"requests": map[string]any{"cpu": "7"}},
			}},
		},
	})
	w.change(t, "spec.suspend", false)
	w.settle(t)
	w.play(t, "driver", corev1.PodRunning)
	w.settle(t)
	driver, executor := w.podNamed(t, "driver"), w.podNamed(t, "exec-1")
	require.Equal(t, map[string]string{
		"queue": "q", "mine": "1", "spark-role": "driver", "spark-app-name": "pi", "spark-app-selector": "spark-00002",
		"sparkoperator.k8s.io/app-name": "pi", "sparkoperator.k8s.io/submission-id": "00001",
		"sparkoperator.k8s.io/launched-by-spark-operator": "true",
	}, driver.Labels)
	require.Equal(t, "spark", driver.Spec.ServiceAccountName)
	require.Equal(t, "koord-scheduler", driver.Spec.SchedulerName)
	require.Equal(t, "executor", executor.Labels["spark-role"])
	require.Equal(t, "1", executor.Labels["spark-exec-id"])
	require.Equal(t, "template", executor.Labels["from"])
	require.Equal(t, map[string]string{"zone": "a"}, executor.Spec.NodeSelector)
	require.Equal(t, "mine", executor.Spec.Containers[0].Name)
	requests := executor.Spec.Containers[0].Resources.Requests
	require.Equal(t, "2", requests.Cpu().String(), "what Spark computes wins")
	require.Equal(t, int64(1), requests.Name("nvidia.com/gpu", "").Value())
}

func TestSparkResources(t *testing.T) {
	for name, test := range map[string]struct{ app, want string }{
		"defaults": {"{}", "cpu=1 memory=1408Mi limit= 1408Mi"},
		"small":    {"driver: {cores: 2, memory: 512m}", "cpu=2 memory=896Mi limit= 896Mi"},
		"a tenth":  {"driver: {memory: 10g}", "cpu=1 memory=11Gi limit= 11Gi"},
		"Python":   {"{type: Python, driver: {memory: 10g}}", "cpu=1 memory=14Gi limit= 14Gi"},
		"a factor": {
			"{type: Python, memoryOverheadFactor: \"0.5\", driver: {memory: 2g}}", "cpu=1 memory=3Gi limit= 3Gi",
		},
		"an overhead": {"driver: {memory: 1g, memoryOverhead: 100m}", "cpu=1 memory=1124Mi limit= 1124Mi"},
		"cores asked and had": {
			"driver: {cores: 4, coreRequest: 500m, coreLimit: \"5\"}", "cpu=500m memory=1408Mi limit=5 1408Mi",
		},
		"in binary units, too": {"driver: {memory: 1Gi, memoryOverhead: 1024Mi}", "cpu=1 memory=2Gi limit= 2Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			app := &unstructured.Unstructured{Object: map[string]any{}}
			spec := map[string]any{}
			require.NoError(t, yaml.Unmarshal([]byte(test.app), &spec))
			app.Object["spec"] = spec
			var got corev1.ResourceRequirements
			require.NoError(t, sparkResources(app, "driver", &got))
			limit := ""
			if cpu, found := got.Limits[corev1.ResourceCPU]; found {
				limit = cpu.String()
			}
			require.Equal(t, test.want, fmt.Sprintf("cpu=%s memory=%s limit=%s %s",
				got.Requests.Cpu(), got.Requests.Memory(), limit, got.Limits.Memory()))
		})
	}
}

func TestSparkExecutors(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want int64
	}{
		"none given":         {"{}", 1},
		"instances":          {"executor: {instances: 3}", 3},
		"dynamic, initial":   {"dynamicAllocation: {enabled: true, initialExecutors: 4, minExecutors: 2}", 4},
		"dynamic, least":     {"dynamicAllocation: {enabled: true, minExecutors: 2}", 2},
		"dynamic, instances": {"{executor: {instances: 3}, dynamicAllocation: {enabled: true, minExecutors: 2}}", 3},
		"dynamic, off":       {"{executor: {instances: 3}, dynamicAllocation: {minExecutors: 9}}", 3},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{}
			require.NoError(t, yaml.Unmarshal([]byte(test.spec), &spec))
			require.Equal(t, test.want, sparkExecutors(&unstructured.Unstructured{Object: map[string]any{"spec": spec}}))
		})
	}
}
