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
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// InterferenceReport is what pod scheduling does with and without the plugin.
type InterferenceReport struct {
	Scenario  string `json:"scenario"`
	Nodes     int    `json:"nodes"`
	Pods      int    `json:"pods"`
	PacedPods int    `json:"pacedPods"`
	Queues    int    `json:"queues"`
	Units     int    `json:"units"`
	GatedPods int    `json:"gatedPods"`
	Rounds    int    `json:"rounds"`

	Variants []InterferenceVariant `json:"variants"`
	Losses   []InterferenceLoss    `json:"losses"`
	// Runs are all that was measured, in their order.
	Runs         []InterferenceRun `json:"runs"`
	SchedulerQPS int               `json:"schedulerQPS"`
	Machine
}

// InterferenceRun is one run of one variant.
type InterferenceRun struct {
	Variant string `json:"variant"`
	Round   int    `json:"round"`
	// PodsPerSecond is between the first and the last binding of pods that were created at once. The processor time is for
	// the same pods, from before their creation to after the last binding.
	PodsPerSecond        float64 `json:"podsPerSecond"`
	SchedulerCPUMsPerPod float64 `json:"schedulerCPUMsPerPod"`
	// SchedulerAllocatedKiBPerPod is what the scheduler has asked its heap for. It decides how often garbage is collected,
	// and does not depend on what else the machine does.
	SchedulerAllocatedKiBPerPod float64 `json:"schedulerAllocatedKiBPerPod"`

	APIServerCPUMsPerPod  float64 `json:"apiServerCPUMsPerPod"`
	EtcdCPUMsPerPod       float64 `json:"etcdCPUMsPerPod"`
	RunnerCPUMsPerPod     float64 `json:"runnerCPUMsPerPod"`
	SchedulerPeakRSSBytes int64   `json:"schedulerPeakRSSBytes"`
	// BurstLatency and PacedLatency are from seeing a pod to seeing it bound. BurstLatency is of pods created at once,
	// which shows the length of the queue, and PacedLatency of pods created one by one.
	BurstLatency workload.Times `json:"burstLatencyMs"`
	PacedLatency workload.Times `json:"pacedLatencyMs"`
	// Attempts are those of all pods of the run.
	Attempts Attempts `json:"attempts"`
	// Cycles of the queue and their time, and the writes that it made, in the time of the measurement.
	Cycles       int     `json:"cycles"`
	CycleSeconds float64 `json:"cycleSeconds"`
	StatusWrites int     `json:"statusWrites"`
	WritesPerPod float64 `json:"writesPerPod"`
}

// InterferenceVariant is the spread of the runs of a variant.
type InterferenceVariant struct {
	Name                 string `json:"name"`
	PodsPerSecond        Spread `json:"podsPerSecond"`
	SchedulerCPUMsPerPod Spread `json:"schedulerCPUMsPerPod"`
	AllocatedKiBPerPod   Spread `json:"schedulerAllocatedKiBPerPod"`
	CyclesPerPod         Spread `json:"cyclesPerPod"`
	APIServerCPUMsPerPod Spread `json:"apiServerCPUMsPerPod"`
	BurstP50Ms           Spread `json:"burstP50Ms"`
	BurstP99Ms           Spread `json:"burstP99Ms"`
	PacedP50Ms           Spread `json:"pacedP50Ms"`
	PacedP99Ms           Spread `json:"pacedP99Ms"`
	PeakRSSBytes         Spread `json:"schedulerPeakRSSBytes"`
	// NotScheduled are attempts that scheduled nothing, of all runs.
	NotScheduled int `json:"attemptsThatScheduledNothing"`
}

// InterferenceLoss compares a variant with another. Positive is worse; by round are the same comparisons of one round
// each.
type InterferenceLoss struct {
	Variant               string    `json:"variant"`
	Against               string    `json:"against"`
	ThroughputPercent     float64   `json:"throughputPercent"`
	ThroughputByRound     []float64 `json:"throughputPercentByRound"`
	SchedulerCPUPercent   float64   `json:"schedulerCPUPercent"`
	SchedulerCPUByRound   []float64 `json:"schedulerCPUPercentByRound"`
	APIServerCPUPercent   float64   `json:"apiServerCPUPercent"`
	PacedP50Percent       float64   `json:"pacedP50Percent"`
	PluginDiffersOnly     bool      `json:"onlyThePluginDiffers"`
	ThroughputOfMedians   float64   `json:"throughputPercentOfMedians"`
	SchedulerCPUOfMedians float64   `json:"schedulerCPUPercentOfMedians"`
}

