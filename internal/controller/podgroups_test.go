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

package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
)

func plainPod(name, group string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID("uid-" + name),
			Labels: map[string]string{v1alpha1.LabelQuotaName: "a"},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "koord-scheduler",
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
			}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if group != "" {
		pod.Labels[podgroup.LabelName] = group
		pod.Annotations = map[string]string{podgroup.AnnotationTotal: "2"}
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func podPredicate(t *testing.T) *managedjobs.Predicate {
	t.Helper()
	m, err := managedjobs.Parse("kinds: [Pod.v1.]")
	require.NoError(t, err)
	p, err := managedjobs.NewPredicate(m)
	require.NoError(t, err)
	return p
}

// A group is the same whether it is read from a cache or from the API server.
func TestPodGroupsAreRead(t *testing.T) {
	p := podPredicate(t)
	unlabelled := func(pod *corev1.Pod) { delete(pod.Labels, v1alpha1.LabelQuotaName) }
	c := fake.NewClientBuilder().WithObjects(plainPod("a", "ring"), plainPod("b", "ring"), plainPod("alone", ""),
		plainPod("ring", "other"), plainPod("free", "", unlabelled)).
		WithIndex(&corev1.Pod{}, podGroupIndex, func(pod client.Object) []string {
			return []string{podgroup.NameOf(pod)}
		}).Build()
	for name, groups := range map[string]podGroups{
		"cached": {Reader: c, predicate: p, indexed: true}, "live": {Reader: c, predicate: p},
	} {
		t.Run(name, func(t *testing.T) {
			for group, want := range map[string]int64{"ring": 2, "alone": 1, "other": 1} {
				job := &unstructured.Unstructured{}
				require.NoError(t, groups.Get(context.Background(), types.NamespacedName{Namespace: "team", Name: group}, job))
				pods, _, err := unstructured.NestedInt64(job.Object, "status", "pods")
				require.NoError(t, err)
				require.Equal(t, want, pods, group)
			}
			for _, none := range []string{"free", "a", "nobody"} {
				err := groups.Get(context.Background(), types.NamespacedName{Namespace: "team", Name: none},
					&unstructured.Unstructured{})
				require.NoError(t, client.IgnoreNotFound(err))
				require.Error(t, err, none)
			}
			list := &unstructured.UnstructuredList{}
			require.NoError(t, groups.List(context.Background(), list, client.InNamespace("team")))
			var names []string
			for i := range list.Items {
				names = append(names, list.Items[i].GetName())
			}
			require.ElementsMatch(t, []string{"ring", "alone", "other"}, names)
		})
	}
}
