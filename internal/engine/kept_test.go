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

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func annotated(value string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{v1alpha1.AnnotationPreemptable: value})
	}
}

// The status of a unit says that nobody takes what it holds, where its owner does not write. It is as it was when the
// unit was admitted: whatever its object asks for since, also in a new process, until it waits again.
func TestUnpreemptableAsAdmitted(t *testing.T) {
	allows := map[string]any{"preemption": map[string]any{"allowUnpreemptable": true}}
	recorded := func(r *rig, key string) any {
		value, _, err := unstructured.NestedFieldNoCopy(r.api.get(key).Object, "status", "effective", "preemptable")
		require.NoError(t, err)
		return value
	}
	for name, c := range map[string]struct {
		queue         map[string]any
		before, after string
		want          any
	}{
		"asked before":                          {allows, "false", "", false},
		"asked before, and not any more":        {allows, "false", "true", false},
		"asked since":                           {allows, "", "false", nil},
		"asked for something else":              {allows, "no", "false", nil},
		"asked in a queue that does not let it": {nil, "false", "false", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 4)
			r.queueWith(testQuota, c.queue)
			key := r.unit("u", 4, annotated(c.before))
			r.step()
			r.send()
			require.Equal(t, c.want, recorded(r, key))
			require.Equal(t, c.want != nil, unitFrom(r.api.get(key)).Kept)
			r.sound()

			r.api.edit(key, annotated(c.after))
			next := rigOn(t, r.api, r.quotas, r.clock)
			next.queueWith(testQuota, allows).feed(key).lead()
			next.step()
			require.Equal(t, c.want != nil, next.engine.units.Get(key).Object.Kept)
			next.sound()

			next.api.edit(key, func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, false, "spec", "active")
			})
			next.feed(key).step()
			next.send()
			require.Nil(t, recorded(next, key), "it waits again")
			require.False(t, unitFrom(next.api.get(key)).Kept)
		})
	}
}
