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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const daskDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.kubernetes.dask.org}
spec:
  group: kubernetes.dask.org
  names: {kind: %[1]s, listKind: %[1]sList, plural: %[2]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const daskPod = `{schedulerName: koord-scheduler, containers: [
  {name: c, image: x, resources: {requests: {cpu: 500m}}}]}`

// daskManaged installs the definitions of the operator, and has the queue manage DaskJobs by the example.
func (c *cluster) daskManaged(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"DaskJob", "DaskCluster", "DaskWorkerGroup"} {
		require.NoError(t, c.Apply(t.Context(), fmt.Appendf(nil, daskDefinition, kind, strings.ToLower(kind)+"s")))
	}
	const described = "../../examples/kinds/daskjob.yaml"
	for _, part := range []string{"rights", "policy"} {
		objects, err := c.kubectlJobqueue(t, "somebody", "kinds", part, "DaskJob", "--managed-jobs="+described)
		require.NoError(t, err)
		require.NoError(t, c.Apply(t.Context(), []byte(objects)))
	}
	text, err := os.ReadFile(described)
	require.NoError(t, err)
	config, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]string{managedjobs.Key: string(text)},
		"metadata": map[string]string{"name": managedjobs.ConfigMap, "namespace": schedulingv1alpha1.DefaultQueueNamespace},
	})
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), config))
}

// daskMakes creates what the Dask operator makes for an owner, with the labels of that.
func (c *cluster) daskMakes(t *testing.T, version, kind, name, spec string, owner *unstructured.Unstructured) (
	made *unstructured.Unstructured,
) {
	t.Helper()
	made = &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(t, yaml.Unmarshal([]byte("spec: "+spec), &made.Object))
	gvk := schema.FromAPIVersionAndKind(version, kind)
	made.SetGroupVersionKind(gvk)
	made.SetName(name)
	made.SetLabels(owner.GetLabels())
	if owner.GetUID() != "" {
		made.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	resource := gvk.GroupVersion().WithResource(strings.ToLower(kind) + "s")
	made, err := c.dyn.Resource(resource).Namespace(owner.GetNamespace()).Create(t.Context(), made, metav1.CreateOptions{})
	require.NoError(t, err)
	return made
}

// A DaskJob has its pods by way of up to four other objects. They wait for its quota, all of them, and then run.
func TestPodsOfADaskJobWaitForItsQuota(t *testing.T) {
	c := start(t, "daskjob", controlplane.Options{
		Nodes: 3, ControllerManagerArgs: []string{"--controllers=deployment-controller,replicaset-controller"},
	})
	c.daskManaged(t)
	c.complete(t)
	ns := c.namespace(t, "dask")
	c.quota(t, ns, "science", 1, 1)
	require.NoError(t, c.GrantUse(t.Context(), ns, "science")) // so the pods of Deployments may, too
	user := &unstructured.Unstructured{}
	user.SetNamespace(ns)
	user.SetLabels(map[string]string{schedulingv1alpha1.LabelQuotaName: "science"})
	const dask = "kubernetes.dask.org/v1"
	job := c.daskMakes(t, dask, "DaskJob", "j", `{job: {spec: `+daskPod+`}, cluster: {spec: {scheduler: {spec: `+daskPod+
		`}, worker: {replicas: 2, spec: `+daskPod+`}}}}`, user)
	require.Contains(t, c.waitReason(t, ns, "j-daskjob", "ExceedsMax"), "cpu", "it asks for 2 of 1")

	c.daskMakes(t, "v1", "Pod", "j-runner", daskPod, job)
	shared := c.daskMakes(t, dask, "DaskCluster", "j", "{}", job)
	workers := c.daskMakes(t, dask, "DaskWorkerGroup", "j-default", "{}", shared)
	for name, owner := range map[string]*unstructured.Unstructured{
		"j-scheduler": shared, "j-default-worker-0": workers, "j-default-worker-1": workers,
	} {
		c.daskMakes(t, "apps/v1", "Deployment", name, fmt.Sprintf(`{replicas: 1, selector: {matchLabels: {pod: %[1]s}},
  template: {metadata: {labels: {pod: %[1]s, %[2]s: science}}, spec: %[3]s}}`,
			name, schedulingv1alpha1.LabelQuotaName, daskPod), owner)
	}
	placed := func() (pods, bound int) {
		list, err := c.kube.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for i := range list.Items {
			if list.Items[i].Spec.NodeName != "" {
				bound++
			}
		}
		return len(list.Items), bound
	}
	require.Eventually(t, func() bool { pods, _ := placed(); return pods == 4 }, soon, pace)
	stays(t, 3*time.Second, "its pods wait", func() bool { _, bound := placed(); return bound == 0 })
	c.setQuotaMax(t, ns, "science", 2)
	require.Eventually(t, func() bool { _, bound := placed(); return bound == 4 }, soon, pace, "all of its pods run")

	daskJobs := schema.GroupVersionResource{Group: "kubernetes.dask.org", Version: "v1", Resource: "daskjobs"}
	_, err := c.dyn.Resource(daskJobs).Namespace(ns).Patch(t.Context(), "j", "application/merge-patch+json",
		[]byte(`{"status":{"jobStatus":"Successful"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	c.waitPhase(t, ns, "j-daskjob", schedulingv1alpha1.PhaseSucceed)
}
