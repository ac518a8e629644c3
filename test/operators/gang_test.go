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

package operators_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// Keys that Koordinator reads of a pod.
const (
	gangName    = "gang.scheduling.koordinator.sh/name"
	gangMinimum = "gang.scheduling.koordinator.sh/min-available"
)

// gangCluster has operators that make PodGroups of scheduling.x-k8s.io, and the queue.
func gangCluster(t *testing.T) *cluster {
	t.Helper()
	c := start(t, "gangs", controlplane.Options{Components: controlplane.Full(), Nodes: nodes})
	t.Cleanup(func() { _ = c.Stop() })
	require.NoError(t, c.Install(t.Context()))
	require.NoError(t, c.StartScheduler(t.Context(), controlplane.SchedulerOptions{}))
	for _, operator := range controlplane.Operators() {
		require.NoError(t, c.StartOperator(t.Context(), operator, controlplane.OperatorOptions{
			GangScheduler: map[bool]string{true: "koord-scheduler"}[operator == controlplane.TrainingOperator],
		}))
	}
	c.manage(t, "pytorchjob", "jobset", "trainjob", "job", "rayjob")
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{}))
	c.awaitManaged(t)
	return c
}

func asksForGang(minAvailable int) func(*unstructured.Unstructured) {
	return func(job *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(job.Object, int64(minAvailable), "spec", "runPolicy", "schedulingPolicy",
			"minAvailable")
	}
}

// TestGangs: jobs that ask for it, in the way of their kind or by a PodGroup that Koordinator does not read, are bound
// together.
func TestGangs(t *testing.T) {
	c := gangCluster(t)
	c.logsOfFailure(t)
	kind := func(name string) *jobKind {
		for i := range jobKinds {
			if jobKinds[i].name == name {
				return &jobKinds[i]
			}
		}
		t.Fatal(name)
		return nil
	}
	t.Run("PyTorchJob", func(t *testing.T) {
		l := c.create(t, kind("pytorchjob"), "gang-pytorch", false, inQuota("gang-pytorch"), asksForGang(2))
		l.quota("100")
		l.requireGang(l.awaitPhase(v1alpha1.PhaseRunning).Name, 2, l.awaitRunning()...)
		l.setActive(false)
		l.awaitNoPods()
		l.setActive(true)
		l.requireGang(l.awaitPhase(v1alpha1.PhaseRunning).Name, 2, l.awaitRunning()...)
	})
	t.Run("PyTorchJob whose workers have no node", func(t *testing.T) {
		alone := c.create(t, kind("pytorchjob"), "gang-alone", false, inQuota("gang-alone"), workersOn("alone"))
		whole := c.create(t, kind("pytorchjob"), "gang-whole", false, inQuota("gang-whole"), workersOn("whole"),
			asksForGang(kind("pytorchjob").pods))
		alone.quota("100")
		whole.quota("100")
		alone.eventually("its master is bound alone", func(context.Context) (bool, error) {
			return len(alone.bound()) == 1, nil
		})
		whole.eventually("its pods are there", func(context.Context) (bool, error) {
			return len(whole.pods()) == whole.kind.pods, nil
		})
		require.Never(t, func() bool { return len(whole.bound()) > 0 }, 2*time.Second, pace)
		c.labelNode(t, "whole")
		whole.awaitRunning()
	})
	t.Run("TrainJob with coscheduling", func(t *testing.T) {
		l := c.create(t, kind("trainjob"), "gang-trainjob", false, inQuota("gang-trainjob"), c.coscheduled(t,
			"gang-trainjob"))
		l.quota("100")
		l.requireGang(l.name, kind("trainjob").pods, l.awaitRunning()...)
	})
	t.Run("JobSet some of whose templates name a PodGroup", func(t *testing.T) {
		l := c.create(t, kind("jobset"), "gang-jobset", false, inQuota("gang-jobset"), func(job *unstructured.Unstructured) {
			replicated, _, err := unstructured.NestedSlice(job.Object, "spec", "replicatedJobs")
			require.NoError(t, err)
			require.NoError(t, unstructured.SetNestedField(replicated[1].(map[string]any), "ring", "template", "spec",
				"template", "metadata", "labels", jobs.LabelPodGroup))
			require.NoError(t, unstructured.SetNestedSlice(job.Object, replicated, "spec", "replicatedJobs"))
		})
		l.quota("100")
		members := 0
		for _, pod := range l.awaitRunning() {
			if pod.Labels[jobs.LabelPodGroup] == "" {
				l.requireGang("", 0, pod)
				continue
			}
			members++
			l.requireGang("ring", 4, pod)
		}
		require.Equal(t, 4, members)
	})
	t.Run("RayJob, whose submitter is made once the others run", func(t *testing.T) {
		l := c.create(t, kind("rayjob"), "gang-rayjob", false, inQuota("gang-rayjob"),
			func(job *unstructured.Unstructured) {
				labels := job.GetLabels()
				labels["ray.io/gang-scheduling-enabled"] = "true"
				job.SetLabels(labels)
			})
		l.quota("100")
		for _, pod := range l.awaitRunning() {
			if pod.Spec.Containers[0].Name == "submitter" {
				l.requireGang("", 0, pod)
				continue
			}
			l.requireGang(l.unit().Name, 2, pod)
		}
	})
	c.byDefault(t, "pytorchjob", "jobset")
	for _, name := range []string{"pytorchjob", "jobset"} {
		t.Run(name+" by default", func(t *testing.T) {
			l := c.create(t, kind(name), "gang-default-"+name, false, inQuota("gang-default-"+name))
			l.quota("100")
			l.requireDefaults(l.awaitRunning())
			l.setActive(false)
			l.awaitNoPods()
			l.eventually("it is as its owner wrote it", func(context.Context) (bool, error) {
				text, err := l.current().MarshalJSON()
				return !strings.Contains(string(text), extension.AnnotationGangWaitTime), err
			})
			l.setActive(true)
			l.awaitPhase(v1alpha1.PhaseRunning)
			l.requireDefaults(l.awaitRunning())
		})
	}
}

