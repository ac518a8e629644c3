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
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	koordinatorv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

var reservations = koordinatorv1alpha1.SchemeGroupVersion.WithResource("reservations")

func (c *cluster) reservations(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	list, err := c.dyn.Resource(reservations).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

func (c *cluster) noReservations(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(c.reservations(t)) == 0 }, soon, pace, "Reservations are left")
}

// Koordinator's scheduler says whether all pods of a job find a node, and keeps these nodes for them.
func TestReservations(t *testing.T) {
	c := start(t, "reservations", controlplane.Options{Nodes: 2, NodeCPU: "4"})
	c.complete(t)
	_, err := c.dyn.Resource(v1beta1.SchemeGroupVersion.WithResource("admissionchecks")).Create(t.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "AdmissionCheck",
			"metadata": map[string]any{"name": "nodes"},
			"spec":     map[string]any{"controllerName": schedulingv1alpha1.ReservationController},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
	ns := c.namespace(t, "reservations")
	c.quota(t, ns, "reserved", 8, 8)
	c.patchQueue(t, "reserved", `{"spec":{"admissionChecks":[{"name":"nodes"}]}}`)

	// A Reservation leaves one cpu of its node free, so a pod that runs there has taken it.
	watched, err := c.dyn.Resource(reservations).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	c.create(t, newJob(ns, "fits", suspended, ofQuota("reserved"), cpu("3"), pods(2), gang("fits", 2), runs(time.Hour)))
	c.waitPhase(t, ns, "fits", schedulingv1alpha1.PhaseRunning)
	nodes := map[string]string{}
	for deleted := 0; deleted < 2; {
		event, open := <-watched.ResultChan()
		require.True(t, open, "the Reservations are not deleted: %v", nodes)
		r, ok := event.Object.(*unstructured.Unstructured)
		require.True(t, ok)
		if node, _, _ := unstructured.NestedString(r.Object, "status", "nodeName"); node != "" {
			nodes[r.GetName()] = node
		}
		if event.Type == watch.Deleted {
			deleted++
		}
	}
	watched.Stop()
	require.Len(t, nodes, 2)
	var runsOn []string
	for _, pod := range c.podsOf(t, ns, "fits") {
		runsOn = append(runsOn, pod.Spec.NodeName)
	}
	require.ElementsMatch(t, slices.Collect(maps.Values(nodes)), runsOn)
	c.noReservations(t)

	// Two cpus are free in the quota, and one on each node.
	c.create(t, newJob(ns, "large", suspended, ofQuota("reserved"), cpu("2"), runs(time.Hour)))
	c.waitPhase(t, ns, "large", schedulingv1alpha1.PhaseTimeoutBackoff)
	evicted := meta.FindStatusCondition(c.unit(t, ns, "large").Status.Conditions, schedulingv1alpha1.ConditionEvicted)
	require.Equal(t, "CheckRetry", evicted.Reason)
	require.Contains(t, evicted.Message, "1 of 1 pods find no node: 0/2 nodes are available: 2 Insufficient cpu.")
	require.Empty(t, c.podsOf(t, ns, "large"))
	c.noReservations(t)

	// The job of a Reservation is deleted while no controller runs.
	c.create(t, newJob(ns, "deleted", suspended, ofQuota("reserved"), cpu("2"), runs(time.Hour)))
	require.Eventually(t, func() bool { return len(c.reservations(t)) == 1 }, soon, pace)
	require.NoError(t, c.Kill(controlplane.Controller))
	require.NoError(t, c.kube.BatchV1().Jobs(ns).Delete(t.Context(), "deleted", metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	require.Eventually(t, func() bool { return c.unit(t, ns, "deleted") == nil }, soon, pace)
	require.Len(t, c.reservations(t), 1)
	require.NoError(t, c.Restart(t.Context(), controlplane.Controller))
	c.noReservations(t)
	c.agrees(t)
}
