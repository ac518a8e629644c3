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

// Package jobobjects makes the objects that tests of jobs read.
package jobobjects

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
)

// BatchJob is the kind of Kubernetes' own jobs.
func BatchJob(t testing.TB) *jobkind.Kind {
	t.Helper()
	kind, ok := jobkind.Find("Job.v1.batch")
	require.True(t, ok)
	return kind
}

// Object reads YAML; a Job named j in namespace team, with UID u1, unless it says otherwise.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	if u.Object == nil {
		u.Object = map[string]any{}
	}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})
	if u.GetName() == "" {
		u.SetName("j")
		u.SetNamespace("team")
		u.SetUID("u1")
	}
	return u
}

// Pod is the n-th pod of a group, or one of none.
func Pod(n int, group, total string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: fmt.Sprintf("p%d", n), UID: types.UID(fmt.Sprintf("uid-%d", n)),
			CreationTimestamp: metav1.NewTime(time.Unix(int64(1000+n), 0)),
			Labels:            map[string]string{v1alpha1.LabelQuotaName: "a", "index": fmt.Sprint(n)},
			Annotations:       map[string]string{v1alpha1.AnnotationSuspendedBy: "forged", "secret": "s"},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "c", Env: []corev1.EnvVar{{Name: "secret"}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
				},
			}},
			Volumes: []corev1.Volume{{Name: fmt.Sprintf("kube-api-access-%d", n)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if group != "" {
		pod.Labels[podgroup.LabelName] = group
		pod.Annotations[podgroup.AnnotationTotal] = total
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}
