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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
)

// named is a pod of no group, with the name of the group.
func named(n int, edits ...func(*corev1.Pod)) *corev1.Pod {
	return grouped(n, "", "", append(edits, func(pod *corev1.Pod) { pod.Name = "g" })...)
}

func onNode(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Phase = "n"+pod.Name, corev1.PodRunning }

func phase(p corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = p }
}

func larger(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
}

func TestPodGroup(t *testing.T) {
	done, failed := phase(corev1.PodSucceeded), phase(corev1.PodFailed)
	for name, tc := range map[string]struct {
		pods                   []*corev1.Pod
		counts                 []int32
		invalid, started, over bool
		succeeded              bool
	}{
		"a pod by itself": {pods: []*corev1.Pod{grouped(1, "", "")}, counts: []int32{1}},
		"it is on a node": {pods: []*corev1.Pod{grouped(1, "", "", onNode)}, counts: []int32{1}, started: true},
		"it has ended": {
			pods: []*corev1.Pod{grouped(1, "", "", done)}, counts: []int32{0}, over: true, succeeded: true,
		},
		"it has failed":         {pods: []*corev1.Pod{grouped(1, "", "", failed)}, counts: []int32{0}, over: true},
		"a group":               {pods: []*corev1.Pod{grouped(2, "g", "2"), grouped(1, "g", "2")}, counts: []int32{2}},
		"some of it are there":  {pods: []*corev1.Pod{grouped(1, "g", "2")}, counts: []int32{1}, invalid: true},
		"nobody knows how many": {pods: []*corev1.Pod{grouped(1, "g", "many")}, counts: []int32{1}, invalid: true},
		"absurdly many":         {pods: []*corev1.Pod{grouped(1, "g", "2000000000")}, counts: []int32{1}, invalid: true},
		"two shapes": {
			pods:   []*corev1.Pod{grouped(1, "g", "3"), grouped(2, "g", "3"), grouped(3, "g", "3", larger)},
			counts: []int32{1, 2},
		},
		"one has ended": {
			pods: []*corev1.Pod{grouped(1, "g", "2", done), grouped(2, "g", "2", onNode)}, counts: []int32{1}, started: true,
		},
		"all have ended": {
			pods: []*corev1.Pod{grouped(1, "g", "2", done), grouped(2, "g", "2", done)}, counts: []int32{0}, over: true,
			succeeded: true,
		},
		"a younger pod of no group has its name": {
			pods:   []*corev1.Pod{grouped(1, "g", "2"), grouped(2, "g", "2"), named(3)},
			counts: []int32{2}, invalid: true,
		},
		"that pod ends before the group": {
			pods:   []*corev1.Pod{grouped(1, "g", "2", onNode), grouped(2, "g", "2", onNode), named(3, done)},
			counts: []int32{2}, started: true,
		},
		"an older pod of no group has its name": {
			pods:   []*corev1.Pod{named(1), grouped(2, "g", "2"), grouped(3, "g", "2")},
			counts: []int32{1}, invalid: true,
		},
		"the group ends before that pod": {
			pods:   []*corev1.Pod{named(1, onNode), grouped(2, "g", "2", done), grouped(3, "g", "2", done)},
			counts: []int32{1}, started: true,
		},
		"one runs, the other was deleted": {
			pods: []*corev1.Pod{grouped(1, "g", "2", onNode)}, counts: []int32{1}, started: true,
		},
		"one has ended, the other was deleted": {
			pods: []*corev1.Pod{grouped(1, "g", "2", done)}, counts: []int32{0}, over: true,
		},
		"one has failed": {
			pods: []*corev1.Pod{grouped(1, "g", "2", failed), grouped(2, "g", "2", done)}, counts: []int32{0}, over: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, ok := jobkind.Find("Pod.v1.")
			require.True(t, ok)
			whole, err := podgroup.Of(tc.pods)
			require.NoError(t, err)
			compact := make([]*corev1.Pod, len(tc.pods))
			for i := range compact {
				compact[i] = podgroup.Compact(tc.pods[i], true)
			}
			group, err := podgroup.Of(compact)
			require.NoError(t, err)
			require.Equal(t, whole.Object["spec"], group.Object["spec"], "of what caches keep")
			require.Equal(t, whole.Object["status"], group.Object["status"])
			sets, err := Open(kind, group).PodSets()
			require.NoError(t, err)
			var counts []int32
			for i := range sets {
				counts = append(counts, sets[i].Count)
				require.Empty(t, sets[i].Template.Spec.NodeName)
				require.Equal(t, map[string]string{v1alpha1.LabelQuotaName: "a"}, sets[i].Template.Labels)
			}
			require.ElementsMatch(t, tc.counts, counts)
			require.Equal(t, tc.invalid, Open(kind, group).Invalid() != "")
			require.Equal(t, tc.started, Open(kind, group).Started())
			end, over := Open(kind, group).Ended()
			require.Equal(t, tc.over, over)
			require.Equal(t, tc.succeeded, end.Succeeded)
			require.NotContains(t, group.GetAnnotations(), v1alpha1.AnnotationSuspendedBy,
				"nobody forges what the controller remembers")
			require.Equal(t, types.UID("uid-1"), group.GetUID())
		})
	}
	none, err := podgroup.Of(nil)
	require.NoError(t, err)
	require.Nil(t, none)
}
