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

package results

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/whatif"
)

// mostMoved is how many jobs have a row, unless all are asked for; mostFirst how many queues say who is first in line.
const mostMoved, mostFirst = 40, 10

// WhatIf writes what changes: a row for each job that starts at another time, and one for each queue.
func WhatIf(out io.Writer, r *whatif.Report, all bool) error {
	p := screen.NewWriter(out)
	horizon := time.Duration(r.HorizonSeconds) * time.Second
	p.Printf("From %s on, for %s. No other jobs arrive in this time.\n", r.AsOf.UTC().Format(time.RFC3339), human(horizon))
	p.Printf("Run times: the median of past runs like them for %s, the time limit for %d.\n", jobs(r.RunTimes.Past),
		r.RunTimes.Limits)
	if n := r.RunTimes.Endless; n > 0 {
		p.Printf("Never ends here, without limit and past runs: %s.\n", jobs(n))
	}
	if r.Extended {
		p.Printf("The scheduler has policies, or an order of queues, of its own. They are not compared.\n")
	}
	if shown := upTo(mostMoved, r.Jobs, all); len(shown) > 0 {
		rows := [][]string{{"JOB", "QUEUE", "QUOTA", "BEFORE", "AFTER"}}
		for i := range shown {
			j := &shown[i]
			before := "new"
			if j.Before != nil {
				before = fate(j.Before, horizon)
			}
			rows = append(rows, []string{j.Namespace + "/" + j.Name, j.Queue, j.Quota, before, fate(&j.After, horizon)})
		}
		p.Printf("\n")
		p.Table(rows)
		more(p, len(r.Jobs)-len(shown))
	}
	p.Printf("\nUnchanged: %s.\n", jobs(r.Unchanged))
	if e := r.Evictions; e.Before+e.After > 0 {
		p.Printf("Evictions: %d before, %d after.\n", e.Before, e.After)
	}
	first(p, r, all)
	if len(r.Queues) > 0 {
		rows, late := sums(r)
		p.Printf("\nWaits from now on, of jobs that start:\n")
		p.Table(rows)
		if late {
			p.Printf("A job that starts later than in %[1]s counts as waiting %[1]s.\n", human(horizon))
		}
	}
	return p.Err()
}

// first writes who waits at the front of each queue after the change, and why.
func first(p *screen.Writer, r *whatif.Report, all bool) {
	shown := upTo(mostFirst, r.First, all)
	if len(shown) == 0 {
		return
	}
	rows := [][]string{{"QUEUE", "JOB", "WHY IT WAITS"}}
	for _, w := range shown {
		rows = append(rows, []string{w.Queue, w.Namespace + "/" + w.Name, w.Message})
	}
	p.Printf("\nFirst in line after the change:\n")
	p.Table(rows)
	more(p, len(r.First)-len(shown))
}

// upTo are the first rows, or all.
func upTo[T any](most int, rows []T, all bool) []T {
	if all {
		return rows
	}
	return rows[:min(len(rows), most)]
}

// more says how many rows are left out.
func more(p *screen.Writer, n int) {
	if n > 0 {
		p.Printf("  and %d more: --all shows them\n", n)
	}
}

// sums has the waits of each queue. late says whether some jobs start after the end.
func sums(r *whatif.Report) (rows [][]string, late bool) {
	rows = [][]string{{
		"QUEUE", "JOBS", "MEAN BEFORE", "MEAN AFTER", "LONGEST BEFORE", "LONGEST AFTER", "LATER BEFORE", "LATER AFTER",
	}}
	seconds := func(n int64) string { return human(time.Duration(n) * time.Second) }
	for i := range r.Queues {
		q := &r.Queues[i]
		late = late || q.NotStarted.Before+q.NotStarted.After > 0
		rows = append(rows, []string{
			q.Name, fmt.Sprint(q.Jobs), seconds(q.MeanSeconds.Before), seconds(q.MeanSeconds.After),
			seconds(q.LongestSeconds.Before), seconds(q.LongestSeconds.After), fmt.Sprint(q.NotStarted.Before),
			fmt.Sprint(q.NotStarted.After),
		})
	}
	if !late {
		for i := range rows {
			rows[i] = rows[i][:6]
		}
	}
	return rows, late
}

// fate of a job in words.
func fate(f *whatif.Fate, horizon time.Duration) string {
	text := ""
	switch {
	case f.Holds && f.EvictedSeconds == nil:
		return "keeps its quota"
	case f.Holds && *f.EvictedSeconds == 0:
		text = "evicted now, starts "
	case f.Holds:
		text = "evicted in " + human(time.Duration(*f.EvictedSeconds)*time.Second) + ", starts "
	}
	switch {
	case f.StartSeconds == nil:
		return text + "later than in " + human(horizon)
	case *f.StartSeconds == 0:
		return text + "now"
	}
	return text + "in " + human(time.Duration(*f.StartSeconds)*time.Second)
}

func human(d time.Duration) string { return duration.HumanDuration(d) }

func jobs(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// WhatIfProgress says how far a comparison is.
func WhatIfProgress(out io.Writer, changed bool, reached, horizon, passed time.Duration) {
	world := "before the change"
	if changed {
		world = "after the change"
	}
	fmt.Fprintf(out, "%s: %s of %s after %.0f s\n", world, human(min(reached, horizon)), human(horizon), passed.Seconds())
}
