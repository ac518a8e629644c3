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
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// SavingsReport compares the same jobs with and without the queue.
type SavingsReport struct {
	Scenario       string            `json:"scenario"`
	Jobs           int               `json:"jobs"`
	Pods           int               `json:"podsPerJob"`
	Capacity       int               `json:"capacityJobs"`
	JobsPerSecond  int               `json:"jobsPerSecond"`
	RunTimeSeconds float64           `json:"runTimeSeconds"`
	WindowSeconds  float64           `json:"windowSeconds"`
	Variants       []*VariantReport  `json:"variants"`
	Versions       map[string]string `json:"versions"`
	Cores          int               `json:"cores"`
}

// VariantReport is what one variant took, from before its first job to the end of its window.
type VariantReport struct {
	Name    string `json:"name"`
	Queue   bool   `json:"queue"`
	Suspend bool   `json:"createdSuspended"`
	// FillSeconds is from the first job to the submission of the late one. AllWaited says that by then every job had its
	// unit, or without the queue its pods.
	FillSeconds float64 `json:"fillSeconds"`
	AllWaited   bool    `json:"allWaited"`
	// Peak is the most there was of each at any time; End is what there was at the end.
	Peak tally `json:"peak"`
	End  tally `json:"end"`
	// Attempts to schedule a pod, in all and in the window.
	Attempts         Attempts `json:"schedulingAttempts"`
	AttemptsInWindow Attempts `json:"schedulingAttemptsInWindow"`
	// Requests to the API server by verb and resource, watches aside; all of them, and those in the window.
	Requests          map[string]int `json:"requests"`
	RequestsTotal     int            `json:"requestsTotal"`
	RequestsInWindow  int            `json:"requestsInWindow"`
	Store             StoreSize      `json:"store"`
	StoreIdle         StoreSize      `json:"storeIdle"`
	FinishedPerMinute float64        `json:"finishedPerMinuteInWindow"`
	LateToBoundMs     *float64       `json:"lateJobToBoundMs"`
	LateToRunningMs   *float64       `json:"lateJobToRunningMs"`
	Processes         []ProcessUse   `json:"processes"`
	Samples           []Sample       `json:"samples"`
	LoadAverages      []string       `json:"loadAverages"`
	versions          map[string]string
}

// ProcessUse is what one process took. Its peak is of all its life, IdlePeak of that before the first job.
type ProcessUse struct {
	Name               string  `json:"name"`
	CPUSeconds         float64 `json:"cpuSeconds"`
	CPUSecondsInWindow float64 `json:"cpuSecondsInWindow"`
	IdlePeakRSSBytes   int64   `json:"idlePeakRSSBytes"`
	PeakRSSBytes       int64   `json:"peakRSSBytes"`
}

// StoreSize is that of etcd's file, and of what it holds, older versions that are not compacted yet among it.
type StoreSize struct {
	Bytes      int64 `json:"bytes"`
	BytesInUse int64 `json:"bytesInUse"`
}

func (v *savings) readAll(ctx context.Context) (savingsReading, error) {
	x := savingsReading{reading: v.read(), tally: v.census.tally()}
	var e1, e2, e3 error
	x.attempts, e1 = v.readAttempts(ctx)
	x.requests, e2 = v.readRequests(ctx)
	x.store, e3 = v.readStore(ctx)
	return x, errors.Join(x.err, e1, e2, e3)
}

// readRequests counts all but watches, which are counted when they end.
func (v *savings) readRequests(ctx context.Context) (map[string]int, error) {
	const name = "apiserver_request_total"
	raw, err := v.client.get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	samples, err := parseMetrics(bytes.NewReader(raw), name)
	requests := map[string]int{}
	for _, s := range samples[name] {
		if verb := string(s.Metric["verb"]); verb != "WATCH" {
			resource := string(s.Metric["resource"])
			if sub := string(s.Metric["subresource"]); sub != "" {
				resource += "/" + sub
			}
			requests[verb+" "+resource] += int(s.Value)
		}
	}
	return requests, err
}

