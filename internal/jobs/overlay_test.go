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

package jobs

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/overlay"
)

// A write through a reduced job changes nothing else of it: neither environment nor commands.
func TestNothingElseIsWritten(t *testing.T) {
	files, err := filepath.Glob("testdata/kinds/*/suspended-at-creation.yaml")
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			whole := recordedObject(t, file)
			kind, _ := recorded(t, file)
			if kind.Child != nil {
				whole = recordedObject(t, filepath.Join(filepath.Dir(file), "children", filepath.Base(file)))
			}
			edit := func(job *unstructured.Unstructured) *unstructured.Unstructured {
				after := job.DeepCopy()
				sets, err := Open(kind, after).PodSets()
				require.NoError(t, err)
				additions := map[string]Addition{}
				for i := range sets {
					additions[sets[i].Name] = Addition{Labels: map[string]string{v1alpha1.LabelQuotaName: "a"}}
				}
				require.NoError(t, EditOf(kind, after).AddToTemplates(additions))
				return after
			}
			if kind.Child != nil {
				job := recordedObject(t, file)
				_, before := Split(WithChild(kind, job, compact.Child(kind, whole.DeepCopy())))
				_, after := Split(edit(WithChild(kind, job, compact.Child(kind, whole.DeepCopy()))))
				_, want := Split(edit(WithChild(kind, job, whole)))
				require.Equal(t, want.Object, overlay.Of(whole, before, after).Object)
				return
			}
			before, err := compact.Expand(compact.Job(kind, whole.DeepCopy(), false))
			require.NoError(t, err)
			require.Equal(t, edit(whole).Object, overlay.Of(whole, before, edit(before)).Object)
		})
	}
}

// A TrainJob says who manages it in patches, and its runtime knows fields that the queue does not. It is admitted and
// evicted twice: nothing that others wrote is lost, and nothing that the queue wrote piles up.
func TestATrainJobIsAdmittedAndEvictedTwice(t *testing.T) {
	const dir = "testdata/kinds/trainjob/"
	job := recordedObject(t, dir+"suspended-at-creation.yaml")
	kind, ok := jobkind.Find(jobkind.KindString(job.GroupVersionKind()))
	require.True(t, ok)
	child := recordedObject(t, dir+"children/suspended-at-creation.yaml")
	set := func(o *unstructured.Unstructured, value any, fields ...string) {
		require.NoError(t, unstructured.SetNestedField(o.Object, value, fields...))
	}
	set(job, []any{map[string]any{
		"manager": "example.com/tenant", "newer": map[string]any{"field": "kept"},
		"trainingRuntimeSpec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"labels": map[string]any{"team": "a"},
		}}},
	}}, "spec", "runtimePatches")
	set(job, "kept", "spec", "newerField")
	set(child, "kept", "spec", "newerField")
	tolerates := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}
	update := podupdate.Update{NodeSelector: map[string]string{"zone": "z"}, Tolerations: []corev1.Toleration{tolerates}}
	asked, additions := map[string][]podupdate.Update{}, map[string]Addition{}
	sets, err := Open(kind, WithChild(kind, job, child)).PodSets()
	require.NoError(t, err)
	for i := range sets {
		asked[sets[i].Name] = []podupdate.Update{update}
		additions[sets[i].Name] = Addition{
			Labels: map[string]string{v1alpha1.LabelQuotaName: "a"}, Update: update,
			Annotations: map[string]string{v1alpha1.AnnotationRelatedPodSet: sets[i].Name},
		}
	}
	// written is what becomes of both objects, of which the queue keeps parts.
	written := func(of [2]*unstructured.Unstructured, change func(*Edit)) [2]*unstructured.Unstructured {
		kept, err := compact.Expand(compact.Job(kind, of[0].DeepCopy(), false))
		require.NoError(t, err)
		edit := EditOf(kind, WithChild(kind, kept, compact.Child(kind, of[1].DeepCopy()))).Copy()
		before := edit.Copy()
		change(edit)
		own, part := Split(edit.object)
		ownBefore, partBefore := Split(before.object)
		return [2]*unstructured.Unstructured{
			overlay.Of(of[0], ownBefore, own), overlay.Of(of[1], partBefore, part),
		}
	}
	admitted := func(e *Edit) {
		require.NoError(t, e.AddToTemplates(additions))
		require.NoError(t, e.SetSuspend(false))
	}
	evicted := func(e *Edit) {
		require.NoError(t, e.SetSuspend(true))
		require.True(t, e.RestoreTemplates(asked))
	}
	first := [2]*unstructured.Unstructured{job, child}
	runs := written(first, admitted)
	require.Equal(t, job.Object["spec"].(map[string]any)["runtimePatches"],
		runs[0].Object["spec"].(map[string]any)["runtimePatches"])
	resumed, err := Open(kind, WithChild(kind, runs[0], runs[1])).PodSets()
	require.NoError(t, err)
	for i := range resumed {
		require.Equal(t, "a", resumed[i].Template.Labels[v1alpha1.LabelQuotaName])
		require.Contains(t, resumed[i].Template.Spec.Tolerations, tolerates)
	}
	waits := written(runs, evicted)
	require.Equal(t, withoutEmptyMetadata(first[0].Object), withoutEmptyMetadata(waits[0].Object))
	require.Equal(t, withoutEmptyMetadata(first[1].Object), withoutEmptyMetadata(waits[1].Object))
	again := written(waits, admitted)
	require.Equal(t, runs[0].Object, again[0].Object)
	require.Equal(t, runs[1].Object, again[1].Object)
	require.Equal(t, waits, written(again, evicted))
}
