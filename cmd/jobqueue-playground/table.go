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
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/cases"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

// board is what the table shows at one moment.
type board struct {
	elapsed                 time.Duration
	total, submitted, ended int
	pods, peak              int
	violations              []checker.Violation
	queues                  []queueRow
	kinds                   []kindCount
	// of a scenario of cases: where its jobs are, and the use of its quotas.
	cases []cases.Count
	bars  []quotaBar
}

// kindCount is how many jobs of a kind wait, hold quota and have ended.
type kindCount struct {
	kind                   string
	waiting, running, done int
}

type queueRow struct {
	name, policy                     string
	pending, admitted, running, done int
	quotas                           []quotaBar
	waiting                          []waitingUnit
}

// quotaBar is the use of one quota, in cores, or in cards if it has some.
type quotaBar struct {
	name string
	// used by bound pods, promised to admitted units in addition to that, of max.
	used, promised, max float64
}

type waitingUnit struct {
	position int
	name     string
	priority int32
	pods     int
	cores    float64
	waits    time.Duration
	reason   string
}

const shownWaiting = 3

// board collects the contents of the table. places has the order and the reasons of pending units, by queue. For a
// queue without places, the status of the Queue and the conditions of the units count.
func (v *view) board(now time.Time, places map[string][]place) board {
	v.mu.Lock()
	defer v.mu.Unlock()
	b := board{submitted: len(v.sent)}
	for uid := range v.sent {
		if job := v.checks.Job(uid); job.Complete || job.Failed {
			b.ended++
		}
	}
	standing := v.checks.Standing()
	b.pods, b.peak = standing.Waiting+standing.Running, v.checks.PeakPods()
	if v.stories != nil {
		b.ended, b.cases = v.stories.Ended(), v.stories.Counts()
		for _, quota := range v.stories.Quotas {
			b.bars = append(b.bars, v.use(quota))
		}
		return b
	}
	for _, queue := range queueNames() {
		b.queues = append(b.queues, v.row(queue, now, places[queue]))
	}
	b.kinds = v.kindCounts()
	return b
}

func (v *view) kindCounts() (counts []kindCount) {
	for _, kind := range v.mixed {
		count := kindCount{kind: kind.Kind}
		for uid, of := range v.kinds {
			job := v.checks.Job(uid)
			switch {
			case of != kind.Kind:
			case job.Complete || job.Failed:
				count.done++
			case v.checks.UnitFor(uid).Admitted:
				count.running++
			default:
				count.waiting++
			}
		}
		counts = append(counts, count)
	}
	return counts
}

func (v *view) row(queue string, now time.Time, places []place) queueRow {
	row := queueRow{name: queue}
	if q := v.queues[queue]; q != nil {
		row.policy = string(q.Spec.QueuePolicy)
		if len(places) == 0 {
			places = statusPlaces(q)
		}
	}
	byKey := map[string]checker.Unit{}
	for qu := range v.checks.Units() {
		if qu.Queue != queue {
			continue
		}
		switch {
		case qu.Admitted:
			row.admitted++
			if qu.Phase == unit.PhaseRunning {
				row.running++
			}
		case qu.Phase.Terminal():
			row.done++
		default:
			row.pending++
			byKey[qu.Key] = qu
		}
	}
	for _, level := range quotaLevels()[queue] {
		row.quotas = append(row.quotas, v.use(level))
	}
	for _, p := range places {
		qu, ok := byKey[p.key]
		if !ok || len(row.waiting) == shownWaiting {
			continue // its admission has been seen here already
		}
		row.waiting = append(row.waiting, waitingUnit{
			position: p.position,
			name:     name(cmp.Or(v.names[qu.Job], p.key)), // units of other kinds have names of their own
			priority: qu.Priority,
			pods:     v.checks.Job(qu.Job).Pods,
			cores:    float64(qu.Request["cpu"]) / 1000,
			waits:    now.Sub(qu.Created),
			reason:   v.explain(p, qu),
		})
	}
	return row
}

// explain says why a unit is pending, from its place or else its object. For a shortage it names the limit and the
// missing amount.
func (v *view) explain(p place, qu checker.Unit) string {
	reason, message := cmp.Or(p.reason, qu.Reason), cmp.Or(p.message, qu.Message)
	if reason == string(unit.ReasonQuotaExceeded) {
		message = cmp.Or(v.missing(qu), message)
	}
	switch {
	case reason == "" || reason == "Pending":
		return "waits for the units ahead"
	case message == "":
		return reason
	default:
		return reason + ": " + message
	}
}

