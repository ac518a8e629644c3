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
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// UsageReport is what the processor did in one second of the run, which may be a little longer or shorter.
type UsageReport struct {
	// Second is the end of it, by the clock of the run.
	Second float64 `json:"second"`
	// CPUSeconds by process.
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
	// Idle is the share of all cores of the machine that nobody used, other programs included.
	Idle float64 `json:"idle"`
	// Admitted units are those that the watch showed in it.
	Admitted int `json:"admitted"`
}

// PhaseReport is about one part of the run: a busy resource shows its bound.
type PhaseReport struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	// WritesPerSecond are those that the API server counted.
	WritesPerSecond     float64 `json:"writesPerSecond"`
	AdmissionsPerSecond float64 `json:"admissionsPerSecond"`
	// QuotaHeld is the share of the quota that units held.
	QuotaHeld float64 `json:"quotaHeld"`
	// CPU by process, Others and Idle are shares of all cores.
	CPU    map[string]float64 `json:"cpu"`
	Others float64            `json:"others"`
	Idle   float64            `json:"idle"`
}

const (
	phaseCreating = "units are still created"
	phaseCreated  = "all units are created"
)

// spent is what the kernel counts at one moment.
type spent struct {
	at  time.Time
	cpu map[string]float64 // seconds by process
	// busy and idle are the seconds of all cores since the machine was started.
	busy, idle float64
}

// share of all cores in the time since before: of each process, of others, and of nobody.
func (x *spent) share(before *spent) (cpu map[string]float64, others, idle float64) {
	cpu = map[string]float64{}
	cores := x.busy + x.idle - before.busy - before.idle
	if cores <= 0 {
		return cpu, 0, 0
	}
	others = x.busy - before.busy
	for name, seconds := range x.cpu {
		seconds -= before.cpu[name]
		others -= seconds
		cpu[name] = round(seconds/cores, 4)
	}
	// Processes and machine are read one after the other, in ticks of 10 ms.
	return cpu, round(max(0, others)/cores, 4), round((x.idle-before.idle)/cores, 4)
}

// sampleUsage reads once a second what the kernel counts, until the context ends.
func (r *run) sampleUsage(ctx context.Context) (all []spent, admitted []int) {
	take := func() {
		if x, err := r.spent(); err == nil { // a process that has ended ends the run
			all, admitted = append(all, x), append(admitted, r.watch.counts().admitted)
		}
	}
	for second := 1; controlplane.Sleep(ctx, time.Until(r.begin.Add(time.Duration(second)*time.Second))); second++ {
		take()
	}
	take()
	return all, admitted
}

// usageReports are those of the seconds between the readings.
func usageReports(begin time.Time, before spent, all []spent, admitted []int) []UsageReport {
	reports, last := make([]UsageReport, 0, len(all)), 0
	for i := range all {
		x := UsageReport{
			Second: round(all[i].at.Sub(begin).Seconds(), 2), CPUSeconds: map[string]float64{}, Admitted: admitted[i] - last,
		}
		for name, seconds := range all[i].cpu {
			x.CPUSeconds[name] = round(seconds-before.cpu[name], 2)
		}
		_, _, x.Idle = all[i].share(&before)
		reports, before, last = append(reports, x), all[i], admitted[i]
	}
	return reports
}

// phases are before and after the reading that was made when the last unit had been created. A run that ended earlier
// has one only.
func (r *run) phases(seen []sight, last time.Time) []PhaseReport {
	if r.created == nil {
		return []PhaseReport{r.phase(phaseCreating, &r.before, &r.after, seen, last)}
	}
	return []PhaseReport{
		r.phase(phaseCreating, &r.before, r.created, seen, last),
		r.phase(phaseCreated, r.created, &r.after, seen, last),
	}
}

