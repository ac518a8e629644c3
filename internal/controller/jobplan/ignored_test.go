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
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// TestIgnoredKeys: a job is told when it enters the queue. No value of it is in the event.
func TestIgnoredKeys(t *testing.T) {
	s := unqueued(t).job(map[string]any{
		"koord-queue/job-enqueue-timestamp": strings.Repeat("x", 1<<16), "scheduling.x-k8s.io/suspend": "true",
	}, "metadata", "annotations")
	require.Equal(t, "create unit [Queued]; tell [IgnoredKey]", describe(s.decide()))
	note := s.decide().Do[1].(Tell).Event.Note
	require.Contains(t, note, "scheduling.x-k8s.io/suspend has no effect")
	require.NotContains(t, note, "xx")

	s.Terms.Further.Ignored = "kueue.x-k8s.io/elastic-job has no effect"
	require.Equal(t, "create unit [Queued]; tell [IgnoredKey]", describe(s.decide()), "the recorder keeps the first alone")
	require.Equal(t, note+"; "+s.Terms.Further.Ignored, s.decide().Do[1].(Tell).Event.Note)

	s.Kind.SuspendAnnotation = "scheduling.x-k8s.io/suspend"
	require.NotContains(t, s.decide().Do[1].(Tell).Event.Note, "scheduling.x-k8s.io/suspend")
}

// TestUnpreemptableIsToldWhereItHasNoEffect: the status of the unit says what its queue has let it.
func TestUnpreemptableIsToldWhereItHasNoEffect(t *testing.T) {
	for name, c := range map[string]struct {
		asks      string
		effective *v1alpha1.Effective
		want      string
	}{
		"no queue lets it": {"false", nil, "tell [IgnoredKey]; job suspend=false [Admitted]"},
		"its queue does not": {"false", &v1alpha1.Effective{Queue: "q"},
			"tell [IgnoredKey]; job suspend=false [Admitted]"},
		"its queue does":        {"false", &v1alpha1.Effective{Preemptable: ptr.To(false)}, "job suspend=false [Admitted]"},
		"it asks for something": {"true", nil, "job suspend=false [Admitted]"},
		"it asks for nothing":   {"", nil, "job suspend=false [Admitted]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := queued(t).job(map[string]any{"koord-queue/preemptable": c.asks}, "metadata", "annotations")
			s.phase(v1alpha1.PhaseDequeued)
			s.Unit.Status.Effective = c.effective
			require.Equal(t, c.want, describe(s.decide()))
		})
	}
}

// TestUnpreemptableFollowsTheJob while it waits; what the job says since its admission changes nothing.
func TestUnpreemptableFollowsTheJob(t *testing.T) {
	s := queued(t).job(map[string]any{"koord-queue/preemptable": "false"}, "metadata", "annotations")
	step, ok := s.decide().Do[0].(PatchUnit)
	require.True(t, ok)
	require.Equal(t, "false", step.After.Annotations[v1alpha1.AnnotationPreemptable])

	s = queued(t)
	s.Unit.Annotations = map[string]string{v1alpha1.AnnotationPreemptable: "false"}
	step, ok = s.decide().Do[0].(PatchUnit)
	require.True(t, ok)
	require.NotContains(t, step.After.Annotations, v1alpha1.AnnotationPreemptable)
}
