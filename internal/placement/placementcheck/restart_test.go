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

package placementcheck

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// told is a unit in a phase that a former leader has told that its pods find nodes.
func told(name string, phase unit.Phase, first, second int32) *v1alpha1.QueueUnit {
	qu := reserved(name, first, second)
	qu.Status.Phase = v1alpha1.QueueUnitPhase(phase)
	qu.Status.AdmissionChecks[0].State, qu.Status.AdmissionChecks[0].Message = admissioncheck.Ready, ready
	return qu
}

// A new leader keeps nodes for what a former one has promised, before it promises any to another unit.
func TestRestart(t *testing.T) {
	released := told("z", unit.PhaseDequeued, 2, 1)
	released.Status.Admissions = []v1alpha1.Admission{
		{Name: "first", Replicas: 2, Running: 1}, {Name: "second", Replicas: 1},
	}
	w := newWorld(t, 4, reserved("a", 1, 1), told("b", unit.PhaseReserved, 1, 1), released,
		told("done", unit.PhaseSucceed, 1, 1))
	w.started.Store(false)
	w.Unit("ns/a", "a", unit.PhaseReserved)
	require.Zero(t, w.queue.Len(), "a standby keeps nothing in mind")

	require.NoError(t, w.start(t.Context()))
	require.Equal(t, map[types.UID]int{"b": 2, "z": 2}, w.nodes.promised)
	require.Equal(t, admissioncheck.Retry, w.answered("a").State)
	require.Equal(t, admissioncheck.Ready, w.answered("b").State)

	w.queue.Add(item{namespace: "ns", name: "z"}) // after a time
	w.Unit("ns/a", "a", unit.PhaseReserved)
	w.answered("z")
	require.Equal(t, map[types.UID]int{"b": 2}, w.nodes.promised)
	require.Empty(t, w.restored)
}

// Pods of a released unit that are not ready may be on nodes, and not all find another one.
func TestAPartIsKeptAgain(t *testing.T) {
	w := newWorld(t, 1, told("a", unit.PhaseDequeued, 1, 1), told("b", unit.PhaseReserved, 1, 1))
	require.NoError(t, w.start(t.Context()))
	require.Equal(t, map[types.UID]int{"a": 1}, w.nodes.promised)
}

func TestOwed(t *testing.T) {
	for name, c := range map[string]struct {
		phase unit.Phase
		but   func(qu *v1alpha1.QueueUnit)
		owed  bool
	}{
		"reserved":       {phase: unit.PhaseReserved, owed: true},
		"released":       {phase: unit.PhaseDequeued, owed: true},
		"some pods run":  {phase: unit.PhaseRunning, owed: true},
		"lost its quota": {phase: unit.PhaseTimeoutBackoff},
		"over":           {phase: unit.PhaseSucceed},
		"not answered yet": {phase: unit.PhaseReserved, but: func(qu *v1alpha1.QueueUnit) {
			qu.Status.AdmissionChecks[0].State = ""
		}},
		"another check": {phase: unit.PhaseReserved, but: func(qu *v1alpha1.QueueUnit) {
			qu.Status.AdmissionChecks[0].Name = "another"
		}},
		"all pods run": {phase: unit.PhaseRunning, but: func(qu *v1alpha1.QueueUnit) {
			qu.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodsReady, Status: metav1.ConditionTrue}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			qu := told("a", c.phase, 1, 1)
			if c.but != nil {
				c.but(qu)
			}
			require.Equal(t, c.owed, owed(qu, sets.New("nodes")))
		})
	}
}
