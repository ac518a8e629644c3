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
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// Report is the result of a run. Times are by the clock of the runner, on what its watch delivered.
type Report struct {
	Workload string `json:"workload"`
	// Jobs says that real Jobs ran; without, the runner stood for them.
	Jobs        bool   `json:"jobs"`
	QueuePolicy string `json:"queuePolicy"`
	Units       int    `json:"units"`
	Admitted    int    `json:"admitted"`
	Queues      int    `json:"queues"`
	// MakespanSeconds is from the start of the clock to the end of the last unit.
	MakespanSeconds float64 `json:"makespanSeconds"`
	// FirstAdmissionSeconds is from the start of the clock to the first admission.
	FirstAdmissionSeconds float64 `json:"firstAdmissionSeconds"`
	// AdmissionsPerSecond is over the makespan.
	AdmissionsPerSecond float64 `json:"admissionsPerSecond"`
	// QuotaUse is the work of the units that ended, divided by the capacity of all groups in the makespan. QuotaHeld is
	// the same for held quota, from the observed admission to the observed end.
	QuotaUse  float64 `json:"quotaUse"`
	QuotaHeld float64 `json:"quotaHeld"`
	// QuotaHeldOverTime is the share that was held in each second.
	QuotaHeldOverTime []float64 `json:"quotaHeldOverTime"`
	// CapacityCoreSeconds is what all groups could have held in the makespan.
	CapacityCoreSeconds float64 `json:"capacityCoreSeconds"`
	// Phases are parts of the run: while units were still created, and after.
	Phases []PhaseReport `json:"phases"`
	// UsageOverTime is what the processor did, second by second.
	UsageOverTime []UsageReport `json:"usageOverTime"`
	// WritesPerUnit counts the writes of queueing, without the creation of the unit: to units, queues and quotas. With
	// Jobs it includes the Job, except its creation and its status. Writes of the runner for the job controller count.
	WritesPerUnit float64 `json:"writesPerUnit"`
	// QueueUnitWritesPerUnit counts writes to units alone, and AllWritesPerUnit those of all participants.
	QueueUnitWritesPerUnit float64 `json:"queueUnitWritesPerUnit"`
	AllWritesPerUnit       float64 `json:"allWritesPerUnit"`
	Writes                 []Write `json:"writes"`
	// Requests are those writes by who asked for them, with an audit log.
	Requests        []Requester `json:"requests,omitempty"`
	Conflicts       int         `json:"conflicts"`
	WritesPerSecond float64     `json:"writesPerSecond"`
	// WriteCeilingPerSecond is the least of what was measured before and after; Share is WritesPerSecond by it.
	WriteCeilingPerSecond float64         `json:"writeCeilingPerSecond"`
	WriteCeilingShare     float64         `json:"writeCeilingShare"`
	WriteCeilings         []ceiling       `json:"writeCeilings"`
	Classes               []ClassReport   `json:"classes"`
	Processes             []ProcessReport `json:"processes"`
	Greedy                GreedyReport    `json:"greedy"`
	Decisions             DecisionsReport `json:"decisions"`
	Evictions             int             `json:"evictions"`
	CreatedLateMs         float64         `json:"createdLateMs"`
	Clients               map[string]any  `json:"clients"`
	Machine
}

// Write is how often something was written.
type Write struct {
	Resource string  `json:"resource"`
	Verb     string  `json:"verb"`
	Code     string  `json:"code"`
	Count    int     `json:"count"`
	PerUnit  float64 `json:"perUnit"`
}

// ClassReport is about the units of one class that were admitted.
type ClassReport struct {
	Name            string         `json:"name"`
	Count           int            `json:"count"`
	TimeToAdmission workload.Times `json:"timeToAdmissionMs"`
	// AdmissionToRunning is, with Jobs, until the unit is seen to run.
	AdmissionToRunning *workload.Times `json:"admissionToRunningMs,omitempty"`
	// Overrun is how much later than its run time a unit, or its Job, was seen to have ended.
	Overrun *workload.Times `json:"overrunMs,omitempty"`
	Held    *HeldReport     `json:"held,omitempty"`
}

