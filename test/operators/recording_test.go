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

package operators_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// save writes an object of a kind for the tests of descriptors, when asked to with -record.
func save(t *testing.T, kind *jobKind, name string, object *unstructured.Unstructured) {
	t.Helper()
	if !*record {
		return
	}
	root, err := controlplane.RepositoryRoot()
	require.NoError(t, err)
	file := filepath.Join(root, "pkg", "jobs", "testdata", "kinds", kind.name, name+".yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	content, err := yaml.Marshal(object.Object)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, content, 0o644))
}

// saveState writes the job in a state, and the first of its children.
func (l *life) saveState(state string, job *unstructured.Unstructured) {
	l.t.Helper()
	save(l.t, l.kind, state, job)
	if l.kind.child.Empty() {
		return
	}
	list, err := l.cluster.resource(l.t, l.kind.child).Namespace(l.namespace).List(l.t.Context(), metav1.ListOptions{})
	require.NoError(l.t, err)
	if len(list.Items) > 0 {
		save(l.t, l.kind, filepath.Join("children", state), &list.Items[0])
	}
}

// recorded says whether objects of the kind are written here: of those with operators of their own TestLife does it.
func (k *jobKind) recorded() bool {
	return !slices.ContainsFunc(jobKinds, func(other jobKind) bool { return other.name == k.name })
}

// recordState writes the job in a state.
func (l *life) recordState(state string) {
	l.t.Helper()
	if l.kind.recorded() {
		save(l.t, l.kind, state, l.current())
	}
}

// recordPods writes the first pod of each pod set.
func (l *life) recordPods() {
	l.t.Helper()
	if !l.kind.recorded() {
		return
	}
	for _, pod := range l.pods() {
		if set := pod.Annotations[v1alpha1.AnnotationRelatedPodSet]; set != "" {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
			require.NoError(l.t, err)
			object["apiVersion"], object["kind"] = "v1", "Pod"
			save(l.t, l.kind, filepath.Join("pods", set), &unstructured.Unstructured{Object: object})
		}
	}
}

// savePods writes the first pod of each set of replicas.
func (l *life) savePods() {
	l.t.Helper()
	saved := map[string]bool{}
	for _, pod := range l.pods() {
		set := pod.Labels[l.kind.setLabel]
		if saved[set] {
			continue
		}
		saved[set] = true
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
		require.NoError(l.t, err)
		object["apiVersion"], object["kind"] = "v1", "Pod"
		save(l.t, l.kind, filepath.Join("pods", set), &unstructured.Unstructured{Object: object})
	}
}
