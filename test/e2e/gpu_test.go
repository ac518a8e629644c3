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

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// The jobs of examples/gpus: Koordinator counts whole cards and shares of cards, and places released jobs on them. One
// job waits for a card.
func TestGPUs(t *testing.T) {
	c := start(t, "gpus", controlplane.Options{Nodes: 1})
	ctx := t.Context()
	apply := func(file string) {
		content, err := os.ReadFile(filepath.Join("../../examples/gpus", file))
		require.NoError(t, err)
		require.NoError(t, c.Apply(ctx, content))
	}
	apply("nodes.yaml")
	c.complete(t)
	c.namespace(t, "research")
	apply("quota.yaml")
	for _, name := range []string{"whole", "shares"} {
		apply(name + ".yaml")
		c.waitPhase(t, "research", name, schedulingv1alpha1.PhaseRunning)
	}
	apply("more.yaml")
	require.Contains(t, c.waitReason(t, "research", "more", "QuotaExceeded"), "nvidia.com/gpu")

	// How much of each card is given away, in percent.
	given := map[string]int64{}
	for _, name := range []string{"whole", "shares"} {
		for _, pod := range c.podsOf(t, "research", name) {
			var allocated struct {
				GPU []struct {
					Minor     int
					Resources corev1.ResourceList
				} `json:"gpu"`
			}
			text := pod.Annotations["scheduling.koordinator.sh/device-allocated"]
			require.NoError(t, json.Unmarshal([]byte(text), &allocated), text)
			for _, card := range allocated.GPU {
				at, share := fmt.Sprint(pod.Spec.NodeName, " ", card.Minor), card.Resources["koordinator.sh/gpu-core"]
				given[at] += share.Value()
				require.LessOrEqual(t, given[at], int64(100), at)
			}
		}
	}
	var sum int64
	for _, percent := range given {
		sum += percent
	}
	require.EqualValues(t, 4*100+3*50, sum, "%v", given)

	require.NoError(t, c.kube.BatchV1().Jobs("research").Delete(ctx, "whole", metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	}))
	c.waitPhase(t, "research", "more", schedulingv1alpha1.PhaseRunning)
}