// ProcessReport is what a process took in the run; its peak memory is of all its life.
type ProcessReport struct {
	Name         string  `json:"name"`
	CPUSeconds   float64 `json:"cpuSeconds"`
	PeakRSSBytes int64   `json:"peakRSSBytes"`
}

// GreedyReport is the same workload with admission that costs nothing.
type GreedyReport struct {
	MakespanSeconds float64       `json:"makespanSeconds"`
	Classes         []ClassReport `json:"classes"`
}

// DecisionsReport is what the scheduler counted.
type DecisionsReport struct {
	DecisionsPerAdmission     float64 `json:"decisionsPerAdmission"`
	UnitsExaminedPerAdmission float64 `json:"unitsExaminedPerAdmission"`
	CyclesPerAdmission        float64 `json:"cyclesPerAdmission"`
	MeanCycleMs               float64 `json:"meanCycleMs"`
	MeanWriteMs               float64 `json:"meanStatusWriteMs"`
	Reasons                   int     `json:"reasonsWritten"`
	QueueStatuses             int     `json:"queueStatusesWritten"`
}

func (r *run) report() (*Report, error) {
	seen, late, evicted := r.watch.result()
	w := r.Workload
	x := &Report{
		Workload: w.Name, Jobs: r.Jobs, QueuePolicy: string(w.QueuePolicy), Units: len(r.units), Queues: w.Queues(),
		Evictions: evicted, CreatedLateMs: late.Seconds() * 1000, WriteCeilings: r.ceilings, Machine: r.machine(),
		Clients: map[string]any{"runnerWorkers": r.Workers, "runnerQPS": "unlimited", "schedulerQPS": 1000},
	}
	first, last := r.timeline(x, seen)
	if x.Admitted == 0 {
		return nil, fmt.Errorf("nothing was admitted")
	}
	x.MakespanSeconds = last.Sub(r.begin).Seconds()
	x.AdmissionsPerSecond = float64(x.Admitted) / x.MakespanSeconds
	x.FirstAdmissionSeconds = first.Sub(r.begin).Seconds()
	var ended []workload.Unit
	for i := range seen {
		if !seen[i].ended.IsZero() {
			ended = append(ended, r.units[i])
		}
	}
	x.QuotaUse = w.Work(ended) / (float64(w.Capacity()) * x.MakespanSeconds)
	x.CapacityCoreSeconds = round(float64(w.Capacity())/1000*x.MakespanSeconds, 3)
	x.Phases, x.UsageOverTime = r.phases(seen, last), r.usage
	r.countWrites(x)
	x.Processes = r.processReports()
	r.countDecisions(x)
	x.Greedy = greedyReport(w)
	var err error
	x.Requests, err = r.audited(x.Admitted)
	return x, err
}

// timeline fills in what follows from when things were seen, and returns the first admission and the end of the run.
func (r *run) timeline(x *Report, seen []sight) (first, last time.Time) {
	w := r.Workload
	waits := make([][]time.Duration, len(w.Classes))
	overruns := make([][]time.Duration, len(w.Classes))
	starts := make([][]time.Duration, len(w.Classes))
	for i, s := range seen {
		if s.admitted.IsZero() {
			continue
		}
		x.Admitted++
		u := r.units[i]
		waits[u.Class] = append(waits[u.Class], s.admitted.Sub(s.created))
		if first.IsZero() || s.admitted.Before(first) {
			first = s.admitted
		}
		if s.ended.After(last) {
			last = s.ended
		}
		if !s.ended.IsZero() {
			overruns[u.Class] = append(overruns[u.Class], s.ended.Sub(s.admitted)-runtimeOf(w, u))
		}
		if !s.running.IsZero() {
			starts[u.Class] = append(starts[u.Class], s.running.Sub(s.admitted))
		}
	}
	held := r.heldBy(seen, last)
	for class := range w.Classes {
		overrun := workload.Summarize(overruns[class])
		c := ClassReport{
			Name: w.Classes[class].Name, Count: len(waits[class]),
			TimeToAdmission: workload.Summarize(waits[class]), Overrun: &overrun, Held: &held[class],
		}
		if r.Jobs {
			running := workload.Summarize(starts[class])
			c.AdmissionToRunning = &running
		}
		x.Classes = append(x.Classes, c)
	}
	r.held(x, seen, last)
	return first, last
}

