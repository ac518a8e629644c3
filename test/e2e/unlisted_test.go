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
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

var definitionResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// convert has a definition converted by a webhook whose service does not exist, or not at all.
func (c *cluster) convert(t *testing.T, name string, dead bool) {
	t.Helper()
	crds := c.dyn.Resource(definitionResource)
	crd, err := crds.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	conversion := map[string]any{"strategy": "None"}
	if dead {
		conversion = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"service": map[string]any{"namespace": "removed", "name": "webhook"}},
		}}
	}
	require.NoError(t, unstructured.SetNestedMap(crd.Object, conversion, "spec", "conversion"))
	_, err = crds.Update(t.Context(), crd, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// serve has a definition served in one more version, which is not stored.
func (c *cluster) serve(t *testing.T, name, version string) {
	t.Helper()
	crds := c.dyn.Resource(definitionResource)
	crd, err := crds.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	versions = slices.DeleteFunc(versions, func(v any) bool { return v.(map[string]any)["name"] == version })
	versions[0].(map[string]any)["storage"] = true
	other := (&unstructured.Unstructured{Object: versions[0].(map[string]any)}).DeepCopy().Object
	other["name"], other["storage"] = version, false
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, append(versions, other), "spec", "versions"))
	_, err = crds.Update(t.Context(), crd, metav1.UpdateOptions{})
	require.NoError(t, err)
	resource := schema.GroupVersionResource{Version: version}
	resource.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	resource.Resource, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "plural")
	require.Eventually(t, func() bool {
		_, err := c.dyn.Resource(resource).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, soon, pace)
}

// Removed operators left their definitions, whose objects nobody converts any more. The queue starts all the same, asks
// the readable checks, and follows the jobs once they are readable.
func TestConversionWebhooksAreDead(t *testing.T) {
	c := start(t, "dead-webhooks", controlplane.Options{})
	require.NoError(t, c.Apply(t.Context(), []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rayjobs.ray.io}
spec:
  group: ray.io
  names: {kind: RayJob, listKind: RayJobList, plural: rayjobs, singular: rayjob}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)))
	ns := c.namespace(t, "dead-webhooks")
	c.serve(t, "rayjobs.ray.io", "v1")
	_, err := c.dyn.Resource(schema.GroupVersionResource{Group: "ray.io", Version: "v1alpha1", Resource: "rayjobs"}).
		Namespace(ns).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1alpha1", "kind": "RayJob", "metadata": map[string]any{"name": "left"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	const checks = "admissionchecks.kueue.x-k8s.io"
	c.serve(t, checks, v1beta1.AdmissionCheckResources[0].Version)
	_, err = c.dyn.Resource(v1beta1.AdmissionCheckResources[1]).Create(t.Context(), &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "AdmissionCheck", "metadata": map[string]any{"name": "left"},
			"spec": map[string]any{"controllerName": "example.com/left"},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.convert(t, "rayjobs.ray.io", true)
	c.convert(t, checks, true)
	require.NoError(t, c.ManageKinds(t.Context(), controlplane.Kind{Name: "Job.v1.batch", Rights: "job"},
		controlplane.Kind{Name: "RayJob.v1.ray.io", Rights: "rayjob"}))

	c.quota(t, ns, "plain", 4, 4)
	c.quota(t, ns, "checked", 4, 4)
	for _, name := range []string{"plain", "checked"} {
		c.createQueue(t, &schedulingv1alpha1.Queue{
			ObjectMeta: metav1.ObjectMeta{Namespace: schedulingv1alpha1.DefaultQueueNamespace, Name: name},
		})
	}
	c.patchQueue(t, "checked", `{"spec":{"admissionChecks":[{"name":"left"}]}}`)
	for _, name := range []string{"plain", "checked"} {
		_, err := c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(ns).
			Create(t.Context(), unstructuredUnit(ns, name, name, 0), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, c.StartScheduler(t.Context(), controlplane.SchedulerOptions{NoWait: true}))
	c.waitPhase(t, ns, "plain", schedulingv1alpha1.PhaseDequeued)
	require.Contains(t, c.waitReason(t, ns, "checked", "CheckInactive"), `"left"`,
		"it was read in the version that is stored")
	unavailable := func() float64 {
		return c.metric(t, "scheduler_jobqueue_job_kind_unavailable{", `kind="RayJob.v1.ray.io"`, `reason="NotListed"`)
	}
	require.EqualValues(t, 1, unavailable())
	c.convert(t, "rayjobs.ray.io", false)
	require.Eventually(t, func() bool { return unavailable() == 0 }, 2*soon, pace, "its jobs are followed")
}
