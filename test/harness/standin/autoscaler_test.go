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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
)

func TestTheAutoscalerAnswersByItsScript(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, autoscalingv1.AddToScheme(scheme))
	objects := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&autoscalingv1.ProvisioningRequest{}).Build()
	clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	a := &Autoscaler{Client: objects, Clock: clk}
	create := func(name string) {
		require.NoError(t, objects.Create(t.Context(), &autoscalingv1.ProvisioningRequest{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "X", Name: "x", UID: "x", Controller: ptr.To(true)}}},
			Spec: autoscalingv1.ProvisioningRequestSpec{
				PodSets: []autoscalingv1.PodSet{{PodTemplateRef: autoscalingv1.Reference{Name: "t"}, Count: 1}},
				Parameters: map[string]autoscalingv1.Parameter{
					AnswersParameter: "Failed;Accepted,Provisioned,used,2s,BookingExpired+CapacityRevoked"},
			},
		}))
	}
	says := func(name string) (kinds []string) {
		key := client.ObjectKey{Namespace: "ns", Name: name}
		for range 5 {
			_, err := a.reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			require.NoError(t, err)
		}
		r := &autoscalingv1.ProvisioningRequest{}
		require.NoError(t, objects.Get(t.Context(), key, r))
		for _, c := range r.Status.Conditions {
			kinds = append(kinds, c.Type)
		}
		return kinds
	}
	create("one")
	require.Empty(t, says("one"), "its template is not there")
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"}}
	template.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
	require.NoError(t, objects.Create(t.Context(), template))
	require.Equal(t, []string{"Failed"}, says("one"))
	create("two")
	require.Equal(t, []string{"Accepted", "Provisioned"}, says("two"))
	require.NoError(t, objects.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Annotations: map[string]string{
			autoscalingv1.AnnotationConsume: "two"}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}))
	require.Equal(t, []string{"Accepted", "Provisioned"}, says("two"))
	clk.SetTime(clk.Now().Add(2 * time.Second))
	require.Equal(t, []string{"Accepted", "Provisioned", "BookingExpired", "CapacityRevoked"}, says("two"))
	create("three")
	require.Equal(t, []string{"Accepted", "Provisioned"}, says("three"), "the last answer is for all that follow")
	require.Equal(t, []string{"Failed"}, says("one"))
}
