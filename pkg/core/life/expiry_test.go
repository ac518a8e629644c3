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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// When a unit loses its reservation if nothing happens until then, and why. The place has the time, the loss at that
// time the reason; nothing is lost the moment before.
func TestExpiry(t *testing.T) {
	answer := func(f *Facts) (string, string) {
		p := ClassifyAdmitted(f)
		if p.Again.IsZero() {
			return "never", ""
		}
		again := p.Again
		f.Now = again.Add(-1)
		require.Empty(t, LossOf(f).Reason)
		f.Now = again
		d := LossOf(f)
		return fmt.Sprintf("%s %s", after(again), d.Reason), d.Message
	}
	ready := func(f *Facts) {
		f.Queue.Timeouts = &queue.Timeouts{PodsReady: 20 * time.Minute, Recovery: 15 * time.Minute}
	}
	noPods := func(f *Facts) { f.havePods(0, 0) }
	unwatched := func(f *Facts) {
		noPods(f)
		f.Unit.ConsumerManaged, f.Queue.HeartbeatTimeout = false, time.Minute
	}
	execution := func(own, byDefault, most time.Duration) func(*Facts) {
		return func(f *Facts) {
			f.Unit.MaximumExecution, f.Queue.Execution = own, queue.ExecutionTimes{Default: byDefault, Most: most}
			f.Unit.RanSince = f.Unit.Admitted
		}
	}
	ranNever := func(f *Facts) { f.Unit.RanSince = time.Time{} }
	begun := func(after time.Duration) func(*Facts) { return func(f *Facts) { f.Config.Begun = at(after) } }
	both := func(a, b func(*Facts)) func(*Facts) { return func(f *Facts) { a(f); b(f) } }

	check(t, admitted, answer, []row{
		{"pods on nodes", nil, "never", ""},
		{"no pods", noPods, "5m0s IdleReservation", "no pod within 5m0s"},
		{"no pod on a node", func(f *Facts) { f.havePods(4, 0) }, "10m0s Unschedulable", "on a node within 10m0s"},
		{"from when its last pod left", func(f *Facts) { noPods(f); f.Left = at(time.Hour) }, "1h5m0s IdleReservation", ""},
		{"the queue has times of its own", both(noPods, func(f *Facts) {
			f.Queue.Timeouts = &queue.Timeouts{Idle: time.Minute}
		}), "1m0s IdleReservation", ""},
		{"and says that there is none", both(noPods, func(f *Facts) { f.Queue.Timeouts = &queue.Timeouts{} }), "never", ""},
		{"released, as others call it", both(noPods, func(f *Facts) { f.Unit.Phase = unit.PhaseSchedSucceed }),
			"5m0s IdleReservation", ""},
		{"it runs already", both(noPods, func(f *Facts) { f.Unit.Phase = unit.PhaseRunning }), "never", ""},
		{"it waits to be placed", both(noPods, func(f *Facts) { f.Unit.Phase = unit.PhaseSchedReady }), "never", ""},
		{"it holds nothing", both(noPods, func(f *Facts) { f.Unit.SetHeld(resources.List{}, 0) }), "never", ""},
		{"nobody knows when it was admitted", both(noPods, func(f *Facts) { f.Unit.Admitted = time.Time{} }), "never", ""},
		{"quarantined", both(noPods, func(f *Facts) { f.Unit.Quarantined = true }), "never", ""},

		{"pods are not ready", ready, "20m0s PodsReadyTimeout", "ready within 20m0s"},
		{"they were", both(ready, func(f *Facts) { f.Unit.NotReadySince = at(time.Hour) }),
			"1h15m0s RecoveryTimeout", "ready again within 15m0s"},
		{"they are", both(ready, func(f *Facts) { f.Unit.Ready = true }), "never", ""},
		{"they would come back", both(ready, func(f *Facts) { f.Unit.Unsuspendable = true }), "never", ""},
		{"they may not go yet", both(ready, func(f *Facts) { f.Unit.Phase = unit.PhaseSchedReady }), "never", ""},
		{"the sooner of two", func(f *Facts) {
			noPods(f)
			f.Queue.Timeouts = &queue.Timeouts{Idle: 3 * time.Minute, PodsReady: 2 * time.Minute}
		}, "2m0s PodsReadyTimeout", ""},

		{"a process that has just begun waits for reports of pods", both(ready, begun(2*time.Hour)),
			"2h5m0s PodsReadyTimeout", ""},
		{"and for nodes for them", both(noPods, begun(2*time.Hour)), "2h5m0s IdleReservation", ""},
		{"no longer than the time itself", both(both(noPods, begun(2*time.Hour)), func(f *Facts) {
			f.Queue.Timeouts = &queue.Timeouts{Idle: time.Minute}
		}), "2h1m0s IdleReservation", ""},
		{"nor for what it has seen itself", both(ready, begun(time.Minute)), "20m0s PodsReadyTimeout", ""},
		{"a job runs no longer for that", both(execution(time.Hour, 0, 0), begun(2*time.Hour)),
			"1h0m0s MaximumExecutionTimeExceeded", ""},

		{"no heartbeat", unwatched, "1m0s NoHeartbeat", "for 1m0s"},
		{"from the last one", both(unwatched, func(f *Facts) { f.Unit.Heartbeat = at(30 * time.Second) }),
			"1m30s NoHeartbeat", ""},
		{"or from when its last pod left", both(unwatched, func(f *Facts) { f.Left = at(time.Minute) }),
			"2m0s NoHeartbeat", ""},
		{"a heartbeat of later than the next is none", both(unwatched, func(f *Facts) {
			f.Unit.Heartbeat = at(time.Hour)
		}), "1m0s NoHeartbeat", ""},
		{"the queue asks for none", both(unwatched, func(f *Facts) { f.Queue.HeartbeatTimeout = 0 }), "never", ""},
		{"pods on nodes show that it is used", both(unwatched, func(f *Facts) { f.havePods(4, 1) }), "never", ""},

		{"runs as long as it says", execution(time.Hour, 0, 0), "1h0m0s MaximumExecutionTimeExceeded", "run for 1h0m0s"},
		{"as its queue says", execution(0, 2*time.Hour, 0), "2h0m0s MaximumExecutionTimeExceeded", ""},
		{"its own time is before that", execution(3*time.Hour, 2*time.Hour, 0), "3h0m0s MaximumExecutionTimeExceeded", ""},
		{"the queue allows less", execution(3*time.Hour, 0, time.Hour), "1h0m0s MaximumExecutionTimeExceeded", ""},
		{"the queue allows more", execution(time.Hour, 0, 2*time.Hour), "1h0m0s MaximumExecutionTimeExceeded", ""},
		{"its own time counts once its pods were ready", both(execution(time.Hour, 0, 0), func(f *Facts) {
			f.Unit.RanSince = at(10 * time.Minute)
		}), "1h10m0s MaximumExecutionTimeExceeded", "run for 1h0m0s"},
		{"they are not yet", both(execution(time.Hour, 0, 0), ranNever), "never", ""},
		{"they were before its admission", both(execution(time.Hour, 0, 0), func(f *Facts) {
			f.Unit.RanSince = at(-time.Hour)
		}), "1h0m0s MaximumExecutionTimeExceeded", ""},
		{"nobody says so of a job that nobody manages", both(both(unwatched, execution(time.Hour, 0, 0)), func(f *Facts) {
			f.Queue.HeartbeatTimeout, f.Unit.RanSince = 0, time.Time{}
		}), "1h0m0s MaximumExecutionTimeExceeded", ""},
		{"a time of its queue counts from its admission", both(execution(0, 2*time.Hour, 0), ranNever),
			"2h0m0s MaximumExecutionTimeExceeded", ""},
		{"its own as well, where the queue bounds it", both(execution(time.Hour, 0, 2*time.Hour), ranNever),
			"1h0m0s MaximumExecutionTimeExceeded", ""},
		{"no job may run for ever", execution(0, 0, time.Hour), "1h0m0s MaximumExecutionTimeExceeded", ""},
		{"it ran before", both(execution(time.Hour, 0, 0), func(f *Facts) { f.Unit.Executed = 20 * time.Minute }),
			"40m0s MaximumExecutionTimeExceeded", ""},
		{"it does not run yet", both(execution(time.Hour, 0, 0), func(f *Facts) { f.Unit.Phase = unit.PhaseSchedReady }),
			"never", ""},
		{"its pods cannot be taken away", both(execution(time.Hour, 0, 0), func(f *Facts) { f.Unit.Unsuspendable = true }),
			"never", ""},
		{"none is on a node", both(execution(time.Minute, 0, 0), func(f *Facts) {
			noPods(f)
			f.Unit.Unsuspendable = true
		}), "1m0s MaximumExecutionTimeExceeded", ""},
		{"after its pods ought to have come", both(noPods, execution(time.Hour, 0, 0)), "5m0s IdleReservation", ""},
		{"before they ought to", both(noPods, execution(time.Minute, 0, 0)), "1m0s MaximumExecutionTimeExceeded", ""},
	})
}

