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
	"text/tabwriter"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/auditlog"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// JobsReport is what a queue of real Jobs does to its API server. Times are those at which the watches of the runner
// delivered, except those of calls.
type JobsReport struct {
	Scenario string `json:"scenario"`
	Jobs     int    `json:"jobs"`
	Cores    int    `json:"quotaCores"`
	// MakespanSeconds is from the first creation to the last end of a Job. IdealSeconds is the work over the cores.
	MakespanSeconds float64 `json:"makespanSeconds"`
	IdealSeconds    float64 `json:"idealSeconds"`
	// Create is how long the user's call took.
	CreateP50Ms             float64        `json:"createP50Ms"`
	CreateP50MsWithoutQueue float64        `json:"createP50MsWithoutQueue"`
	Create                  workload.Times `json:"createMs"`
	CreateWithoutQueue      workload.Times `json:"createMsWithoutQueue"`
	// WatchesClosed counts watches of Jobs that the API server closed because they were slow. A user who creates many Jobs
	// at once can cause that alone. So WatchesClosedCreating counts those closed while the Jobs were created, and
	// WatchesClosedWithoutQueue those of the same creations without a queue. WatchesClosedOf has all resources, and
	// WatchesEnded the owners of watches that ended for any cause.
	WatchesClosed             int            `json:"watchesClosed"`
	WatchesClosedCreating     int            `json:"watchesClosedCreating"`
	WatchesClosedWithoutQueue int            `json:"watchesClosedWithoutQueue"`
	WatchesClosedOf           map[string]int `json:"watchesClosedOf"`
	WatchesEnded              []Requester    `json:"watchesEnded"`
	PodsMade                  int            `json:"podsMade"`
	PodsAsked                 int            `json:"podsAsked"`
	// CreatedToBound and ResumedToBound are from the Job being seen so to its last pod being seen on a node, by size.
	CreatedToBound map[int]workload.Times `json:"createdToBoundMs"`
	ResumedToBound workload.Times         `json:"resumedToBoundMs"`
	// WritesPerJob and EventsPerJob are by who asked for them; Total is of all.
	WritesPerJob      map[string]float64 `json:"writesPerJob"`
	WritesPerJobTotal float64            `json:"writesPerJobTotal"`
	EventsPerJob      map[string]float64 `json:"eventsPerJob"`
	// EventReasons are by who reported them and why, per Job.
	EventReasons map[string]float64 `json:"eventReasonsPerJob"`
	Requests     []Requester        `json:"requests"`
	Attempts     Attempts           `json:"schedulingAttempts"`
	Processes    []ProcessReport    `json:"processes"`
	CPUPerJob    float64            `json:"cpuSecondsPerJob"`
	Machine
}

// readClosed counts the watches that the API server has closed as they did not take what it had for them.
func (j *jobsRun) readClosed(ctx context.Context) (map[string]int, error) {
	const name = "apiserver_terminated_watchers_total"
	raw, err := j.client.get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	samples, err := parseMetrics(bytes.NewReader(raw), name)
	closed := map[string]int{}
	for _, s := range samples[name] {
		closed[string(s.Metric["resource"])] += int(s.Value)
	}
	return closed, err
}

func (j *jobsRun) report(ctx context.Context) (*JobsReport, error) {
	attempts, err := j.readAttempts(ctx)
	if err != nil {
		return nil, err
	}
	pods, ideal := j.asked()
	without, with := workload.Summarize(j.creates[0]), workload.Summarize(j.creates[1])
	x := &JobsReport{
		Scenario: "jobs", Jobs: j.Jobs, Cores: j.Cores, IdealSeconds: round(ideal.Seconds(), 1),
		CreateP50Ms: with.P50, CreateP50MsWithoutQueue: without.P50, Create: with, CreateWithoutQueue: without,
		WatchesClosedOf: map[string]int{}, PodsAsked: pods, Attempts: attempts, Processes: j.processReports(),
		Machine: j.machine(),
	}
	for resource, n := range j.closed[3] {
		if n -= j.closed[1][resource]; n > 0 {
			x.WatchesClosedOf[resource] = n
		}
	}
	x.WatchesClosed = x.WatchesClosedOf["jobs"]
	x.WatchesClosedCreating = j.closed[2]["jobs"] - j.closed[1]["jobs"]
	x.WatchesClosedWithoutQueue = j.closed[1]["jobs"] - j.closed[0]["jobs"]
	for _, p := range x.Processes {
		x.CPUPerJob += p.CPUSeconds / float64(j.Jobs)
	}
	j.seen.summarize(x, j.began)
	return x, errors.Join(j.countRequests(x), j.countEvents(ctx, x))
}

