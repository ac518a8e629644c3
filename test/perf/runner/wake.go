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
	"strings"
	"text/tabwriter"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// WakeReport is how long the end of a unit takes to let the next one go.
type WakeReport struct {
	PerSecond  float64       `json:"perSecond"`
	Variants   []WakeVariant `json:"variants"`
	Violations []string      `json:"violations"`
}

// WakeVariant is one policy with one number of waiting units.
type WakeVariant struct {
	Policy  string `json:"policy"`
	Waiting int    `json:"waiting"`
	Holding int    `json:"holding"`
	Samples int    `json:"samples"`
	// EndWrite is how long the request took that ended the unit.
	EndWrite workload.Times `json:"endWriteMs"`
	// FromReturn is from the return of that request to the next observed admission. FromWatch begins when our watch showed
	// the end, as the scheduler's does.
	FromReturn workload.Times  `json:"fromReturnMs"`
	FromWatch  workload.Times  `json:"fromWatchMs"`
	Histogram  []Bucket        `json:"histogramFromWatch"`
	Decisions  DecisionsReport `json:"decisions"`
	// CPUMs is the processor time of each process, and Writes the number of write requests, per sample. Both include the
	// unit that replaces the admitted one among the pending units.
	CPUMs  map[string]float64 `json:"cpuMsPerSample"`
	Writes map[string]float64 `json:"writesPerSample"`
	// Raw are the samples in their order: EndWrite, FromReturn and FromWatch, in milliseconds.
	Raw [][3]float64 `json:"raw"`
}

// Bucket counts the samples of up to UpToMs milliseconds, and above that of the bucket before it; the last one, of 0,
// counts the rest.
type Bucket struct {
	UpToMs float64 `json:"upToMs"`
	Count  int     `json:"count"`
}

var bucketLimits = []float64{2, 4, 6, 8, 10, 15, 20, 25, 30, 40, 50, 75, 100, 200, 500, 1000}

// sampleTimeout is how long the next admission may take.
const sampleTimeout = time.Minute

// measureWake measures on the store and on one with few waiting units, which take turns.
func measureWake(ctx context.Context, o *StandingOptions, many *store, screen *screen) (_ *WakeReport, err error) {
	stores := []*store{many}
	waiting := map[*store]int{many: o.Waiting}
	if o.Few > 0 {
		few, err := openStore(ctx, o, "few", screen)
		if err != nil {
			return nil, err
		}
		defer few.cp.Stop() //nolint:errcheck // what fails there is told by what is measured
		stores = append(stores, few)
		waiting[few] = o.Few
	}
	for _, s := range stores {
		if err := s.fillUp(ctx, waiting[s]); err != nil {
			return nil, err
		}
		if err := s.admit(ctx); err != nil {
			return nil, err
		}
	}
	if o.Profile.wanted() {
		go many.profile(ctx, "", controlplane.APIServer, controlplane.Scheduler)
	}
	x := &WakeReport{PerSecond: o.PerSecond, Violations: []string{}}
	for _, policy := range o.Policies {
		variants, err := measurePolicy(ctx, o, policy, stores, waiting)
		if err != nil {
			return nil, err
		}
		x.Variants = append(x.Variants, variants...)
	}
	for _, s := range stores {
		found, total, err := s.check(ctx)
		if err != nil {
			return nil, err
		}
		s.line("%d things are wrong with %d units", total, s.held.state().counts.created)
		x.Violations = append(x.Violations, found...)
		if err := s.cp.StopComponent(controlplane.Scheduler); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func measurePolicy(
	ctx context.Context, o *StandingOptions, policy v1alpha1.QueuePolicy, stores []*store, waiting map[*store]int,
) ([]WakeVariant, error) {
	all := make([]wakeup, len(stores))
	for i, s := range stores {
		if err := s.setPolicy(ctx, policy); err != nil {
			return nil, fmt.Errorf("set the policy: %w", err)
		}
		if err := s.quiet(ctx, controlplane.Scheduler); err != nil {
			return nil, err
		}
		all[i] = newWakeup()
	}
	for round := range o.Rounds {
		n := o.Samples*(round+1)/o.Rounds - o.Samples*round/o.Rounds
		for i, s := range stores {
			if err := s.sampleMany(ctx, &all[i], n, time.Duration(float64(time.Second)/o.PerSecond)); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.label, policy, err)
			}
		}
	}
	variants := make([]WakeVariant, 0, len(stores))
	for i, s := range stores {
		v := all[i].variant()
		v.Policy, v.Waiting, v.Holding = string(policy), waiting[s], s.capacity
		s.line("%s, %d waiting: p50 %.1f, p99 %.1f, at most %.1f ms from the watch's event", policy, v.Waiting,
			v.FromWatch.P50, v.FromWatch.P99, v.FromWatch.Max)
		variants = append(variants, v)
	}
	return variants, nil
}

