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

package elasticquota

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/koordinator-sh/koordinator/apis/extension"
)

func quota(namespace, name string) metav1.PartialObjectMetadata {
	q := New()
	q.Namespace, q.Name = namespace, name
	return *q
}

func TestMappedNamespaces(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, quota, annotation string
		want                         []string
	}{
		"its own":                       {"team", "team", "", []string{"team"}},
		"of another name":               {"team", "a", "", nil},
		"those that it takes":           {"team", "a", `["x","b"]`, []string{"b", "x"}},
		"both":                          {"team", "team", `["x","team"]`, []string{"team", "x"}},
		"what cannot be read":           {"team", "team", `["x",1]`, []string{"team"}},
		"Koordinator's own take nobody": {"team", extension.DefaultQuotaName, `["x"]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			quota := New()
			quota.Namespace, quota.Name = tc.namespace, tc.quota
			quota.Annotations = map[string]string{extension.AnnotationQuotaNamespaces: tc.annotation}
			require.Equal(t, tc.want, MappedNamespaces(quota))
		})
	}
}

// The quota of a namespace is the one that Koordinator charges pods without a label to, where that is certain.
func TestQuotaOfNamespace(t *testing.T) {
	taking := func(namespace, name, annotation string) metav1.PartialObjectMetadata {
		q := quota(namespace, name)
		q.Annotations = map[string]string{extension.AnnotationQuotaNamespaces: annotation}
		return q
	}
	own, a, b := quota("team", "team"), taking("z", "a", `["team"]`), taking("z", "b", `["team"]`)
	for name, tc := range map[string]struct {
		quotas []metav1.PartialObjectMetadata
		want   string
	}{
		"none":                 {nil, ""},
		"its own":              {[]metav1.PartialObjectMetadata{own}, "team"},
		"one that takes it":    {[]metav1.PartialObjectMetadata{a}, "a"},
		"its own goes first":   {[]metav1.PartialObjectMetadata{a, own, b}, "team"},
		"two take it: whoever": {[]metav1.PartialObjectMetadata{a, b}, ""},
		"another's own name":   {[]metav1.PartialObjectMetadata{taking("z", "team", `["team"]`), b}, ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, OfNamespace("team", tc.quotas)) })
	}
}

func TestWhatIsUsedOfAQuotaChangesNoMapping(t *testing.T) {
	before := New()
	before.Annotations = map[string]string{extension.AnnotationQuotaNamespaces: `["x"]`}
	after := before.DeepCopy()
	after.Annotations[extension.AnnotationRuntime] = `{"cpu":"1"}`
	require.False(t, Changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
	after.Annotations[extension.AnnotationQuotaNamespaces] = `["y"]`
	require.True(t, Changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
}
