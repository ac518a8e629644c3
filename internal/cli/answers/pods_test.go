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

package answers

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func controlledBy(kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "batch/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true),
	}
}

// Pods are named that use the quota and that no admitted unit accounts for: of the own namespace, and so many.
func TestOtherPods(t *testing.T) {
	pod := func(name string, edits ...func(*corev1.Pod)) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, Labels: map[string]string{v1alpha1.LabelQuotaName: "q"},
		}}
		p.Spec.NodeName = "n"
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	of := func(job string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{controlledBy("Job", job)} }
	}
	job := func(name, owner string) client.Object {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
		if owner != "" {
			j.OwnerReferences = []metav1.OwnerReference{controlledBy("JobSet", owner)}
		}
		return j
	}
	unit := func(name string, admitted bool) client.Object {
		u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		u.Spec.ConsumerRef = &corev1.ObjectReference{UID: types.UID(name)}
		if admitted {
			u.Status.Admissions = []v1alpha1.Admission{{Name: "a", Replicas: 1}}
		}
		return u
	}
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	objects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		unit("runs", true), unit("set", true), unit("waits", false),
		job("part", "set"), job("waits", ""), job("other", ""),
		pod("a-bare"), pod("b-of-unit", func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: "team/runs"}
		}),
		pod("c-of-job", of("runs")), pod("d-of-part", of("part")), pod("e-of-part", of("part")), pod("f-waits", of("waits")),
		pod("g-other", of("other")), pod("h-gone", of("gone")),
		pod("i-names-foreign", func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: "other/runs"}
		}),
		pod("j-pending", func(p *corev1.Pod) { p.Spec.NodeName = "" }),
		pod("k-ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("l-of-others", func(p *corev1.Pod) { p.Labels = nil }),
		pod("m-elsewhere", func(p *corev1.Pod) { p.Namespace = "other" }),
	).Build()
	var asked int
	r := &Reader{Objects: interceptor.NewClient(objects, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			pods, is := list.(*metav1.PartialObjectMetadataList)
			if !is {
				return c.List(ctx, list, opts...)
			}
			var o client.ListOptions
			o.ApplyOptions(opts)
			require.NotZero(t, o.Limit)
			whole := &corev1.PodList{}
			err := c.List(ctx, whole, client.InNamespace(o.Namespace),
				client.MatchingLabelsSelector{Selector: o.LabelSelector})
			for i := range whole.Items {
				p := &whole.Items[i]
				if o.FieldSelector.Matches(fields.Set{"spec.nodeName": p.Spec.NodeName, "status.phase": string(p.Status.Phase)}) {
					pods.Items = append(pods.Items, metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta})
				}
			}
			return err
		},
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			if asked++; o.GetObjectKind().GroupVersionKind().Kind != "Job" {
				return fmt.Errorf("nobody may read these")
			}
			return c.Get(ctx, key, o, opts...)
		},
	})}
	names, more, err := OtherPods(t.Context(), r, "team", "q", 3)
	require.NoError(t, err)
	require.Equal(t, []string{"a-bare", "f-waits", "g-other"}, names)
	require.Equal(t, 2, more)
	require.Equal(t, 4, asked, "each owner is read once, and none of an admitted unit")
}
