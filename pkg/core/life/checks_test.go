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
	"testing"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// The answers about a reserved unit decide: it passes, it waits, or it loses its reservation.
func TestReserved(t *testing.T) {
	const (
		loses = "holds 4, writes its loss"
		waits = "holds 4, again 1m0s"
		goes  = "holds 4, passed, checked, writes its release"
	)
	answer := func(f *Facts) (string, string) {
		p := ClassifyAdmitted(f)
		if p.Write == WriteLoss {
			return placeOf(p), LossOf(f).Message
		}
		return placeOf(p), WaitsForChecks(f)
	}
	ready := func(f *Facts) { f.answers(unit.CheckReady, unit.CheckReady) }
	check(t, reserved, answer, []row{
		{"not answered", nil, waits, `waits for admission checks: "a", "b"`},
		{"one is ready", func(f *Facts) { f.answers(unit.CheckReady) }, "holds 4", `waits for admission checks: "b"`},
		{"all are ready", ready, goes, "has yet to be written"},
		{"they are ready, refused before", func(f *Facts) {
			ready(f)
			f.Refused.Until = at(time.Second)
		}, "holds 4, passed, checked, again 1s", ""},
		{"other gangs have yet to pass", func(f *Facts) {
			ready(f)
			f.GangsPassed = false
		}, "holds 4, passed, checked", "waits for the other jobs of its gang group"},
		{"a state that is not known", func(f *Facts) { f.answers("Odd", unit.CheckReady) }, waits, `checks: "a"`},
		{"rejected, before tried again", func(f *Facts) { f.answers(unit.CheckRetry, unit.CheckRejected) },
			loses, `"b" rejects the job`},
		{"tried again", func(f *Facts) {
			f.answers(unit.CheckReady, unit.CheckRetry)
			f.Unit.Checks.Answers[1].Message = "no nodes"
		}, loses, `"b" has the job tried again later: no nodes`},
		{"the first says why", func(f *Facts) { f.answers(unit.CheckRetry, unit.CheckRetry) }, loses, `"a" has the job`},
		{"they contradict each other", func(f *Facts) {
			ready(f)
			f.Unit.Checks.Conflict = "two node selectors"
		}, loses, "two node selectors"},
		{"they do so far", func(f *Facts) { f.Unit.Checks.Conflict = "two node selectors" }, waits, ""},
		{"no check is asked", func(f *Facts) { f.Queue.AdmissionChecks, f.Unit.Checks = nil, nil }, goes, ""},

		{"the queue is gone", func(f *Facts) { ready(f); f.QueueKnown = false },
			loses, `queue "q" does not exist, so nobody says which admission checks it asks for; quota is reserved again`},
		{"nobody answers a check", func(f *Facts) {
			ready(f)
			f.Queue.Fault = &queue.Fault{Reason: unit.ReasonCheckInactive, Message: "check is not active"}
		}, loses, "check is not active"},
		{"rejected, nobody answers the other", func(f *Facts) {
			f.answers(unit.CheckRejected)
			f.Queue.Fault = &queue.Fault{Reason: unit.ReasonCheckInactive, Message: "check is not active"}
		}, loses, `"a" rejects the job`},
		{"it asks for more", func(f *Facts) { ready(f); f.Unit.Request = cpu(5) },
			loses, "which admission checks were not asked about"},
		{"it has several sizes", func(f *Facts) {
			ready(f)
			f.Unit.Request = cpu(5)
			f.Unit.Sizes = unit.NewSizes([]unit.PodSetSize{{Count: 5, Least: 1, Request: cpu(5)}})
		}, goes + ", asks since 0s", ""},
		{"a check that was not asked", func(f *Facts) {
			ready(f)
			f.Queue.AdmissionChecks = append(f.Queue.AdmissionChecks, queue.AdmissionCheck{Name: "c"})
		}, loses, `"c" was not asked`},
		{"that picks other units", func(f *Facts) {
			ready(f)
			f.Queue.AdmissionChecks = append(f.Queue.AdmissionChecks, queue.AdmissionCheck{Name: "c", Selector: "gpu"})
			f.Config.Selects = func(selector, labels string) bool { return selector == labels }
		}, goes, ""},
		{"that picks this one", func(f *Facts) {
			ready(f)
			f.Queue.AdmissionChecks = append(f.Queue.AdmissionChecks, queue.AdmissionCheck{Name: "c", Selector: "gpu"})
			f.Config.Selects = func(selector, labels string) bool { return selector != labels }
		}, loses, `"c" was not asked`},
		{"where nobody reads selectors", func(f *Facts) {
			ready(f)
			f.Queue.AdmissionChecks = append(f.Queue.AdmissionChecks, queue.AdmissionCheck{Name: "c", Selector: "gpu"})
		}, loses, `"c" was not asked`},
		{"without a selector", func(f *Facts) {
			f.Config.Selects = func(string, string) bool { return false }
		}, waits, `"a", "b"`},
		{"tried again, before the queue is gone", func(f *Facts) {
			f.answers(unit.CheckRetry)
			f.QueueKnown = false
		}, loses, `"a" has the job`},
		{"a check that is asked no more", func(f *Facts) {
			f.answers(unit.CheckReady)
			f.Queue.AdmissionChecks = f.Queue.AdmissionChecks[:1]
		}, loses, `"b" was asked about this reservation, and is not any more`},
		{"but was ready", func(f *Facts) { ready(f); f.Queue.AdmissionChecks = f.Queue.AdmissionChecks[:1] }, goes, ""},
		{"quarantined", func(f *Facts) {
			f.answers(unit.CheckRejected)
			f.Unit.Quarantined = true
		}, "holds 4", ""},
		{"ready and quarantined", func(f *Facts) { ready(f); f.Unit.Quarantined = true }, "holds 4, passed", ""},
	})
}

// A unit that was let go loses its admission if a check takes its answer back, and for nothing else.
func TestWithdrawal(t *testing.T) {
	released := func() *Facts {
		f := reserved()
		f.Unit.Phase = unit.PhaseRunning
		f.havePods(4, 4)
		return f
	}
	answer := func(f *Facts) (string, string) {
		d := LossOf(f)
		return placeOf(ClassifyAdmitted(f)), d.Message
	}
	const stays, loses = "holds 4, passed", "holds 4, passed, writes its loss"
	check(t, released, answer, []row{
		{"not answered", nil, stays, ""},
		{"not asked", func(f *Facts) { f.Unit.Checks = nil }, stays, ""},
		{"rejected, before tried again", func(f *Facts) { f.answers(unit.CheckRetry, unit.CheckRejected) },
			loses, `"b" takes back that the job may go, and rejects it`},
		{"tried again", func(f *Facts) { f.answers(unit.CheckRetry, unit.CheckRetry) },
			loses, `"a" takes back that the job may go, to try it again later`},
		{"by a check that the queue does not name", func(f *Facts) {
			f.answers(unit.CheckRejected)
			f.Queue.AdmissionChecks = f.Queue.AdmissionChecks[1:]
		}, stays, ""},
		{"it cannot be suspended", func(f *Facts) {
			f.answers(unit.CheckRejected)
			f.Unit.Unsuspendable = true
		}, stays, ""},
		{"in a phase that neither waits for checks nor releases", func(f *Facts) {
			f.answers(unit.CheckRejected)
			f.Unit.Phase = unit.PhaseSchedReady
		}, "holds 4", ""},
	})
}