// Spread of the runs of a variant.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// note keeps what one run has measured.
func (x *interference) note(
	ctx context.Context, v variant, round int, before, after reading, pods map[string]binding,
) error {
	paced := make(map[string]bool, x.o.Paced)
	for i := range x.o.Paced {
		paced[podName(i)] = true
	}
	var first, last time.Time
	var burst, single []time.Duration
	for name, pod := range pods {
		latency := pod.bound.Sub(pod.created)
		if paced[name] {
			single = append(single, latency)
			continue
		}
		burst = append(burst, latency)
		if first.IsZero() || pod.bound.Before(first) {
			first = pod.bound
		}
		if pod.bound.After(last) {
			last = pod.bound
		}
	}
	n := float64(len(burst))
	cpu := func(c controlplane.Component) float64 {
		return round3(1000 * (after.cpu[string(c)] - before.cpu[string(c)]) / n)
	}
	run := InterferenceRun{
		Variant: v.name, Round: round + 1, PodsPerSecond: round3((n - 1) / last.Sub(first).Seconds()),
		SchedulerCPUMsPerPod: cpu(controlplane.Scheduler), APIServerCPUMsPerPod: cpu(controlplane.APIServer),
		EtcdCPUMsPerPod: cpu(controlplane.Etcd), RunnerCPUMsPerPod: cpu(self),
		SchedulerPeakRSSBytes: after.peak[string(controlplane.Scheduler)],
		BurstLatency:          workload.Summarize(burst), PacedLatency: workload.Summarize(single),
		Cycles: int(after.queue["cycle_duration_seconds_count"] -
			before.queue["cycle_duration_seconds_count"]),
		CycleSeconds: round3(after.queue["cycle_duration_seconds_sum"] -
			before.queue["cycle_duration_seconds_sum"]),
		SchedulerAllocatedKiBPerPod: round3((after.allocated - before.allocated) / 1024 / n),

		StatusWrites: int(after.queue["status_writes_total"] - before.queue["status_writes_total"]),
	}
	for key, count := range after.writes {
		run.WritesPerPod += count - before.writes[key]
	}
	run.WritesPerPod = round3(run.WritesPerPod / n)
	var err error
	if run.Attempts, err = x.readAttempts(ctx); err != nil {
		return err
	}
	x.runs = append(x.runs, run)
	x.noteLoad()
	x.screen.line(fmt.Sprintf("%s, round %d: %.1f pods/s, scheduler %.3f ms and API server %.3f ms of processor time "+
		"per pod, %.0f ms p50 one by one; load %s",
		v.name, round+1, run.PodsPerSecond, run.SchedulerCPUMsPerPod, run.APIServerCPUMsPerPod,
		run.PacedLatency.P50, loadAverage()))
	return nil
}

func round3(x float64) float64 { return round(x, 3) }

func (x *interference) report() *InterferenceReport {
	r := &InterferenceReport{
		Scenario: "interference",
		Nodes:    x.o.Nodes, Pods: x.o.Pods, PacedPods: x.o.Paced, Queues: x.o.queues(), Units: x.o.Units,
		GatedPods: x.o.Gated, Rounds: x.o.Rounds, Runs: x.runs, SchedulerQPS: schedulerQPS, Machine: x.machine(),
	}
	r.summarize()
	return r
}

func (r *InterferenceReport) of(name string) (runs []InterferenceRun) {
	for _, run := range r.Runs {
		if run.Variant == name {
			runs = append(runs, run)
		}
	}
	slices.SortFunc(runs, func(a, b InterferenceRun) int { return a.Round - b.Round })
	return runs
}

func (r *InterferenceReport) summarize() {
	for _, v := range []variant{variantOff, variantIdle, variantOffLoaded, variantWaiting} {
		runs := r.of(v.name)
		spread := func(value func(InterferenceRun) float64) Spread {
			values := make([]float64, 0, len(runs))
			for _, run := range runs {
				values = append(values, value(run))
			}
			return spreadOf(values)
		}
		report := InterferenceVariant{
			Name:                 v.name,
			PodsPerSecond:        spread(podsPerSecond),
			SchedulerCPUMsPerPod: spread(schedulerCPU),
			AllocatedKiBPerPod:   spread(func(run InterferenceRun) float64 { return run.SchedulerAllocatedKiBPerPod }),
			CyclesPerPod: spread(func(run InterferenceRun) float64 {
				return round3(float64(run.Cycles) / float64(r.Pods-r.PacedPods))
			}),
			APIServerCPUMsPerPod: spread(apiServerCPU),
			BurstP50Ms:           spread(func(run InterferenceRun) float64 { return run.BurstLatency.P50 }),
			BurstP99Ms:           spread(func(run InterferenceRun) float64 { return run.BurstLatency.P99 }),
			PacedP50Ms:           spread(pacedP50),
			PacedP99Ms:           spread(func(run InterferenceRun) float64 { return run.PacedLatency.P99 }),
			PeakRSSBytes:         spread(func(run InterferenceRun) float64 { return float64(run.SchedulerPeakRSSBytes) }),
		}
		for _, run := range runs {
			for result, n := range run.Attempts.ByResult {
				if result != "scheduled" {
					report.NotScheduled += n
				}
			}
		}
		r.Variants = append(r.Variants, report)
	}
	r.Losses = []InterferenceLoss{
		r.loss(variantIdle, variantOff), r.loss(variantWaiting, variantOffLoaded), r.loss(variantWaiting, variantOff),
	}
}

