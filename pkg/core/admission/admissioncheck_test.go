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

package admission

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// checkedWorld is one queue whose units have to pass checks, as the API has it, and what a person would expect of it.
type checkedWorld struct {
	s       *State
	now     time.Time
	queue   queue.Spec
	objects map[string]*checkedUnit
}

// checkedUnit is the object of a unit. All ask for the same, so that their places alone say who goes first.
type checkedUnit struct {
	unit.Unit
	// answers of the present reservation; nil without one.
	answers  map[string]unit.CheckState
	conflict string
	// flight is the write in flight.
	flight func()
}

const checkedCPU = 2

func newCheckedWorld() *checkedWorld {
	w := &checkedWorld{
		s: New(Config{RefusedBackoff: time.Second}), now: epoch, objects: map[string]*checkedUnit{},
		queue: queue.Spec{Name: "q", Policy: "FIFO", MaxPending: -1, MaxAdmitted: -1},
	}
	w.s.SetQuota(w.now, Quota{Name: "root", Limit: resources.FromMap(map[string]int64{"cpu": 3 * checkedCPU})})
	w.s.UpsertQueue(w.now, w.queue)
	for i := range 5 {
		u := &checkedUnit{Unit: unit.Unit{
			Key: fmt.Sprintf("ns/u%d", i), UID: fmt.Sprintf("u%d", i), Queue: "q", Quota: "root", Active: true,
			Created: epoch.Add(time.Duration(i) * time.Second), Pods: 1,
			Request: resources.FromMap(map[string]int64{"cpu": checkedCPU}),
		}}
		w.objects[u.Key] = u
		w.show(u)
	}
	return w
}

// show has the state see an object.
func (w *checkedWorld) show(u *checkedUnit) {
	in := u.Unit
	if u.answers != nil && u.Phase == unit.PhaseReserved {
		in.Checks = &unit.CheckAnswers{Conflict: u.conflict}
		for _, name := range slices.Sorted(maps.Keys(u.answers)) {
			in.Checks.Answers = append(in.Checks.Answers, unit.CheckAnswer{Name: name, State: u.answers[name]})
		}
	}
	w.s.UpsertUnit(w.now, in)
}

// verdict is what has to become of a reserved unit: "goes", why it goes back, or "" while it waits.
func (w *checkedWorld) verdict(u *checkedUnit) string {
	said := map[unit.CheckState]int{}
	late := false
	for _, c := range w.queue.AdmissionChecks {
		answer, asked := u.answers[c.Name]
		if !asked {
			said["never asked"]++
		}
		said[answer]++
		late = late || answer != unit.CheckReady && c.Timeout > 0 && !w.now.Before(u.Admitted.Add(c.Timeout))
	}
	for name, answer := range u.answers {
		named := slices.ContainsFunc(w.queue.AdmissionChecks, func(c queue.AdmissionCheck) bool { return c.Name == name })
		if !named && answer != unit.CheckReady {
			said["asked no more"]++
		}
	}
	switch {
	case said[unit.CheckRejected] > 0, said[unit.CheckRetry] > 0, said["never asked"] > 0, said["asked no more"] > 0, late:
		return "goes back"
	case said[unit.CheckReady] == len(w.queue.AdmissionChecks) && u.conflict != "":
		return "goes back"
	case said[unit.CheckReady] == len(w.queue.AdmissionChecks):
		return "goes"
	}
	return ""
}

// decide compares one decision with what is expected, and puts its writes in flight.
func (w *checkedWorld) decide(t require.TestingT) (decided bool) {
	plan := w.s.Decide(w.now)
	for i := range plan.Dequeue {
		u := w.objects[plan.Dequeue[i].Unit.Key]
		require.Equal(t, unit.PhaseReserved, u.Phase)
		require.Equal(t, "goes", w.verdict(u), "%s with %v", u.Key, u.answers)
		u.flight = func() { u.Phase, u.Admitted = unit.PhaseDequeued, w.now }
	}
	for i := range plan.Evict {
		d := &plan.Evict[i]
		u := w.objects[d.Unit.Key]
		require.Equal(t, unit.PhaseReserved, u.Phase)
		require.Equal(t, "goes back", w.verdict(u), "%s with %v: %s", u.Key, u.answers, d.Reason)
		u.flight = func() {
			u.Phase, u.Held, u.HeldPods, u.Recorded = unit.PhaseEnqueued, resources.List{}, 0, false
			if !d.RequeueAt.IsZero() {
				u.Phase, u.RequeueAt, u.Requeues = unit.PhaseTimeoutBackoff, d.RequeueAt, d.Requeues
			}
			if d.Deactivate != "" {
				u.Deactivate = &unit.Deactivation{Reason: d.Deactivate, Message: d.Message}
			}
		}
	}
	for i := range plan.Admit {
		w.admit(t, &plan.Admit[i])
	}
	return len(plan.Dequeue)+len(plan.Evict)+len(plan.Admit) > 0
}

