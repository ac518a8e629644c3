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

package standin_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/standin"
)

const (
	waitFor = 90 * time.Second
	poll    = 100 * time.Millisecond
)

// withStatefulSets has the controller of StatefulSets run as well, which LeaderWorkerSet needs.
const withStatefulSets = "--controllers=job-controller,garbage-collector-controller,pod-garbage-collector-controller," +
	"namespace-controller,ttl-after-finished-controller,serviceaccount-controller,statefulset-controller"

// story is how the sample of a kind runs.
type story struct {
	suspend string // path of the field; "" for a kind that has none
	// state, where it is, and what it is while suspended, while running and in the end.
	state                      string
	suspended, running, result string
	// pods while it runs.
	pods int
	// ends are pods that succeed so that it ends, by a part of their names; the Job controller follows.
	ends []string
}

var stories = map[string]story{
	"mpijob.yaml": {
		suspend: "spec.runPolicy.suspend", state: "status.conditions", suspended: "Suspended", running: "Running",
		result: "Succeeded", pods: 3, ends: []string{"pi-launcher"},
	},
	"raycluster.yaml": {suspend: "spec.suspend", state: "status.state", suspended: "suspended", running: "ready", pods: 3},
	"rayjob.yaml": {
		suspend: "spec.suspend", state: "status.jobDeploymentStatus", suspended: "Suspended", running: "Running",
		result: "Complete", pods: 3, ends: []string{"sample"},
	},
	"sparkapplication.yaml": {
		suspend: "spec.suspend", state: "status.applicationState.state", suspended: "SUSPENDED", running: "RUNNING",
		result: "COMPLETED", pods: 3, ends: []string{"spark-pi-driver"},
	},
	"workflow.yaml": {
		suspend: "spec.suspend", state: "status.conditions", running: "PodRunning", result: "Completed", pods: 1,
		ends: []string{"diamond-echo", "diamond-gen", "diamond-gen", "diamond-echo", "diamond-echo", "diamond-echo"},
	},
	"leaderworkerset.yaml": {state: "status.conditions", running: "Available", pods: 4},
}

// The stand-in does against a real API server, with the garbage collector, the controllers of Jobs and StatefulSets and
// nodes that KWOK plays, what its unit tests say. A goroutine is the scheduler.
func TestStandin(t *testing.T) {
	cp, c := start(t, controlplane.Options{
		Components: controlplane.Full(), Nodes: 2, NodeCPU: "64", NodeMemory: "256Gi",
		ControllerManagerArgs: []string{withStatefulSets},
	})
	mgr, err := standin.NewManager(cp.RESTConfig(controlplane.Admin), standin.Kinds(), "0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- mgr.Start(ctx) }()
	go func() { ended <- bind(ctx, cp) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
	all := samples(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(stories)))
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { story.tell(t, c, all[name]) })
	}
}

func (s story) tell(t *testing.T, c client.Client, job *unstructured.Unstructured) {
	require.NoError(t, c.Create(t.Context(), job))
	if s.suspended != "" {
		s.await(t, c, job, s.suspended)
		require.Empty(t, pods(t, c, job.GetName()))
	}
	s.setSuspend(t, c, job, false)
	s.await(t, c, job, s.running)
	require.Eventually(t, func() bool { return len(pods(t, c, job.GetName())) >= s.pods }, waitFor, poll)
	if s.suspended != "" {
		s.setSuspend(t, c, job, true)
		s.await(t, c, job, s.suspended)
		require.Eventually(t, func() bool { return len(pods(t, c, job.GetName())) == 0 }, waitFor, poll)
		s.setSuspend(t, c, job, false)
		s.await(t, c, job, s.running)
	}
	for _, part := range s.ends {
		s.succeed(t, c, job, part)
	}
	if s.result != "" {
		s.await(t, c, job, s.result)
	}
	// The garbage collector hears of new kinds twice a minute only: the first story takes that long.
	require.NoError(t, c.Delete(t.Context(), job))
	require.Eventually(t, func() bool { return len(pods(t, c, job.GetName())) == 0 }, waitFor, poll)
}

// await waits until the state is that, or the condition is true.
func (s story) await(t *testing.T, c client.Client, job *unstructured.Unstructured, want string) {
	t.Helper()
	path := strings.Split(s.state, ".")
	require.Eventually(t, func() bool {
		got := newLike(job)
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(job), got))
		value, _, _ := unstructured.NestedFieldNoCopy(got.Object, path...)
		conditions, ok := value.([]any)
		if !ok {
			return value == want
		}
		for _, condition := range conditions {
			condition, _ := condition.(map[string]any)
			if condition["type"] == want && condition["status"] == "True" {
				return true
			}
		}
		return false
	}, waitFor, poll, "%s is never %s", job.GetName(), want)
}

func (s story) setSuspend(t *testing.T, c client.Client, job *unstructured.Unstructured, value bool) {
	t.Helper()
	if s.suspend == "" {
		return
	}
	patch := newLike(job)
	patch.SetName(job.GetName())
	patch.SetNamespace(job.GetNamespace())
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(job), patch))
	before := patch.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(patch.Object, value, strings.Split(s.suspend, ".")...))
	require.NoError(t, c.Patch(t.Context(), patch, client.MergeFrom(before)))
}

// succeed plays kubelet: a running pod with that beginning of its name, and no suffix that tells of a cluster, ends
// well.
func (s story) succeed(t *testing.T, c client.Client, job *unstructured.Unstructured, beginning string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, pod := range pods(t, c, job.GetName()) {
			if !strings.HasPrefix(pod.Name, beginning) || pod.Labels["ray.io/cluster"] != "" {
				continue
			}
			if pod.Status.Phase == corev1.PodRunning {
				pod.Status.Phase = corev1.PodSucceeded
				return c.Status().Update(t.Context(), &pod) == nil
			}
			// KWOK was first, if it is the pod of a Job.
			if pod.Status.Phase == corev1.PodSucceeded && pod.Labels["batch.kubernetes.io/job-name"] != "" {
				return true
			}
		}
		return false
	}, waitFor, poll, "no pod %s runs", beginning)
}

// pods of a job, which all have its name at the beginning of theirs.
func pods(t *testing.T, c client.Client, job string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(namespace)))
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !strings.HasPrefix(pod.Name, job) })
}

// bind is a scheduler that asks for nothing.
func bind(ctx context.Context, cp *controlplane.ControlPlane) error {
	clientset, err := kubernetes.NewForConfig(cp.RESTConfig(controlplane.Admin))
	if err != nil {
		return err
	}
	c, err := client.New(cp.RESTConfig(controlplane.Admin), client.Options{})
	if err != nil {
		return err
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		list := &corev1.PodList{}
		if err := c.List(ctx, list, client.MatchingFields{"spec.nodeName": ""}); err != nil {
			return // it is tried again
		}
		for _, pod := range list.Items {
			// One that is gone by now needs no node.
			_ = clientset.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
				ObjectMeta: pod.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: controlplane.NodeName(0)},
			}, metav1.CreateOptions{})
		}
	}, poll)
	return nil
}
