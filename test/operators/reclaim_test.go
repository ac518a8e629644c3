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
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// department makes a quota in a namespace, below a parent or, if it is empty, as a parent of others.
func (c *cluster) department(t *testing.T, namespace, name, parent, minCPU, maxCPU string) {
	t.Helper()
	labels := map[string]any{v1alpha1.LabelQuotaParent: parent, "quota.scheduling.koordinator.sh/is-parent": "false"}
	if parent == "" {
		labels = map[string]any{
			v1alpha1.LabelQuotaParent: "koordinator-root-quota", "quota.scheduling.koordinator.sh/is-parent": "true",
		}
	}
	_, err := c.dyn.Resource(elasticQuotas).Namespace(namespace).Create(t.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
			"metadata": map[string]any{"name": name, "labels": labels},
			"spec": map[string]any{
				"min": map[string]any{"cpu": minCPU}, "max": map[string]any{"cpu": maxCPU, "memory": "100Gi"},
			},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// patchQueue of a quota, once there is one.
func (c *cluster) patchQueue(t *testing.T, name, patch string) {
	t.Helper()
	queues := c.dyn.Resource(v1alpha1.QueueResource).Namespace(v1alpha1.DefaultQueueNamespace)
	require.Eventually(t, func() bool {
		_, err := queues.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err == nil
	}, soon, pace, "queue %s", name)
}

// awaitCondition of its object.
func (l *life) awaitCondition(kind, status string) {
	l.t.Helper()
	l.eventually(kind+" is "+status, func(context.Context) (bool, error) {
		list, _, _ := unstructured.NestedSlice(l.current().Object, "status", "conditions")
		return slices.ContainsFunc(list, func(item any) bool {
			condition, _ := item.(map[string]any)
			return condition["type"] == kind && condition["status"] == status
		}), nil
	})
}

// TestReclaimFromAnOperator: a PyTorchJob borrows, and the owner of the min takes it back. The pods of the borrower get
// a notice and acknowledge, training-operator deletes them, and the owner runs. Then the borrower runs again.
func TestReclaimFromAnOperator(t *testing.T) {
	c := queueCluster(t)
	c.logsOfFailure(t)
	kind := &jobKinds[0]
	require.Equal(t, "pytorchjob", kind.name)
	const borrowerQuota, ownerQuota = "reclaim-borrower", "reclaim-owner"
	borrower := c.create(t, kind, borrowerQuota, true, inQuota(borrowerQuota), func(job *unstructured.Unstructured) {
		job.SetAnnotations(map[string]string{v1alpha1.AnnotationGrace: "600"})
	})
	c.department(t, borrowerQuota, "reclaim-all", "", "600m", "600m")
	c.department(t, borrowerQuota, borrowerQuota, "reclaim-all", "0", "600m")
	c.department(t, borrowerQuota, ownerQuota, "reclaim-all", "600m", "600m")
	c.patchQueue(t, borrowerQuota, `{"spec":{"preemption":{"maxGraceSeconds":600,"minRunTimeSeconds":0}}}`)
	c.patchQueue(t, ownerQuota, `{"spec":{"preemption":{"reclaim":"Any"}}}`)
	before := borrower.awaitRunning()
	borrower.awaitPhase(v1alpha1.PhaseRunning)

	// The owner comes. The borrower loses its quota and runs on until its pods have acknowledged.
	owner := c.create(t, kind, ownerQuota, true, inQuota(ownerQuota))
	evicted := borrower.awaitEvicted()
	require.Equal(t, "Reclaimed", evicted.Reason)
	require.Contains(t, evicted.Message, ownerQuota)
	for _, pod := range borrower.awaitNotice(evicted.LastTransitionTime.Add(600 * time.Second)) {
		require.False(t, borrower.suspended(), "pod %s has not acknowledged", pod.Name)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationCheckpointed,
			time.Now().UTC().Format(time.RFC3339))
		_, err := c.kube.CoreV1().Pods(borrower.namespace).Patch(t.Context(), pod.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		require.NoError(t, err)
	}
	borrower.eventually("it is suspended", func(context.Context) (bool, error) { return borrower.suspended(), nil })
	borrower.awaitCondition("Suspended", "True")
	owner.awaitRunning()
	require.Empty(t, borrower.pods(), "the owner has all that there is")
	owner.awaitPhase(v1alpha1.PhaseRunning)
	require.Equal(t, "Reclaimed", borrower.awaitEvicted().Reason)

	// The owner ends, and the borrower runs again with new pods.
	owner.endPods(true)
	owner.awaitPhase(v1alpha1.PhaseSucceed)
	for _, pod := range borrower.awaitRunning() {
		require.Empty(t, pod.Annotations[v1alpha1.AnnotationSuspendAt])
		require.False(t, slices.ContainsFunc(before, func(b corev1.Pod) bool { return b.UID == pod.UID }))
	}
	again := borrower.awaitPhase(v1alpha1.PhaseRunning)
	require.EqualValues(t, 2, again.Status.Attempts)
	require.True(t, meta.IsStatusConditionFalse(again.Status.Conditions, v1alpha1.ConditionEvicted))
	borrower.awaitCondition("Suspended", "False")
	borrower.awaitCondition("Running", "True")
	borrower.endPods(true)
	borrower.awaitPhase(v1alpha1.PhaseSucceed)
}

// awaitEvicted waits until its unit has lost its admission, and returns the condition that says so.
func (l *life) awaitEvicted() (evicted *metav1.Condition) {
	l.t.Helper()
	l.eventually("its unit is evicted", func(context.Context) (bool, error) {
		evicted = meta.FindStatusCondition(l.unit().Status.Conditions, v1alpha1.ConditionEvicted)
		return evicted != nil && evicted.Status == metav1.ConditionTrue, nil
	})
	return evicted
}

// awaitNotice waits until all its pods are told that it is suspended at this time, and returns them.
func (l *life) awaitNotice(at time.Time) (told []corev1.Pod) {
	l.t.Helper()
	l.eventually("its pods have a notice", func(context.Context) (bool, error) {
		told = l.pods()
		return len(told) == l.kind.pods && !slices.ContainsFunc(told, func(pod corev1.Pod) bool {
			return pod.Annotations[v1alpha1.AnnotationSuspendAt] != at.UTC().Format(time.RFC3339)
		}), nil
	})
	return told
}
