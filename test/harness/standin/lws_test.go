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
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const lwsManifest = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llm}
spec:
  replicas: 0
  leaderWorkerTemplate:
    size: 3
    leaderTemplate: {metadata: {labels: {mine: "1"}}, spec: {containers: [{name: leader, image: vllm}]}}
    workerTemplate: {spec: {containers: [{name: worker, image: vllm}]}}
`

// playSets plays the StatefulSet controller and the webhook: pods are made and, with run, run.
func (w *world) playSets(t *testing.T, run bool) {
	t.Helper()
	for range 3 { // leaders, their workers, what came of them
		sets := &appsv1.StatefulSetList{}
		require.NoError(t, w.List(t.Context(), sets))
		for _, set := range sets.Items {
			w.playSet(t, &set, run)
		}
		w.settle(t)
		w.collect(t)
	}
}

func (w *world) playSet(t *testing.T, set *appsv1.StatefulSet, run bool) {
	t.Helper()
	from := int32(0)
	if set.Spec.Ordinals != nil {
		from = set.Spec.Ordinals.Start
	}
	wanted := map[string]bool{}
	for i := from; i < from+*set.Spec.Replicas; i++ {
		pod := newPod(namespace, set.Spec.Template.DeepCopy(), []metav1.OwnerReference{
			*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")),
		})
		pod.Name = fmt.Sprintf("%s-%d", set.Name, i)
		wanted[pod.Name] = true
		require.NoError(t, labelGroup(pod, namespace))
		if found := w.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{}); found != nil {
			require.NoError(t, w.Create(t.Context(), pod))
		}
		if run {
			w.play(t, pod.Name, corev1.PodRunning)
		}
	}
	readyPods := int32(0)
	for _, pod := range w.listPods(t) {
		switch {
		case !metav1.IsControlledBy(&pod, set):
		case !wanted[pod.Name]:
			require.NoError(t, w.Delete(t.Context(), &pod))
		case ready(pod):
			readyPods++
		}
	}
	set.Status.Replicas, set.Status.UpdatedReplicas = *set.Spec.Replicas, *set.Spec.Replicas
	set.Status.ReadyReplicas = readyPods
	require.NoError(t, w.Status().Update(t.Context(), set))
}

func lwsState(t *testing.T, w *world) string {
	t.Helper()
	st := part(w.object(t).Object, "status")
	return fmt.Sprintf("%v/%v %s", st["readyReplicas"], st["replicas"], w.conditions(t))
}

// lwsChildren are those of a number of groups, in a phase.
func lwsChildren(groups int, phase string) []string {
	if phase != "" {
		phase = " " + phase
	}
	children := []string{fmt.Sprintf("StatefulSet llm replicas=%d of LeaderWorkerSet llm", groups)}
	for i := range groups {
		leader := fmt.Sprintf("llm-%d", i)
		children = append(children,
			"Pod "+leader+phase+" of StatefulSet llm", "StatefulSet "+leader+" replicas=2 of Pod "+leader,
			"Pod "+leader+"-1"+phase+" of StatefulSet "+leader, "Pod "+leader+"-2"+phase+" of StatefulSet "+leader)
	}
	return children
}

func TestLeaderWorkerSet(t *testing.T) {
	scaled := func(replicas int64, run bool) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			t.Helper()
			w.change(t, "spec.replicas", replicas)
			w.settle(t)
			w.playSets(t, run)
		}
	}
	tell(t, newWorld(t, lwsManifest, LeaderWorkerSet), lwsState, []step{
		{name: "created with no replicas", children: lwsChildren(0, ""), state: "0/0 Available=True"},
		{
			name: "two groups", do: scaled(2, false), children: lwsChildren(2, ""),
			state: "0/2 Available=False Progressing=True",
		},
		{
			name:     "running",
			do:       func(t *testing.T, w *world) { w.playSets(t, true) },
			children: lwsChildren(2, "Running"), state: "2/2 Available=True Progressing=False",
		},
		{
			name: "scaled to nothing", do: scaled(0, true), children: lwsChildren(0, ""),
			state: "0/0 Available=True Progressing=False",
		},
		{
			name: "and back", do: scaled(1, true), children: lwsChildren(1, "Running"),
			state: "1/1 Available=True Progressing=False",
		},
	})
}

func TestLeaderWorkerSetPods(t *testing.T) {
	w := newWorld(t, lwsManifest, LeaderWorkerSet)
	w.change(t, "spec.replicas", int64(2))
	w.settle(t)
	w.playSets(t, true)
	leader, worker := w.podNamed(t, "llm-1"), w.podNamed(t, "llm-1-2")
	key := leader.Labels[lwsKeyLabel]
	require.Len(t, key, 40)
	revision := leader.Labels[lwsRevisionLabel]
	require.Equal(t, map[string]string{
		"mine": "1", lwsNameLabel: "llm", lwsGroupLabel: "1", lwsIndexLabel: "0", lwsKeyLabel: key,
		lwsRevisionLabel: revision,
	}, leader.Labels)
	require.Equal(t, map[string]string{
		lwsNameLabel: "llm", lwsGroupLabel: "1", lwsIndexLabel: "2", lwsKeyLabel: key, lwsRevisionLabel: revision,
	}, worker.Labels)
	require.Contains(t, worker.Spec.Containers[0].Env, corev1.EnvVar{Name: "LWS_LEADER_ADDRESS", Value: "llm-1.llm.team"})
}

func TestLeaderWorkerSetTemplates(t *testing.T) {
	for name, test := range map[string]struct {
		path  string
		value any
		want  []string
	}{
		"no template of leaders": {
			path: "spec.leaderWorkerTemplate.leaderTemplate", value: nil, want: lwsChildren(1, ""),
		},
		"leaders only": {path: "spec.leaderWorkerTemplate.size", value: int64(1), want: []string{
			"StatefulSet llm replicas=1 of LeaderWorkerSet llm", "Pod llm-0 of StatefulSet llm",
		}},
		"workers wait for leaders": {path: "spec.startupPolicy", value: "LeaderReady", want: []string{
			"StatefulSet llm replicas=1 of LeaderWorkerSet llm", "Pod llm-0 of StatefulSet llm",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, lwsManifest, LeaderWorkerSet)
			w.change(t, test.path, test.value)
			w.change(t, "spec.replicas", int64(1))
			w.settle(t)
			w.playSets(t, false)
			tell(t, w, func(*testing.T, *world) string { return "" }, []step{{name: "created", children: test.want}})
		})
	}
}

// When a pod of a group is restarted the whole group is, unless the policy says otherwise.
func TestLeaderWorkerSetRestarts(t *testing.T) {
	for policy, want := range map[string]int{"RecreateGroupOnPodRestart": 3, "None": 6} {
		t.Run(policy, func(t *testing.T) {
			w := newWorld(t, lwsManifest, LeaderWorkerSet)
			w.change(t, "spec.leaderWorkerTemplate.restartPolicy", policy)
			w.change(t, "spec.replicas", int64(2))
			w.settle(t)
			w.playSets(t, true)
			worker := w.podNamed(t, "llm-1-2")
			worker.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "worker", RestartCount: 1}}
			require.NoError(t, w.Status().Update(t.Context(), &worker))
			w.settle(t)
			w.collect(t)
			require.Len(t, w.listPods(t), want)
		})
	}
}

func TestPodWebhook(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "llm-3", Labels: map[string]string{lwsNameLabel: "llm", lwsIndexLabel: "0"},
		Annotations: map[string]string{lwsSizeAnnotation: "2"},
	}}
	ask := func() admission.Response {
		raw, err := json.Marshal(pod)
		require.NoError(t, err)
		return (&PodWebhook{}).handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Namespace: namespace, Object: runtime.RawExtension{Raw: raw},
		}})
	}
	require.True(t, ask().Allowed)
	require.Len(t, ask().Patches, 2)
	delete(pod.Annotations, lwsSizeAnnotation)
	require.False(t, ask().Allowed)
}
