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

package api_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/stray"
)

// TestAQueueOutsideOfTheQueueNamespace gets its warning once, with only the shipped rights.
func TestAQueueOutsideOfTheQueueNamespace(t *testing.T) {
	client := connect(t)
	ensureNamespace(t, client, "it-stray")
	ended := startAsController(t, func(_ context.Context, mgr ctrl.Manager) error {
		return stray.Setup(mgr, schedulingv1alpha1.DefaultQueueNamespace)
	})
	apply := func(namespace, policy string) *unstructured.Unstructured {
		queue := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"queuePolicy": policy}}}
		queue.SetGroupVersionKind(schedulingv1alpha1.SchemeGroupVersion.WithKind("Queue"))
		queue.SetName("it-stray")
		out, err := client.Resource(schedulingv1alpha1.QueueResource).Namespace(namespace).
			Apply(t.Context(), "it-stray", queue, metav1.ApplyOptions{FieldManager: manager, Force: true})
		require.NoError(t, err)
		return out
	}
	get := func(namespace string) *unstructured.Unstructured {
		queue, err := client.Resource(schedulingv1alpha1.QueueResource).Namespace(namespace).
			Get(t.Context(), "it-stray", metav1.GetOptions{})
		require.NoError(t, err)
		return queue
	}
	told := func(generation int64) map[string]any {
		conditions, _, _ := unstructured.NestedSlice(get("it-stray").Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Active" && c["observedGeneration"] == generation {
				return c
			}
		}
		return nil
	}
	apply(schedulingv1alpha1.DefaultQueueNamespace, "FIFO")
	first := apply("it-stray", "FIFO")
	require.Eventually(t, func() bool { return told(first.GetGeneration()) != nil }, 30*time.Second, 50*time.Millisecond)
	active := told(first.GetGeneration())
	require.Equal(t, stray.Reason, active["reason"])
	require.Equal(t, "False", active["status"])
	require.Contains(t, active["message"], "namespace "+schedulingv1alpha1.DefaultQueueNamespace)

	cron := &batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: "@yearly"}}
	cron.Namespace, cron.Name = "it-stray", "nightly"
	cron.Labels = map[string]string{schedulingv1alpha1.LabelQuotaName: "a"}
	template := &cron.Spec.JobTemplate.Spec.Template.Spec
	template.RestartPolicy, template.Containers = corev1.RestartPolicyNever, []corev1.Container{{Name: "c", Image: "none"}}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cron)
	require.NoError(t, err)
	nightly := &unstructured.Unstructured{Object: object}
	nightly.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("CronJob"))
	_, err = client.Resource(batchv1.SchemeGroupVersion.WithResource("cronjobs")).Namespace("it-stray").
		Create(t.Context(), nightly, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		told, err := client.Resource(eventsv1.SchemeGroupVersion.WithResource("events")).Namespace("it-stray").
			List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		var reasons []string
		for i := range told.Items {
			reason, _, _ := unstructured.NestedString(told.Items[i].Object, "reason")
			reasons = append(reasons, reason)
		}
		return slices.Contains(reasons, stray.Reason) && slices.Contains(reasons, stray.ReasonLabels)
	}, 30*time.Second, 50*time.Millisecond)

	// A status that somebody else writes is no reason to write; a spec that changes is, and another condition stays.
	_, err = client.Resource(schedulingv1alpha1.QueueResource).Namespace("it-stray").Patch(t.Context(), "it-stray",
		types.MergePatchType, []byte(`{"status":{"pending":1}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	second := apply("it-stray", "Block")
	require.Eventually(t, func() bool { return told(second.GetGeneration()) != nil }, 30*time.Second, 50*time.Millisecond)
	require.Equal(t, active["lastTransitionTime"], told(second.GetGeneration())["lastTransitionTime"])
	pending, _, _ := unstructured.NestedInt64(get("it-stray").Object, "status", "pending")
	require.Equal(t, int64(1), pending)

	require.Nil(t, get(schedulingv1alpha1.DefaultQueueNamespace).Object["status"], "the scheduler's to write")
	select {
	case err := <-ended:
		require.Fail(t, "the controller ended", "%v", err)
	default:
	}
}
