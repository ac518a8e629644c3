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

package runner

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

func standingEvent(kind, name, phase string, attempts int64) *event {
	e := seen(name, phase)
	e.Type, e.Object.Status.Attempts = kind, attempts
	return e
}

func TestWhatGoesWrongWithHoldingsIsTold(t *testing.T) {
	a, b, c := standingName(0, 1), standingName(0, 2), standingName(1, 3)
	admitted := func(name string, attempt int64) *event { return standingEvent("MODIFIED", name, "Dequeued", attempt) }
	ended := func(name string) *event { return standingEvent("MODIFIED", name, "Succeed", 1) }
	waits := func(name string) *event { return standingEvent("MODIFIED", name, "Enqueued", 0) }
	for _, tt := range []struct {
		name   string
		events []*event
		want   []string
	}{
		{"one after the other", []*event{waits(a), admitted(a, 1), standingEvent("MODIFIED", a, "Running", 1), ended(a),
			admitted(b, 1), ended(b)}, nil},
		{"others are no concern", []*event{admitted("warm-up", 1), admitted("warm-up", 2)}, nil},
		{"more than the leaf allows", []*event{admitted(a, 1), admitted(b, 1)},
			[]string{"QuotaPromised queue-00000: cpu 2 of max 1", "QuotaPromised group-000: cpu 2 of max 1"}},
		{"more than the group allows", []*event{admitted(a, 1), admitted(c, 1), ended(a), admitted(b, 1)},
			[]string{"QuotaPromised group-000: cpu 2 of max 1", "QuotaPromised group-000: cpu 2 of max 1"}},
		{"admitted again after its end", []*event{admitted(a, 1), ended(a), admitted(a, 2)},
			[]string{"IllegalPhase " + a + `: "Succeed" became "Dequeued"`, "RanTwice " + a + ": was admitted 2 times"}},
		{"admitted again while it holds", []*event{admitted(a, 1), admitted(a, 2)},
			[]string{"Attempts " + a + `: from 1 in phase "Dequeued" to 2 in phase "Dequeued"`,
				"RanTwice " + a + ": was admitted 2 times"}},
		{"admission lost", []*event{admitted(a, 1), standingEvent("MODIFIED", a, "Enqueued", 1)},
			[]string{"AdmissionLost " + a + `: "Dequeued" became "Enqueued"`}},
		{"deleted", []*event{admitted(a, 1), standingEvent("DELETED", a, "Dequeued", 1)},
			[]string{"AdmissionLost " + a + `: was deleted in phase "Dequeued"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHoldings(1, 1, 6)
			for _, e := range tt.events {
				h.take(e)
			}
			var found []string
			for _, v := range h.checks.Violations() {
				found = append(found, v.String())
			}
			require.Equal(t, tt.want, found)
		})
	}
}

func TestASampleEndsWithTheNextAdmission(t *testing.T) {
	h := newHoldings(9, 9, 6)
	first, second, third := standingName(0, 1), standingName(0, 2), standingName(3, 3)
	h.take(standingEvent("MODIFIED", first, "Dequeued", 1))
	s := h.expect(rand.New(rand.NewPCG(1, 1)))
	require.Equal(t, first, s.unit)
	h.take(standingEvent("MODIFIED", second, "Dequeued", 1)) // before the end: it was let go by something else
	require.True(t, s.admitted.IsZero())
	h.take(standingEvent("MODIFIED", first, "Succeed", 1))
	h.take(standingEvent("MODIFIED", third, "Enqueued", 0))
	h.take(standingEvent("MODIFIED", third, "Dequeued", 1))
	<-s.done
	require.False(t, s.admitted.Before(s.ended))
	h.take(standingEvent("MODIFIED", standingName(0, 4), "Dequeued", 1))
	require.Equal(t, holdingsState{counts{4, 4, 1}, 3, h.firstAdmission}, h.state())
	require.ElementsMatch(t, []string{second, third, standingName(0, 4)}, h.some(rand.New(rand.NewPCG(1, 1)), 9))
}

func TestStagesAreReadFromTheLog(t *testing.T) {
	log := []byte("FLAG: --leader-elect\n" +
		"I1231 23:59:59.250000   42 startup.go:48] \"All that existed is read\" queueUnits=7\n" +
		"# /bin/koord-scheduler\n" +
		"I0101 00:00:01.000000   43 startup.go:48] \"All that existed is read\" queueUnits=8\n")
	now := time.Date(2027, 1, 1, 0, 0, 5, 0, time.Local)
	at, ok := loggedAt(log, logSynced, now)
	require.True(t, ok)
	require.Equal(t, 5750*time.Millisecond, now.Sub(at))
	_, ok = loggedAt(log, logDeciding, now)
	require.False(t, ok)
}

func TestWakeReport(t *testing.T) {
	w := newWakeup()
	for _, ms := range []int{1, 2, 3, 60, 5000} {
		d := time.Duration(ms) * time.Millisecond
		w.endWrite, w.fromReturn, w.fromWatch = append(w.endWrite, d), append(w.fromReturn, d), append(w.fromWatch, d)
	}
	v := w.variant()
	require.Equal(t, 5, v.Samples)
	require.Equal(t, workload.Times{Mean: 1013.2, P50: 3, P90: 5000, P95: 5000, P99: 5000, Max: 5000}, v.FromWatch)
	require.Equal(t, []Bucket{{2, 2}, {4, 1}}, v.Histogram[:2])
	require.Equal(t, Bucket{0, 1}, v.Histogram[len(v.Histogram)-1])
	x := WakeReport{Variants: []WakeVariant{v}}
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	x.print(table)
	require.NoError(t, table.Flush())
	require.Contains(t, out.String(), "no unit was admitted twice")
}
