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

package screen

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

// Preemptions writes present and former preemptions. The record was read since a time. wide adds columns.
func Preemptions(out io.Writer, found *answers.Preemptions, since time.Time, wide bool) error {
	p := &Writer{out: out}
	p.taking(found, wide)
	if !found.DryRun {
		p.taken(found, wide)
	}
	switch {
	case found.NoRecord != "":
		p.Printf("\nJobs that were preempted and do not wait since then are left out: %s.\n", Clean(found.NoRecord))
	case found.CompleteSince != nil && found.CompleteSince.After(since):
		p.Printf("\nThe record is complete since %s.\n", instant(found.CompleteSince.Time))
	}
	if found.NamesHidden {
		p.Printf("\nJobs of namespaces that you may not list have no name here.\n")
	}
	return p.err
}

func (p *Writer) taking(found *answers.Preemptions, wide bool) {
	none, title, unnamed := "No preemption is in progress.", "In progress:", others
	if found.DryRun {
		none, title, unnamed = "No job of a queue with dryRun would preempt others.", "Without dryRun:", more
	}
	if len(found.Taking) == 0 {
		p.Printf("%s\n", none)
		return
	}
	header := []string{"NAMESPACE", "JOB", "QUEUE", "QUOTA", "VICTIM", "OF QUOTA", "STATE"}
	if wide {
		header = append(header, "ASKS", "OF QUEUE")
	}
	rows := [][]string{header}
	for i := range found.Taking {
		t := &found.Taking[i]
		add := func(victim, quota, state, queue string) {
			row := []string{t.Namespace, t.Job, t.Queue, t.Quota, victim, quota, state}
			if wide {
				row = append(row, t.Asks, queue)
			}
			rows = append(rows, row)
		}
		for j := range t.Victims {
			v := &t.Victims[j]
			add(key(v.Namespace, v.Job), v.Quota, string(v.State), v.Queue)
		}
		if t.Others > 0 {
			add(unnamed(t.Others), "", "", "")
		}
	}
	p.Printf("%s\n", title)
	p.Table(rows)
}

// others are so many victims that have no name.
func others(n int) string { return fmt.Sprintf("(%d of other namespaces, or deleted)", n) }

// more are victims of a dry run that have no name, or are not among the first ones.
func more(n int) string { return fmt.Sprintf("(%d more)", n) }

func (p *Writer) taken(found *answers.Preemptions, wide bool) {
	if len(found.Taken) == 0 {
		p.Printf("\nNo preempted job is known.\n")
		return
	}
	header := []string{"TIME", "NAMESPACE", "JOB", "QUEUE", "QUOTA", "REASON", "BY QUOTA", "EVICTIONS", "STATE"}
	if wide {
		header = append(header, "TAKER", "MESSAGE")
	}
	rows := [][]string{header}
	for i := range found.Taken {
		t := &found.Taken[i]
		evictions := ""
		if t.Evictions > 0 {
			evictions = strconv.FormatInt(t.Evictions, 10)
		}
		row := []string{
			instant(t.Time.Time), t.Namespace, t.Job, t.Queue, t.Quota, t.Reason, t.ByQuota, evictions, string(t.State),
		}
		if wide {
			taker := ""
			if t.Taker != nil {
				taker = key(t.Taker.Namespace, t.Taker.Job)
			}
			row = append(row, taker, t.Message)
		}
		rows = append(rows, row)
	}
	p.Printf("\nPreempted:\n")
	p.Table(rows)
}
