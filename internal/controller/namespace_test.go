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

package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	queuev1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func TestNamespacesSayWhichJobsAreQueuedAndHow(t *testing.T) {
	annotate := func(key string) func(*metav1.PartialObjectMetadata) {
		return func(n *metav1.PartialObjectMetadata) { n.Annotations[key] = "7" }
	}
	for name, tc := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		want   bool
	}{
		"a label":               {func(n *metav1.PartialObjectMetadata) { n.Labels = map[string]string{"queued": ""} }, true},
		"the greatest priority": {annotate(queuev1alpha1.AnnotationMaxPriority), true},
		"another annotation":    {annotate("x"), false},
	} {
		t.Run(name, func(t *testing.T) {
			before := newNamespace()
			before.Annotations = map[string]string{queuev1alpha1.AnnotationMaxPriority: "5"}
			after := before.DeepCopy()
			tc.change(after)
			require.Equal(t, tc.want, namespaceChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
		})
	}
}