// missing names the lowest level of quotas that has too few cores free for a unit; empty if each has enough.
func (v *view) missing(qu checker.Unit) string {
	if qu.Quota == gpuQuota {
		return "" // cores are not short
	}
	asks := float64(qu.Request["cpu"]) / 1000
	for level := range v.checks.Levels(qu.Quota) {
		q := v.use(level)
		if free := max(0, q.max-q.used-q.promised); q.max > 0 && asks > free {
			return fmt.Sprintf("%s has %.1f of %.0f cores free, %.1f are missing", level, free, q.max, asks-free)
		}
	}
	return ""
}

// place is the place of a unit in its queue, and why it waits if that is known.
type place struct {
	position        int
	key             string
	reason, message string
}

// statusPlaces reads places from the status of a Queue, which is some seconds old.
func statusPlaces(q *v1alpha1.Queue) []place {
	var places []place
	for _, item := range q.Status.QueueItemDetails[v1alpha1.QueueItemsActiveKey] {
		places = append(places, place{position: int(item.Position), key: item.Namespace + "/" + item.Name})
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.position, b.position) })
	return places
}

// use of a quota in cores, or in cards, with all levels below it.
func (v *view) use(quota string) quotaBar {
	resource := "cpu"
	if quota == gpuQuota {
		resource = cardName
	}
	used, promised, most := v.checks.Use(quota, resource) // thousandths
	return quotaBar{quota, float64(used) / 1000, float64(promised) / 1000, float64(most) / 1000}
}

func (b board) lines(s screen.Screen) []string {
	state := s.Style("32", "no violation")
	if n := len(b.violations); n > 0 {
		state = s.Style("31;1", fmt.Sprintf("VIOLATIONS %d, the last: %s", n, b.violations[n-1]))
	}
	lines := []string{
		fmt.Sprintf("%s  submitted %d/%d  done %d  pods now %d, peak %d  %s",
			s.Bold(fmt.Sprintf("%4s", b.elapsed.Round(time.Second))), b.submitted, b.total, b.ended, b.pods, b.peak, state),
	}
	if len(b.cases) > 0 {
		for _, bar := range b.bars {
			lines = append(lines, bar.line(s))
		}
		return append(lines, cases.Lines(s, b.cases)...)
	}
	lines = append(lines,
		s.Style("2", fmt.Sprintf("%-14s %-9s %7s %8s %7s %5s  %s", "QUEUE", "POLICY", "PENDING", "ADMITTED", "RUNNING",
			"DONE", "QUOTA (cores; gpus: whole cards)")))
	for _, row := range b.queues {
		lines = append(lines, row.lines(s)...)
	}
	return append(lines, kindLines(s, b.kinds)...)
}

