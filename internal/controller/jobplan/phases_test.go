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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

var allPhases = []v1alpha1.QueueUnitPhase{
	"", v1alpha1.PhaseEnqueued, v1alpha1.PhaseReserved, v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning,
	v1alpha1.PhaseSucceed, v1alpha1.PhaseFailed, v1alpha1.PhaseSchedReady, v1alpha1.PhaseSchedSucceed,
	v1alpha1.PhaseSchedFailed, v1alpha1.PhaseTimeoutBackoff, "Preempted", "Levitating",
}

// To hold quota is not to release: a job is resumed in the phases in which its pods may go, and in no other.
func TestOnlyAReleasingPhaseResumesTheJob(t *testing.T) {
	for _, phase := range allPhases {
		s := queued(t)
		s.Unit.Status.Phase = phase
		s.Unit.Status.Admissions = []v1alpha1.Admission{{Name: "j", Replicas: 2, Resources: s.Unit.Spec.Request.DeepCopy()}}
		resumes := describe(s.decide()) == "job suspend=false [Admitted]"
		require.Equal(t, unit.Phase(phase).Releases(), resumes, "phase %q: %s", phase, describe(s.decide()))

		s.resumedByHand()
		suspends := describe(s.decide()) == "job suspend=true [Suspended]"
		require.Equal(t, unit.Phase(phase).Holds() && !unit.Phase(phase).Releases(),
			suspends && unit.Phase(phase).Holds(), "phase %q: %s", phase, describe(s.decide()))
	}
}
