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

package life

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// lossInWords is a loss in words, times to the minute: a back-off has some chance in it.
func lossInWords(d Loss) string {
	out := []string{string(d.Reason)}
	if !d.RequeueAt.IsZero() {
		out = append(out, fmt.Sprintf("again %s, requeue %d", d.RequeueAt.Sub(start).Truncate(time.Minute), d.Requeues))
	}
	if d.Deactivate != "" {
		out = append(out, fmt.Sprintf("inactive for %s", d.Deactivate))
	}
	if d.Executed != 0 {
		out = append(out, fmt.Sprintf("ran %s", d.Executed))
	}
	return strings.Join(out, ", ")
}

// TestLoss covers back-off, deactivation and the remembered execution time of a unit that loses its quota.
func TestLoss(t *testing.T) {
	answer := func(f *Facts) (string, string) {
		d := LossOf(f)
		return lossInWords(d), d.Message
	}
	late := func(f *Facts) { f.havePods(0, 0); f.Now = at(5 * time.Minute) }
	hour := func(f *Facts) {
		f.Now, f.Unit.MaximumExecution, f.Unit.Executed = at(20*time.Minute), time.Hour, 10*time.Minute
		f.Unit.RanSince = f.Unit.Admitted
		f.Unit.Phase, f.Unit.Active = unit.PhaseRunning, false
	}
	check(t, admitted, answer, []row{
		{"keeps it", nil, "", ""},
		{"a rule is broken", func(f *Facts) { f.Unit.Active = false }, "Inactive", ""},
		{"before a time-out", func(f *Facts) { late(f); f.Unit.Active = false }, "Inactive", ""},
		{"timed out", late, "IdleReservation, again 6m0s, requeue 1", ""},
		{"once more, for longer", func(f *Facts) { late(f); f.Unit.Requeues = 1 },
			"IdleReservation, again 7m0s, requeue 2", ""},
		{"as often as the queue allows", func(f *Facts) { late(f); f.Unit.Requeues, f.Queue.MostEvictions = 1, 2 },
			"IdleReservation, inactive for RequeueLimitReached", "2 times in a row"},
		{"not yet that often", func(f *Facts) { late(f); f.Queue.MostEvictions = 2 },
			"IdleReservation, again 6m0s, requeue 1", ""},
		{"quarantined", func(f *Facts) { late(f); f.Unit.Quarantined = true }, "", ""},

		{"ran as long as it may", func(f *Facts) { hour(f); f.Unit.Active, f.Now = true, at(50*time.Minute) },
			"MaximumExecutionTimeExceeded, inactive for MaximumExecutionTimeExceeded", "1h0m0s"},
		{"what it ran counts on", hour, "Inactive, ran 30m0s", ""},
		{"from when its pods were ready", func(f *Facts) { hour(f); f.Unit.RanSince = at(15 * time.Minute) },
			"Inactive, ran 15m0s", ""},
		{"they never were", func(f *Facts) { hour(f); f.Unit.RanSince = time.Time{} }, "Inactive, ran 10m0s", ""},
		{"they never were, and its queue bounds it", func(f *Facts) {
			hour(f)
			f.Unit.RanSince, f.Queue.Execution.Most = time.Time{}, 2*time.Hour
		}, "Inactive, ran 30m0s", ""},
		{"it did not begin to", func(f *Facts) { hour(f); f.Unit.Phase = unit.PhaseSchedReady },
			"Inactive, ran 10m0s", ""},
		{"its clock was ahead", func(f *Facts) { hour(f); f.Now = at(-time.Minute) }, "Inactive, ran 10m0s", ""},
		{"no time bounds it", func(f *Facts) { hour(f); f.Unit.MaximumExecution = 0 }, "Inactive", ""},
		{"it holds nothing", func(f *Facts) { hour(f); f.Holds = false }, "Inactive", ""},
		{"nobody knows since when", func(f *Facts) { hour(f); f.Unit.Admitted = time.Time{} }, "Inactive", ""},
	})
	check(t, reserved, answer, []row{
		{"a check rejects it", func(f *Facts) { f.answers(unit.CheckRejected) },
			"CheckRejected, inactive for CheckRejected", ""},
		{"a check has it tried again", func(f *Facts) { f.answers(unit.CheckRetry) },
			"CheckRetry, again 1m0s, requeue 1", ""},
		{"the longest that one asks for", func(f *Facts) {
			f.answers(unit.CheckRetry, unit.CheckRetry)
			f.Unit.Checks.Answers[0].RetryAfter, f.Unit.Checks.Answers[1].RetryAfter = time.Hour, time.Minute
		}, "CheckRetry, again 1h0m0s, requeue 1", ""},
		{"the same of a check that takes its answer back", func(f *Facts) {
			f.answers(unit.CheckRetry, unit.CheckRetry)
			f.Unit.Checks.Answers[0].RetryAfter, f.Unit.Checks.Answers[1].RetryAfter = time.Hour, time.Minute
			f.Unit.Phase = unit.PhaseDequeued
		}, "CheckRetry, again 1h0m0s, requeue 1", ""},
		{"which may reject it", func(f *Facts) {
			f.answers(unit.CheckRejected)
			f.Unit.Phase = unit.PhaseDequeued
		}, "CheckRejected, inactive for CheckRejected", ""},
		{"checks contradict each other", func(f *Facts) {
			f.answers(unit.CheckReady, unit.CheckReady)
			f.Unit.Checks.Conflict = "x"
		}, "CheckConflict, again 1m0s, requeue 1", ""},
		{"checks are asked anew, without a back-off", func(f *Facts) { f.QueueKnown = false }, "ChecksChanged", ""},
		{"a rule is before checks", func(f *Facts) { f.answers(unit.CheckRejected); f.Job = owner.Gone },
			"ConsumerNotFound", ""},
		{"a check did not answer", func(f *Facts) { f.Now = at(time.Minute) }, "CheckTimeout, again 2m0s, requeue 1", ""},
	})
}
