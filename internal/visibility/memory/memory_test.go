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

package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// past is a history to which a test adds.
type past struct{ *history.Recorder }

func newPast() past {
	p := past{history.New(history.Options{Records: 1000})}
	p.Begin(noon)
	return p
}

// goes has a unit go through phases, ten minutes each.
func (p past) goes(uid, reason string, phases ...unit.Phase) {
	was, at := history.State{}, noon
	for _, phase := range phases {
		next := history.State{
			Key: "ns/" + uid, UID: uid, Queue: "q", Phase: phase, Created: noon, Attempts: was.Attempts,
			Allocated: was.Allocated, EvictedFor: reason,
		}
		if phase.Holds() && !was.Phase.Holds() {
			next.Attempts++
		}
		if phase.Holds() && was.Phase != phase {
			next.Allocated = at
		}
		if phase == "" { // deleted
			next = history.State{}
		}
		p.Changed(at, was, next)
		was, at = next, at.Add(10*time.Minute)
	}
}

// A run is over when its unit gives its quota back, and will not run again.
func TestRuns(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		end    unit.Phase
		want   int
	}{
		"succeeded":   {end: unit.PhaseSucceed, want: 1},
		"failed":      {end: unit.PhaseFailed, want: 1},
		"deleted":     {want: 1},
		"too long":    {end: unit.PhaseEnqueued, reason: string(unit.ReasonMaximumExecutionTime), want: 1},
		"was evicted": {end: unit.PhaseEnqueued, reason: "Preempted"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPast()
			p.goes("u", c.reason, unit.PhaseEnqueued, unit.PhaseDequeued, c.end)
			runs := PastOf(p.Recorder, "", nil).Runs
			require.Len(t, runs, c.want)
			for _, r := range runs {
				require.Equal(t, forecast.Ended{User: "ns", Queue: "q", Ran: 10 * time.Minute}, r)
			}
		})
	}
}

// Checks took the time between reservation and admission.
func TestChecks(t *testing.T) {
	p := newPast()
	for i := range mostChecks + 1 {
		p.goes(fmt.Sprint("ready", i), "", unit.PhaseEnqueued, unit.PhaseReserved, unit.PhaseDequeued)
	}
	p.goes("rejected", "CheckRejected", unit.PhaseEnqueued, unit.PhaseReserved, unit.PhaseEnqueued)
	queues := []queue.Spec{{Name: "q", AdmissionChecks: []queue.AdmissionCheck{{Name: "nodes"}}}, {Name: "other"}}
	found := PastOf(p.Recorder, "q", queues)
	require.Len(t, found.Waits, mostChecks+1)
	require.Len(t, found.checks["q"], mostChecks)
	require.Equal(t, 10*time.Minute, found.checks["q"][0])
	require.Len(t, found.checks, 1)
}

func answered(key, uid string, minutes int) *forecast.Answer {
	at := noon.Add(time.Duration(minutes) * time.Minute)
	return &forecast.Answer{Unit: &unit.Unit{Key: key, UID: uid}, About: at, Latest: at, Raw: at}
}

func keep(m *Answers, now time.Time, a *forecast.Answer) {
	m.Keep(now, &v1alpha1.Forecast{}, a, &forecast.Grounds{})
}

// Answers about a single unit stay longest, and all together are bounded.
func TestAnswersAreForgotten(t *testing.T) {
	m := New(noon)
	keep(m, noon, answered("ns/single", "single", 1))
	for i := range 2 * mostKept {
		m.Note(noon.Add(time.Hour), []forecast.Answer{*answered(fmt.Sprint("ns/", i), "u", 1)})
	}
	require.Len(t, m.of, mostKept)
	require.NotNil(t, m.Fresh("ns/single", "single", noon.Add(FreshFor-1)))
	require.Nil(t, m.Fresh("ns/single", "another", noon))
	require.Nil(t, m.Fresh(fmt.Sprint("ns/", 2*mostKept-1), "u", noon.Add(time.Hour)), "a list says less")
}

// Waits of units stretch the bounds of later ones of the namespace. A unit that was asked about keeps its stretch.
func TestBoundsAreStretched(t *testing.T) {
	m, p := New(noon), newPast()
	first := answered("ns/first", "first", 4)
	keep(m, noon, first)
	for i := range 30 {
		uid := fmt.Sprint("late", i)
		m.Note(noon, []forecast.Answer{*answered("ns/"+uid, uid, 4)})
		p.goes(uid, "", unit.PhaseEnqueued, unit.PhaseDequeued) // after ten minutes
	}
	m.Judge(noon.Add(time.Hour), p.Recorder, nil)
	require.InDelta(t, 2, m.Stretch(answered("ns/next", "next", 1).Unit), 1e-9)
	require.Zero(t, m.Stretch(first.Unit))
	require.Zero(t, m.Stretch(answered("other/next", "next", 1).Unit))
}

// The first answer is not judged where somebody changed the unit, or while checks that it counts are asked.
func TestNotJudged(t *testing.T) {
	m, p := New(noon), newPast()
	m.Note(noon, []forecast.Answer{*answered("ns/held", "held", 1), *answered("ns/checked", "checked", 1)})
	m.of["ns/checked"].first.Checks = time.Minute
	p.goes("checked", "", unit.PhaseEnqueued, unit.PhaseReserved)
	was := history.State{Key: "ns/held", UID: "held", Queue: "q", Phase: unit.PhaseEnqueued, Created: noon}
	held := was
	held.Inactive = true
	p.Changed(noon, was, held)
	p.Changed(noon, held, was)
	p.goes("held", "", unit.PhaseEnqueued, unit.PhaseDequeued)
	m.Judge(noon.Add(time.Hour), p.Recorder, nil)
	require.Contains(t, m.of, "ns/checked")
	require.NotContains(t, m.of, "ns/held")
	require.Zero(t, m.past)
}