// held adds up what was held in each second.
func (r *run) held(x *Report, seen []sight, last time.Time) {
	span := last.Sub(r.begin)
	perSecond := make([]float64, int(math.Ceil(span.Seconds())))
	total := 0.0
	for i, s := range seen {
		if s.admitted.IsZero() {
			continue
		}
		from, to := s.admitted.Sub(r.begin).Seconds(), span.Seconds()
		if !s.ended.IsZero() {
			to = min(to, s.ended.Sub(r.begin).Seconds())
		}
		cpu := float64(r.Workload.Classes[r.units[i].Class].CPU.MilliValue())
		for second := int(max(from, 0)); second < len(perSecond) && float64(second) < to; second++ {
			part := min(to, float64(second+1)) - max(from, float64(second))
			perSecond[second] += cpu * part
			total += cpu * part
		}
	}
	capacity := float64(r.Workload.Capacity())
	x.QuotaHeld = total / (capacity * span.Seconds())
	for second := range perSecond {
		width := min(1, span.Seconds()-float64(second))
		x.QuotaHeldOverTime = append(x.QuotaHeldOverTime, round(perSecond[second]/(capacity*width), 3))
	}
}

func round(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(x*scale) / scale
}

func (r *run) countWrites(x *Report) {
	all, besides, own := 0.0, 0.0, 0.0
	per := float64(x.Admitted)
	for key, count := range r.after.writes {
		n := count - r.before.writes[key]
		if n == 0 {
			continue
		}
		x.Writes = append(x.Writes, Write{
			Resource: key.resource, Verb: key.verb, Code: key.code, Count: int(n), PerUnit: round(n/per, 4),
		})
		all += n
		if key.code == "409" {
			x.Conflicts += int(n)
		}
		if key.verb == "POST" {
			continue
		}
		kind, _, _ := strings.Cut(key.resource, "/")
		switch {
		case kind == "queueunits":
			own += n
			besides += n
		case kind == "queues", kind == "elasticquotas", key.resource == "jobs":
			besides += n
		}
	}
	slices.SortFunc(x.Writes, func(a, b Write) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb),
			cmp.Compare(a.Code, b.Code))
	})
	x.WritesPerUnit, x.QueueUnitWritesPerUnit, x.AllWritesPerUnit = round(besides/per, 4),
		round(own/per, 4), round(all/per, 4)
	x.WritesPerSecond = all / r.after.at.Sub(r.before.at).Seconds()
	for i, c := range r.ceilings {
		least := min(c.CreatesPerSecond, c.StatusPatchesSecond)
		if i == 0 || least < x.WriteCeilingPerSecond {
			x.WriteCeilingPerSecond = least
		}
	}
	if x.WriteCeilingPerSecond > 0 {
		x.WriteCeilingShare = x.WritesPerSecond / x.WriteCeilingPerSecond
	}
}

func (r *run) processReports() (all []ProcessReport) {
	for _, name := range slices.Sorted(maps.Keys(r.after.cpu)) {
		all = append(all, ProcessReport{
			Name: name, CPUSeconds: round(r.after.cpu[name]-r.before.cpu[name], 2), PeakRSSBytes: r.after.peak[name],
		})
	}
	return all
}

func (r *run) countDecisions(x *Report) {
	x.Decisions = decisionsOf(func(name string) float64 { return r.after.queue[name] - r.before.queue[name] })
}

// decisionsOf takes by how much a metric of the scheduler has moved.
func decisionsOf(moved func(name string) float64) DecisionsReport {
	by := func(a, b float64) float64 {
		if b == 0 {
			return 0
		}
		return round(a/b, 3)
	}
	admissions := moved("admissions_total")
	return DecisionsReport{
		DecisionsPerAdmission:     by(moved("status_writes_total/admit"), admissions),
		UnitsExaminedPerAdmission: by(moved("cycle_examined_units_sum"), admissions),
		CyclesPerAdmission:        by(moved("cycle_duration_seconds_count"), admissions),
		MeanCycleMs:               by(1000*moved("cycle_duration_seconds_sum"), moved("cycle_duration_seconds_count")),
		MeanWriteMs: by(1000*moved("status_write_duration_seconds_sum/admit"),
			moved("status_write_duration_seconds_count/admit")),
		Reasons:       int(moved("status_writes_total/explain")),
		QueueStatuses: int(moved("status_writes_total/queueStatus")),
	}
}

