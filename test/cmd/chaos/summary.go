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
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/inspection"
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
	Resumed  int            `json:"auditedResumptions"`
	Torn     int            `json:"tornAuditLines"`
	Kubelets int            `json:"kubeletRestarts"` // of KWOK, which gives up a pod when the store is away
	// Ordered admissions of blocking queues were made at a time at which their order can be judged.
	Ordered    int                 `json:"orderedAdmissions"`
	Unordered  int                 `json:"unorderedAdmissions"`
	Violations []checker.Violation `json:"violations"`
	Problems   []string            `json:"problems,omitempty"` // of the run itself
}

// conclude makes all checks.
func (c *chaos) conclude(ctx context.Context, plan []fault, drained time.Duration) (*summary, error) {
	const patience, quietFor, tries = 2 * time.Minute, 5 * time.Second, 6
	left, err := c.scheduler.Settled(ctx, patience, c.history.left)
	if err != nil {
		return nil, fmt.Errorf("look at what is left: %w", err)
	}
	left = append(left, c.history.quiet(ctx, quietFor, tries)...)
	differs, err := c.scheduler.Audit(ctx, patience, false)
	if err != nil {
		return nil, fmt.Errorf("have the leader compare its state with the API: %w", err)
	}
	caughtUp, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.observer.CaughtUp(caughtUp); err != nil {
		return nil, err
	}
	notes, err := os.Open(c.cp.AuditLog())
	if err != nil {
		return nil, err
	}
	defer func() { _ = notes.Close() }()
	audit, err := checker.ReadWrites(notes,
		checker.Writers{Scheduler: controlplane.SchedulerUser, Controller: controlplane.ControllerUser})
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
	s := &summary{
		Seed: c.seed, Seconds: time.Since(c.begin).Round(100 * time.Millisecond).Seconds(),
		Faults: c.injector.byKind, Planned: len(plan), Skipped: c.injector.skipped, Exits: c.injector.exits,
		Jobs: len(c.users.submitted), Done: j.done, Deleted: j.deleted, Pods: c.users.pods,
		Drained: drained.Round(100 * time.Millisecond).Seconds(), Attempts: j.attempts,
		Events: j.events, Missing: c.observer.Missing(), Ordered: j.ordered, Unordered: j.unordered,
		Bindings: audit.Bindings, Dequeues: audit.Dequeues, Resumed: audit.Resumptions, Torn: audit.Torn,
		Kubelets: c.injector.kwok, Problems: c.injector.problems,
	}
	s.Violations = slices.Concat([]checker.Violation{}, j.violations, audit.Violations, left, differs,
		inspection.Panics(c.cp, schedulerA, schedulerB, controllerA, controllerB))
	return s, nil
}

// explain writes the causes of a failed run for a place where only the output is kept.
func (c *chaos) explain(w io.Writer) {
	const lines, width, before = 25, 400, 12
	for _, name := range []controlplane.Component{
		controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager, controlplane.KWOK,
		schedulerA, schedulerB, controllerA, controllerB,
	} {
		fmt.Fprintf(w, "\n--- end of the log of %s\n", name)
		for line := range strings.Lines(c.cp.LogTail(name, lines)) {
			fmt.Fprintln(w, shorten(strings.TrimRight(line, "\n"), width))
		}
	}
	content, err := os.ReadFile(c.log)
	if err != nil {
		return // the run ended before
	}
	history := strings.Split(string(content), "\n")
	for i, line := range history {
		if strings.HasPrefix(line, violationMark) {
			fmt.Fprintf(w, "\n--- history before a violation\n%s\n", strings.Join(history[max(0, i-before):i+1], "\n"))
		}
	}
	fmt.Fprintf(w, "\nThe same faults and jobs again: bin/jobqueue-chaos --duration=%s --seed=%d --keep\n",
		c.duration, c.seed)
}

func shorten(line string, width int) string {
	if len(line) <= width {
		return line
	}
	return strings.ToValidUTF8(line[:width], "") + "..."
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
	fmt.Fprintf(w, "Jobs: %d submitted, %d ran once to their end, %d deleted by their users; %d plain pods; "+
		"all done %.1fs after the last fault\n",
		s.Jobs, s.Done, s.Deleted, s.Pods, s.Drained)
	fmt.Fprintf(w,
		"Checked: %d states in the order of the store, %d revisions missing; units by number of admissions: %v\n",
		s.Events, s.Missing, s.Attempts)
	fmt.Fprintf(w, "Order: %d admissions of blocking queues judged, %d made too close to a fault\n",
		s.Ordered, s.Unordered)
	fmt.Fprintf(w,
		"Audit log: %d bindings, %d releases and %d resumptions, none twice unless listed below; %d lines cut off\n",
		s.Bindings, s.Dequeues, s.Resumed, s.Torn)
	if s.Kubelets > 0 {
		fmt.Fprintf(w, "KWOK gave up pods while the store was away and was started anew %d times\n", s.Kubelets)
	}
	for _, problem := range s.Problems {
		fmt.Fprintln(w, "Problem of the run:", problem)
	}
	fmt.Fprintf(w, "Violations: %d\n", len(s.Violations))
	for _, v := range s.Violations {
		fmt.Fprintln(w, " ", v)
	}
}
