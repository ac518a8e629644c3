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
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

type ruleCase struct {
	Name    string         `json:"name"`
	Kind    string         `json:"kind"`
	Before  map[string]any `json:"before"`
	Change  map[string]any `json:"change"`
	Status  bool           `json:"status"`
	Refused string         `json:"refused"`
}

// TestRules: each rule of the CRDs has a case that it accepts and one that it refuses.
func TestRules(t *testing.T) {
	client := connect(t)
	raw, err := os.ReadFile(filepath.Join(testdata, "rules/rules.yaml"))
	require.NoError(t, err)
	var cases []ruleCase
	require.NoError(t, yaml.UnmarshalStrict(raw, &cases))
	for i, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			to := client.Resource(resourceOf(c.Kind)).Namespace("default")
			err := c.run(t, to, fmt.Sprintf("rule-%d", i))
			if c.Refused == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.True(t, apierrors.IsInvalid(err), err)
			require.Contains(t, err.Error(), c.Refused)
		})
	}
}

// run stores the object of the case and then changes it; the error is that of the last step.
func (c ruleCase) run(t *testing.T, to dynamic.ResourceInterface, name string) error {
	t.Helper()
	obj := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(jsonNumbers(t, c.Before))}
	obj.SetAPIVersion(schedulingv1alpha1.SchemeGroupVersion.String())
	obj.SetKind(c.Kind)
	obj.SetName(name)
	created, err := to.Create(t.Context(), obj, metav1.CreateOptions{})
	if c.Change == nil {
		return err
	}
	require.NoError(t, err)
	if status, ok := c.Before["status"]; ok {
		created.Object["status"] = jsonNumbers(t, map[string]any{"v": status})["v"]
		_, err = to.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
		require.NoError(t, err, "status before the change")
	}
	patch, err := json.Marshal(c.Change)
	require.NoError(t, err)
	var subresources []string
	if c.Status {
		subresources = []string{"status"}
	}
	_, err = to.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, subresources...)
	return err
}

func jsonNumbers(t *testing.T, in map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(in)
	require.NoError(t, err)
	u := map[string]any{}
	require.NoError(t, yaml.Unmarshal(raw, &u))
	out := &unstructured.Unstructured{}
	u["apiVersion"], u["kind"] = "v1", "X"
	raw, err = json.Marshal(u)
	require.NoError(t, err)
	require.NoError(t, out.UnmarshalJSON(raw))
	delete(out.Object, "apiVersion")
	delete(out.Object, "kind")
	return out.Object
}

// TestPredecessorObjectsApply creates the samples of the stand-alone Koord-Queue, with their status.
func TestPredecessorObjectsApply(t *testing.T) {
	client := connect(t)
	files, err := filepath.Glob(filepath.Join(testdata, "koord-queue/*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			raw, err = yaml.YAMLToJSON(raw)
			require.NoError(t, err)
			obj := &unstructured.Unstructured{}
			require.NoError(t, obj.UnmarshalJSON(raw))
			ensureNamespace(t, client, obj.GetNamespace())
			to := client.Resource(resourceOf(obj.GetKind())).Namespace(obj.GetNamespace())
			created, err := to.Create(t.Context(), obj, metav1.CreateOptions{})
			require.NoError(t, err)
			if obj.Object["status"] == nil {
				return
			}
			created.Object["status"] = obj.Object["status"]
			stored, err := to.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
			require.NoError(t, err)
			if obj.GetKind() == "QueueUnit" {
				var unit schedulingv1alpha1.QueueUnit
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &unit))
			}
		})
	}
}

// TestPhaseOfNewUnit: a unit without a written status reads as Enqueued, even if its creator sent another phase. The
// status writes of both processes work from there.
func TestPhaseOfNewUnit(t *testing.T) {
	admin := connect(t)
	unit := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": schedulingv1alpha1.SchemeGroupVersion.String(), "kind": "QueueUnit",
		"metadata": map[string]any{"name": "new", "namespace": "default"},
		"spec":     map[string]any{"request": map[string]any{"cpu": int64(1)}},
		"status":   map[string]any{"phase": "Running"},
	}}
	created, err := admin.Resource(schedulingv1alpha1.QueueUnitResource).Namespace("default").
		Create(t.Context(), unit, metav1.CreateOptions{})
	require.NoError(t, err)
	requirePhase(t, created, schedulingv1alpha1.PhaseEnqueued)

	scheduler := clientOf(t, controlplane.SchedulerIdentity).Resource(schedulingv1alpha1.QueueUnitResource).
		Namespace("default")
	read, err := scheduler.Get(t.Context(), "new", metav1.GetOptions{})
	require.NoError(t, err)
	requirePhase(t, read, schedulingv1alpha1.PhaseEnqueued)

	admit := func(version string) []byte {
		return fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"status":{"phase":"Dequeued","attempts":1,`+
			`"admissions":[{"name":"koord-queue/default-requirement","replicas":1,"resources":{"cpu":"1"}}]}}`,
			read.GetUID(), version)
	}
	admitted, err := scheduler.Patch(t.Context(), "new", types.MergePatchType, admit(read.GetResourceVersion()),
		metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	requirePhase(t, admitted, schedulingv1alpha1.PhaseDequeued)

	// Sent again with the same version: refused, so that an unknown outcome can be resolved by asking again.
	_, err = scheduler.Patch(t.Context(), "new", types.MergePatchType, admit(read.GetResourceVersion()),
		metav1.PatchOptions{}, "status")
	require.True(t, apierrors.IsConflict(err), "%v", err)

	controller := clientOf(t, controlplane.ControllerIdentity).Resource(schedulingv1alpha1.QueueUnitResource).
		Namespace("default")
	running, err := controller.Patch(t.Context(), "new", types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`),
		metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	requirePhase(t, running, schedulingv1alpha1.PhaseRunning)

	// The spec is not the scheduler's.
	_, err = scheduler.Patch(t.Context(), "new", types.MergePatchType, []byte(`{"spec":{"priority":9}}`),
		metav1.PatchOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func requirePhase(t *testing.T, obj *unstructured.Unstructured, want schedulingv1alpha1.QueueUnitPhase) {
	t.Helper()
	phase, _, err := unstructured.NestedString(obj.Object, "status", "phase")
	require.NoError(t, err)
	require.EqualValues(t, want, phase)
}
