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
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// unitOf a namespace, whose queue and quota have the name of the namespace. Its UID is its name.
func unitOf(namespace, name string, phase v1alpha1.QueueUnitPhase, attempts int64) v1alpha1.QueueUnit {
	return v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Spec:       v1alpha1.QueueUnitSpec{ConsumerRef: &corev1.ObjectReference{Kind: "Job", Name: name}},
		Status: v1alpha1.QueueUnitStatus{
			Phase: phase, Attempts: attempts, Effective: &v1alpha1.Effective{Queue: namespace, Quota: namespace},
		},
	}
}

func takes(u v1alpha1.QueueUnit, attempts int64, holds ...string) v1alpha1.QueueUnit {
	u.Status.Preemption = &v1alpha1.Preemption{Attempts: attempts, Holds: holds}
	return u
}

func evicted(u v1alpha1.QueueUnit, status metav1.ConditionStatus, reason, message string) v1alpha1.QueueUnit {
	u.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionEvicted, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(noon),
	}}
	return u
}

const reclaimedByBlue = `quota "blue" takes back its min, which quota "red" had borrowed; the job waits for room`

func TestTaking(t *testing.T) {
	holder, gone := unitOf("red", "holder", v1alpha1.PhaseRunning, 2), unitOf("red", "gone", v1alpha1.PhaseEnqueued, 1)
	again, over := unitOf("red", "again", v1alpha1.PhaseRunning, 3), unitOf("red", "over", v1alpha1.PhaseSucceed, 1)
	taker := unitOf("blue", "taker", v1alpha1.PhaseEnqueued, 1)
	admitted := unitOf("blue", "taker", v1alpha1.PhaseRunning, 2)
	onHold := *taker.DeepCopy()
	onHold.Spec.Active = ptr.To(false)
	waitsAgain := unitOf("blue", "taker", v1alpha1.PhaseEnqueued, 2)
	for name, test := range map[string]struct {
		taker  v1alpha1.QueueUnit
		query  PreemptionQuery
		states []VictimState
		others int
	}{
		"each victim has its state": {
			taker:  takes(taker, 1, "holder/2", "gone/1", "again/2", "over/1"),
			states: []VictimState{VictimHolds, VictimSuspended, VictimResumed, VictimEnded},
		},
		"a victim that was not read is a number": {taker: takes(taker, 1, "foreign/1", "other/1"), others: 2},
		"a decision ends with the admission":     {taker: takes(admitted, 1, "gone/1")},
		"a former decision is over":              {taker: takes(waitsAgain, 1, "gone/1")},
		"a preemptor on hold has given up":       {taker: takes(onHold, 1, "gone/1")},
		"nothing is taken":                       {taker: takes(taker, 1)},
		"the taker is in the queue": {
			taker: takes(taker, 1, "holder/2"), query: PreemptionQuery{Queue: "blue"}, states: []VictimState{VictimHolds},
		},
		"a victim is in the namespace": {
			taker: takes(taker, 1, "holder/2"), query: PreemptionQuery{Namespace: "red"}, states: []VictimState{VictimHolds},
		},
		"nobody is in the queue": {taker: takes(taker, 1, "holder/2"), query: PreemptionQuery{Queue: "green"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, complete := preemptionsOf([]v1alpha1.QueueUnit{test.taker, holder, gone, again, over}, nil, &test.query)
			require.Equal(t, test.others == 0, complete)
			if len(test.states)+test.others == 0 {
				require.Empty(t, p.Taking)
				return
			}
			require.Len(t, p.Taking, 1)
			require.Equal(t, Subject{"blue", "taker", "job/taker", "blue", "blue"}, p.Taking[0].Subject)
			require.Equal(t, test.others, p.Taking[0].Others)
			require.Len(t, p.Taking[0].Victims, len(test.states))
			for i, v := range p.Taking[0].Victims {
				require.Equal(t, test.states[i], v.State, v.Unit)
			}
		})
	}
}

func TestDryRun(t *testing.T) {
	holder, taker := unitOf("red", "holder", v1alpha1.PhaseRunning, 2), unitOf("blue", "taker", v1alpha1.PhaseEnqueued, 1)
	dry := func(units int32, holds ...string) map[string]*visibility.DryRun {
		return map[string]*visibility.DryRun{"taker": {Units: units, Holds: holds}, "holder": nil}
	}
	for name, test := range map[string]struct {
		taker    v1alpha1.QueueUnit
		dry      map[string]*visibility.DryRun
		query    PreemptionQuery
		victims  int
		others   int
		complete bool
	}{
		"a victim holds what it would lose": {taker: taker, dry: dry(1, "holder/2"), victims: 1, complete: true},
		"some victims were not read":        {taker: taker, dry: dry(3, "holder/2", "x/1", "y/1"), victims: 1, others: 2},
		"some victims have no name": {
			taker: taker, dry: dry(104, "holder/2"), victims: 1, others: 103, complete: true,
		},
		"a preemption is no dry run": {taker: takes(taker, 1, "holder/2"), complete: true},
		"it was admitted in the meantime": {
			taker: unitOf("blue", "taker", v1alpha1.PhaseRunning, 2), dry: dry(1, "holder/2"), complete: true,
		},
		"a victim is of the queue": {
			taker: taker, dry: dry(1, "holder/2"), query: PreemptionQuery{Queue: "red"}, victims: 1, complete: true,
		},
		"none is of the queue": {
			taker: taker, dry: dry(1, "holder/2"), query: PreemptionQuery{Queue: "green"}, complete: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, complete := dryRunsOf([]v1alpha1.QueueUnit{test.taker, holder}, test.dry, &test.query)
			require.Equal(t, test.complete, complete)
			require.True(t, p.DryRun)
			if test.victims == 0 {
				require.Empty(t, p.Taking)
				return
			}
			require.Equal(t, []Taking{{
				Subject: Subject{"blue", "taker", "job/taker", "blue", "blue"}, Others: test.others,
				Victims: []Victim{{Subject{"red", "holder", "job/holder", "red", "red"}, VictimHolds}},
			}}, p.Taking)
		})
	}
}

