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

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// Quota is free and nodes are fragmented: a job is released when all its pods find a node.
func TestPlacement(t *testing.T) {
	c := start(t, "placement", controlplane.Options{Nodes: 2, NodeCPU: "4"})
	c.complete(t)
	_, err := c.dyn.Resource(v1beta1.SchemeGroupVersion.WithResource("admissionchecks")).Create(t.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "AdmissionCheck",
			"metadata": map[string]any{"name": "nodes"},
			"spec":     map[string]any{"controllerName": schedulingv1alpha1.PlacementController},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
	ns := c.namespace(t, "placement")
	c.quota(t, ns, "placed", 8, 8)
	c.patchQueue(t, "placed", `{"spec":{"admissionChecks":[{"name":"nodes"}]}}`)

	c.nodesAreKeptOverARestart(t, ns)
	c.nodesAreForeseen(t)

	// Two cpus are used on each node: four are free, and no node has three.
	for _, node := range []string{"node-0000", "node-0001"} {
		_, err := c.kube.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "on-" + node},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
				Name: "c", Image: "none", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
				},
			}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	c.create(t, newJob(ns, "large", suspended, ofQuota("placed"), cpu("3"), runs(time.Hour)))
	c.waitPhase(t, ns, "large", schedulingv1alpha1.PhaseTimeoutBackoff)
	evicted := meta.FindStatusCondition(c.unit(t, ns, "large").Status.Conditions, schedulingv1alpha1.ConditionEvicted)
	require.Equal(t, "CheckRetry", evicted.Reason)
	require.Contains(t, evicted.Message, "0/2 nodes are available: 2 Insufficient cpu")
	require.Empty(t, c.podsOf(t, ns, "large"))

	// A job that fits runs. The other one follows when a node has room.
	c.create(t, newJob(ns, "small", suspended, ofQuota("placed"), cpu("2"), runs(time.Hour)))
	c.waitPhase(t, ns, "small", schedulingv1alpha1.PhaseRunning)
	require.NoError(t, c.kube.CoreV1().Pods(ns).DeleteCollection(t.Context(),
		metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{FieldSelector: "spec.nodeName=node-0001"}))
	c.waitPhase(t, ns, "large", schedulingv1alpha1.PhaseRunning)
	c.agrees(t)
}

// A unit is released and has no pods yet. A scheduler that starts then does not give its nodes to another unit.
func (c *cluster) nodesAreKeptOverARestart(t *testing.T, ns string) {
	t.Helper()
	unit := func(name, cpu string, pods int32) *schedulingv1alpha1.QueueUnit {
		request := resource.MustParse(cpu)
		request.Mul(int64(pods))
		u := handMadeUnit(ns, name, "placed", request.String())
		u.Spec.PodSets = []schedulingv1alpha1.PodSet{{Name: "workers", Count: pods, Template: runtime.RawExtension{
			Raw: []byte(`{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}`),
		}}}
		return u
	}
	remove := func(name string) {
		require.NoError(t, c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(ns).
			Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	c.createUnit(t, unit("first", "3", 2))
	c.waitPhase(t, ns, "first", schedulingv1alpha1.PhaseDequeued)
	require.NoError(t, c.Kill(controlplane.Scheduler))
	require.NoError(t, c.StartScheduler(t.Context(), controlplane.SchedulerOptions{}))
	c.createUnit(t, unit("second", "2", 1))
	c.waitPhase(t, ns, "second", schedulingv1alpha1.PhaseTimeoutBackoff)
	require.Equal(t, schedulingv1alpha1.PhaseDequeued, c.unit(t, ns, "first").Status.Phase)

	remove("first")
	c.waitPhase(t, ns, "second", schedulingv1alpha1.PhaseDequeued)
	missed := func() float64 {
		return c.metric(t, "scheduler_jobqueue_placement_misses_total{", `reason="Ended"`)
	}
	before := missed()
	remove("second")
	require.Eventually(t, func() bool { return missed() == before+1 }, soon, pace, "a node was kept for no pod")
}

// A job takes what others hold only if its pods find nodes without theirs.
func (c *cluster) nodesAreForeseen(t *testing.T) {
	t.Helper()
	borrower, owner := c.namespace(t, "foreseen-borrower"), c.namespace(t, "foreseen-owner")
	c.quota(t, owner, "foreseen-all", 4, 4, isParent())
	c.quota(t, borrower, "foreseen-borrower", 0, 4, under("foreseen-all"))
	c.quota(t, owner, "foreseen-owner", 4, 4, under("foreseen-all"))
	c.patchQueue(t, "foreseen-borrower", atOnce)
	c.patchQueue(t, "foreseen-owner", `{"spec":{"preemption":{"reclaim":"Any"},"admissionChecks":[{"name":"nodes"}]}}`)
	c.create(t, newJob(borrower, "lent", suspended, ofQuota("foreseen-borrower"), cpu("3"), runs(time.Hour)))
	c.waitPhase(t, borrower, "lent", schedulingv1alpha1.PhaseRunning)

	c.create(t, newJob(owner, "nowhere", suspended, ofQuota("foreseen-owner"), cpu("3"), runs(time.Hour),
		func(j *batchv1.Job) { j.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "none"} }))
	c.waitReason(t, owner, "nowhere", "NoNodeFits")
	conditions := c.unit(t, owner, "nowhere").Status.Conditions
	reserved := meta.FindStatusCondition(conditions, schedulingv1alpha1.ConditionQuotaReserved)
	require.Contains(t, reserved.Message, "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.")
	c.create(t, newJob(owner, "own", suspended, ofQuota("foreseen-owner"), cpu("3"), runs(time.Hour)))
	c.waitPhase(t, owner, "own", schedulingv1alpha1.PhaseRunning)
	require.EqualValues(t, 1, c.unit(t, borrower, "lent").Status.Attempts, "it was suspended for no other job")
	c.waitReason(t, borrower, "lent", "Reclaimed")
	for _, ns := range []string{owner, borrower} {
		require.NoError(t, c.kube.BatchV1().Jobs(ns).DeleteCollection(t.Context(), metav1.DeleteOptions{
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}, metav1.ListOptions{}))
	}
}
