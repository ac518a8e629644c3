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
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func TestOverlay(t *testing.T) {
	for name, tc := range map[string]struct {
		whole, before, after, want string
		lists                      bool
	}{
		"nothing":                 {"{a: 1, b: 2}", "{a: 1}", "{a: 1}", "{a: 1, b: 2}", false},
		"a field":                 {"{a: 1, b: 2}", "{a: 1}", "{a: 3}", "{a: 3, b: 2}", false},
		"a field that goes":       {"{a: 1, b: 2}", "{a: 1}", "{}", "{b: 2}", false},
		"a field that comes":      {"{b: 2}", "{}", "{a: 1}", "{a: 1, b: 2}", false},
		"a map that was not kept": {"{m: {b: 2}}", "{}", "{m: {a: 1}}", "{m: {a: 1, b: 2}}", false},
		"within an element": {"{l: [{a: 1, b: 2}, {a: 2}]}", "{l: [{a: 1}, {a: 2}]}", "{l: [{a: 3}, {a: 2}]}",
			"{l: [{a: 3, b: 2}, {a: 2}]}", true},
		"a map in an element": {"{l: [{m: {b: 2}}]}", "{l: [{}]}", "{l: [{m: {a: 1}}]}", "{l: [{m: {a: 1, b: 2}}]}",
			true},
		"a list of another length":   {"{l: [1]}", "{l: [1]}", "{l: [1, 2]}", "{l: [1, 2]}", true},
		"a list that becomes a word": {"{l: [1]}", "{l: [1]}", "{l: x}", "{l: x}", true},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(text string) *unstructured.Unstructured {
				u := &unstructured.Unstructured{}
				require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
				return u
			}
			whole := read(tc.whole)
			before, after := read(tc.before), read(tc.after)
			require.Equal(t, read(tc.want).Object, Overlay(whole, before, after).Object)
			require.Equal(t, read(tc.whole).Object, whole.Object, "not changed")
			require.Equal(t, tc.lists, ChangesLists(before, after))
		})
	}
}

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
				sets, err := kind.Open(after).PodSets()
				require.NoError(t, err)
				additions := map[string]Addition{}
				for i := range sets {
					additions[sets[i].Name] = Addition{Labels: map[string]string{v1alpha1.LabelQuotaName: "a"}}
				}
				require.NoError(t, kind.Edit(after).AddToTemplates(additions))
				return after
			}
			if kind.Child != nil {
				job := recordedObject(t, file)
				_, before := Split(kind.WithChild(job, kind.CompactChild(whole.DeepCopy())))
				_, after := Split(edit(kind.WithChild(job, kind.CompactChild(whole.DeepCopy()))))
				_, want := Split(edit(kind.WithChild(job, whole)))
				require.Equal(t, want.Object, Overlay(whole, before, after).Object)
				return
			}
			before, err := Expand(kind.Compact(whole.DeepCopy(), false))
			require.NoError(t, err)
			require.Equal(t, edit(whole).Object, Overlay(whole, before, edit(before)).Object)
		})
	}
}
