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

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/checker"
)

// summary is the result of a run.
type summary struct {
	Seed     uint64         `json:"seed"`
	Seconds  float64        `json:"seconds"`
	Faults   map[string]int `json:"faults"`
	Planned  int            `json:"planned"`
	Skipped  int            `json:"skipped"`
	Exits    map[string]int `json:"exits"` // processes that ended by themselves, and were started again
	Jobs     int            `json:"jobs"`
	Done     int            `json:"done"`
	Deleted  int            `json:"deleted"`
	Pods     int            `json:"plainPods"`
	Drained  float64        `json:"drainedSeconds"` // from the last fault until all was done
	Attempts map[int64]int  `json:"attempts"`       // units by the number of their admissions
	Events   int            `json:"events"`         // states of quotas, units, pods and jobs that were checked
	Missing  int64          `json:"missingRevisions"`
	Bindings int            `json:"auditedBindings"`
	Dequeues int            `json:"auditedDequeues"`
	Torn     int            `json:"tornAuditLines"`
	// Ordered admissions of blocking queues were made at a time at which their order can be judged.
	Ordered    int                 `json:"orderedAdmissions"`
	Unordered  int                 `json:"unorderedAdmissions"`
	Violations []checker.Violation `json:"violations"`
	Problems   []string            `json:"problems,omitempty"` // of the run itself
}

// conclude makes all checks.
func (c *chaos) conclude(ctx context.Context, plan []fault, drained time.Duration) (*summary, error) {
	const patience, quietFor = 60 * time.Second, 5 * time.Second
	left, err := c.after.settled(ctx, patience)
	if err != nil {
		return nil, fmt.Errorf("look at what is left: %w", err)
	}
	left = append(left, quiet(ctx, c.history, quietFor)...)
	auditCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	differs, err := c.after.audit(auditCtx)
	if err != nil {
		return nil, fmt.Errorf("have the leader compare its state with the API: %w", err)
	}
	if err := c.history.caughtUp(auditCtx); err != nil {
		return nil, err
	}
	audit, err := readAudit(c.audit)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	c.injector.mu.Lock()
	defer c.injector.mu.Unlock()
	for _, o := range c.injector.outages {
		fmt.Fprintf(log, "%s until %s: %s\n", o.begin.Format("15:04:05.000"), o.end.Format("15:04:05.000"), o.component)
	}
	j := c.history.judge(c.users.submitted, c.users.deleted, c.injector.outages, log)
	if j.missing > 0 {
		return nil, fmt.Errorf("%d revisions of the store are missing in the history", j.missing)
	}
	s := &summary{
		Seed: c.seed, Seconds: time.Since(c.begin).Round(100 * time.Millisecond).Seconds(),
		Faults: c.injector.byKind, Planned: len(plan), Skipped: c.injector.skipped, Exits: c.injector.exits,
		Jobs: len(c.users.submitted), Done: j.done, Deleted: j.deleted, Pods: c.users.pods,
		Drained: drained.Round(100 * time.Millisecond).Seconds(), Attempts: j.attempts,
		Events: j.events, Missing: j.missing, Ordered: j.ordered, Unordered: j.unordered,
		Bindings: audit.Bindings, Dequeues: audit.Dequeues, Torn: audit.Torn,
		Problems: c.injector.problems,
	}
	s.Violations = slices.Concat([]checker.Violation{}, j.violations, audit.violations, left, differs, panics(c.cp))
	return s, nil
}

func sum(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

// print writes the summary for a person.
func (s *summary) print(w io.Writer) {
	fmt.Fprintf(w, "\nSeed %d, %.0f seconds: %d faults (%d planned, %d skipped as their process was not back yet)\n",
		s.Seed, s.Seconds, sum(s.Faults), s.Planned, s.Skipped)
	for _, name := range slices.Sorted(maps.Keys(s.Faults)) {
		fmt.Fprintf(w, "  %4d  %s\n", s.Faults[name], name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Exits)) {
		fmt.Fprintf(w, "  %4d  %s ended by itself and was started again\n", s.Exits[name], name)
	}
	fmt.Fprintf(w, "Jobs: %d submitted, %d ran once to their end, %d deleted by their users; %d plain pods; all done %.1fs after the last fault\n",
		s.Jobs, s.Done, s.Deleted, s.Pods, s.Drained)
	fmt.Fprintf(w, "Checked: %d states in the order of the store, %d revisions missing; units by number of admissions: %v\n",
		s.Events, s.Missing, s.Attempts)
	fmt.Fprintf(w, "Order: %d admissions of blocking queues judged, %d made too close to a fault\n", s.Ordered, s.Unordered)
	fmt.Fprintf(w, "Audit log: %d bindings and %d releases, none twice unless listed below; %d lines cut off\n", s.Bindings, s.Dequeues, s.Torn)
	for _, problem := range s.Problems {
		fmt.Fprintln(w, "Problem of the run:", problem)
	}
	fmt.Fprintf(w, "Violations: %d\n", len(s.Violations))
	for _, v := range s.Violations {
		fmt.Fprintln(w, " ", v)
	}
}
