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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// A tree that is installed while the controller runs limits jobs like quotas made by hand, including the number of
// jobs. Its deletion removes its quotas and their default queues.
func TestTreeOfQuotas(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "trees")
	require.NoError(t, c.ApplyKustomize(t.Context(), "../../manifests/components/elasticquotatree"))
	tree := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"root": map[string]any{
		"name": "tree-root", "max": map[string]any{"cpu": "6", "koord-queue/max-jobs": "2"},
		"min": map[string]any{"cpu": "6"},
		"children": []any{
			map[string]any{"name": "tree-a", "min": map[string]any{"cpu": "2"}, "namespaces": []any{ns}},
			map[string]any{"name": "Tree_B", "min": map[string]any{"cpu": "2"}},
		},
	}}}}
	tree.SetGroupVersionKind(v1beta1.ElasticQuotaTreeKind)
	tree.SetNamespace("kube-system")
	tree.SetName("tree")
	trees := c.dyn.Resource(v1beta1.ElasticQuotaTreeResource).Namespace("kube-system")
	_, err := trees.Create(t.Context(), tree, metav1.CreateOptions{})
	require.NoError(t, err)
	queues := c.dyn.Resource(schedulingv1alpha1.QueueResource).Namespace(schedulingv1alpha1.DefaultQueueNamespace)
	require.Eventually(t, func() bool {
		_, err := queues.Get(t.Context(), "tree-b", metav1.GetOptions{})
		return err == nil
	}, time.Minute, 100*time.Millisecond, "the controller looks for trees every 10 seconds")

	c.create(t,
		newJob(ns, "first", inQueue("tree-a"), runs(10*time.Second)),
		newJob(ns, "second", ofQuota("tree-b"), runs(10*time.Second)),
	)
	c.waitPhase(t, ns, "first", schedulingv1alpha1.PhaseRunning)
	c.waitPhase(t, ns, "second", schedulingv1alpha1.PhaseRunning)
	c.create(t, newJob(ns, "third", ofQuota("tree-b")))
	message := c.waitReason(t, ns, "third", "QuotaExceeded")
	require.Contains(t, message, "as many admitted jobs as it may have")
	require.Contains(t, message, "tree-root")
	c.waitDone(t, ns, 3, soon)

	require.NoError(t, trees.Delete(t.Context(), "tree", metav1.DeleteOptions{}))
	for _, name := range []string{"tree-root", "tree-a", "tree-b"} {
		require.Eventually(t, func() bool {
			_, err := queues.Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, time.Minute, 100*time.Millisecond, name)
	}
}
