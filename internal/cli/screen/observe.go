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
	"cmp"
	"io"
	"strconv"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

// Observed writes what the queue would have done about observed jobs since a time.
func Observed(out io.Writer, found *answers.Observed, since time.Time) error {
	p := &Writer{out: out}
	p.Printf("Observed jobs since %s: %d. Jobs that would have waited: %d.\n", instant(since), found.Jobs,
		len(found.Waiting))
	if len(found.Waiting) > 0 {
		rows := [][]string{{"NAMESPACE", "JOB", "QUEUE", "QUOTA", "ASKS", "PODS", "WAIT", "REASON", "OUTCOME"}}
		pods := int64(0)
		for i := range found.Waiting {
			j := &found.Waiting[i]
			number := ""
			if pods += j.Pods; j.Pods > 0 {
				number = strconv.FormatInt(j.Pods, 10)
			}
			rows = append(rows, []string{
				j.Namespace, j.Job, j.Queue, j.Quota, cmp.Or(j.Asks, amounts(j.Requested)), number, span(&j.Waited),
				j.Reason, string(j.Outcome),
			})
		}
		p.Printf("\nWould have waited:\n")
		p.Table(rows)
		p.Printf("\nPods of these jobs that would not have run until then: %d.\n", pods)
	}
	p.wouldPreempt(found)
	switch {
	case found.NoRecord != "":
		p.Printf("\nJobs that were deleted are left out: %s.\n", Clean(found.NoRecord))
	case found.CompleteSince != nil && found.CompleteSince.After(since):
		p.Printf("\nThe record is complete since %s.\n", instant(found.CompleteSince.Time))
	}
	return p.err
}

func (p *Writer) wouldPreempt(found *answers.Observed) {
	if found.NoDryRun != "" {
		p.Printf("\nJobs that would be preempted are not known: %s.\n", Clean(found.NoDryRun))
	}
	if len(found.Taking) == 0 {
		return
	}
	p.Printf("\nWould preempt now:\n")
	rows := [][]string{{"NAMESPACE", "JOB", "QUOTA", "VICTIM", "OF QUOTA"}}
	for i := range found.Taking {
		t := &found.Taking[i]
		for j := range t.Victims {
			v := &t.Victims[j]
			rows = append(rows, []string{t.Namespace, t.Job, t.Quota, key(v.Namespace, v.Job), v.Quota})
		}
		if t.Others > 0 {
			rows = append(rows, []string{t.Namespace, t.Job, t.Quota, more(t.Others), ""})
		}
	}
	p.Table(rows)
}
