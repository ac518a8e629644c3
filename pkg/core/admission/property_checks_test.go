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
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// Admission checks and filters of extensions in histories.

var labels = []string{"", "gpu", "big"}

// drawChecks has a queue ask for checks, or have a fault.
func drawChecks(t *rapid.T, q *queue.Spec) {
	for _, name := range []string{"x", "y", "z"} {
		if rapid.IntRange(0, 2).Draw(t, "asks "+name) > 0 {
			continue
		}
		q.AdmissionChecks = append(q.AdmissionChecks, queue.AdmissionCheck{
			Name:     name,
			Selector: rapid.SampledFrom([]string{"", "", "gpu"}).Draw(t, "selector"),
			Timeout:  time.Duration(rapid.SampledFrom([]int{0, 20, 40}).Draw(t, "timeout")) * time.Second,
		})
	}
	if rapid.IntRange(0, 14).Draw(t, "fault") == 0 {
		q.Fault = &queue.Fault{Reason: unit.ReasonCheckInactive, Message: "nobody answers"}
	}
}

// drawAnswers has checks answer, most often that a unit may go.
func drawAnswers(t *rapid.T, names []string) *unit.CheckAnswers {
	answers := &unit.CheckAnswers{Conflict: rapid.SampledFrom([]string{"", "", "", "", "", "no"}).Draw(t, "conflict")}
	for _, name := range names {
		a := unit.CheckAnswer{Name: name, State: rapid.SampledFrom([]unit.CheckState{
			unit.CheckReady, unit.CheckReady, unit.CheckReady, unit.CheckReady, unit.CheckReady, unit.CheckReady,
			unit.CheckPending, unit.CheckPending, unit.CheckRetry, unit.CheckRejected, "odd",
		}).Draw(t, "answer")}
		if a.State == unit.CheckRetry {
			a.RetryAfter = time.Duration(rapid.SampledFrom([]int{0, 10, 30}).Draw(t, "retry after")) * time.Second
		}
		answers.Answers = append(answers.Answers, a)
	}
	return answers
}

// drawReservation has a unit that holds quota be one about which checks were asked, let go or not.
func drawReservation(t *rapid.T, u *unit.Unit, checks []string) {
	if rapid.IntRange(0, 2).Draw(t, "checks were asked") > 0 {
		u.Checks = drawAnswers(t, checks)
		u.Phase = rapid.SampledFrom([]unit.Phase{unit.PhaseReserved, unit.PhaseReserved, u.Phase}).Draw(t, "phase")
	}
}

// stepChecked changes an object about which checks were asked, as often as not while a write of it is in flight.
func (w *world) stepChecked(t *rapid.T) {
	objects := map[string]unit.Unit{}
	for key, u := range w.units {
		in := u.Unit
		if u.remembered != nil {
			in = *u.remembered
		}
		if in.Checks != nil {
			objects[key] = in
		}
	}
	if len(objects) == 0 {
		return
	}
	in := objects[rapid.SampledFrom(slices.Sorted(maps.Keys(objects))).Draw(t, "checked unit")]
	switch rapid.IntRange(0, 12).Draw(t, "change") {
	case 0:
		in.Labels = rapid.SampledFrom(labels).Draw(t, "labels")
	case 1:
		if in.Sizes == nil {
			in.Request, in.Pods = drawList(t, "request", 0, 5, true), rapid.Int64Range(1, 3).Draw(t, "pods")
		}
	case 2:
		in.Active = rapid.Bool().Draw(t, "active")
	case 3:
		in.TemplatesWritten = rapid.Bool().Draw(t, "templates written")
	default:
		var names []string
		for _, a := range in.Checks.Answers {
			names = append(names, a.Name)
		}
		in.Checks = drawAnswers(t, names)
	}
	w.upsertUnit(in)
}

// doorman is a filter of an extension: units of one kind pass while the door of that kind is open.
type doorman struct {
	kind func(unit.Unit) string
	shut map[string]bool
}

func (d doorman) Key(u unit.Unit) string { return d.kind(u) }