// admit: whoever is admitted is the first that may be, and is asked what its queue asks for.
func (w *checkedWorld) admit(t require.TestingT, d *Admit) {
	u := w.objects[d.Unit.Key]
	require.True(t, w.mayBeAdmitted(u), "%s is admitted", u.Key)
	for _, other := range w.objects {
		require.False(t, other.Created.Before(u.Created) && w.mayBeAdmitted(other), "%s has the better place", other.Key)
	}
	var names []string
	for _, c := range w.queue.AdmissionChecks {
		names = append(names, c.Name)
	}
	require.Equal(t, names, d.Checks)
	u.flight = func() {
		u.Phase, u.Attempts, u.Admitted, u.answers, u.conflict = unit.PhaseDequeued, d.Attempt, w.now, nil, ""
		u.Held, u.HeldPods, u.Recorded = d.Request, u.Pods, true
		if len(names) == 0 {
			return
		}
		u.Phase, u.answers = unit.PhaseReserved, map[string]unit.CheckState{}
		for _, name := range names {
			u.answers[name] = unit.CheckPending
		}
	}
}

func (w *checkedWorld) mayBeAdmitted(u *checkedUnit) bool {
	return u.flight == nil && u.Phase.Waits() && u.Deactivate == nil && !w.now.Before(u.RequeueAt)
}

// settle tells what became of the write of a unit.
func (w *checkedWorld) settle(t *rapid.T, u *checkedUnit) {
	attempt := u.Attempts
	if u.Phase.Waits() {
		attempt++
	}
	outcome := rapid.SampledFrom([]Outcome{
		OutcomeConfirmed, OutcomeConfirmed, OutcomeConfirmed, OutcomeRefuted, OutcomeRefused, OutcomeUnknown,
	}).Draw(t, "outcome")
	switch outcome {
	case OutcomeUnknown:
	case OutcomeConfirmed:
		u.flight()
		u.flight = nil
	default:
		u.flight = nil
	}
	w.s.Settle(w.now, u.Key, attempt, outcome)
	if outcome == OutcomeRefused {
		w.now = w.now.Add(time.Minute) // longer than any back-off after refusals
	}
	if u.flight == nil {
		w.show(u)
	}
}

// step draws one event.
func (w *checkedWorld) step(t *rapid.T) {
	u := w.objects[rapid.SampledFrom(slices.Sorted(maps.Keys(w.objects))).Draw(t, "unit")]
	switch rapid.IntRange(0, 9).Draw(t, "event") {
	case 0, 1, 2, 3:
		if u.Phase != unit.PhaseReserved || u.flight != nil {
			return
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(u.answers))).Draw(t, "check")
		u.answers[name] = rapid.SampledFrom([]unit.CheckState{
			unit.CheckReady, unit.CheckReady, unit.CheckReady, unit.CheckReady, unit.CheckPending, unit.CheckRetry,
			unit.CheckRejected, "odd",
		}).Draw(t, "answer")
		u.conflict = rapid.SampledFrom([]string{"", "", "", "no"}).Draw(t, "conflict")
		w.show(u)
	case 4:
		w.queue.AdmissionChecks = nil
		for _, name := range []string{"x", "y", "z"} {
			if rapid.Bool().Draw(t, name) {
				timeout := rapid.SampledFrom([]time.Duration{0, 0, 20 * time.Second}).Draw(t, "timeout")
				w.queue.AdmissionChecks = append(w.queue.AdmissionChecks, queue.AdmissionCheck{Name: name, Timeout: timeout})
			}
		}
		w.s.UpsertQueue(w.now, w.queue)
	case 5:
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
	case 6, 7, 8:
		if u.flight != nil {
			w.settle(t, u)
		}
	case 9: // an operator has it tried once more, or it is over and comes again
		if u.flight == nil && u.Phase.Waits() {
			u.Deactivate = nil
			w.show(u)
		} else if u.flight == nil && u.Phase == unit.PhaseDequeued {
			u.Phase, u.Held, u.HeldPods, u.Recorded = unit.PhaseEnqueued, resources.List{}, 0, false
			w.show(u)
		}
	}
}

// TestChecksAgainstWhatAPersonExpects: a unit goes when all checks that its queue names, and all that it was asked,
// have said Ready about its present reservation, and not before; it goes back when one says otherwise or nothing in
// time, or when those that it was asked are not those that its queue names. What waits for its back-off holds nothing,
// and keeps its place.
func TestChecksAgainstWhatAPersonExpects(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newCheckedWorld()
		for range rapid.IntRange(1, effort.Steps(120)).Draw(t, "steps") {
			w.step(t)
			for w.decide(t) {
			}
			holds := int64(0)
			for _, u := range w.objects {
				if u.flight != nil || u.Phase.Holds() {
					holds += checkedCPU
				}
				if u.flight == nil && u.Phase == unit.PhaseReserved {
					require.Empty(t, w.verdict(u), "%s with %v", u.Key, u.answers)
				}
				require.False(t, w.mayBeAdmitted(u) && w.s.Outstanding("root").Len() == 0, "%s waits for nothing", u.Key)
			}
			outstanding, _ := w.s.Outstanding("root").Get("cpu")
			require.Equal(t, holds, outstanding)
			require.Empty(t, w.s.VerifyPlaces())
		}
	})
}
