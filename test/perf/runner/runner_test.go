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
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

const two = `
name: two
groups: 1
queuesPerGroup: 1
quota: {min: 4, max: 4, groupMax: 4}
classes:
- {name: one, count: 2, intervalMs: 1000, runtimeMs: 1000, priority: 1, cpu: 2}
`

func testRun(t *testing.T, text string, jobs bool) *run {
	t.Helper()
	w, err := workload.Parse([]byte(text))
	require.NoError(t, err)
	r := &run{Options: Options{Workload: w, Jobs: jobs}, units: w.Units(), begin: time.Unix(1000, 0)}
	r.watch, err = newObserver(w, r.units, jobs)
	require.NoError(t, err)
	return r
}

func (r *run) at(seconds float64) time.Time {
	return r.begin.Add(time.Duration(seconds * float64(time.Second)))
}

func TestReportOfWhatWasSeen(t *testing.T) {
	r := testRun(t, two, false)
	r.ceilings = []ceiling{
		{CreatesPerSecond: 30, StatusPatchesSecond: 20}, {CreatesPerSecond: 10, StatusPatchesSecond: 40},
	}
	r.watch.seen = []sight{
		{created: r.at(0), admitted: r.at(0.5), ended: r.at(1.75)},
		{created: r.at(1), admitted: r.at(1), ended: r.at(2.5)},
	}
	r.before = reading{
		spent:  spent{at: r.at(0), cpu: map[string]float64{"a": 1}, busy: 100, idle: 200},
		writes: map[writeKey]float64{{"queueunits", "POST", "201"}: 7},
	}
	r.created = &reading{
		spent:  spent{at: r.at(1), cpu: map[string]float64{"a": 1.5}, busy: 101.2, idle: 200.8},
		writes: map[writeKey]float64{{"queueunits", "POST", "201"}: 9, {"queueunits/status", "PATCH", "200"}: 1},
	}
	r.after = reading{
		spent: spent{at: r.at(2.5), cpu: map[string]float64{"a": 3.5}, busy: 103.2, idle: 201.8},
		writes: map[writeKey]float64{
			{"queueunits", "POST", "201"}: 9, {"queueunits/status", "PATCH", "200"}: 4, {"queueunits/status", "PATCH", "409"}: 1,
			{"leases", "PUT", "200"}: 3, {"queues/status", "PATCH", "200"}: 1, {"events", "POST", "201"}: 2,
		},
		peak:  map[string]int64{"a": 99},
		queue: map[string]float64{"admissions_total": 2, "status_writes_total/admit": 3, "cycle_examined_units_sum": 5},
	}
	x, err := r.report()
	require.NoError(t, err)
	require.Equal(t, 2.5, x.MakespanSeconds)
	require.Equal(t, 0.8, x.AdmissionsPerSecond)
	require.InDelta(t, 4.0/10, x.QuotaUse, 1e-9)
	require.InDelta(t, 5.5/10, x.QuotaHeld, 1e-9)
	require.Equal(t, []float64{0.25, 0.875, 0.5}, x.QuotaHeldOverTime)
	require.Equal(t, workload.Times{Mean: 250, P50: 0, P90: 500, P95: 500, P99: 500, Max: 500},
		x.Classes[0].TimeToAdmission)
	require.Equal(t, workload.Times{Mean: 375, P50: 250, P90: 500, P95: 500, P99: 500, Max: 500}, *x.Classes[0].Overrun)
	require.Equal(t, HeldReport{Work: 4, Overrun: 1.5}, *x.Classes[0].Held)
	require.Equal(t, 10.0, x.CapacityCoreSeconds)
	require.Equal(t, []PhaseReport{
		{
			Name: phaseCreating, Seconds: 1, WritesPerSecond: 3, AdmissionsPerSecond: 2, QuotaHeld: 0.25,
			CPU: map[string]float64{"a": 0.25}, Others: 0.35, Idle: 0.4,
		},
		{
			Name: phaseCreated, Seconds: 1.5, WritesPerSecond: 10 / 1.5, QuotaHeld: 4.5 / 6,
			CPU: map[string]float64{"a": 0.6667}, Others: 0, Idle: 0.3333,
		},
	}, x.Phases)
	require.Equal(t, 3.0, x.WritesPerUnit)
	require.Equal(t, 2.5, x.QueueUnitWritesPerUnit)
	require.Equal(t, 6.5, x.AllWritesPerUnit)
	require.Equal(t, 1, x.Conflicts)
	require.Equal(t, 10.0, x.WriteCeilingPerSecond)
	require.InDelta(t, 0.52, x.WriteCeilingShare, 1e-9)
	require.Equal(t, []ProcessReport{{Name: "a", CPUSeconds: 2.5, PeakRSSBytes: 99}}, x.Processes)
	require.Equal(t, 1.5, x.Decisions.DecisionsPerAdmission)
	require.Equal(t, 2.5, x.Decisions.UnitsExaminedPerAdmission)
	require.Equal(t, 2.0, x.Greedy.MakespanSeconds)

	var table bytes.Buffer
	x.Print(&table)
	require.Contains(t, table.String(), "makespan       2.5 s           greedy 2.0 s")
	content, err := json.Marshal(x)
	require.NoError(t, err)
	for _, key := range []string{
		"workload", "makespanSeconds", "admissionsPerSecond", "quotaUse", "writesPerUnit", "writeCeilingPerSecond",
		"timeToAdmissionMs", "cpuSeconds", "peakRSSBytes", "greedy",
	} {
		require.Contains(t, string(content), `"`+key+`":`)
	}
}

