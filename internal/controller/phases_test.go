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
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

var allPhases = []v1alpha1.QueueUnitPhase{
	"", v1alpha1.PhaseEnqueued, v1alpha1.PhaseReserved, v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning,
	v1alpha1.PhaseSucceed, v1alpha1.PhaseFailed, v1alpha1.PhaseSchedReady, v1alpha1.PhaseSchedSucceed,
	v1alpha1.PhaseSchedFailed, v1alpha1.PhaseTimeoutBackoff, "Preempted", "Levitating",
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

			_, err := w.r.writer(&jobplan.Situation{}).do(quiet(), jobplan.PatchUnitStatus{Before: before, After: after})
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
