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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
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

// checkedUnit is the object of a unit.
type checkedUnit struct {
	unit.Unit
	// answers of the present reservation; nil without one.
	answers  map[string]unit.CheckState
	conflict string
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

// checkedGangGroup is a gang group of three gangs whose units have to pass checks. There is room for all of them.
type checkedGangGroup struct {
	*checkedWorld
	made int
}

var threeGangs = []string{"x", "y", "z"}

func newCheckedGangGroup() *checkedGangGroup {
	w := &checkedGangGroup{checkedWorld: &checkedWorld{
		s: New(Config{RefusedBackoff: time.Second}), now: epoch, objects: map[string]*checkedUnit{},
		queue: queue.Spec{
			Name: "q", Policy: "FIFO", MaxPending: -1, MaxAdmitted: -1,
			AdmissionChecks: []queue.AdmissionCheck{{Name: "a"}, {Name: "b"}},
		},
	}}
	w.s.SetQuota(w.now, Quota{Name: "root", Limit: resources.FromMap(map[string]int64{"cpu": 100})})
	w.s.UpsertQueue(w.now, w.queue)
	for _, gang := range threeGangs {
		w.create(gang)
	}
	return w
}

// create makes a unit for a gang, one after the other.
func (w *checkedGangGroup) create(gang string) {
	w.made++
	u := &checkedUnit{Unit: unit.Unit{
		Key: fmt.Sprintf("ns/%s%d", gang, w.made), UID: fmt.Sprint(w.made), Queue: "q", Quota: "root", Active: true,
		Created: epoch.Add(time.Duration(w.made) * time.Second), Pods: 1,
		Request: resources.FromMap(map[string]int64{"cpu": 1}), Stated: unit.Stated{GangGroup: "x,y,z", Gangs: gang},
	}}
	w.objects[u.Key] = u
	w.show(u)
}

func (w *checkedGangGroup) ofGang(gang string) (found []*checkedUnit) {
	for _, u := range w.objects {
		if u.Gangs == gang {
			found = append(found, u)
		}
	}
	return found
}

// mayGo: it has passed its checks, and one of each other gang has, or there is none any more and it has run before.
func (w *checkedGangGroup) mayGo(u *checkedUnit) bool {
	cleared := func(u *checkedUnit) bool {
		return u.Phase == unit.PhaseDequeued || u.Phase == unit.PhaseReserved && w.verdict(u) == "goes"
	}
	for _, gang := range threeGangs {
		there := w.ofGang(gang)
		over := len(there) == 0 && u.Attempts > 1
		if gang != u.Gangs && !over && !slices.ContainsFunc(there, cleared) {
			return false
		}
	}
	return cleared(u)
}

func (w *checkedGangGroup) step(t *rapid.T) {
	key := rapid.SampledFrom(slices.Sorted(maps.Keys(w.objects))).Draw(t, "unit")
	u := w.objects[key]
	switch rapid.IntRange(0, 11).Draw(t, "event") {
	case 0, 1, 2, 3, 4, 5, 6:
		if u.Phase == unit.PhaseReserved {
			u.answers[rapid.SampledFrom([]string{"a", "b"}).Draw(t, "check")] = rapid.SampledFrom([]unit.CheckState{
				unit.CheckReady, unit.CheckReady, unit.CheckReady, unit.CheckReady, unit.CheckPending, unit.CheckRetry,
			}).Draw(t, "answer")
			w.show(u)
		}
	case 7:
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds")) * time.Second)
	case 8: // the unit loses its admission and returns
		if u.Phase == unit.PhaseDequeued {
			u.Phase, u.Held, u.HeldPods, u.Recorded = unit.PhaseEnqueued, resources.List{}, 0, false
			w.show(u)
		}
	case 9:
		if len(w.objects) > 1 {
			delete(w.objects, key)
			w.s.DeleteUnit(w.now, key)
		}
	case 10, 11:
		w.create(rapid.SampledFrom(threeGangs).Draw(t, "gang"))
	}
}

// TestUnitsOfAGangGroupPassTheirChecksTogether: none is let go before one of each other gang may go, and none waits
// that may.
func TestUnitsOfAGangGroupPassTheirChecksTogether(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		w := newCheckedGangGroup()
		for range rapid.IntRange(1, effort.Steps(80)).Draw(t, "steps") {
			w.step(t)
			for {
				plan := byKind(w.s.Decide(w.now))
				if len(plan.Admit)+len(plan.Evict)+len(plan.Dequeue) == 0 {
					break
				}
				for i := range plan.Dequeue {
					u := w.objects[plan.Dequeue[i].Unit.Key]
					require.True(t, w.mayGo(u), "%s goes", u.Key)
				}
				w.confirm(&plan)
			}
			for _, u := range w.objects {
				require.False(t, u.Phase == unit.PhaseReserved && w.mayGo(u), "%s waits", u.Key)
			}
			require.Empty(t, w.s.Audit().Places())
		}
	})
}

// confirm makes all writes of a decision.
func (w *checkedGangGroup) confirm(plan *sorted) {
	for i := range plan.Dequeue {
		u := w.objects[plan.Dequeue[i].Unit.Key]
		u.Phase, u.Admitted = unit.PhaseDequeued, w.now
		w.settleConfirmed(u, u.Attempts)
	}
	for i := range plan.Evict {
		d := plan.Evict[i]
		u := w.objects[d.Unit.Key]
		u.Phase, u.RequeueAt, u.Requeues = unit.PhaseTimeoutBackoff, d.RequeueAt, d.Requeues
		u.Held, u.HeldPods, u.Recorded, u.answers = resources.List{}, 0, false, nil
		w.settleConfirmed(u, u.Attempts)
	}
	for i := range plan.Admit {
		d := plan.Admit[i]
		u := w.objects[d.Unit.Key]
		u.Phase, u.Attempts, u.Admitted = unit.PhaseReserved, d.Attempt(), w.now
		u.Held, u.HeldPods, u.Recorded = d.Request, u.Pods, true
		u.answers = map[string]unit.CheckState{"a": unit.CheckPending, "b": unit.CheckPending}
		w.settleConfirmed(u, u.Attempts)
	}
}

func (w *checkedGangGroup) settleConfirmed(u *checkedUnit, attempt int64) {
	w.s.Settle(w.now, u.Key, attempt, transition.Confirmed)
	w.show(u)
}