// byDefault gives the kinds defaults.
func (c *cluster) byDefault(t *testing.T, files ...string) {
	t.Helper()
	kinds, defaults := "kinds:\n", "jobDefaults:\n"
	for _, kind := range jobkind.Builtin() {
		if slices.Contains(files, kind.File()) {
			kinds += "- " + kind.String() + "\n"
			defaults += "- {kind: " + kind.String() + ", gang: {waitTime: 5m, mode: NonStrict}, preemptible: true}\n"
		}
	}
	c.configure(t, kinds+defaults)
	c.awaitManaged(t)
}

// requireDefaults: the operator gives them to its pods.
func (l *life) requireDefaults(pods []corev1.Pod) {
	l.t.Helper()
	l.requireGang(l.unit().Name, l.kind.pods, pods...)
	for i := range pods {
		require.Equal(l.t, "5m", pods[i].Annotations[extension.AnnotationGangWaitTime])
		require.Equal(l.t, "NonStrict", pods[i].Annotations[extension.AnnotationGangMode])
		require.Equal(l.t, "true", pods[i].Labels[v1alpha1.LabelPreemptible])
	}
}

// requireGang: the pods are of this gang; of none without a name.
func (l *life) requireGang(name string, minimum int, pods ...corev1.Pod) {
	l.t.Helper()
	want := ""
	if minimum > 0 {
		want = strconv.Itoa(minimum)
	}
	for i := range pods {
		require.Equal(l.t, name, pods[i].Annotations[gangName])
		require.Equal(l.t, want, pods[i].Annotations[gangMinimum])
	}
}

const nodeLabel = "example.com/for"

func workersOn(node string) func(*unstructured.Unstructured) {
	return func(job *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringMap(job.Object, map[string]string{nodeLabel: node}, "spec", "pytorchReplicaSpecs",
			"Worker", "template", "spec", "nodeSelector")
	}
}

func (c *cluster) labelNode(t *testing.T, value string) {
	t.Helper()
	list, err := c.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = c.kube.CoreV1().Nodes().Patch(t.Context(), list.Items[0].Name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+nodeLabel+`":"`+value+`"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// coscheduled gives a TrainJob a runtime that has a PodGroup made for it.
func (c *cluster) coscheduled(t *testing.T, namespace string) func(*unstructured.Unstructured) {
	return func(job *unstructured.Unstructured) {
		others, _ := manifest(t, "trainjob")
		runtime := others[0]
		runtime.SetName("coscheduled")
		require.NoError(t, unstructured.SetNestedField(runtime.Object, int64(60), "spec", "podGroupPolicy", "coscheduling",
			"scheduleTimeoutSeconds"))
		_, err := c.resource(t, runtime.GroupVersionKind()).Namespace(namespace).Create(t.Context(), runtime,
			metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, unstructured.SetNestedField(job.Object, "coscheduled", "spec", "runtimeRef", "name"))
	}
}
