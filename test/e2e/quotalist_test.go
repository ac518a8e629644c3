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
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// The jobs of examples/gpus/types list two types of cards. Two run on nodes of the first type, two on nodes of the
// second, and the fifth waits. A job that waits again has the template of its owner.
func TestTypesOfCards(t *testing.T) {
	c := start(t, "types", controlplane.Options{})
	ctx := t.Context()
	read := func(file string) []byte {
		content, err := os.ReadFile(filepath.Join("../../examples/gpus/types", file))
		require.NoError(t, err)
		return content
	}
	require.NoError(t, c.Apply(ctx, read("nodes.yaml")))
	c.complete(t)
	c.namespace(t, "research")
	require.NoError(t, c.Apply(ctx, read("quotas.yaml")))
	job := func(i int, edits ...func(*batchv1.Job)) string {
		j := &batchv1.Job{}
		require.NoError(t, yaml.Unmarshal(read("job.yaml"), j))
		j.Name, j.GenerateName = fmt.Sprintf("either-%d", i), ""
		for _, edit := range edits {
			edit(j)
		}
		c.create(t, j)
		return j.Name
	}
	on := map[string]int{}
	for i := range 4 {
		name := job(i)
		c.waitPhase(t, "research", name, schedulingv1alpha1.PhaseRunning)
		chosen := c.unit(t, "research", name).Status.Effective.Quota
		pods := c.podsOf(t, "research", name)
		require.Len(t, pods, 1)
		require.Equal(t, chosen, pods[0].Labels[schedulingv1alpha1.LabelQuotaName])
		require.Equal(t, chosen, pods[0].Spec.NodeSelector["example.com/card"])
		require.Equal(t, chosen+"-node", pods[0].Spec.NodeName)
		on[chosen]++
	}
	require.Equal(t, map[string]int{"a100": 2, "h800": 2}, on)
	waits := job(4)
	require.Contains(t, c.waitReason(t, "research", waits, "QuotaExceeded"), "nvidia.com/gpu")

	t.Run("a list that the queue has", func(t *testing.T) {
		name := job(5, func(j *batchv1.Job) { j.Annotations = nil })
		c.waitReason(t, "research", name, "QuotaExceeded")
		c.deleteJob(t, "either-3")
		c.deleteJob(t, waits)
		c.waitPhase(t, "research", name, schedulingv1alpha1.PhaseRunning)
		require.Equal(t, "h800", c.unit(t, "research", name).Status.Effective.Quota)
	})
	t.Run("a job that waits again", func(t *testing.T) {
		hold := []byte(`{"metadata":{"annotations":{"koord-queue/hold":"true"}}}`)
		_, err := c.kube.BatchV1().Jobs("research").Patch(ctx, "either-2", types.MergePatchType, hold, metav1.PatchOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			j, err := c.kube.BatchV1().Jobs("research").Get(ctx, "either-2", metav1.GetOptions{})
			u := c.unit(t, "research", "either-2")
			return err == nil && *j.Spec.Suspend && u.Status.QuotaChoice == nil &&
				len(j.Spec.Template.Spec.NodeSelector) == 0 && j.Spec.Template.Labels[schedulingv1alpha1.LabelQuotaName] == ""
		}, soon, pace)
		require.Equal(t, "a100", c.unit(t, "research", "either-2").Status.Effective.Quota)
	})
	t.Run("a quota that the queue does not accept", func(t *testing.T) {
		name := job(6, func(j *batchv1.Job) {
			j.Labels["koord-queue/queue-name"] = "a100"
		})
		require.Contains(t, c.waitReason(t, "research", name, "QuotaNotInQueue"), `"h800"`)
	})
}

func (c *cluster) deleteJob(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, c.kube.BatchV1().Jobs("research").Delete(t.Context(), name, metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	}))
}
