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

package main

import (
	"bytes"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// The baseline run has the same objects in the API server, after the same validation, and nothing manages them. Jobs of
// the hostile namespace are unmanaged, and its units belong to a twin of their kind in a group that nobody reads.
//
// In both rounds an honest tenant borrows from the same quota as the hostile one. So the victim takes its min back in
// both rounds, and the difference does not include the cost of well-behaved borrowers.
const (
	group     = "scheduling.x-k8s.io"
	twinGroup = "scheduling.twin.test"
)

// managesOthersAlone is the configuration of what is managed there.
const managesOthersAlone = `apiVersion: v1
kind: ConfigMap
metadata: {name: koord-jobqueue-managed-jobs, namespace: koord-queue}
data:
  managedJobs: |
    kinds: [Job.v1.batch]
    namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In,
      values: [` + victimNamespace + `, ` + honestNamespace + `]}]}
`

// twinOf names the twin group in a path or a body.
func twinOf(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte(group+"/v1alpha1"), []byte(twinGroup+"/v1alpha1"))
}

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	clusterRoles = schema.GroupVersionResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	policies = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
)

// leaveHostileUnmanaged makes a fresh installation the one to compare with.
func leaveHostileUnmanaged(ctx context.Context, cp *controlplane.ControlPlane, client dynamic.Interface) error {
	if err := cp.Apply(ctx, []byte(managesOthersAlone)); err != nil {
		return fmt.Errorf("leave the hostile namespace unmanaged: %w", err)
	}
	for _, plural := range []string{unitKind, queueKind} {
		crd, err := client.Resource(definitions).Get(ctx, plural+"."+group, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := cp.ApplyObjects(ctx, twinDefinition(crd)); err != nil {
			return fmt.Errorf("define the twin of %s: %w", plural, err)
		}
	}
	rules := fmt.Sprintf(`[{"op":"add","path":"/rules/-","value":{"apiGroups":[%q],"resources":[%q],`+
		`"verbs":["get","list","watch","create","delete"]}}]`, twinGroup, unitKind)
	if _, err := client.Resource(clusterRoles).Patch(ctx, "jobqueue-submitter", types.JSONPatchType, []byte(rules),
		metav1.PatchOptions{}); err != nil {
		return err
	}
	rules = fmt.Sprintf(`[{"op":"add","path":"/spec/matchConstraints/resourceRules/-","value":{"apiGroups":[%q],`+
		`"apiVersions":["v1alpha1"],"resources":[%q],"operations":["CREATE","UPDATE"]}}]`, twinGroup, unitKind)
	for _, name := range []string{"jobqueue-tenancy-quota", "jobqueue-tenancy-queue"} {
		if _, err := client.Resource(policies).Patch(ctx, name, types.JSONPatchType, []byte(rules),
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// twinDefinition is a definition in the other group.
func twinDefinition(crd *unstructured.Unstructured) *unstructured.Unstructured {
	spec := crd.DeepCopy().Object["spec"].(map[string]any)
	spec["group"] = twinGroup
	name, _, _ := unstructured.NestedString(spec, "names", "plural")
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": name + "." + twinGroup}, "spec": spec,
	}}
}
