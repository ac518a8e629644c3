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
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/kueue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// installKueue applies definitions of Kueue over those that are there, as 0.20 serves them: v1beta2 and nothing else.
// Before it, 0.19 served v1beta1 as well.
func installKueue(t *testing.T, resources ...string) {
	t.Helper()
	crds := connect(t).Resource(gvr("apiextensions.k8s.io", "v1", "customresourcedefinitions"))
	for _, resource := range resources {
		require.NoError(t, server.ApplyOperatorCRDs(t.Context(), controlplane.Kueue, resource))
		name := resource + "." + v1beta1.GroupName
		crd, err := crds.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		require.NoError(t, err)
		for _, v := range versions {
			version := v.(map[string]any)
			version["served"] = version["name"] == "v1beta2"
		}
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": versions}})
		require.NoError(t, err)
		_, err = crds.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = crds.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
		served := gvr(v1beta1.GroupName, "v1beta2", resource)
		old := gvr(v1beta1.GroupName, "v1beta1", resource)
		require.Eventually(t, func() bool {
			_, err := connect(t).Resource(served).List(t.Context(), metav1.ListOptions{})
			_, oldErr := connect(t).Resource(old).List(t.Context(), metav1.ListOptions{})
			return err == nil && oldErr != nil
		}, 30*time.Second, 50*time.Millisecond, name)
	}
}

// TestKueue20 uses the API of Kueue 0.20: checks are answered, our part of its API applies, and its configuration is
// read.
func TestKueue20(t *testing.T) {
	admin := connect(t)
	install(t, "components/admission-checks-crd")
	installKueue(t, "admissionchecks", "provisioningrequestconfigs", "clusterqueues", "cohorts", "localqueues",
		"resourceflavors", "workloadpriorityclasses")

	t.Run("what is shipped", func(t *testing.T) {
		for _, file := range []string{
			"examples/provisioning-request/check.yaml", "cmd/jobqueue-playground/cases/checks.yaml",
			"cmd/jobqueue-playground/cases/strict.yaml",
		} {
			text, err := os.ReadFile(filepath.Join(root, file))
			require.NoError(t, err)
			applied := 0
			for _, part := range bytes.Split(text, []byte("\n---\n")) {
				object := &unstructured.Unstructured{}
				require.NoError(t, yaml.Unmarshal(part, &object.Object), file)
				if object.GroupVersionKind().Group != v1beta1.GroupName {
					continue
				}
				object.SetName("shipped-" + object.GetName()) // another test may have one of the name
				resource := object.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(object.GetKind()) + "s")
				_, err := admin.Resource(resource).Create(t.Context(), object, metav1.CreateOptions{
					DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
				require.NoError(t, err, "%s: %s %s", file, object.GetKind(), object.GetName())
				applied++
			}
			require.Positive(t, applied, file)
		}
	})

	t.Run("checks", func(t *testing.T) {
		const namespace = "kueue20"
		bindCheckRole(t, namespace)
		startChecks(t, func(context.Context, *v1alpha1.QueueUnit, *v1beta1.AdmissionCheck) (admissioncheck.Answer, error) {
			return admissioncheck.Answer{State: admissioncheck.Ready}, nil
		})
		checks := admin.Resource(v1beta1.AdmissionCheckResources[0])
		_ = checks.Delete(t.Context(), "budget", metav1.DeleteOptions{}) // of another test
		_, err := checks.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": map[string]any{"name": "budget"},
			"spec": map[string]any{"controllerName": "example.com/budget", "parameters": map[string]any{
				"apiGroup": "example.com", "kind": "Budget", "name": "q3"}},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		units := admin.Resource(v1alpha1.QueueUnitResource).Namespace(namespace)
		reserve(t, units, "rich")
		require.Eventually(t, func() bool {
			u, err := checks.Get(t.Context(), "budget", metav1.GetOptions{})
			require.NoError(t, err)
			check := &v1beta1.AdmissionCheck{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, check))
			return meta.IsStatusConditionTrue(check.Status.Conditions, v1beta1.ConditionActive)
		}, 30*time.Second, 50*time.Millisecond)
		require.Eventually(t, func() bool {
			u, err := units.Get(t.Context(), "rich", metav1.GetOptions{})
			require.NoError(t, err)
			unit := &v1alpha1.QueueUnit{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, unit))
			return unit.Status.AdmissionChecks[0].State == admissioncheck.Ready
		}, 30*time.Second, 50*time.Millisecond)
	})

	t.Run("migration", func(t *testing.T) { migratesKueue(t) })
}

// migratesKueue reads a configuration from the API server, with the fields that v1beta2 has.
func migratesKueue(t *testing.T) {
	t.Helper()
	admin := connect(t)
	var documents []document.Document
	for _, of := range []struct{ resource, namespace, text string }{
		{"resourceflavors", "", "{kind: ResourceFlavor, metadata: {name: a100}, spec: {nodeLabels: {card: a100}}}"},
		{"cohorts", "", "{kind: Cohort, metadata: {name: all}}"},
		{"clusterqueues", "", `{kind: ClusterQueue, metadata: {name: team}, spec: {cohortName: all, namespaceSelector: {},
			admissionChecksStrategy: {admissionChecks: [{name: budget}]},
			resourceGroups: [{coveredResources: [cpu], flavors: [{name: a100, resources: [{name: cpu, nominalQuota: 8}]}]}]}}`},
		{"localqueues", "kueue20", "{kind: LocalQueue, metadata: {name: team}, spec: {clusterQueue: team}}"},
		{"workloadpriorityclasses", "", "{kind: WorkloadPriorityClass, metadata: {name: high}, value: 100}"},
	} {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(of.text), &object.Object))
		object.SetAPIVersion("kueue.x-k8s.io/v1beta2")
		stored, err := admin.Resource(gvr(v1beta1.GroupName, "v1beta2", of.resource)).Namespace(of.namespace).
			Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		require.NoError(t, err, of.resource)
		documents = append(documents, document.Document{Content: stored.Object})
	}
	var out finding.List
	quotas := map[types.NamespacedName]string{}
	for _, object := range kueue.Convert(documents, &out) {
		if object.GetKind() == "ElasticQuota" {
			least, _, _ := unstructured.NestedString(object.Object, "spec", "min", "cpu")
			quotas[types.NamespacedName{Name: object.GetName()}] = least
		}
	}
	require.Equal(t, map[types.NamespacedName]string{{Name: "team"}: "8", {Name: "all"}: "8"}, quotas)
}
