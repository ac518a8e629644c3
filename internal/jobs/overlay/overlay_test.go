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

package overlay

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
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
			require.Equal(t, read(tc.want).Object, Of(whole, before, after).Object)
			require.Equal(t, read(tc.whole).Object, whole.Object, "not changed")
			require.Equal(t, tc.lists, InLists(before, after))
		})
	}
}