func greedyReport(w *workload.Workload) GreedyReport {
	s := workload.Greedy(w)
	g := GreedyReport{MakespanSeconds: s.Makespan.Seconds()}
	for class := range w.Classes {
		g.Classes = append(g.Classes, ClassReport{
			Name: w.Classes[class].Name, Count: len(s.Waits[class]), TimeToAdmission: workload.Summarize(s.Waits[class]),
		})
	}
	return g
}

// Print writes the report as tables.
func (x *Report) Print(out io.Writer) {
	kind := map[bool]string{false: "units", true: "jobs"}[x.Jobs]
	fmt.Fprintf(out, "\n%s: %d of %d %s admitted in %d queues with policy %s; %d cores, load %s\n\n",
		x.Workload, x.Admitted, x.Units, kind, x.Queues, x.QueuePolicy, x.Cores, x.load())
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "makespan\t%.1f s\tgreedy %.1f s\n", x.MakespanSeconds, x.Greedy.MakespanSeconds)
	fmt.Fprintf(t, "admissions\t%.1f /s\tfirst after %.2f s\n", x.AdmissionsPerSecond, x.FirstAdmissionSeconds)
	fmt.Fprintf(t, "quota\t%.1f %% used\t%.1f %% held\n", 100*x.QuotaUse, 100*x.QuotaHeld)
	fmt.Fprintf(t,
		"writes\t%.2f per unit\t%.2f of all processes, %.0f /s, %.0f %% of the ceiling of %.0f /s, %d conflicts\n",
		x.WritesPerUnit, x.AllWritesPerUnit, x.WritesPerSecond, 100*x.WriteCeilingShare, x.WriteCeilingPerSecond, x.Conflicts)
	d := x.Decisions
	fmt.Fprintf(t, "per admission\t%.2f decisions\t%.2f units examined, %.2f cycles of %.2f ms\n",
		d.DecisionsPerAdmission, d.UnitsExaminedPerAdmission, d.CyclesPerAdmission, d.MeanCycleMs)
	fmt.Fprintf(t, "status write\t%.1f ms\t%d reasons, %d statuses of queues\n", d.MeanWriteMs, d.Reasons, d.QueueStatuses)
	_ = t.Flush()
	fmt.Fprintf(out, "\ntime to admission, ms\n")
	fmt.Fprintf(t, "class\tunits\tmean\tp50\tp95\tp99\tgreedy mean\tp50\tp95\tp99\n")
	for i, c := range x.Classes {
		a, g := c.TimeToAdmission, x.Greedy.Classes[i].TimeToAdmission
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\n",
			c.Name, c.Count, a.Mean, a.P50, a.P95, a.P99, g.Mean, g.P50, g.P95, g.P99)
	}
	_ = t.Flush()
	fmt.Fprintln(out)
	printHeld(out, x.Classes, x.CapacityCoreSeconds)
	fmt.Fprintln(out)
	printPhases(out, x.Phases)
	fmt.Fprintln(out)
	printProcesses(out, x.Processes)
	fmt.Fprintln(out)
	fmt.Fprintf(t, "write\tverb\tcode\tcount\tper unit\n")
	for _, w := range x.Writes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.2f\n", w.Resource, w.Verb, w.Code, w.Count, w.PerUnit)
	}
	_ = t.Flush()
	printRequesters(out, x.Requests)
}

func printProcesses(out io.Writer, processes []ProcessReport) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "process\tCPU s\tpeak MiB\n")
	for _, p := range processes {
		fmt.Fprintf(t, "%s\t%.1f\t%d\n", p.Name, p.CPUSeconds, p.PeakRSSBytes>>20)
	}
	_ = t.Flush()
}