// A reserved unit waits for as long as its checks may take. If it waits for its gang group, the slowest of its own
// checks counts.
func TestReservedExpiry(t *testing.T) {
	answer := func(f *Facts) (string, string) {
		p := ClassifyAdmitted(f)
		if p.Again.IsZero() {
			return "never", ""
		}
		f.Now = p.Again
		d := LossOf(f)
		return fmt.Sprintf("%s %s", after(p.Again), d.Reason), d.Message
	}
	heldBack := func(timeouts ...time.Duration) func(*Facts) {
		return func(f *Facts) {
			f.answers(unit.CheckReady, unit.CheckReady)
			f.GangsPassed = false
			for i, of := range timeouts {
				f.Queue.AdmissionChecks[i].Timeout = of
			}
		}
	}
	check(t, reserved, answer, []row{
		{"one of them may take for ever", nil, "1m0s CheckTimeout", "an admission check did not answer within 1m0s"},
		{"its own checks are before those of its group", func(f *Facts) { f.GangsPassed = false },
			"1m0s CheckTimeout", "an admission check did not answer"},
		{"the first that is late", func(f *Facts) { f.Queue.AdmissionChecks[1].Timeout = time.Second },
			"1s CheckTimeout", "within 1s"},
		{"it answered", func(f *Facts) { f.answers(unit.CheckReady) }, "never", ""},
		{"no time-out of jobs that run", func(f *Facts) {
			f.answers(unit.CheckReady)
			f.Unit.MaximumExecution = time.Second
		}, "never", ""},
		{"the gang group has the time of the slowest", heldBack(time.Minute, 2*time.Minute),
			"2m0s CheckTimeout", "the other jobs of its gang group did not pass their admission checks within 2m0s"},
		{"which may take for ever", heldBack(0, time.Minute), "never", ""},
	})
}

// A time bound is not reported for pods that nobody could stop.
func TestRunsUntil(t *testing.T) {
	hour := func() *Facts {
		f := admitted()
		f.Unit.MaximumExecution, f.Unit.RanSince = time.Hour, f.Unit.Admitted
		f.havePods(0, 0)
		return f
	}
	answer := func(f *Facts) (string, string) {
		until := RunsUntil(f)
		if until.IsZero() {
			return "never", ""
		}
		return after(until), ""
	}
	check(t, hour, answer, []row{
		{"for an hour", nil, "1h0m0s", ""},
		{"its pods are not ready yet", func(f *Facts) { f.Unit.RanSince = time.Time{} }, "never", ""},
		{"nobody knows since when", func(f *Facts) { f.Unit.Admitted = time.Time{} }, "never", ""},
		{"it cannot be suspended", func(f *Facts) { f.Unit.Unsuspendable = true }, "never", ""},
		{"it has no job", func(f *Facts) { f.Unit.Consumer = unit.Consumer{} }, "never", ""},
		{"it holds nothing", func(f *Facts) { f.Holds = false }, "never", ""},
	})
}