// wakeup gathers the samples of one variant, and by how much the counters moved while they were taken.
type wakeup struct {
	endWrite, fromReturn, fromWatch []time.Duration
	queue, cpu, writes              map[string]float64
}

func newWakeup() wakeup {
	return wakeup{queue: map[string]float64{}, cpu: map[string]float64{}, writes: map[string]float64{}}
}

func (x *wakeup) moved(before, after reading) {
	for name, value := range after.queue {
		x.queue[name] += value - before.queue[name]
	}
	for name, value := range after.cpu {
		x.cpu[name] += value - before.cpu[name]
	}
	for key, value := range after.writes {
		if n := value - before.writes[key]; n != 0 {
			x.writes[strings.Join([]string{key.verb, key.resource, key.code}, " ")] += n
		}
	}
}

func (x *wakeup) variant() WakeVariant {
	n := len(x.fromWatch)
	v := WakeVariant{
		Samples: n, EndWrite: workload.Summarize(x.endWrite),
		FromReturn: workload.Summarize(x.fromReturn),
		FromWatch:  workload.Summarize(x.fromWatch), Histogram: histogram(x.fromWatch),
		Decisions: decisionsOf(func(name string) float64 { return x.queue[name] }), CPUMs: map[string]float64{},
		Writes: map[string]float64{},
	}
	for name, seconds := range x.cpu {
		v.CPUMs[name] = round(1000*seconds/float64(n), 3)
	}
	for name, count := range x.writes {
		v.Writes[name] = round(count/float64(n), 4)
	}
	for i := range n {
		v.Raw = append(v.Raw, [3]float64{inMs(x.endWrite[i]), inMs(x.fromReturn[i]), inMs(x.fromWatch[i])})
	}
	return v
}

func inMs(d time.Duration) float64 { return round(d.Seconds()*1000, 3) }

func histogram(durations []time.Duration) []Bucket {
	counts := make([]int, len(bucketLimits)+1)
	for _, d := range durations {
		i, _ := slices.BinarySearch(bucketLimits, d.Seconds()*1000)
		counts[i]++
	}
	buckets := make([]Bucket, 0, len(counts))
	for i, limit := range bucketLimits {
		buckets = append(buckets, Bucket{limit, counts[i]})
	}
	return append(buckets, Bucket{0, counts[len(bucketLimits)]})
}

// sampleMany takes n samples, one at a time and one every interval.
func (s *store) sampleMany(ctx context.Context, x *wakeup, n int, interval time.Duration) error {
	before := s.read()
	if before.err != nil {
		return before.err
	}
	controlplane.Sleep(ctx, time.Second) // the reading cost the API server something
	begin := time.Now()
	for i := range n {
		if !controlplane.Sleep(ctx, time.Until(begin.Add(time.Duration(i)*interval))) {
			return ctx.Err()
		}
		if err := s.sample(ctx, x); err != nil {
			return err
		}
		s.screen.status(fmt.Sprintf("%s: %s, %d of %d samples, the last after %.1f ms", s.label, s.Workload.QueuePolicy, i+1,
			n, inMs(x.fromWatch[len(x.fromWatch)-1])))
	}
	after := s.read()
	x.moved(before, after)
	return after.err
}