func TestTaken(t *testing.T) {
	record := func(uid string, attempt int64, reason string) visibility.Record {
		return visibility.Record{
			ObjectMeta: metav1.ObjectMeta{Namespace: "red"}, Time: metav1.NewMicroTime(noon.Add(-time.Hour)),
			Event: visibility.RecordEvicted, Unit: uid, UID: uid, Kind: "Job.v1.batch", Job: uid, Queue: "red", Quota: "red",
			Attempt: attempt, Reason: reason,
		}
	}
	suspended := evicted(unitOf("red", "victim", v1alpha1.PhaseEnqueued, 2), "True", "Reclaimed", reclaimedByBlue)
	resumed := evicted(unitOf("red", "victim", v1alpha1.PhaseRunning, 3), "False", "Admitted", "admitted again")
	of := Subject{"red", "victim", "job/victim", "red", "red"}
	blue := Subject{"blue", "taker", "job/taker", "blue", "blue"}
	since, before := metav1.NewTime(noon), metav1.NewTime(noon.Add(-time.Hour))
	for name, test := range map[string]struct {
		units   []v1alpha1.QueueUnit
		records []visibility.Record
		query   PreemptionQuery
		want    []Taken
	}{
		"the message names the quota": {
			units: []v1alpha1.QueueUnit{suspended},
			want: []Taken{{Victim: Victim{of, VictimSuspended}, Time: since, Reason: "Reclaimed", ByQuota: "blue", Evictions: 2,
				Message: reclaimedByBlue}},
		},
		"the decision of the taker names the hold": {
			units: []v1alpha1.QueueUnit{
				evicted(unitOf("red", "victim", v1alpha1.PhaseTimeoutBackoff, 1), "True", "PreemptedInQueue", "words"),
				takes(unitOf("blue", "taker", v1alpha1.PhaseRunning, 1), 0, "victim/1"),
			},
			want: []Taken{{Victim: Victim{of, VictimSuspended}, Time: since, Reason: "PreemptedInQueue", ByQuota: "blue",
				Taker: &blue, Evictions: 1, Message: "words"}},
		},
		"another eviction is none": {
			units: []v1alpha1.QueueUnit{
				evicted(unitOf("red", "victim", v1alpha1.PhaseEnqueued, 1), "True", "QueueDrained", ""),
			},
			records: []visibility.Record{record("victim", 1, "QueueDrained")},
		},
		"the object and the record of one preemption": {
			units: []v1alpha1.QueueUnit{suspended}, records: []visibility.Record{record("victim", 2, "Reclaimed")},
			want: []Taken{{Victim: Victim{of, VictimSuspended}, Time: since, Reason: "Reclaimed", ByQuota: "blue", Evictions: 2,
				Message: reclaimedByBlue}},
		},
		"the record has those that were admitted again, and the deleted": {
			units:   []v1alpha1.QueueUnit{resumed, takes(unitOf("blue", "taker", v1alpha1.PhaseSucceed, 1), 0, "victim/2")},
			records: []visibility.Record{record("deleted", 1, "PreemptedInQueue"), record("victim", 2, "Reclaimed")},
			want: []Taken{
				{Victim: Victim{Subject{"red", "deleted", "job/deleted", "red", "red"}, VictimDeleted}, Time: before,
					Reason: "PreemptedInQueue"},
				{Victim: Victim{of, VictimResumed}, Time: before, Reason: "Reclaimed", ByQuota: "blue", Taker: &blue, Evictions: 2},
			},
		},
		"a queue without it": {units: []v1alpha1.QueueUnit{suspended}, query: PreemptionQuery{Queue: "green"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, complete := preemptionsOf(test.units, test.records, &test.query)
			require.ElementsMatch(t, test.want, p.Taken)
			require.Equal(t, !slices.ContainsFunc(test.want, func(t Taken) bool { return t.Taker == nil }), complete)
		})
	}
}

func TestUnitsOfPreemptions(t *testing.T) {
	p, _ := preemptionsOf([]v1alpha1.QueueUnit{
		takes(unitOf("blue", "taker", v1alpha1.PhaseEnqueued, 0), 0, "victim/1", "foreign/1"),
		evicted(unitOf("red", "victim", v1alpha1.PhaseEnqueued, 1), "True", "Reclaimed", reclaimedByBlue),
	}, []visibility.Record{{Event: visibility.RecordEvicted, Unit: "deleted", UID: "deleted", Reason: "Reclaimed"}},
		&PreemptionQuery{})
	require.Equal(t, []string{"taker", "victim"}, p.Units())
}

// TestDryRunsOfTheLeader: the API server asks any of the schedulers, of which one leads and knows.
func TestDryRunsOfTheLeader(t *testing.T) {
	asked, leadsAt := 0, 3
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind": "UnitList", "apiVersion": "visibility.koord-queue.x-k8s.io/v1alpha1", "leader": %t,
			"items": [{"metadata": {"name": "taker"}}]}`, asked == leadsAt)
	}))
	defer server.Close()
	r, err := New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	units, err := r.unitsOfLeader(t.Context(), "blue")
	require.NoError(t, err)
	require.Len(t, units, 1)

	leadsAt = 0
	_, err = r.unitsOfLeader(t.Context(), "blue")
	require.ErrorIs(t, err, errStandby)
}