func (s *stage) readStore(ctx context.Context) (StoreSize, error) {
	const all, used = "etcd_mvcc_db_total_size_in_bytes", "etcd_mvcc_db_total_size_in_use_in_bytes"
	response, err := fromProcess(ctx, s.cp.URL(controlplane.Etcd)+"/metrics")
	if err != nil {
		return StoreSize{}, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	samples, err := parseMetrics(response.Body, "etcd_mvcc_db_total_size_in_")
	if err != nil {
		return StoreSize{}, err
	}
	if len(samples[all]) == 0 || len(samples[used]) == 0 {
		return StoreSize{}, errors.New("etcd does not tell its size")
	}
	return StoreSize{Bytes: int64(samples[all][0].Value), BytesInUse: int64(samples[used][0].Value)}, nil
}

func total(requests map[string]int) (sum int) {
	for _, n := range requests {
		sum += n
	}
	return sum
}

func (v *savings) report() *VariantReport {
	c := v.census
	c.mu.Lock()
	defer c.mu.Unlock()
	x := &VariantReport{
		Name: v.name, Queue: v.Queue, Suspend: v.Suspend, FillSeconds: v.late.Sub(v.began).Seconds(), AllWaited: v.waited,
		Peak: c.peak, End: v.end.tally, Attempts: v.end.attempts.since(v.idle.attempts),
		AttemptsInWindow: v.end.attempts.since(v.full.attempts), Requests: map[string]int{},
		RequestsTotal:    total(v.end.requests) - total(v.idle.requests),
		RequestsInWindow: total(v.end.requests) - total(v.full.requests), Store: v.end.store, StoreIdle: v.idle.store,
		FinishedPerMinute: float64(v.end.tally.Finished-v.full.tally.Finished) / v.end.at.Sub(v.full.at).Minutes(),
		LateToBoundMs:     since(v.late, c.lateBound), LateToRunningMs: since(v.late, c.lateRunning), Samples: v.samples,
		LoadAverages: v.loads, versions: v.versions(),
	}
	for key, n := range v.end.requests {
		if n -= v.idle.requests[key]; n > 0 {
			x.Requests[key] = n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.end.cpu)) {
		x.Processes = append(x.Processes, ProcessUse{
			Name: name, CPUSeconds: round(v.end.cpu[name]-v.idle.cpu[name], 2),
			CPUSecondsInWindow: round(v.end.cpu[name]-v.full.cpu[name], 2), IdlePeakRSSBytes: v.idle.peak[name],
			PeakRSSBytes: v.end.peak[name],
		})
	}
	return x
}

// since is nil for what never was.
func since(from, to time.Time) *float64 {
	if to.IsZero() {
		return nil
	}
	ms := round(1000*to.Sub(from).Seconds(), 1)
	return &ms
}

// Print writes the report as a table with a column for each variant.
func (x *SavingsReport) Print(out io.Writer) {
	fmt.Fprintf(out,
		"\n%d jobs of %d pods that run %.0f s, %d per second, for capacity %d; window of %.0f s; %d cores\n\n",
		x.Jobs, x.Pods, x.RunTimeSeconds, x.JobsPerSecond, x.Capacity, x.WindowSeconds, x.Cores)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(*VariantReport) string) {
		cells := []string{name}
		for _, v := range x.Variants {
			cells = append(cells, cell(v))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	number := func(name string, f func(*VariantReport) int) {
		row(name, func(v *VariantReport) string { return fmt.Sprint(f(v)) })
	}
	row("", func(v *VariantReport) string { return v.Name })
	number("jobs submitted", func(v *VariantReport) int { return v.End.Submitted })
	row("until all wait, s", func(v *VariantReport) string {
		return fmt.Sprintf("%.0f%s", v.FillSeconds, map[bool]string{false: " (not all)"}[v.AllWaited])
	})
	number("jobs with pods that have not ended, peak", func(v *VariantReport) int { return v.Peak.JobsWithPods })
	number("pods that have not ended, peak", func(v *VariantReport) int { return v.Peak.ActivePods })
	number("  of them on no node, peak", func(v *VariantReport) int { return v.Peak.UnboundPods })
	number("all pods, peak", func(v *VariantReport) int { return v.Peak.Pods })
	for _, result := range []string{"scheduled", "unschedulable", "error"} {
		number("attempts: "+result, func(v *VariantReport) int { return v.Attempts.ByResult[result] })
	}
	number("refused by quota", func(v *VariantReport) int { return v.Attempts.RefusedByQuota })
	number("refused by the gate", func(v *VariantReport) int { return v.Attempts.RefusedByGate })
	row("late job submitted to first pod running, s", func(v *VariantReport) string {
		if v.LateToRunningMs == nil {
			return fmt.Sprintf("> %.0f", x.WindowSeconds)
		}
		return fmt.Sprintf("%.2f", *v.LateToRunningMs/1000)
	})
	row("jobs finished per minute of the window",
		func(v *VariantReport) string { return fmt.Sprintf("%.0f", v.FinishedPerMinute) })
	number("jobs failed", func(v *VariantReport) int { return v.End.Failed })
	number("API requests", func(v *VariantReport) int { return v.RequestsTotal })
	number("  of them in the window", func(v *VariantReport) int { return v.RequestsInWindow })
	row("store, MiB (in use)", func(v *VariantReport) string {
		return fmt.Sprintf("%d (%d)", v.Store.Bytes>>20, v.Store.BytesInUse>>20)
	})
	for _, name := range x.processNames() {
		row(name+": peak MiB (before the first job)", func(v *VariantReport) string {
			p := v.process(name)
			return fmt.Sprintf("%d (%d)", p.PeakRSSBytes>>20, p.IdlePeakRSSBytes>>20)
		})
	}
	for _, name := range x.processNames() {
		row(name+": CPU s (in the window)", func(v *VariantReport) string {
			p := v.process(name)
			return fmt.Sprintf("%.0f (%.0f)", p.CPUSeconds, p.CPUSecondsInWindow)
		})
	}
	row("load", func(v *VariantReport) string { return strings.Join(v.LoadAverages, ", then ") })
	_ = t.Flush()
}

func (x *SavingsReport) processNames() []string {
	names := map[string]bool{}
	for _, v := range x.Variants {
		for _, p := range v.Processes {
			names[p.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// process is zero for one that did not take part.
func (v *VariantReport) process(name string) ProcessUse {
	for _, p := range v.Processes {
		if p.Name == name {
			return p
		}
	}
	return ProcessUse{}
}