func (d doorman) Check(u unit.Unit) (unit.Reason, string) {
	if d.shut[d.kind(u)] {
		return "DoorIsShut", "the door is shut for it"
	}
	return "", ""
}

// doorKinds are those of the filters.
var doorKinds = []func(unit.Unit) string{
	func(u unit.Unit) string { return fmt.Sprint("priority ", u.Priority) },
	func(u unit.Unit) string { return "labels " + u.Labels },
}

// doors are what the filters go by.
func doors(shut map[string]bool) (checks []queue.Check) {
	for _, kind := range doorKinds {
		checks = append(checks, doorman{kind, shut})
	}
	return checks
}

// stepDoor opens or shuts a door, if there are any.
func (w *world) stepDoor(t *rapid.T) {
	if w.doors == nil {
		return
	}
	now, kind := w.now, rapid.SampledFrom([]string{
		"priority 0", "priority 1", "priority 2", "priority 3", "labels ", "labels gpu",
	}).Draw(t, "door")
	shut := !w.shut[kind]
	w.shut[kind] = shut
	w.do(func(s *State) {
		w.doors[kind] = shut
		s.Recheck(now)
	})
}

// checkReleases: pods may go while their unit is let go and no write that says otherwise is in flight, and until then.
func (w *world) checkReleases(t require.TestingT) {
	for key, u := range w.units {
		open := (u.at == "admitted" || u.at == "resizing") && rulebook.Releases(u.Phase)
		require.Equal(t, open, w.s.Releases(key), "%s is let go", key)
		w.checkUntil(t, key, open && u.holds)
	}
}

// checkWake: until Decide wants to run again there is nothing to decide.
func (w *world) checkWake(t require.TestingT) {
	until := w.wakeAt
	switch {
	case until.IsZero():
		until = w.now.Add(1000 * time.Hour)
	case !until.After(w.now):
		return
	}
	later := w.model.copy()
	later.now = until.Add(-1)
	missed := (&oracle{
		model: later, claimTimeout: w.o.claimTimeout, claimAfter: w.o.claimAfter, first: maps.Clone(w.o.first),
	}).decide()
	require.Equal(t, oracleDecision{}, missed, "decisions before %s", w.wakeAt)
}

// gather fills one tree in which there is room for most with units in gang groups, which wait for checks.
func (w *world) gather(t *rapid.T) {
	for _, name := range levelNames {
		q := Quota{Name: name, Parent: treeParents[name]}
		if name == "root" {
			q.Limit = resources.FromMap(map[string]int64{"cpu": 20, "gpu": 20})
		}
		w.putQuota(q)
	}
	for _, name := range gatherQueues {
		w.stepGatherQueue(t, name)
	}
	for i := range rapid.IntRange(2, unitsAtMost(10)).Draw(t, "units") {
		w.upsertUnit(w.drawGathered(t, i))
		if u := w.units[unitKey(i)]; u.holds && rapid.Bool().Draw(t, "has a pod on a node") {
			w.setPod(u.Key, Pod{UID: "p1", Quota: u.Quota, Request: u.Request, Assigned: true})
		}
	}
}

var gatherQueues = []string{"q1", "q2"}

func (w *world) stepGatherQueue(t *rapid.T, name string) {
	q := queue.Spec{
		Name: name, Policy: rapid.SampledFrom([]string{"Priority", "Block"}).Draw(t, "policy"), MaxPending: -1,
		MaxAdmitted:   rapid.SampledFrom([]int32{-1, -1, 3}).Draw(t, "max admitted"),
		MostEvictions: rapid.Int64Range(0, 3).Draw(t, "most evictions"),
	}
	q.Execution.Default = time.Duration(rapid.SampledFrom([]int{0, 30}).Draw(t, "execution")) * time.Second
	q.Held = rapid.IntRange(0, 14).Draw(t, "held") == 0
	q.Drains = q.Held && rapid.Bool().Draw(t, "drains")
	drawChecks(t, &q)
	w.putQueue(q)
}

