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

package ownerhold

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// TestKey: the annotation of the stand-alone Koord-Queue holds a job that lacks our own.
func TestKey(t *testing.T) {
	kind, ok := jobkind.Find("Job.v1.batch")
	require.True(t, ok)
	for _, tc := range []struct{ hold, active, want string }{
		{"", "", ""},
		{"", "true", ""},
		{"", "False", ""},
		{"", "false", v1alpha1.AnnotationActive},
		{"true", "true", v1alpha1.AnnotationHold},
		{"true", "false", v1alpha1.AnnotationHold},
		{"false", "false", ""},
	} {
		annotations := map[string]string{}
		if tc.hold != "" {
			annotations[v1alpha1.AnnotationHold] = tc.hold
		}
		if tc.active != "" {
			annotations[v1alpha1.AnnotationActive] = tc.active
		}
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetAnnotations(annotations)
		require.Equal(t, tc.want, Key(jobs.Open(kind, object)), "%+v", tc)
	}
}
