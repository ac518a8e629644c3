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
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	file := filepath.Join(root, "internal", "jobs", "testdata", "kinds", kind.name, name+".yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	content, err := yaml.Marshal(object.Object)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, content, 0o644))
}

// recordState writes the job in a state, and the first of the JobSets that it is run by.
func (l *life) recordState(state string) {
	l.t.Helper()
	save(l.t, l.kind, state, l.current())
	if l.kind.name != "trainjob" {
		return
	}
	jobSet := schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
	list, err := l.cluster.resource(l.t, jobSet).Namespace(l.namespace).List(l.t.Context(), metav1.ListOptions{})
	require.NoError(l.t, err)
	if len(list.Items) > 0 {
		save(l.t, l.kind, filepath.Join("children", state), &list.Items[0])
	}
}

// recordPods writes the first pod of each pod set.
func (l *life) recordPods() {
	l.t.Helper()
	for _, pod := range l.pods() {
		if set := pod.Annotations[v1alpha1.AnnotationRelatedPodSet]; set != "" {
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
			require.NoError(l.t, err)
			object["apiVersion"], object["kind"] = "v1", "Pod"
			save(l.t, l.kind, filepath.Join("pods", set), &unstructured.Unstructured{Object: object})
		}
	}
}