func (w *world) drawGathered(t *rapid.T, i int) unit.Unit {
	u := unit.Unit{
		Key: unitKey(i), UID: fmt.Sprintf("uid-%d", i),
		Queue:    rapid.SampledFrom([]string{"q1", "q1", "q2"}).Draw(t, "queue"),
		Quota:    rapid.SampledFrom([]string{"a11", "b1"}).Draw(t, "quota"),
		Priority: rapid.Int32Range(0, 2).Draw(t, "priority"),
		Created:  epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "created")) * time.Second),
		Request:  drawList(t, "request", 0, 2, false), Pods: 1, Active: true,
		Labels: rapid.SampledFrom(labels).Draw(t, "labels"), Phase: unit.PhaseEnqueued,
		Attempts: rapid.Int64Range(0, 1).Draw(t, "attempts"),
	}
	switch rapid.IntRange(0, 4).Draw(t, "gang group") {
	case 0, 1, 2:
		u.GangGroup, u.Gangs = "x,y", rapid.SampledFrom([]string{"x", "y", "x", "y", "x,y"}).Draw(t, "gangs")
	case 3:
		u.GangGroup, u.Gangs = "x,y,z", rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "gangs")
	}
	if rapid.IntRange(0, 3).Draw(t, "cannot be suspended") == 0 {
		u.Consumer = unit.Consumer{Kind: "Job.v1.batch", Namespace: namespaceOf(u.Key), Name: u.UID, UID: u.UID}
		u.Unsuspendable = true
	}
	if rapid.Bool().Draw(t, "holds") {
		u.Phase, u.Held, u.HeldPods, u.Attempts = unit.PhaseRunning, u.Request, u.Pods, 1
		if rapid.IntRange(0, 4).Draw(t, "holds something else") == 0 {
			u.Held, u.HeldPods = drawList(t, "held", 0, 3, true), rapid.Int64Range(0, 2).Draw(t, "held pods")
			u.Adopted, u.Recorded = rapid.Bool().Draw(t, "adopted"), rapid.Bool().Draw(t, "recorded")
		}
		u.Admitted = epoch.Add(time.Duration(rapid.IntRange(-30, 30).Draw(t, "admitted at")) * time.Second)
		checks := checkNames(w.checksOf(&modelUnit{Unit: u}))
		if rapid.IntRange(0, 9).Draw(t, "others were asked") == 0 {
			checks = []string{"x", "y"}
		}
		drawReservation(t, &u, checks)
	}
	return u
}

func (w *world) stepGathered(t *rapid.T) {
	i := rapid.IntRange(0, 11).Draw(t, "unit")
	key := unitKey(i)
	switch rapid.IntRange(0, 16).Draw(t, "event") {
	case 0:
		w.upsertUnit(w.drawGathered(t, i))
	case 1:
		w.deleteUnit(key)
	case 2, 3, 4, 5, 6, 7:
		w.stepChecked(t)
	case 8, 9, 10:
		w.settleAll(t)
	case 11:
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
	case 12:
		name := rapid.SampledFrom(gatherQueues).Draw(t, "queue")
		if rapid.IntRange(0, 3).Draw(t, "goes") == 0 {
			w.deleteQueue(name)
			return
		}
		w.stepGatherQueue(t, name)
	case 13, 14:
		var holding []string
		for _, key := range w.keys() {
			if w.units[key].holds {
				holding = append(holding, key)
			}
		}
		if len(holding) > 0 {
			key = rapid.SampledFrom(holding).Draw(t, "unit that holds quota")
		}
		w.stepPod(t, key)
	case 15:
		w.end(t, key)
	case 16:
		w.stepDoor(t)
	}
}

// Reserved units are released, kept or evicted as a fresh reading of the checks' answers before every decision says,
// alone and in gang groups (I3).
func TestReservationsEqualRecount(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.gather(t)
		w.decide(t)
		for range rapid.IntRange(effort.Steps(15), effort.Steps(60)).Draw(t, "steps") {
			w.stepGathered(t)
			if rapid.IntRange(0, 2).Draw(t, "decide") > 0 {
				w.decide(t)
			}
		}
		w.decide(t)
		w.checkAtEnd(t)
	})
}