func (s *jobsSeen) summarize(x *JobsReport, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.PodsMade, x.MakespanSeconds = len(s.pods), round(s.lastOver.Sub(began).Seconds(), 1)
	created, resumed := map[int][]time.Duration{}, []time.Duration{}
	for _, job := range s.jobs {
		if !job.bound.IsZero() {
			created[job.pods] = append(created[job.pods], job.bound.Sub(job.created))
			resumed = append(resumed, job.bound.Sub(job.resumed))
		}
	}
	x.ResumedToBound, x.CreatedToBound = workload.Summarize(resumed), map[int]workload.Times{}
	for size, took := range created {
		x.CreatedToBound[size] = workload.Summarize(took)
	}
}

// countRequests counts writes and watches that ended, by the audit log.
func (j *jobsRun) countRequests(x *JobsReport) error {
	all, err := j.audited(j.Jobs)
	if err != nil {
		return err
	}
	x.WritesPerJob, x.EventsPerJob = map[string]float64{}, map[string]float64{}
	for i := range all {
		r := &all[i]
		switch {
		case r.Verb == auditlog.Watch:
			x.WatchesEnded = append(x.WatchesEnded, *r)
			continue
		case r.Resource == "events":
			x.EventsPerJob[r.Who] += r.PerJob
		}
		x.Requests = append(x.Requests, *r)
		x.WritesPerJob[r.Who] += r.PerJob
		x.WritesPerJobTotal += r.PerJob
	}
	return nil
}

// countEvents counts events of Jobs and pods as the API server has them.
func (j *jobsRun) countEvents(ctx context.Context, x *JobsReport) error {
	x.EventReasons = map[string]float64{}
	list, err := j.kube.EventsV1().Events(unitNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		x.EventReasons[reporter(&list.Items[i])+" "+list.Items[i].Reason] += 1 / float64(j.Jobs)
	}
	return nil
}

func reporter(e *eventsv1.Event) string {
	if e.ReportingController != "" {
		return e.ReportingController
	}
	return e.DeprecatedSource.Component
}

// Print writes the report as tables.
func (x *JobsReport) Print(out io.Writer) {
	fmt.Fprintf(out, "\n%d Jobs of 1, 4 and 16 pods, %d cores; %d cores of the machine, load %s\n\n", x.Jobs, x.Cores,
		x.Machine.Cores, x.load())
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "makespan, ideal\t%.1f s, %.1f s\n", x.MakespanSeconds, x.IdealSeconds)
	fmt.Fprintf(t, "create p50 with the queue, without\t%.1f ms, %.1f ms (%.2f ×)\n", x.CreateP50Ms,
		x.CreateP50MsWithoutQueue, over(x.CreateP50Ms, x.CreateP50MsWithoutQueue))
	fmt.Fprintf(t, "create p95 with the queue, without\t%.1f ms, %.1f ms\n", x.Create.P95, x.CreateWithoutQueue.P95)
	fmt.Fprintf(t, "watches of Jobs that the API server closed\t"+
		"%d, of them %d while Jobs were created (%d without a queue)\n",
		x.WatchesClosed, x.WatchesClosedCreating, x.WatchesClosedWithoutQueue)
	fmt.Fprintf(t, "watches that it closed with the queue, by resource\t%v\n", x.WatchesClosedOf)
	fmt.Fprintf(t, "pods made, asked for\t%d, %d\n", x.PodsMade, x.PodsAsked)
	for _, size := range slices.Sorted(maps.Keys(x.CreatedToBound)) {
		m := x.CreatedToBound[size]
		fmt.Fprintf(t, "created to all pods bound, %d pods, p50 / p95\t%.1f / %.1f s\n", size, m.P50/1000, m.P95/1000)
	}
	fmt.Fprintf(t, "resumed to all pods bound, p50 / p95\t%.0f / %.0f ms\n", x.ResumedToBound.P50, x.ResumedToBound.P95)
	fmt.Fprintf(t, "processor time per Job\t%.3f s\n", x.CPUPerJob)
	fmt.Fprintf(t, "attempts to schedule\t%s\n", &x.Attempts)
	fmt.Fprintf(t, "writes per Job\t%.2f\n", x.WritesPerJobTotal)
	for _, who := range slices.Sorted(maps.Keys(x.WritesPerJob)) {
		fmt.Fprintf(t, "  by %s\t%.2f, %.2f of them events\n", who, x.WritesPerJob[who], x.EventsPerJob[who])
	}
	_ = t.Flush()
	fmt.Fprintf(t, "\nevents\tper Job\n")
	for _, reason := range slices.Sorted(maps.Keys(x.EventReasons)) {
		fmt.Fprintf(t, "%s\t%.2f\n", reason, x.EventReasons[reason])
	}
	_ = t.Flush()
	printRequesters(out, x.Requests)
	printRequesters(out, x.WatchesEnded)
	fmt.Fprintln(out)
	printProcesses(out, x.Processes)
}
