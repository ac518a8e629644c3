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

package jobplan

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// TestAnOperatorsOverrideStays: what an operator sets on a unit is written into its spec, and a plan on the result does
// nothing (I12).
func TestAnOperatorsOverrideStays(t *testing.T) {
	s := queued(t).
		job("mine", "metadata", "annotations", v1alpha1.QueueNameKey).
		job("5", "metadata", "annotations", v1alpha1.AnnotationPriority)
	s.Terms.Priorities.Most = ptr.To(int32(10))
	s.unit(func(u *v1alpha1.QueueUnit) {
		u.Annotations = map[string]string{
			v1alpha1.AnnotationOverrideQueue: "express", v1alpha1.AnnotationOverridePriority: "70",
		}
	})
	u := patchedUnit(t, s)
	require.Equal(t, "express", u.Spec.Queue)
	require.Equal(t, int32(70), *u.Spec.Priority)
	require.Equal(t, "70", u.Annotations[v1alpha1.AnnotationOverridePriority])
	s.Unit = u
	require.Empty(t, s.decide().Do)

	delete(u.Annotations, v1alpha1.AnnotationOverrideQueue)
	u.Annotations[v1alpha1.AnnotationOverridePriority] = "many"
	u = patchedUnit(t, s)
	require.Equal(t, "mine", u.Spec.Queue)
	require.Equal(t, int32(5), *u.Spec.Priority, "what is no number counts as none")
}

// TestAJobCannotOverride: the annotations count on a unit alone.
func TestAJobCannotOverride(t *testing.T) {
	s := unqueued(t).
		job("express", "metadata", "annotations", v1alpha1.AnnotationOverrideQueue).
		job("70", "metadata", "annotations", v1alpha1.AnnotationOverridePriority)
	for _, action := range s.decide().Do {
		if create, ok := action.(CreateUnit); ok {
			require.Empty(t, create.Unit.Annotations)
			require.Equal(t, "a", create.Unit.Spec.Queue)
			require.Nil(t, create.Unit.Spec.Priority)
			return
		}
	}
	require.Fail(t, "no unit is created")
}

func patchedUnit(t *testing.T, s *scene) *v1alpha1.QueueUnit {
	t.Helper()
	actions := s.decide().Do
	require.Len(t, actions, 1)
	require.IsType(t, PatchUnit{}, actions[0])
	return actions[0].(PatchUnit).After
}
