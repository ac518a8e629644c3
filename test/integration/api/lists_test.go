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
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// keyedLists are atomic now. Where the definition had keys for them, units have managed fields of their items.
var keyedLists = map[string]string{"spec.podSet": "name", "status.admissions": "name", "status.conditions": "type"}

// TestListsLoseTheirKeys replaces a definition with keys by the shipped one: units from before it are patched and
// applied.
func TestListsLoseTheirKeys(t *testing.T) {
	client := connect(t)
	const group = "keyed.example.com"
	shipped := definitionIn(t, group)
	keyed := shipped.DeepCopy()
	for path, key := range keyedLists {
		list := propertyOf(t, keyed, strings.Split(path, ".")...)
		list["x-kubernetes-list-type"], list["x-kubernetes-list-map-keys"] = "map", []any{key}
	}
	_, err := client.Resource(crds).Create(t.Context(), keyed, metav1.CreateOptions{})
	require.NoError(t, err)
	waitEstablished(t, client, shipped.GetName())

	units := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "queueunits"}).
		Namespace("default")
	unit := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: keyed.example.com/v1alpha1
kind: QueueUnit
metadata: {name: keyed}
spec:
  request: {cpu: "2"}
  podSet: [{name: a, count: 1, template: {spec: {containers: [{name: c}]}}}, {name: b, count: 1}]
`), unit))
	apply := metav1.ApplyOptions{FieldManager: manager}
	_, err = units.Apply(t.Context(), "keyed", unit, apply)
	require.NoError(t, err)
	const admitted = `{"status":{"phase":"Dequeued","attempts":1,"admissions":[{"name":"a","replicas":1},` +
		`{"name":"b","replicas":1}],"conditions":[
		{"type":"Admitted","status":"True","reason":"Admitted","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`
	require.Contains(t, patchStatus(t, units, admitted), `k:{\"type\":\"Admitted\"}`)

	now, err := client.Resource(crds).Get(t.Context(), shipped.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	now.Object["spec"] = shipped.Object["spec"]
	_, err = client.Resource(crds).Update(t.Context(), now, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return !strings.Contains(patchStatus(t, units,
			`{"status":{"conditions":[],"admissions":[{"name":"a","replicas":1}]}}`), "k:{")
	}, 30*time.Second, 50*time.Millisecond, "managed fields of items stay")
	patchStatus(t, units, `{"status":{"phase":"Succeed","admissions":[]}}`)

	sets, _, err := unstructured.NestedSlice(unit.Object, "spec", "podSet")
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedSlice(unit.Object, sets[1:], "spec", "podSet"))
	after, err := units.Apply(t.Context(), "keyed", unit, apply)
	require.NoError(t, err)
	left, _, err := unstructured.NestedSlice(after.Object, "spec", "podSet")
	require.NoError(t, err)
	require.Equal(t, sets[1:], left)
}

// definitionIn is the shipped definition of units in a group of its own.
func definitionIn(t *testing.T, group string) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "manifests/base/crd/scheduling.x-k8s.io_queueunits.yaml"))
	require.NoError(t, err)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(raw, &crd.Object))
	crd.SetName("queueunits." + group)
	require.NoError(t, unstructured.SetNestedField(crd.Object, group, "spec", "group"))
	unstructured.RemoveNestedField(crd.Object, "spec", "names", "shortNames")
	return crd
}

// propertyOf is the schema of a field in crd, to change it.
func propertyOf(t *testing.T, crd *unstructured.Unstructured, path ...string) map[string]any {
	t.Helper()
	versions, found, err := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	require.True(t, found && err == nil)
	at := []string{"schema", "openAPIV3Schema"}
	for _, field := range path {
		at = append(at, "properties", field)
	}
	property, found, err := unstructured.NestedFieldNoCopy(versions.([]any)[0].(map[string]any), at...)
	require.True(t, found && err == nil)
	return property.(map[string]any)
}

// patchStatus returns the text of the managed fields after it.
func patchStatus(t *testing.T, units dynamic.ResourceInterface, patch string) string {
	t.Helper()
	unit, err := units.Patch(t.Context(), "keyed", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	raw, err := json.Marshal(unit.GetManagedFields())
	require.NoError(t, err)
	return string(raw)
}
