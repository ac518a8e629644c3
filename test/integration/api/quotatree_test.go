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
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/quotatree"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const treeNamespace = "kube-system"

var elasticQuotas = schema.GroupVersionResource{
	Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "elasticquotas",
}

// TestQuotaTree expands a tree with only the shipped rights, by a controller that is older than the CRD.
func TestQuotaTree(t *testing.T) {
	client := connect(t)
	ended := startQuotaTrees(t)
	require.NoError(t, server.ApplyKoordinatorCRDs(t.Context()))
	install(t, "components/elasticquotatree")
	waitEstablished(t, client, "elasticquotatrees.scheduling.sigs.k8s.io")
	trees, quotas := client.Resource(v1beta1.ElasticQuotaTreeResource).Namespace(treeNamespace),
		client.Resource(elasticQuotas).Namespace(treeNamespace)

	tree := applyTree(t, trees, `
name: it-root
max: {cpu: 100, koord-queue/max-jobs: 10}
min: {cpu: 100}
children:
- {name: it-a, max: {cpu: 60}, min: {cpu: 40}, namespaces: [it-ns-a]}
- {name: it-b, min: {cpu: 60}, children: [{name: IT_B1, attributes: {koord-queue/queue-policy: Block}}]}
`)
	waitReady(t, trees, 4)
	root, b1 := getQuota(t, quotas, "it-root"), getQuota(t, quotas, "it-b1")
	require.Equal(t, "10", root.GetAnnotations()["koord-queue/max-jobs"])
	require.Equal(t, "it-b", b1.GetLabels()["quota.scheduling.koordinator.sh/parent"])
	require.Equal(t, "Block", b1.GetLabels()["koord-queue/queue-policy"])
	owner := metav1.GetControllerOf(b1)
	require.NotNil(t, owner, "the tree takes its ElasticQuotas with it")
	require.Equal(t, tree.GetUID(), owner.UID)

	applyTree(t, trees, `
name: it-root
max: {cpu: 100}
min: {cpu: 100}
children:
- {name: it-b, min: {cpu: 70}, children: [{name: IT_B1, namespaces: [it-ns-a]}, {name: it-b2, max: {cpu: 5}}]}
`)
	require.Eventually(t, func() bool {
		_, err := quotas.Get(t.Context(), "it-a", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, 30*time.Second, 50*time.Millisecond, "a node that is gone takes its ElasticQuota with it")
	require.Eventually(t, func() bool {
		q := getQuota(t, quotas, "it-b1")
		_, policy := q.GetLabels()["koord-queue/queue-policy"]
		return q.GetAnnotations()["quota.scheduling.koordinator.sh/namespaces"] == `["it-ns-a"]` && !policy
	}, 30*time.Second, 50*time.Millisecond)
	waitReady(t, trees, 4)

	_, err := quotas.Patch(t.Context(), "it-b2", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"mine":"x"}},"spec":{"max":{"cpu":"6","memory":"1"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		q := getQuota(t, quotas, "it-b2")
		most, _, _ := unstructured.NestedMap(q.Object, "spec", "max")
		return len(most) == 1 && most["cpu"] == "5" && q.GetLabels()["mine"] == "x"
	}, 30*time.Second, 50*time.Millisecond, "what was changed by hand is put back, and nothing else")

	require.NoError(t, quotas.Delete(t.Context(), "it-b2", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := quotas.Get(t.Context(), "it-b2", metav1.GetOptions{})
		return err == nil
	}, 30*time.Second, 50*time.Millisecond, "what was deleted by hand is made again")
	select {
	case err := <-ended:
		require.Fail(t, "the controller ended", "%v", err)
	default:
	}
	refusesOtherRights(t)
}

// startQuotaTrees runs the controller of trees under its own account until the test ends.
func startQuotaTrees(t *testing.T) <-chan error {
	t.Helper()
	return startAsController(t, func(ctx context.Context, mgr ctrl.Manager) error {
		return quotatree.Setup(mgr, quotatree.Options{
			Namespace: treeNamespace, Clock: clock.RealClock{}, Served: servedHere(ctx, t, mgr.GetConfig()),
		})
	})
}

// startAsController runs a manager under the controller's account until the test ends.
func startAsController(t *testing.T, setup func(context.Context, ctrl.Manager) error) <-chan error {
	t.Helper()
	ctrl.SetLogger(klog.NewKlogr())
	config := server.RESTConfig(controlplane.Admin)
	config.Impersonate.UserName = controlplane.ControllerUser
	scheme, err := controller.Scheme()
	require.NoError(t, err)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: klog.NewKlogr(), Metrics: metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, setup(ctx, mgr))
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); ctx.Err() == nil {
			ended <- err
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return ended
}

