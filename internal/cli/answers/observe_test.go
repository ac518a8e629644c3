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

package answers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// observedUnit was created an hour before noon.
func observedUnit(name string, phase v1alpha1.QueueUnitPhase, conditions ...metav1.Condition) v1alpha1.QueueUnit {
	u := unitOf("lab", name, phase, 0)
	u.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	u.Spec.Mode, u.Spec.PodSets = v1alpha1.ModeObserve, []v1alpha1.PodSet{{Count: 3}}
	u.Status.Conditions = conditions
	return u
}

func observedRecord(name string, event visibility.RecordEvent, reason string, waited time.Duration) visibility.Record {
	r := visibility.Record{Unit: name, UID: name, Kind: "Job.v1.batch", Job: name, Event: event, Reason: reason}
	r.Namespace, r.Observed = "lab", true
	if waited > 0 {
		r.Waited = &metav1.Duration{Duration: waited}
	}
	return r
}

func TestObservedOf(t *testing.T) {
	short := metav1.Condition{
		Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionFalse, Reason: "QuotaExceeded",
	}
	finished := metav1.Condition{Type: v1alpha1.ConditionFinished, Status: metav1.ConditionTrue}
	finished.LastTransitionTime = metav1.NewTime(noon.Add(-20 * time.Minute))
	managed := observedUnit("managed", v1alpha1.PhaseEnqueued, short)
	managed.Spec.Mode = ""
	admitted := observedUnit("admitted", v1alpha1.PhaseRunning)
	admitted.Status.LastAllocateTime = &metav1.Time{Time: noon.Add(-59 * time.Minute)}
	units := []v1alpha1.QueueUnit{
		managed, admitted, observedUnit("waits", v1alpha1.PhaseEnqueued, short),
		observedUnit("recorded", v1alpha1.PhaseRunning),
		observedUnit("ended", v1alpha1.PhaseSucceed, short, finished),
	}
	records := []visibility.Record{
		observedRecord("recorded", visibility.RecordAdmitted, "QueueFull", 5*time.Minute),
		observedRecord("recorded", visibility.RecordRunning, "", 0),
		observedRecord("deleted", visibility.RecordDeleted, "QueueFull", 2*time.Minute),
		observedRecord("prompt", visibility.RecordAdmitted, "", 300*time.Millisecond),
		{Unit: "managed", UID: "managed", Event: visibility.RecordAdmitted},
	}
	type row struct {
		unit, reason string
		waited       time.Duration
		pods         int64
		outcome      Outcome
	}
	rowsSince := func(since time.Time) (rows []row) {
		found, takers := observedOf(units, records, noon, since)
		require.Equal(t, map[string]bool{"lab/waits": true}, takers)
		for _, j := range found.Waiting {
			rows = append(rows, row{j.Unit, j.Reason, j.Waited.Duration, j.Pods, j.Outcome})
		}
		return append(rows, row{waited: time.Duration(found.Jobs)})
	}
	all := []row{
		{"waits", "QuotaExceeded", time.Hour, 3, OutcomeWaits},
		{"ended", "QuotaExceeded", 40 * time.Minute, 3, OutcomeEnded},
		{"recorded", "QueueFull", 5 * time.Minute, 3, OutcomeAdmitted},
		{"deleted", "QueueFull", 2 * time.Minute, 0, OutcomeEnded},
		{"admitted", "", time.Minute, 3, OutcomeAdmitted},
		{waited: 6},
	}
	require.Equal(t, all, rowsSince(noon.Add(-time.Hour)))
	require.Equal(t, append(append(all[:1:1], all[2:5]...), row{waited: 5}), rowsSince(noon.Add(-10*time.Minute)))
}
