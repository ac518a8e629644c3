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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/overlay"
)

// What is written into a job of which parts are kept changes nothing else of it: not its environment, nor its commands.
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