func applyTree(t *testing.T, trees dynamic.ResourceInterface, root string) *unstructured.Unstructured {
	t.Helper()
	out, err := trees.Apply(t.Context(), "it-tree", newQuotaTree(t, "it-tree", root),
		metav1.ApplyOptions{FieldManager: manager, Force: true})
	require.NoError(t, err)
	return out
}

func newQuotaTree(t *testing.T, name, root string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(root), &fields))
	tree := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"root": fields}}}
	tree.SetGroupVersionKind(v1beta1.ElasticQuotaTreeKind)
	tree.SetNamespace(treeNamespace)
	tree.SetName(name)
	return tree
}

func getQuota(t *testing.T, quotas dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	t.Helper()
	q, err := quotas.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return q
}

func waitReady(t *testing.T, trees dynamic.ResourceInterface, quotas int64) {
	t.Helper()
	var last any
	defer func() {
		if t.Failed() {
			t.Logf("status: %v", last)
		}
	}()
	require.Eventually(t, func() bool {
		tree, err := trees.Get(t.Context(), "it-tree", metav1.GetOptions{})
		if err != nil {
			return false
		}
		last = tree.Object["status"]
		n, _, _ := unstructured.NestedInt64(tree.Object, "status", "quotas")
		observed, _, _ := unstructured.NestedInt64(tree.Object, "status", "observedGeneration")
		conditions, _, _ := unstructured.NestedSlice(tree.Object, "status", "conditions")
		return observed == tree.GetGeneration() && n == quotas && len(conditions) == 1 &&
			conditions[0].(map[string]any)["status"] == "True"
	}, 30*time.Second, 50*time.Millisecond)
}

// refusesOtherRights: ElasticQuotas are written in the namespace of the trees alone, and trees nowhere.
func refusesOtherRights(t *testing.T) {
	t.Helper()
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	for _, a := range []authorizationv1.ResourceAttributes{
		{Verb: "create", Group: elasticQuotas.Group, Resource: "elasticquotas", Namespace: "any"},
		{Verb: "delete", Group: elasticQuotas.Group, Resource: "elasticquotas", Namespace: "any"},
		{Verb: "update", Group: elasticQuotas.Group, Resource: "elasticquotas", Namespace: treeNamespace},
		{Verb: "patch", Group: elasticQuotas.Group, Resource: "elasticquotatrees", Namespace: treeNamespace},
		{Verb: "list", Group: elasticQuotas.Group, Resource: "elasticquotatrees", Namespace: "any"},
	} {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: controlplane.ControllerUser, ResourceAttributes: &a},
		}
		got, err := admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		require.NoError(t, err)
		require.False(t, got.Status.Allowed, "%s %s in %s", a.Verb, a.Resource, a.Namespace)
	}
}

// TestQuotaTreeRules: what the API server takes and refuses without the controller.
func TestQuotaTreeRules(t *testing.T) {
	client := connect(t)
	install(t, "components/elasticquotatree")
	waitEstablished(t, client, "elasticquotatrees.scheduling.sigs.k8s.io")
	trees := client.Resource(v1beta1.ElasticQuotaTreeResource).Namespace(treeNamespace)
	deep := strings.Repeat("{name: node, max: {cpu: 1}, children: [", 12) + "{name: last}" + strings.Repeat("]}", 12)
	for name, c := range map[string]struct{ root, refused string }{
		"sample-of-ack": {root: `{name: root, max: {cpu: 999900, kube-queue/max-jobs: 10000000000}, min: {cpu: 999900, ` +
			`kube-queue/max-jobs: 10000000000},
  children: [{name: child-1, max: {cpu: 1}, namespaces: [default-group], attributes: {resourceflavors: "a, b"}}]}`},
		"deep":    {root: deep},
		"nothing": {root: "{name: root}"},
		"nameless-child": {root: "{name: root, children: [{max: {cpu: 1}}]}",
			refused: "spec.root.children[0].name: Required value"},
		"no-quantity": {root: "{name: root, children: [{name: a, max: {cpu: plenty}}]}",
			refused: "spec.root.children[0].max.cpu"},
		"attribute":             {root: "{name: root, attributes: {a: [b]}}", refused: "spec.root.attributes.a"},
		"no-list":               {root: "{name: root, namespaces: ns}", refused: "spec.root.namespaces"},
		strings.Repeat("n", 64): {root: "{name: root}", refused: "63 characters"},
	} {
		tree := newQuotaTree(t, name, c.root)
		out, err := trees.Create(t.Context(), tree, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if c.refused != "" {
			require.ErrorContains(t, err, c.refused, name)
			continue
		}
		require.NoError(t, err, name)
		sent, err := json.Marshal(tree.Object["spec"])
		require.NoError(t, err)
		kept, err := json.Marshal(out.Object["spec"])
		require.NoError(t, err)
		require.JSONEq(t, string(sent), string(kept), "%s: nothing is dropped", name)
	}
}
