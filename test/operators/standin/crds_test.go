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

package standin_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// What the documentation of an operator shows is kept as it is by the CRD of our writing; only defaults are added.
func TestSamplesAreKept(t *testing.T) {
	_, c := start(t, controlplane.Options{})
	all := samples(t)
	require.Len(t, all, len(files(t, "../../harness/standin/crds/*.yaml")), "a sample for each kind")
	for name, sample := range all {
		t.Run(name, func(t *testing.T) {
			want := sample.DeepCopy()
			require.NoError(t, c.Create(t.Context(), sample))
			got := newLike(want)
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(want), got))
			require.Empty(t, missing("", want.Object, got.Object))
		})
	}
}

// An older spark-operator does not know suspend: it is pruned, and nothing else is.
func TestOlderSparkPrunesSuspend(t *testing.T) {
	cp, c := start(t, controlplane.Options{})
	older := files(t, "../../harness/standin/crds/older/*.yaml")["sparkapplications.yaml"]
	require.NoError(t, cp.ApplyObjects(t.Context(), older))
	want := samples(t)["sparkapplication.yaml"]
	require.Eventually(t, func() bool { // the new schema is served a moment later
		got := want.DeepCopy()
		require.NoError(t, c.Create(t.Context(), got))
		require.NoError(t, c.Delete(t.Context(), got))
		lost := missing("", want.Object, got.Object)
		return len(lost) == 1 && lost[0] == ".spec.suspend: true"
	}, waitFor, poll)
}

// Argo writes the status with the object, the others beside it.
func TestStatusSubresources(t *testing.T) {
	_, c := start(t, controlplane.Options{})
	for name, sample := range samples(t) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.Create(t.Context(), sample))
			require.NoError(t, unstructured.SetNestedField(sample.Object, map[string]any{
				"driverInfo": map[string]any{}, "phase": "Running", "reason": "mine",
			}, "status"))
			require.NoError(t, c.Update(t.Context(), sample))
			phase, _, err := unstructured.NestedString(sample.Object, "status", "phase")
			require.NoError(t, err)
			require.Equal(t, sample.GetKind() == "Workflow", phase == "Running")
		})
	}
}

func newLike(object *unstructured.Unstructured) *unstructured.Unstructured {
	other := &unstructured.Unstructured{}
	other.SetGroupVersionKind(object.GroupVersionKind())
	return other
}

// missing are the fields of want that got has not, or has with another value.
func missing(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		other, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: %v", path, want)}
		}
		var out []string
		for key, value := range want {
			out = append(out, missing(path+"."+key, value, other[key])...)
		}
		return out
	case []any:
		other, ok := got.([]any)
		if !ok || len(other) != len(want) {
			return []string{fmt.Sprintf("%s: %v", path, want)}
		}
		var out []string
		for i := range want {
			out = append(out, missing(fmt.Sprintf("%s[%d]", path, i), want[i], other[i])...)
		}
		return out
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) {
			return []string{fmt.Sprintf("%s: %v", path, want)}
		}
		return nil
	}
}
