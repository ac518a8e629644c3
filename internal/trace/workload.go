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

// Package trace has workloads: jobs with their times of submission, run times and sizes. It reads them from traces in
// the Standard Workload Format and from Batsim's JSON, and makes them by the model of Lublin and Feitelson.
package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// MaxJobs is the greatest number of jobs of a workload.
	MaxJobs = 1_000_000
	// MaxProcessors is the greatest number of processors.
	MaxProcessors = 1 << 30
	// maxSeconds is the greatest time in a trace: a hundred years.
	maxSeconds = 100 * 365 * 24 * 3600
)

// Job is a job that runs on a fixed number of processors for a fixed time.
type Job struct {
	ID     string
	Submit time.Duration // since an origin that all jobs of a workload share
	Run    time.Duration
	Limit  time.Duration // time limit; 0 if the job has none, else at least Run
	Size   int64         // number of processors
	User   string        // "" if unknown, as Group and Queue
	Group  string
	Queue  string
}

// Believed is the run time that a scheduler believes: the limit, or the run time of a job without a limit.
func (j *Job) Believed() time.Duration {
	if j.Limit > 0 {
		return j.Limit
	}
	return j.Run
}

// Workload is jobs for a machine. The jobs are in the order of submission, and each has between 1 and all Processors.
type Workload struct {
	Processors int64
	Jobs       []Job
}

// Sort puts the jobs into the order of submission. Jobs of one time keep their order.
func (w *Workload) Sort() {
	slices.SortStableFunc(w.Jobs, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
}

// Changes counts what Read did to the jobs of a trace.
type Changes struct {
	NoSubmit, NoRun, NoSize, TooLarge int // jobs that were left out
	Cut                               int // jobs whose run time was cut to their limit
}

// LeftOut is the number of jobs that were left out.
func (c *Changes) LeftOut() int { return c.NoSubmit + c.NoRun + c.NoSize + c.TooLarge }

// String says the changes in a sentence, "" if there are none.
func (c *Changes) String() string {
	var why []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{c.NoSubmit, "without a time of submission"},
		{c.NoRun, "without a run time"},
		{c.NoSize, "without a size"},
		{c.TooLarge, "larger than the machine"},
	} {
		if part.n > 0 {
			why = append(why, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	var says []string
	if len(why) > 0 {
		says = append(says, fmt.Sprintf("Jobs left out: %d (%s).", c.LeftOut(), strings.Join(why, ", ")))
	}
	if c.Cut > 0 {
		says = append(says, fmt.Sprintf("Run times cut to the limit of the job: %d.", c.Cut))
	}
	return strings.Join(says, " ")
}

// workload makes a workload of the jobs of a trace. Unknown numbers of a job are 0, or negative.
func workload(jobs []Job, processors int64) (*Workload, Changes, error) {
	var changes Changes
	if processors <= 0 {
		return nil, changes, errors.New("the trace does not say how many processors the machine has: " +
			"give their number with --procs")
	}
	w := &Workload{Processors: processors, Jobs: make([]Job, 0, len(jobs))}
	for _, j := range jobs {
		switch {
		case j.Submit < 0:
			changes.NoSubmit++
		case j.Run <= 0:
			changes.NoRun++
		case j.Size <= 0:
			changes.NoSize++
		case j.Size > processors:
			changes.TooLarge++
		default:
			j.Limit = max(j.Limit, 0)
			if j.Limit > 0 && j.Run > j.Limit {
				j.Run = j.Limit
				changes.Cut++
			}
			w.Jobs = append(w.Jobs, j)
		}
	}
	if len(w.Jobs) == 0 {
		return nil, changes, errors.New(strings.TrimSpace("the trace has no job to replay. " + changes.String()))
	}
	w.Sort()
	return w, changes, nil
}

// seconds is a time of a trace.
func seconds(s float64) (time.Duration, error) {
	if !(s >= -maxSeconds && s <= maxSeconds) { // no comparison with NaN holds
		return 0, fmt.Errorf("%v s is more than a hundred years", s)
	}
	return time.Duration(s * float64(time.Second)), nil
}
