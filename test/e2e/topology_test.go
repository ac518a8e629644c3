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
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// topologyLabel of a node is the switch that it is connected to.
const topologyLabel = "example.com/switch"

// topology is what an operator tells Koordinator of the network.
const topology = `
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: ClusterNetworkTopology
metadata: {name: default}
spec:
  networkTopologySpec:
  - {topologyLayer: SwitchLayer, labelKey: [` + topologyLabel + `]}
  - {topologyLayer: NodeTopologyLayer, parentTopologyLayer: SwitchLayer}
`

// usersReservation is a Reservation that a user makes. It names no quota: Koordinator compares a Reservation with the
// runtime of its quota, and never adds it to the demand of that quota.
const usersReservation = `
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Reservation
metadata: {name: mine}
spec:
  allocateOnce: true
  owners:
  - labelSelector: {matchLabels: {reserved-for: mine}}
  template:
    spec:
      schedulerName: koord-scheduler
      containers:
      - {name: main, image: example.invalid/work, resources: {requests: {cpu: "3"}}}
`

// Koordinator places the pods of admitted jobs by devices, network and Reservations, and the quota counts requests.
func TestTopology(t *testing.T) {
	c := start(t, "topology", controlplane.Options{Nodes: 4, NodeCPU: "4"})
	for i := range 4 {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"%s":"s%d"}}}`, topologyLabel, i/2)
		_, err := c.kube.CoreV1().Nodes().Patch(t.Context(), controlplane.NodeName(i), types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, c.Apply(t.Context(), []byte(topology)))
	c.complete(t)

	t.Run("a gang below one switch of the network", func(t *testing.T) {
		ns := c.namespace(t, "gathered")
		c.quota(t, ns, "gathered", 12, 12)
		// One of the two nodes below the first switch has room, and more of it than those below the second.
		for i, amount := range []string{"3", "", "1", "1"} {
			if amount != "" {
				name := fmt.Sprint("filler-", i)
				c.create(t, newJob(ns, name, suspended, ofQuota("gathered"), cpu(amount), runs(time.Hour), onNode(i)))
				c.waitPhase(t, ns, name, schedulingv1alpha1.PhaseRunning)
			}
		}
		gathered := func(j *batchv1.Job) {
			j.Spec.Template.Annotations["gang.scheduling.koordinator.sh/network-topology-spec"] =
				`{"gatherStrategy":[{"layer":"SwitchLayer","strategy":"MustGather"}]}`
		}
		c.create(t, newJob(ns, "gang", suspended, ofQuota("gathered"), cpu("3"), pods(2), gang("gang", 2), runs(time.Hour),
			gathered))
		c.waitPhase(t, ns, "gang", schedulingv1alpha1.PhaseRunning)
		var on []string
		for _, pod := range c.podsOf(t, ns, "gang") {
			on = append(on, pod.Spec.NodeName)
		}
		require.ElementsMatch(t, []string{controlplane.NodeName(2), controlplane.NodeName(3)}, on)
	})

	t.Run("a Reservation of a user", func(t *testing.T) {
		ns := c.namespace(t, "reserver")
		c.quota(t, ns, "reserver", 3, 3)
		require.NoError(t, c.Apply(t.Context(), []byte(usersReservation)))
		node := ""
		require.Eventually(t, func() bool {
			r, err := c.dyn.Resource(reservations).Get(t.Context(), "mine", metav1.GetOptions{})
			require.NoError(t, err)
			node, _, _ = unstructured.NestedString(r.Object, "status", "nodeName")
			return node != ""
		}, soon, pace)
		// The quota is free: a Reservation is counted nowhere.
		c.create(t, newJob(ns, "other", suspended, ofQuota("reserver"), cpu("1"), runs(time.Hour)))
		c.waitPhase(t, ns, "other", schedulingv1alpha1.PhaseRunning)
		c.create(t, newJob(ns, "owner", suspended, ofQuota("reserver"), cpu("3"), runs(time.Hour), func(j *batchv1.Job) {
			j.Spec.Template.Labels["reserved-for"] = "mine"
		}))
		// The job that has the Reservation waits for its quota all the same.
		require.Contains(t, c.waitReason(t, ns, "owner", "QuotaExceeded"), "cpu")
		require.NoError(t, c.kube.BatchV1().Jobs(ns).Delete(t.Context(), "other", metav1.DeleteOptions{
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		}))
		c.waitPhase(t, ns, "owner", schedulingv1alpha1.PhaseRunning)
		for _, pod := range c.podsOf(t, ns, "owner") {
			require.Equal(t, node, pod.Spec.NodeName)
			require.Contains(t, pod.Annotations["scheduling.koordinator.sh/reservation-allocated"], `"mine"`)
		}
	})

	t.Run("cards and RDMA of one switch", func(t *testing.T) {
		c.namespace(t, "research")
		apply := func(file string) {
			content, err := os.ReadFile(filepath.Join("../../examples/gpus", file))
			require.NoError(t, err)
			require.NoError(t, c.Apply(t.Context(), content))
		}
		apply("nodes.yaml")
		apply("quota.yaml")
		// With one card at the first switch of each node in use, two cards of one switch are at the second.
		for _, node := range []string{"gpu-node-0", "gpu-node-1"} {
			c.create(t, newJob("research", node, suspended, ofQuota("gpus"), runs(time.Hour), func(j *batchv1.Job) {
				j.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
				card := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
				j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: card, Limits: card}
			}))
			c.waitPhase(t, "research", node, schedulingv1alpha1.PhaseRunning)
		}
		apply("rdma.yaml")
		c.waitPhase(t, "research", "rdma", schedulingv1alpha1.PhaseRunning)
		held := c.unit(t, "research", "rdma").Status.Admissions[0].Resources["koordinator.sh/rdma"]
		require.Equal(t, "100", held.String())
		pods := c.podsOf(t, "research", "rdma")
		require.Len(t, pods, 1)
		text := pods[0].Annotations["scheduling.koordinator.sh/device-allocated"]
		var allocated map[string][]struct{ Minor int }
		require.NoError(t, json.Unmarshal([]byte(text), &allocated), text)
		require.Len(t, allocated["gpu"], 2, text)
		require.Len(t, allocated["rdma"], 1, text)
		for _, card := range allocated["gpu"] {
			require.Equal(t, allocated["rdma"][0].Minor, card.Minor/2, "two cards and one RDMA device are at a switch: %s", text)
		}
	})
	c.agrees(t)
}