// kindLines are as few lines as the kinds fit into.
func kindLines(s screen.Screen, counts []kindCount) []string {
	const perLine = 4
	var lines []string
	for group := range slices.Chunk(counts, perLine) {
		line := ""
		for _, c := range group {
			line += fmt.Sprintf("%-27s", fmt.Sprintf("%s %d/%d/%d", c.kind, c.waiting, c.running, c.done))
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	if len(lines) > 0 {
		lines = slices.Insert(lines, 0, s.Style("2", "KIND waiting/admitted/done"))
	}
	return lines
}

func (r queueRow) lines(s screen.Screen) []string {
	head := fmt.Sprintf("%s %-9s %7d %8d %7d %5d  ", s.Bold(fmt.Sprintf("%-14s", r.name)), r.policy, r.pending,
		r.admitted, r.running, r.done)
	const indent = 57
	var lines []string
	for i, quota := range r.quotas {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		lines = append(lines, head+quota.line(s))
	}
	for i := range shownWaiting {
		line := ""
		if i < len(r.waiting) {
			line = r.waiting[i].line()
		}
		// Three lines always, so that the table does not jump.
		if line != "" || s.Terminal {
			lines = append(lines, line)
		}
	}
	return lines
}

func (q quotaBar) line(s screen.Screen) string {
	const width = 24
	cells := func(cores float64) int {
		if q.max <= 0 {
			return 0
		}
		return int(cores/q.max*width + 0.5)
	}
	used := min(width, cells(q.used))
	promised := min(width-used, cells(q.used+q.promised)-used)
	bar := s.Style("36", strings.Repeat("#", used)) + strings.Repeat("+", promised) +
		strings.Repeat(".", width-used-promised)
	return fmt.Sprintf("[%s] %4.1f of %-3.0f %s", bar, q.used+q.promised, q.max, q.name)
}

func (w waitingUnit) line() string {
	return fmt.Sprintf("  %3d. %-18s prio %-4d %d x %.1f cpu %3.0fs  %s",
		w.position, w.name, w.priority, w.pods, w.cores/float64(max(1, w.pods)), w.waits.Seconds(), w.reason)
}

// summary is the last word of the demo.
func summary(s screen.Screen, v verdict) []string {
	done := fmt.Sprintf("%d of %d, lost %d", v.done, v.submitted-v.refused, v.submitted-v.refused-v.done)
	if v.refused > 0 {
		done += fmt.Sprintf("; %d more were to be rejected", v.refused)
	}
	lines := []string{
		"",
		s.Bold("Summary"),
		"  jobs done        " + done,
		fmt.Sprintf("  violations       %d (quota on every level, order in blocking queues, admission before binding, "+
			"each job once; %d events)", len(v.violations), v.events),
		fmt.Sprintf("  peak pods        %d at once, for %d jobs that have %d pods: "+
			"without a queue all of those would exist at once", v.peak, v.submitted, v.allPods),
		fmt.Sprintf("  time             %s", v.took.Round(time.Second)),
	}
	if v.forecasts != "" {
		lines = append(lines, "  forecasts        "+v.forecasts)
	}
	lines = append(lines, kindTable(s, v.kinds)...)
	lines = append(lines, v.cases.Lines(s)...)
	for _, queue := range queueNames() {
		if len(v.cases.Cases) > 0 {
			break // cases have other queues
		}
		waits := v.waits[queue]
		lines = append(lines,
			fmt.Sprintf("  wait, %-14s p50 %5.1fs  p95 %5.1fs  (%d jobs, from submission to the sight of the admission)",
				queue, percentile(waits, 50).Seconds(), percentile(waits, 95).Seconds(), len(waits)))
	}
	const most = 20
	for i, violation := range v.violations {
		if i == most {
			lines = append(lines, fmt.Sprintf("  ... and %d more", len(v.violations)-most))
			break
		}
		lines = append(lines, "  "+s.Style("31", violation.String()))
	}
	return lines
}

// kindTable has a line for each kind and queue: the number of jobs, of finished jobs, and the wait for admission.
func kindTable(s screen.Screen, kinds []kindResult) []string {
	if len(kinds) == 0 {
		return nil
	}
	head := fmt.Sprintf("  %-17s %5s %5s %9s %7s", "KIND", "JOBS", "DONE", "WAIT p50", "p95")
	for _, queue := range queueNames() {
		head += fmt.Sprintf("  %14s", queue)
	}
	lines := []string{"", s.Style("2", head+"  OPERATOR")}
	for _, kind := range kinds {
		line := fmt.Sprintf("  %-17s %5d %5d %8.1fs %6.1fs", kind.Kind, kind.submitted, kind.done,
			percentile(kind.waits, 50).Seconds(), percentile(kind.waits, 95).Seconds())
		for _, queue := range queueNames() {
			line += fmt.Sprintf("  %14s", countAndWait(kind.queues[queue]))
		}
		operator := string(kind.operator)
		if kind.played() {
			operator = "played by a stand-in"
		}
		lines = append(lines, line+"  "+operator)
	}
	return append(lines, "  (below a queue: how many of these jobs it had, and p50 of their wait)", "")
}

func countAndWait(waits []time.Duration) string {
	if len(waits) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d  %5.1fs", len(waits), percentile(waits, 50).Seconds())
}

type verdict struct {
	done, submitted, peak, allPods, events int
	refused                                int // jobs that are to be rejected
	violations                             []checker.Violation
	waits                                  map[string][]time.Duration
	took                                   time.Duration
	kinds                                  []kindResult  // of a mixed workload
	cases                                  cases.Verdict // of a scenario of cases
	forecasts                              string        // how good they were
}

// once says whether each job that may run has run to its end exactly once.
func (v *verdict) once() bool {
	again := slices.ContainsFunc(v.violations, func(x checker.Violation) bool { return x.Rule == checker.RanTwice })
	return v.done == v.submitted-v.refused && !again
}

func (v *verdict) err() error {
	var err error
	if !v.once() || len(v.violations) > 0 {
		err = fmt.Errorf("%d of %d jobs done, %d violations", v.done, v.submitted-v.refused, len(v.violations))
	}
	return errors.Join(err, v.cases.Err())
}

// percentile of sorted durations, by nearest rank; 0 if there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(0, rank-1)]
}
