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
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
)

// Whatever number a tenant writes, its job is served no earlier than its class, or its namespace, lets it be (H6).
func TestANumberIsNoPriorityOfItsOwn(t *testing.T) {
	const annotated = "2147483647"
	for name, tt := range map[string]struct {
		annotation string
		allowed    jobunit.Priorities
		want       *int32
		told       string
	}{
		"no class":             {annotated, jobunit.Priorities{}, ptr.To[int32](0), "it has 0"},
		"class":                {annotated, jobunit.Priorities{Class: ptr.To[int32](10)}, ptr.To[int32](10), "it has 10"},
		"less than the class":  {"3", jobunit.Priorities{Class: ptr.To[int32](10)}, ptr.To[int32](3), ""},
		"less than nothing":    {"-5", jobunit.Priorities{}, ptr.To[int32](-5), ""},
		"namespace":            {annotated, jobunit.Priorities{Most: ptr.To[int32](100)}, ptr.To[int32](100), "it has 100"},
		"within the namespace": {"99", jobunit.Priorities{Most: ptr.To[int32](100)}, ptr.To[int32](99), ""},
		"namespace below class": {
			"9", jobunit.Priorities{Class: ptr.To[int32](10), Most: ptr.To[int32](5)}, ptr.To[int32](5), "has 5",
		},
		"no number": {"", jobunit.Priorities{Class: ptr.To[int32](10)}, ptr.To[int32](10), ""},
		"class above the namespace": {
			"", jobunit.Priorities{Class: ptr.To[int32](10), Most: ptr.To[int32](5)}, ptr.To[int32](5), "has 5",
		},
		"class within the namespace": {
			"", jobunit.Priorities{Class: ptr.To[int32](10), Most: ptr.To[int32](10)}, ptr.To[int32](10), "",
		},
		"class of the system": {"", jobunit.Priorities{Class: ptr.To[int32](2_000_001_000)}, ptr.To[int32](0), "has 0"},
		"number and class of the system": {
			"7", jobunit.Priorities{Class: ptr.To[int32](2_000_000_000)}, ptr.To[int32](0), "has 0",
		},
		"class of the system that a namespace allows": {
			"", jobunit.Priorities{Class: ptr.To[int32](2_000_000_000), Most: ptr.To[int32](2_000_000_000)},
			ptr.To[int32](2_000_000_000), "",
		},
		"highest class of all":     {"", jobunit.Priorities{Class: ptr.To[int32](1e9)}, ptr.To[int32](1e9), ""},
		"nothing is known of it":   {"", jobunit.Priorities{}, nil, ""},
		"what is no number at all": {"x", jobunit.Priorities{Class: ptr.To[int32](10)}, ptr.To[int32](10), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := unqueued(t)
			if tt.annotation != "" {
				s.job(tt.annotation, "metadata", "annotations", v1alpha1.AnnotationPriority)
			}
			s.Terms.Priorities = tt.allowed
			actions := s.decide().Do
			require.Len(t, actions, 1)
			created, ok := actions[0].(CreateUnit)
			require.True(t, ok)
			require.Equal(t, tt.want, created.Unit.Spec.Priority)
			if tt.told == "" {
				require.NotContains(t, created.Event.Note, "priority")
			} else {
				require.Contains(t, created.Event.Note, tt.told)
			}
		})
	}
}