func (r *run) phase(name string, from, to *reading, seen []sight, last time.Time) PhaseReport {
	x := PhaseReport{Name: name, Seconds: to.at.Sub(from.at).Seconds()}
	writes, admissions, held := 0.0, 0, 0.0
	for key, count := range to.writes {
		writes += count - from.writes[key]
	}
	for i, s := range seen {
		if s.admitted.IsZero() {
			continue
		}
		if s.admitted.After(from.at) && !s.admitted.After(to.at) {
			admissions++
		}
		held += r.cores(i) * overlap(s.admitted, s.end(last), from.at, to.at).Seconds()
	}
	x.WritesPerSecond, x.AdmissionsPerSecond = writes/x.Seconds, float64(admissions)/x.Seconds
	x.QuotaHeld = held * 1000 / (float64(r.Workload.Capacity()) * x.Seconds)
	x.CPU, x.Others, x.Idle = to.share(&from.spent)
	return x
}

func (r *run) cores(i int) float64 {
	return r.Workload.Classes[r.units[i].Class].CPU.AsApproximateFloat64()
}

// end of what a unit holds; that of the run, if it held on.
func (s *sight) end(last time.Time) time.Time {
	if s.ended.IsZero() {
		return last
	}
	return s.ended
}

func overlap(from, to, from2, to2 time.Time) time.Duration {
	if from2.After(from) {
		from = from2
	}
	if to2.Before(to) {
		to = to2
	}
	return max(0, to.Sub(from))
}

// HeldReport is where the capacity of the quota went, in core-seconds.
type HeldReport struct {
	// Work is from when admissions were seen until the units were due to end, Overrun from then on until their end was
	// seen.
	Work    float64 `json:"workCoreSeconds"`
	Overrun float64 `json:"overrunCoreSeconds"`
}

// heldBy adds up by class what units held up to the end of the run.
func (r *run) heldBy(seen []sight, last time.Time) []HeldReport {
	all := make([]HeldReport, len(r.Workload.Classes))
	for i := range seen {
		s := &seen[i]
		if s.admitted.IsZero() {
			continue
		}
		held := s.end(last).Sub(s.admitted)
		work := min(held, runtimeOf(r.Workload, r.units[i]))
		x := &all[r.units[i].Class]
		x.Work += r.cores(i) * work.Seconds()
		x.Overrun += r.cores(i) * (held - work).Seconds()
	}
	for class := range all {
		all[class].Work, all[class].Overrun = round(all[class].Work, 3), round(all[class].Overrun, 3)
	}
	return all
}

func printPhases(out io.Writer, phases []PhaseReport) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	names := slices.Sorted(maps.Keys(phases[0].CPU))
	fmt.Fprintf(t, "CPU in %% of all cores\ts\twrites/s\tadmissions/s\tquota held\t")
	for _, name := range names {
		fmt.Fprintf(t, "%s\t", name)
	}
	fmt.Fprintf(t, "others\tidle\n")
	for _, p := range phases {
		fmt.Fprintf(t, "%s\t%.1f\t%.0f\t%.1f\t%.0f %%\t", p.Name, p.Seconds, p.WritesPerSecond,
			p.AdmissionsPerSecond, 100*p.QuotaHeld)
		for _, name := range names {
			fmt.Fprintf(t, "%.0f %%\t", 100*p.CPU[name])
		}
		fmt.Fprintf(t, "%.0f %%\t%.0f %%\n", 100*p.Others, 100*p.Idle)
	}
	_ = t.Flush()
}

func printHeld(out io.Writer, classes []ClassReport, capacity float64) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "quota, core-s\tuntil due\tof all\toverrun\tof all\n")
	line := func(name string, h HeldReport) {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f %%\t%.1f\t%.1f %%\n", name, h.Work, 100*h.Work/capacity,
			h.Overrun, 100*h.Overrun/capacity)
	}
	total := HeldReport{}
	for _, c := range classes {
		line(c.Name, *c.Held)
		total.Work += c.Held.Work
		total.Overrun += c.Held.Overrun
	}
	line("all", total)
	free := capacity - total.Work - total.Overrun
	fmt.Fprintf(t, "held by nobody\t%.1f\t%.1f %%\t\t\n", free, 100*free/capacity)
	_ = t.Flush()
}
