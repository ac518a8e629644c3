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

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// TestAForgedRecordDoesNotKeepAJobFromBeingSuspended: to suspend a job restores nothing.
func TestAForgedRecordDoesNotKeepAJobFromBeingSuspended(t *testing.T) {
	s := running(t).job(`{"j":{"whole":9,"now":2}}`, "metadata", "annotations", v1alpha1.AnnotationWholeCounts)
	s.Options.PartialAdmission = true
	s.phase(v1alpha1.PhaseEnqueued)
	suspends := s.decide().Do[0].(PatchJob)
	for _, field := range []string{"parallelism", "completions"} {
		require.Equal(t, spec(s.Job)[field], spec(suspends.After)[field])
	}

	s = queued(t).job(`{"j":{"whole":9,"now":2}}`, "metadata", "annotations", v1alpha1.AnnotationWholeCounts)
	s.Options.PartialAdmission = true
	s.Unit = jobunit.Of(s.Job, demanded(s.Job, s.Terms.Creation), nil)
	s.Unit.Status.Phase = v1alpha1.PhaseEnqueued
	restores := s.decide().Do[0].(PatchJob)
	require.EqualValues(t, 9, spec(restores.After)["parallelism"])
	require.EqualValues(t, 2, spec(restores.Plain)["parallelism"], "where that is refused")
	require.Empty(t, restores.Plain.Object.GetAnnotations())
}

func spec(job *jobs.Job) map[string]any { return job.Object.Object["spec"].(map[string]any) }