func podsPerSecond(run InterferenceRun) float64 { return run.PodsPerSecond }
func schedulerCPU(run InterferenceRun) float64  { return run.SchedulerCPUMsPerPod }
func apiServerCPU(run InterferenceRun) float64  { return run.APIServerCPUMsPerPod }
func pacedP50(run InterferenceRun) float64      { return run.PacedLatency.P50 }

// loss compares runs of the same round, which were next to each other where only the plugin differs, and takes the
// median.
func (r *InterferenceReport) loss(a, b variant) InterferenceLoss {
	ours, theirs := r.of(a.name), r.of(b.name)
	n := min(len(ours), len(theirs))
	more := func(value func(InterferenceRun) float64) []float64 {
		percents := make([]float64, 0, n)
		for i := range n {
			percents = append(percents, percent(value(ours[i]), value(theirs[i])))
		}
		return percents
	}
	median := func(runs []InterferenceRun, value func(InterferenceRun) float64) float64 {
		values := make([]float64, 0, n)
		for _, run := range runs {
			values = append(values, value(run))
		}
		return spreadOf(values).Median
	}
	less := more(podsPerSecond)
	for i := range less {
		less[i] = -less[i]
	}
	cpu := more(schedulerCPU)
	return InterferenceLoss{
		Variant: a.name, Against: b.name, PluginDiffersOnly: a.loaded == b.loaded,
		ThroughputPercent: spreadOf(less).Median, ThroughputByRound: less,
		SchedulerCPUPercent: spreadOf(cpu).Median, SchedulerCPUByRound: cpu,
		APIServerCPUPercent:   spreadOf(more(apiServerCPU)).Median,
		PacedP50Percent:       spreadOf(more(pacedP50)).Median,
		ThroughputOfMedians:   -percent(median(ours, podsPerSecond), median(theirs, podsPerSecond)),
		SchedulerCPUOfMedians: percent(median(ours, schedulerCPU), median(theirs, schedulerCPU)),
	}
}

// percent is by how much a is more than b.
func percent(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return round(100*(a/b-1), 2)
}

// Print writes the report as tables.
func (r *InterferenceReport) Print(out io.Writer) {
	fmt.Fprintf(out, "\n%d pods (%d of them one by one) on %d nodes, %d rounds; loaded: "+
		"%d units in %d queues and %d gated pods; %d cores, load %s\n\n",
		r.Pods, r.PacedPods, r.Nodes, r.Rounds, r.Units, r.Queues, r.GatedPods, r.Cores, r.load())
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	cell := func(s Spread, digits int) string {
		return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, s.Median, digits, s.Min, digits, s.Max)
	}
	fmt.Fprintf(t, "variant\tpods/s\tCPU ms per pod: scheduler\tAPI server\tKiB allocated per pod\tcycles per pod\t"+
		"peak MiB\tattempts for nothing\n")
	for _, v := range r.Variants {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%d\n", v.Name, cell(v.PodsPerSecond, 1),
			cell(v.SchedulerCPUMsPerPod, 3), cell(v.APIServerCPUMsPerPod, 3), cell(v.AllocatedKiBPerPod, 1),
			cell(v.CyclesPerPod, 2), v.PeakRSSBytes.Max/(1<<20), v.NotScheduled)
	}
	_ = t.Flush()
	fmt.Fprintf(out, "\ncreated to bound, ms\n")
	fmt.Fprintf(t, "variant\tone by one: p50\tp99\tat once: p50\tp99\n")
	for _, v := range r.Variants {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", v.Name, cell(v.PacedP50Ms, 1), cell(v.PacedP99Ms, 1),
			cell(v.BurstP50Ms, 0), cell(v.BurstP99Ms, 0))
	}
	_ = t.Flush()
	fmt.Fprintf(out, "\nloss, %%: median of the rounds (each round)\n")
	fmt.Fprintf(t, "variant\tagainst\tdiffers in\tpods/s\tscheduler CPU per pod\n")
	for _, l := range r.Losses {
		differs := "plugin"
		if !l.PluginDiffersOnly {
			differs = "plugin, and all that waits"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%+.1f %s\t%+.1f %s\n", l.Variant, l.Against, differs,
			l.ThroughputPercent, rounds(l.ThroughputByRound), l.SchedulerCPUPercent, rounds(l.SchedulerCPUByRound))
	}
	_ = t.Flush()
}

func rounds(values []float64) string {
	texts := make([]string, 0, len(values))
	for _, v := range values {
		texts = append(texts, fmt.Sprintf("%+.1f", v))
	}
	return "(" + strings.Join(texts, ", ") + ")"
}