// sample ends one unit, waits until the next one is admitted, and has another one wait in its place.
func (s *store) sample(ctx context.Context, x *wakeup) error {
	one := s.held.expect(s.random)
	begin := time.Now()
	if err := s.endUnit(ctx, one.unit); err != nil {
		return err
	}
	returned := time.Now()
	select {
	case <-one.done:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(sampleTimeout):
		return fmt.Errorf("%s after %s has ended nothing is admitted; end of the scheduler's log:\n%s",
			sampleTimeout, one.unit, s.cp.LogTail(controlplane.Scheduler, 20))
	}
	x.endWrite = append(x.endWrite, returned.Sub(begin))
	x.fromReturn = append(x.fromReturn, one.admitted.Sub(returned))
	x.fromWatch = append(x.fromWatch, one.admitted.Sub(one.ended))
	queue, _ := queueOf(one.unit)
	return s.createUnit(ctx, queue)
}

func (x *WakeReport) print(t *tabwriter.Writer) {
	fmt.Fprintf(t, "\nfrom the end of a unit to the admission of the next, ms; one at a time, %g a second at most\n",
		x.PerSecond)
	fmt.Fprintf(t, "policy\twaiting\tsamples\tfrom\tp50\tp90\tp95\tp99\tmax\tmean\n")
	row := func(v *WakeVariant, from string, a workload.Times) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\n", v.Policy, v.Waiting, v.Samples, from, a.P50,
			a.P90, a.P95, a.P99, a.Max, a.Mean)
	}
	for i := range x.Variants {
		v := &x.Variants[i]
		row(v, "return of the ending write", v.FromReturn)
		row(v, "watch event of the end", v.FromWatch)
		row(v, "(the ending write itself)", v.EndWrite)
	}
	_ = t.Flush()
	fmt.Fprintf(t, "\nper sample, with the creation of a unit\n")
	fmt.Fprintf(t,
		"policy\twaiting\tunits examined\tcycles\tms per cycle\tms per status write\tCPU ms: scheduler\tAPI server\tetcd\n")
	for _, v := range x.Variants {
		fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.1f\t%.2f\t%.2f\t%.2f\n", v.Policy, v.Waiting,
			v.Decisions.UnitsExaminedPerAdmission, v.Decisions.CyclesPerAdmission, v.Decisions.MeanCycleMs,
			v.Decisions.MeanWriteMs, v.CPUMs[string(controlplane.Scheduler)], v.CPUMs[string(controlplane.APIServer)],
			v.CPUMs[string(controlplane.Etcd)])
	}
	_ = t.Flush()
	for _, v := range x.Variants {
		v.printHistogram(t)
	}
	for _, v := range x.Variants {
		fmt.Fprintf(t, "\nwrites per sample, %s, %d waiting:", v.Policy, v.Waiting)
		for _, name := range slices.Sorted(maps.Keys(v.Writes)) {
			fmt.Fprintf(t, " %s %.3f;", name, v.Writes[name])
		}
	}
	fmt.Fprintln(t)
	printViolations(t, x.Violations)
}

func (v *WakeVariant) printHistogram(t io.Writer) {
	fmt.Fprintf(t, "\nms from the watch event, %s, %d waiting\n", v.Policy, v.Waiting)
	const width = 50
	most := 1
	for _, b := range v.Histogram {
		most = max(most, b.Count)
	}
	for _, b := range v.Histogram {
		if b.Count == 0 {
			continue
		}
		limit := fmt.Sprintf("<= %g", b.UpToMs)
		if b.UpToMs == 0 {
			limit = fmt.Sprintf("> %g", bucketLimits[len(bucketLimits)-1])
		}
		fmt.Fprintf(t, "%s\t%d\t%s\n", limit, b.Count, strings.Repeat("#", (b.Count*width+most-1)/most))
	}
}

func printViolations(t io.Writer, found []string) {
	if len(found) == 0 {
		fmt.Fprintf(t, "\nno unit was admitted twice or lost what it held, and no quota was passed\n")
		return
	}
	fmt.Fprintf(t, "\nWRONG:\n%s\n", strings.Join(found, "\n"))
}
