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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
		resumes := describe(Plan(s.Observation)) == "job suspend=false [Admitted]"
		require.Equal(t, unit.Phase(phase).Releases(), resumes, "phase %q: %s", phase, describe(Plan(s.Observation)))

		s.resumedByHand()
		suspends := describe(Plan(s.Observation)) == "job suspend=true [Suspended]"
		require.Equal(t, unit.Phase(phase).Holds() && !unit.Phase(phase).Releases(),
			suspends && unit.Phase(phase).Holds(), "phase %q: %s", phase, describe(Plan(s.Observation)))
	}
}

// Every phase that is written passes the one table, whatever was planned.
func TestAPhaseThatMayNotBeWrittenIsNotSent(t *testing.T) {
	for _, from := range allPhases {
		for _, to := range allPhases {
			w := newWorld(t, newJob())
			w.settle()
			before := w.unit()
			before.Status.Phase = from
			w.updateStatus(before)
			before = w.unit()
			after := before.DeepCopy()
			after.Status.Phase, after.Status.Message = to, "written"
			w.writes = nil

			err := w.r.do(quiet(), &Observation{Kind: &w.r.Kind}, PatchUnitStatus{Before: before, After: after})
			if from == to || unit.Phase(from).CanBecome(unit.Phase(to), unit.WriterController) {
				require.NoError(t, err, "%q to %q", from, to)
				require.Equal(t, to, w.unit().Status.Phase)
				continue
			}
			require.ErrorIs(t, err, reconcile.TerminalError(nil), "%q to %q: it is not planned again and again", from, to)
			require.Empty(t, w.writes)
			require.Equal(t, from, w.unit().Status.Phase)
		}
	}
}