func TestPhasesOfARunThatEndsEarly(t *testing.T) {
	r := testRun(t, two, false)
	r.watch.seen = []sight{{created: r.at(0), admitted: r.at(0.5)}, {}}
	r.before, r.after = reading{spent: spent{at: r.at(0)}}, reading{spent: spent{at: r.at(1)}}
	seen, _, _ := r.watch.result()
	require.Equal(t, []HeldReport{{Work: 0.5}}, r.heldBy(seen[:1], r.at(0.75)), "no more than up to the end of the run")
	phases := r.phases(seen, r.at(1))
	require.Len(t, phases, 1)
	require.Equal(t, phaseCreating, phases[0].Name)
	require.Equal(t, 0.25, phases[0].QuotaHeld)
}

func TestUsageOfEachSecond(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(seconds, cpu, busy, idle float64) spent {
		return spent{at: begin.Add(time.Duration(seconds * float64(time.Second))), cpu: map[string]float64{"a": cpu},
			busy: busy, idle: idle}
	}
	require.Equal(t, []UsageReport{
		{Second: 1, CPUSeconds: map[string]float64{"a": 0.5}, Idle: 0.5, Admitted: 3},
		{Second: 1.5, CPUSeconds: map[string]float64{"a": 0.25}, Idle: 0, Admitted: 1},
	}, usageReports(begin, at(0, 1, 10, 10), []spent{at(1, 1.5, 11, 11), at(1.5, 1.75, 12, 11)}, []int{3, 4}))
}

func seen(name, phase string, conditions ...string) *event {
	e := &event{Type: "MODIFIED"}
	content := `{"metadata":{"name":"` + name + `"},"status":{"phase":"` + phase + `","conditions":[` +
		strings.Join(conditions, ",") + `]}}`
	if err := json.Unmarshal([]byte(content), &e.Object); err != nil {
		panic(err)
	}
	return e
}

func TestUnitsAreFinishedWhenTheirTimeIsOver(t *testing.T) {
	r := testRun(t, strings.Replace(two, "runtimeMs: 1000", "runtimeMs: 0", 1), false)
	first, second := r.watch.name(0), r.watch.name(1)
	for _, step := range []struct {
		event *event
		want  counts
	}{
		{seen(first, ""), counts{1, 0, 0}},
		{seen("another", "Dequeued"), counts{1, 0, 0}},
		{seen(first, "Dequeued"), counts{1, 1, 0}},
		{seen(first, "Dequeued"), counts{1, 1, 0}},
		{seen(second, "Dequeued"), counts{2, 2, 0}}, // its first state was left out
		{seen(first, "Succeed"), counts{2, 2, 1}},
		{seen(second, "Enqueued"), counts{2, 2, 1}},
		{seen(second, "Succeed"), counts{2, 2, 2}},
	} {
		require.NotPanics(t, func() { r.watch.takeUnit(step.event) })
		require.Equal(t, step.want, r.watch.counts())
	}
	<-r.watch.done
	<-r.watch.warm
	require.ElementsMatch(t, []int{0, 1}, []int{<-r.watch.over, <-r.watch.over})
	_, _, evicted := r.watch.result()
	require.Equal(t, 1, evicted)
}

func TestJobsEndByThemselves(t *testing.T) {
	r := testRun(t, strings.Replace(two, "runtimeMs: 1000", "runtimeMs: 0", 1), true)
	name := r.watch.name(0)
	complete := `{"type":"Complete","status":"True"}`
	r.watch.takeUnit(seen(name, ""))
	require.Equal(t, counts{0, 0, 0}, r.watch.counts(), "the job is what the user created")
	r.watch.takeJob(seen(name, "", `{"type":"Suspended","status":"True"}`))
	r.watch.takeUnit(seen(name, "Running"))
	r.watch.takeUnit(seen(name, "Succeed"))
	require.Equal(t, counts{1, 1, 0}, r.watch.counts())
	r.watch.takeJob(seen(name, "", complete))
	require.Equal(t, counts{1, 1, 1}, r.watch.counts())
	all, _, _ := r.watch.result()
	require.False(t, all[0].running.IsZero())
	require.Empty(t, r.watch.over)
}

func TestReadings(t *testing.T) {
	got, err := parseMetrics(strings.NewReader(`# HELP other_total Of no interest.
# TYPE other_total counter
other_total{x="{"} 7
# HELP wanted_total Counted.
# TYPE wanted_total counter
wanted_total{verb="POST"} 3
wanted_total{verb="GET"} 4
`), "wanted_total")
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Len(t, got["wanted_total"], 2)

	require.True(t, isWrite("PATCH", "queueunits"))
	require.False(t, isWrite("GET", "queueunits"))
	require.False(t, isWrite("POST", "subjectaccessreviews"))

	busy, idle, err := machineTime()
	require.NoError(t, err)
	require.Greater(t, busy+idle, 0.0)
	cpu, peak, err := usage(os.Getpid())
	require.NoError(t, err)
	require.GreaterOrEqual(t, cpu, 0.0)
	require.Greater(t, peak, int64(1<<20))
}

func TestScreenIsQuietWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, false)
	for range 100 {
		s.progress(time.Second, counts{3, 2, 1}, 9)
	}
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), "3 of 9 units created, 2 admitted, 1 ended, 1 waiting")

	out.Reset()
	s = newScreen(&out, true)
	s.progress(time.Second, counts{}, 9)
	s.line("done")
	require.Equal(t, 2, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), "\r")
}
