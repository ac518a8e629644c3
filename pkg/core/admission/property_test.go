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
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world feeds the same random events to the state and to the model that the oracle reads.
type world struct {
	*model
	s *State
	o *oracle
	// shown is what ChangedCounts said so far.
	shown map[accounts.Pair]accounts.Counts
	// told is what DirtyDemand said so far.
	told map[string]resources.List
	// mayGo is what Grants said so far.
	mayGo map[string]bool
	// journal repeats the events for the determinism test.
	journal []func(*State)
	plans   []sorted
	// doors are those that filters of extensions have shut; nil without any.
	doors map[string]bool
	// wakeAt is when the last decision wanted the next one.
	wakeAt time.Time
}

func newWorld() *world { return newWorldOf(Config{}) }

// drawWorld has claims end in some runs, after a time in which decisions are made, and has filters in some.
func drawWorld(t *rapid.T) *world {
	return drawFilters(t, Config{
		ClaimTimeout: rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second}).Draw(t, "claim timeout"),
		ClaimAfter:   rapid.SampledFrom([]time.Duration{0, 4 * time.Second}).Draw(t, "claim after"),
	})
}

func drawFilters(t *rapid.T, cfg Config) *world {
	var shut map[string]bool
	if rapid.IntRange(0, 2).Draw(t, "filters") == 0 {
		shut = map[string]bool{}
		cfg.Checks = doors(shut)
	}
	w := newWorldOf(cfg)
	if w.doors = shut; shut != nil {
		w.shut = map[string]bool{}
	}
	w.do(func(*State) { clear(shut) })
	return w
}

func newWorldOf(cfg Config) *world {
	cfg.ExplainAfter, cfg.ExplainEvery, cfg.RefusedBackoff = 5*time.Second, 30*time.Second, 10*time.Second
	cfg.Rules, cfg.PartialAdmission = life.Config{Timeouts: modelTimeouts, Selects: labelsMeet}, true
	m := newModel()
	return &world{model: m, s: New(cfg), o: &oracle{
		model: m, claimTimeout: cfg.ClaimTimeout, claimAfter: cfg.ClaimAfter, first: map[string]string{},
	}}
}

func (w *world) do(event func(*State)) {
	w.journal = append(w.journal, event)
	event(w.s)
}

func (w *world) upsertUnit(u unit.Unit) {
	now := w.now
	w.upsert(u)
	w.do(func(s *State) { s.UpsertUnit(now, u) })
}

func (w *world) deleteUnit(key string) {
	now := w.now
	w.remove(key)
	w.do(func(s *State) { s.DeleteUnit(now, key) })
}

func (w *world) setPod(key string, p Pod) {
	now := w.now
	w.setPods(key, func(pods map[string]Pod) { pods[p.UID] = p })
	w.do(func(s *State) { s.SetPod(now, key, p) })
}

func (w *world) deletePod(key, uid string) {
	now := w.now
	w.setPods(key, func(pods map[string]Pod) { delete(pods, uid) })
	w.do(func(s *State) { s.DeletePod(now, key, uid) })
}

func (w *world) consumer(c unit.Consumer, live bool) {
	now := w.now
	w.setConsumer(c, live)
	w.do(func(s *State) { s.SetConsumer(now, c, live) })
}

func (w *world) settleUnit(key string, attempt int64, o transition.Outcome) {
	now := w.now
	w.settle(key, attempt, o)
	w.do(func(s *State) { s.Settle(now, key, attempt, o) })
}

// treeParents is the usual shape of the quota tree; events may change it.
var treeParents = map[string]string{
	"root": "", "a": "root", "b": "root", "a1": "a", "a2": "a", "a11": "a1", "b1": "b",
}

var levelNames = []string{"root", "a", "b", "a1", "a2", "a11", "b1"}

var leafNames = []string{"a11", "a2", "b1", "b", "nowhere"}

func drawList(t *rapid.T, label string, least, most int64, optional bool) resources.List {
	amounts := map[string]int64{}
	for _, k := range []string{"cpu", "gpu"} {
		if !optional || rapid.IntRange(0, 5).Draw(t, label+" names "+k) > 0 {
			amounts[k] = rapid.Int64Range(least, most).Draw(t, label+" "+k)
		}
	}
	return resources.FromMap(amounts)
}

func (w *world) drawQuota(t *rapid.T, name, parent string) {
	q := Quota{Name: name, Parent: parent,
		Limit: drawList(t, "limit", 0, 14, true), Max: drawList(t, "max", 2, 14, true), Min: drawList(t, "min", 0, 6, true),
		Used: drawList(t, "used", 0, 3, true), NonPreemptibleUsed: drawList(t, "npused", 0, 2, true),
	}
	switch name {
	case "root":
		q.Max, q.Min = resources.List{}, resources.List{}
	case "a", "b", "a1":
		// As a rule a parent guarantees what its children do, together.
		q.Min = drawList(t, "min of a parent", 2, 10, true)
	}
	if name != "root" {
		q.Shared = rapid.Bool().Draw(t, "shared")
		q.KeepsMin = rapid.IntRange(0, 4).Draw(t, "keeps") == 0
		q.Closed = rapid.IntRange(0, 19).Draw(t, "closed") == 0
	}
	q.Requested = q.Used.Add(drawList(t, "requested beyond used", 0, 2, true))
	if rapid.IntRange(0, 3).Draw(t, "limits jobs") == 0 {
		q.Limit = q.Limit.Add(resources.FromMap(map[string]int64{resources.Jobs: rapid.Int64Range(0, 4).Draw(t, "jobs")}))
	}
	w.putQuota(q)
}

func (w *world) putQuota(q Quota) {
	now := w.now
	w.model.setQuota(q)
	w.do(func(s *State) { s.SetQuota(now, q) })
}

func (w *world) putQueue(q queue.Spec) {
	now := w.now
	w.queues[q.Name] = q
	w.settleDown()
	w.do(func(s *State) { s.UpsertQueue(now, q) })
}

func (w *world) deleteQueue(name string) {
	now := w.now
	delete(w.queues, name)
	w.settleDown()
	w.do(func(s *State) { s.DeleteQueue(now, name) })
}

func drawQueue(t *rapid.T, name string) queue.Spec {
	q := queue.Spec{
		Name: name,
		Policy: rapid.SampledFrom(slices.Concat(policyNames, []string{"Block", "Priority", "Nonsense"})).
			Draw(t, "policy"),
		Priority:    rapid.Int32Range(0, 1).Draw(t, "queue priority"),
		Threshold:   2,
		Held:        rapid.IntRange(0, 9).Draw(t, "held") == 0,
		MaxAdmitted: rapid.SampledFrom([]int32{-1, -1, -1, 0, 1, 3}).Draw(t, "max admitted"),
	}
	q.MaxPending = rapid.SampledFrom([]int32{-1, -1, -1, -1, 0, 1, 2, 5}).Draw(t, "max pending")
	q.Drains = q.Held && rapid.Bool().Draw(t, "drains")
	if rapid.IntRange(0, 5).Draw(t, "restricted") == 0 {
		q.Quotas = []string{"a11", "b1"}
	}
	q.PerNamespace = drawBounds(t)
	q.HeartbeatTimeout = time.Duration(rapid.SampledFrom([]int{0, 0, 30}).Draw(t, "heartbeat timeout")) * time.Second
	if rapid.IntRange(0, 2).Draw(t, "timeouts") == 0 {
		draw := func(name string) time.Duration {
			return time.Duration(rapid.SampledFrom([]int{0, 10, 20, 40}).Draw(t, name)) * time.Second
		}
		q.Timeouts = &queue.Timeouts{
			Idle: draw("idle"), Unbound: draw("unbound"), PodsReady: draw("pods ready"), Recovery: draw("recovery"),
		}
		q.Execution = queue.ExecutionTimes{Default: draw("execution"), Most: draw("longest execution")}
		q.MostEvictions = rapid.Int64Range(0, 3).Draw(t, "most evictions")
	}
	if rapid.IntRange(0, 2).Draw(t, "has checks") == 0 {
		drawChecks(t, &q)
	}
	return q
}

func drawBounds(t *rapid.T) *queue.NamespaceBounds {
	if rapid.IntRange(0, 2).Draw(t, "per namespace") > 0 {
		return nil
	}
	return &queue.NamespaceBounds{
		MaxPending:  rapid.SampledFrom([]int32{-1, 0, 1, 2, 4}).Draw(t, "max pending of a namespace"),
		MaxAdmitted: rapid.SampledFrom([]int32{-1, 0, 1, 3}).Draw(t, "max admitted of a namespace"),
	}
}

// unitKey of the units of the properties, which are in two namespaces.
func unitKey(i int) string {
	if i%3 == 0 {
		return fmt.Sprintf("team/u%d", i)
	}
	return fmt.Sprintf("ns/u%d", i)
}

func drawUnit(t *rapid.T, i int) unit.Unit {
	u := unit.Unit{
		Key: unitKey(i), UID: fmt.Sprintf("uid-%d", i),
		Queue:    rapid.SampledFrom([]string{"q1", "q2", "q3", "q4", "q1", "q2", "q3", "q5"}).Draw(t, "queue"),
		Quota:    rapid.SampledFrom(leafNames).Draw(t, "quota"),
		Priority: rapid.Int32Range(0, 3).Draw(t, "priority"),
		Created:  epoch.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "created")) * time.Second),
		Request:  drawList(t, "request", 0, 5, true), Pods: 1,
		NonPreemptible: rapid.IntRange(0, 2).Draw(t, "np") == 0,
		Active:         rapid.IntRange(0, 19).Draw(t, "inactive") > 0,
		Phase:          unit.PhaseEnqueued,
		Labels:         rapid.SampledFrom(labels).Draw(t, "labels"),
	}
	drawGangs(t, &u)
	if rapid.Bool().Draw(t, "pods are known") {
		u.Expected = unit.Expected{
			Pods: rapid.Int64Range(1, 3).Draw(t, "expected pods"), Each: drawList(t, "each", 0, 2, false),
		}
	}
	switch rapid.IntRange(0, 14).Draw(t, "kind") {
	case 0:
		u.Phase, u.Held, u.Attempts = unit.PhaseRunning, u.Request, 1
		u.Admitted = epoch.Add(time.Duration(rapid.IntRange(-30, 30).Draw(t, "admitted at")) * time.Second)
		u.Heartbeat = epoch.Add(time.Duration(rapid.IntRange(-30, 90).Draw(t, "heartbeat")) * time.Second)
		if u.HeldPods = u.Pods; rapid.Bool().Draw(t, "has another size") {
			u.Held, u.HeldPods = drawList(t, "held", 0, 5, true), rapid.Int64Range(0, 2).Draw(t, "held pods")
			u.Adopted, u.Recorded = rapid.Bool().Draw(t, "adopted"), rapid.Bool().Draw(t, "recorded")
		}
		drawReservation(t, &u, []string{"x", "y"})
	case 1:
		u.Consumer = unit.Consumer{
			Kind: "Job.v1.batch", Namespace: "ns", Name: "j", UID: rapid.SampledFrom([]string{"j1", "j2"}).Draw(t, "consumer"),
		}
		u.Consumer.Name += u.Consumer.UID
		u.ConsumerManaged = rapid.Bool().Draw(t, "managed")
		u.Unsuspendable = rapid.IntRange(0, 3).Draw(t, "unsuspendable") == 0
		u.Requeues = rapid.Int64Range(0, 7).Draw(t, "requeues")
		if rapid.IntRange(0, 2).Draw(t, "admitted") == 0 {
			u.Phase, u.Held, u.HeldPods, u.Attempts = unit.PhaseDequeued, u.Request, u.Pods, 1
			u.Admitted = epoch.Add(time.Duration(rapid.IntRange(-30, 60).Draw(t, "admitted at")) * time.Second)
		}
		drawRun(t, &u)
		u.OwnedByConsumer = rapid.Bool().Draw(t, "owned")
		u.Misnamed = u.ConsumerManaged && rapid.IntRange(0, 3).Draw(t, "misnamed") == 0
	case 2:
		u.RequeueAt, u.Phase = epoch.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "requeue"))*time.Second),
			unit.PhaseTimeoutBackoff
	case 3:
		u.Pods = rapid.Int64Range(-1, 0).Draw(t, "pods")
	case 4:
		u.Phase = rapid.SampledFrom([]unit.Phase{
			unit.PhaseSucceed, unit.PhaseFailed, unit.PhaseNone, unit.PhasePreempted, unit.PhaseSchedFailed,
			unit.PhaseSchedReady, unit.PhaseSchedSucceed, "Odd",
		}).Draw(t, "phase")
	case 5:
		u.Adopting = true
	}
	if rapid.IntRange(0, 2).Draw(t, "may be smaller") == 0 && u.Pods > 0 {
		drawSizes(t, &u)
	}
	return u
}

// drawGangs puts some units into gang groups.
func drawGangs(t *rapid.T, u *unit.Unit) {
	if rapid.IntRange(0, 3).Draw(t, "in a gang group") > 0 {
		return
	}
	switch rapid.IntRange(0, 5).Draw(t, "gangs") {
	case 0, 1:
		u.GangGroup, u.Gangs = "x,y", "x"
	case 2, 3:
		u.GangGroup, u.Gangs = "x,y", "y"
	case 4:
		u.GangGroup, u.Gangs = "x,y,z", "x,y"
	case 5:
		u.GangGroup, u.Gangs = "x,y,z", "z"
	}
}

// drawSizes makes a unit one that may be admitted in part, or was.
func drawSizes(t *rapid.T, u *unit.Unit) {
	sets := make([]unit.PodSetSize, rapid.IntRange(1, 2).Draw(t, "pod sets"))
	for i := range sets {
		sets[i].Count = rapid.Int64Range(0, 5).Draw(t, "count")
		sets[i].Least = rapid.Int64Range(0, sets[i].Count).Draw(t, "least")
		if sets[i].Count > 0 {
			sets[i].Request = drawList(t, "request of a pod set", 0, 6, true)
		}
	}
	all := sizesOfSets(sets)
	if u.Sizes = unit.NewSizes(sets); len(all) == 1 {
		require.Nil(t, u.Sizes, "there is one size only")
		return
	}
	size, holds := all[0], u.Held.Len() > 0
	if holds {
		size = rapid.SampledFrom(all).Draw(t, "admitted with")
	}
	u.Request, u.Pods = size.request, size.pods
	if holds {
		u.Held, u.HeldPods = size.request, size.pods
	}
}

// drawRun is what is known of how the job of a unit runs.
func drawRun(t *rapid.T, u *unit.Unit) {
	seconds := func(name string) time.Duration {
		return time.Duration(rapid.SampledFrom([]int{0, 0, 5, 20}).Draw(t, name)) * time.Second
	}
	u.MaximumExecution, u.Executed = seconds("maximum execution"), seconds("executed")
	if rapid.Bool().Draw(t, "pods were ready") {
		u.RanSince = epoch.Add(time.Duration(rapid.IntRange(-30, 60).Draw(t, "ran since")) * time.Second)
	}
	switch rapid.IntRange(0, 3).Draw(t, "pods are ready") {
	case 0:
		u.Ready = true
	case 1:
		u.NotReadySince = epoch.Add(time.Duration(rapid.IntRange(-30, 60).Draw(t, "not ready since")) * time.Second)
	}
	if u.Phase == unit.PhaseDequeued {
		u.Phase = rapid.SampledFrom([]unit.Phase{
			unit.PhaseDequeued, unit.PhaseDequeued, unit.PhaseSchedSucceed, unit.PhaseRunning,
		}).Draw(t, "runs")
		drawReservation(t, u, []string{"x", "y"})
	}
	if rulebook.Waits(u.Phase) && rapid.IntRange(0, 9).Draw(t, "deactivate") == 0 {
		u.Deactivate = &unit.Deactivation{Reason: unit.ReasonRequeueLimitReached}
	}
	u.TemplatesWritten = rapid.IntRange(0, 5).Draw(t, "templates written") == 0
}

// step draws one event.
func (w *world) step(t *rapid.T) {
	now := w.now
	key := unitKey(rapid.IntRange(0, 24).Draw(t, "unit"))
	switch rapid.IntRange(0, 18).Draw(t, "event") {
	case 16, 17:
		w.stepChecked(t)
	case 18:
		w.stepDoor(t)
	case 0, 1, 2, 3:
		u := drawUnit(t, rapid.IntRange(0, 24).Draw(t, "unit number"))
		w.upsertUnit(u)
	case 4:
		w.deleteUnit(key)
	case 5, 6:
		name := rapid.SampledFrom(levelNames).Draw(t, "level")
		w.drawQuota(t, name, treeParents[name])
	case 7:
		w.moveQuota(t)
	case 8:
		w.putQueue(drawQueue(t, rapid.SampledFrom([]string{"q1", "q2", "q3", "q4"}).Draw(t, "queue")))
	case 9:
		w.stepPod(t, key)
	case 10:
		w.stepConsumer(t)
	case 11, 12:
		w.settleAll(t)
	case 13:
		w.end(t, key)
	case 14:
		w.now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
	case 15:
		if rapid.IntRange(0, 2).Draw(t, "delete queue") == 0 {
			w.deleteQueue(rapid.SampledFrom([]string{"q1", "q2", "q3", "q4"}).Draw(t, "queue"))
		}
	}
}

func (w *world) moveQuota(t *rapid.T) {
	now := w.now
	name := rapid.SampledFrom(levelNames[1:]).Draw(t, "moved level")
	switch rapid.IntRange(0, 2).Draw(t, "move") {
	case 0:
		w.deleteQuota(name)
		w.do(func(s *State) { s.DeleteQuota(now, name) })
	case 1:
		w.drawQuota(t, name, rapid.SampledFrom(levelNames).Draw(t, "new parent"))
	case 2:
		if q, ok := w.quotas[name]; ok {
			q.Parent = treeParents[name]
			w.putQuota(q)
		}
	}
}

func (w *world) stepPod(t *rapid.T, key string) {
	uid := rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "pod")
	if rapid.IntRange(0, 2).Draw(t, "delete pod") == 0 {
		w.deletePod(key, uid)
		return
	}
	p := Pod{UID: uid, Quota: rapid.SampledFrom(leafNames).Draw(t, "pod quota"), Request: drawList(t, "pod", 0, 3, true),
		NonPreemptible: rapid.Bool().Draw(t, "pod np"), Assigned: rapid.Bool().Draw(t, "assigned"),
		Leaving: rapid.IntRange(0, 4).Draw(t, "leaving") == 0, Held: rapid.IntRange(0, 3).Draw(t, "held") == 0}
	if p.Leaving {
		p.LeavingSince = w.now.Add(-time.Duration(rapid.SampledFrom([]int{0, 90, 118, 150}).Draw(t, "since")) * time.Second)
	}
	if u, ok := w.units[key]; ok && rapid.IntRange(0, 4).Draw(t, "charged elsewhere") > 0 {
		p.Quota = u.Quota
	}
	w.setPod(key, p)
}

func (w *world) stepConsumer(t *rapid.T) {
	c := unit.Consumer{
		Kind: "Job.v1.batch", Namespace: "ns", UID: rapid.SampledFrom([]string{"j1", "j2"}).Draw(t, "consumer"),
	}
	c.Name = "j" + c.UID
	w.consumer(c, rapid.IntRange(0, 3).Draw(t, "live") > 0)
}

// settleAll reports an outcome for some of the writes in flight.
func (w *world) settleAll(t *rapid.T) {
	for _, key := range w.keys() {
		if u := w.units[key]; u.inFlight() {
			w.settleUnit(key, u.attempt, rapid.SampledFrom([]transition.Outcome{
				transition.Confirmed, transition.Confirmed, transition.Confirmed, transition.Refuted, transition.Refused,
				transition.Unknown,
			}).Draw(t, "outcome"))
		}
	}
}

// end finishes a unit, or sends it back into its queue.
func (w *world) end(t *rapid.T, key string) {
	u, ok := w.units[key]
	if !ok {
		return
	}
	spec := u.Unit
	spec.Phase = rapid.SampledFrom([]unit.Phase{
		unit.PhaseSucceed, unit.PhaseEnqueued, unit.PhaseRunning, unit.PhaseTimeoutBackoff,
	}).
		Draw(t, "ends as")
	spec.Attempts = u.attempt
	if !rulebook.Holds(spec.Phase) {
		spec.Held, spec.HeldPods, spec.Recorded = resources.List{}, 0, false
		if sizes := sizesOf(spec); sizes != nil {
			spec.Request, spec.Pods = sizes[0].request, sizes[0].pods
		}
	}
	w.upsertUnit(spec)
}

// decide runs both and compares.
func (w *world) decide(t require.TestingT) {
	now := w.now
	want := w.o.decide()
	var got sorted
	w.do(func(s *State) {
		plan := byKind(s.Decide(now))
		w.plans = append(w.plans, plan)
		if s == w.s {
			got, w.wakeAt = plan, plan.WakeAt
		}
	})
	t = effort.Plain(t)
	require.Equal(t, want.evict, evictedBy(got), "evictions in order")
	for i := range got.Evict {
		w.checkEviction(t, got.Evict[i])
	}
	require.Equal(t, want.letGo, letGoBy(got), "releases in order")
	require.Equal(t, want.resize, resizedBy(got, false), "changes of what is held, in order")
	require.Equal(t, want.admit, keysOfPlan(got), "admissions in order")
	for i := range got.Admit {
		d := got.Admit[i]
		u := w.units[d.Unit.Key]
		require.True(t, d.Request.Equal(u.gets), "%s is admitted with %s, want %s", d.Unit.Key, d.Request, u.gets)
		require.Equal(t, u.getsPods, d.Pods, "pods of %s", d.Unit.Key)
		require.Equal(t, u.asks, d.Checks, "checks that %s is asked", d.Unit.Key)
	}
	require.Equal(t, want.grow, resizedBy(got, true), "growth in order")
	w.checkTogether(t, got.Admit)
	for i := range got.Resize {
		d := got.Resize[i]
		require.True(t, d.Held.Equal(w.units[d.Unit.Key].next), "%s is to hold %s, want %s", d.Unit.Key, d.Held,
			w.units[d.Unit.Key].next)
		require.Equal(t, w.units[d.Unit.Key].nextPods, d.Pods)
	}
	if !effort.Wide() {
		w.check(t)
	}
}

// checkTogether: an admission of a unit of a gang group needs a unit of each of its gangs. That one holds quota or,
// after an earlier admission, has ended.
func (w *world) checkTogether(t require.TestingT, admitted []*transition.Admit) {
	for _, a := range admitted {
		for _, gang := range gangsIn(a.Unit.GangGroup) {
			held, present := false, false
			for _, u := range w.units {
				if namespaceOf(u.Key) == namespaceOf(a.Unit.Key) && u.GangGroup == a.Unit.GangGroup &&
					slices.Contains(gangsIn(u.Gangs), gang) {
					held, present = held || u.holds, present || u.at != "over"
				}
			}
			require.True(t, held || !present && a.Unit.Attempts > 0, "%s is admitted without gang %s", a.Unit.Key, gang)
		}
	}
}

// checkEviction: a back-off is as long as a check says, or a minute, doubled with each time. At most a tenth is added,
// which the oracle does not know.
func (w *world) checkEviction(t require.TestingT, d *transition.Evict) {
	u := w.units[d.Unit.Key]
	e := &u.eviction
	require.Equal(t, e.reason, d.Reason, "why %s loses what it holds: %s", u.Key, d.Message)
	require.Equal(t, e.deactivates, d.Deactivate, "%s is not tried again: %s", u.Key, d.Message)
	require.Equal(t, e.executed, d.Executed, "%s has run for so long", u.Key)
	require.Equal(t, e.backsOff, !d.RequeueAt.IsZero(), "%s is tried again later: %s", u.Key, d.Message)
	if !e.backsOff {
		return
	}
	least, most := e.wait, e.wait
	if e.wait == 0 {
		least = time.Minute
		for range u.Requeues {
			least = min(2*least, 30*time.Minute)
		}
		most = least + least/10
	}
	require.Equal(t, e.requeues, d.Requeues)
	require.False(t, d.RequeueAt.Before(w.now.Add(least)))
	require.False(t, d.RequeueAt.After(w.now.Add(most)))
	e.until = d.RequeueAt
}

func letGoBy(p sorted) (keys []string) {
	for i := range p.Dequeue {
		keys = append(keys, p.Dequeue[i].Unit.Key)
	}
	return keys
}

// resizedBy lists the units that are to hold other than they do, having asked for it or not.
func resizedBy(p sorted, asked bool) (keys []string) {
	for i := range p.Resize {
		if p.Resize[i].Asked == asked {
			keys = append(keys, p.Resize[i].Unit.Key)
		}
	}
	return keys
}

func evictedBy(p sorted) (keys []string) {
	for i := range p.Evict {
		keys = append(keys, p.Evict[i].Unit.Key)
	}
	return keys
}

// unitsAtMost is how many units a history starts with.
func unitsAtMost(most int) int {
	if effort.Wide() {
		return most / 2
	}
	return most
}

// checkAtEnd checks at the end of a history what is checked after every step where histories are few.
func (w *world) checkAtEnd(t require.TestingT) {
	if effort.Wide() {
		w.check(effort.Plain(t))
	}
}

// check compares what the state says with a recount of the model.
func (w *world) check(t require.TestingT) {
	require.Empty(t, w.s.Audit().Ledger(), "ledger equals rebuild (I7)")
	require.Empty(t, w.s.Audit().Places(), "every unit is in one place (I2)")
	w.checkHoldings(t)
	w.checkReleases(t)
	w.checkGrants(t)
	w.checkCounts(t)
	w.checkPositions(t)
	w.checkOverdue(t)
	w.checkWake(t)
}

// checkHoldings: the ledger has what the model says that units hold.
func (w *world) checkHoldings(t require.TestingT) {
	w.o.count()
	for key, u := range w.units {
		require.Equal(t, ordered.MomentOf(u.growsSince), w.s.roster.units[key].growsSince, "%s began to ask for more", key)
		if !w.s.roster.units[key].holding {
			require.Zero(t, Of(w.s, key, time.Time{}, life.RunsUntil), "%s holds nothing", key)
		}
	}
	for _, name := range levelNames {
		if _, known := w.quotas[name]; !known {
			continue
		}
		for _, k := range []string{"cpu", "gpu"} {
			amount, _ := w.s.Holdings().Read(name).Outstanding().List().Get(k)
			require.Equal(t, w.o.outstanding(name, k, false), amount, "%s outstanding at %s", k, name)
		}
	}
}

// checkUntil: pods of a unit that can be suspended go for no longer than the unit itself.
func (w *world) checkUntil(t require.TestingT, key string, open bool) {
	var until time.Time
	if u := w.units[key]; open && !u.Unsuspendable && u.Consumer != (unit.Consumer{}) && !u.Admitted.IsZero() {
		if most := w.mayRun(u); most > 0 && !w.counts(u).IsZero() {
			until = w.counts(u).Add(most - u.Executed)
		}
	}
	require.Equal(t, until, Of(w.s, key, time.Time{}, life.RunsUntil), "%s runs until then", key)
}

// checkGrants: pods go only while their unit is admitted and at its quota, and none is kept for which there is room.
func (w *world) checkGrants(t require.TestingT) {
	for _, g := range w.s.Holdings().Grants() {
		if w.mayGo == nil {
			w.mayGo = map[string]bool{}
		}
		w.mayGo[g.Unit+" "+g.Pod] = g.MayGo
	}
	for key, pods := range w.pods {
		u := w.units[key]
		open := u != nil && (u.at == "admitted" || u.at == "resizing") && u.holds && rulebook.Releases(u.Phase)
		first := ""
		taken, leaving := map[string]int64{}, map[string]int64{}
		for uid, p := range pods {
			goes := w.s.Holdings().Granted(key, uid)
			require.Equal(t, goes, w.mayGo[key+" "+uid], "%s of %s was told otherwise", uid, key)
			at := u != nil && p.Quota == u.Quota
			require.True(t, open && at || !goes, "%s of %s must not go", uid, key)
			switch {
			case p.Assigned && w.ahead(p):
				for _, it := range p.Request.Items() {
					leaving[it.Name] += it.Amount
				}
			case (goes || p.Assigned) && !w.ahead(p): // whatever quota it is charged to
				for _, it := range p.Request.Items() {
					taken[it.Name] += it.Amount
				}
			case !goes && !p.Leaving && at && (first == "" || uid < first):
				first = uid
			}
		}
		if !open || first == "" {
			continue
		}
		fits := true
		for _, it := range pods[first].Request.Items() {
			most, _ := u.says().Get(it.Name)
			taken[it.Name] += max(0, leaving[it.Name]-most) // one generation of successors goes ahead
			fits = fits && (it.Amount == 0 || it.Amount <= most-taken[it.Name])
		}
		require.False(t, fits, "there is room for %s of %s, which holds %s", first, key, u.says())
	}
}

func (w *world) checkCounts(t require.TestingT) {
	demand := map[string]map[string]int64{}
	counts, sums := map[accounts.Pair]accounts.Counts{}, map[string]accounts.Counts{}
	for key, u := range w.units {
		if u.at == "over" {
			continue
		}
		pending := u.at == "admitting" || u.at == "waiting" && w.eligible(u) && w.inside(u, nil)
		p := accounts.Pair{Queue: u.Queue, Quota: u.Quota}
		c, sum := counts[p], sums[u.Queue]
		c.Queue, c.Quota, sum.Queue = p.Queue, p.Quota, p.Queue
		switch {
		case pending:
			c.Pending, sum.Pending = c.Pending+1, sum.Pending+1
		case u.at == "waiting":
			c.Parked, sum.Parked = c.Parked+1, sum.Parked+1
		default:
			c.Admitted, sum.Admitted = c.Admitted+1, sum.Admitted+1
		}
		counts[p], sums[u.Queue] = c, sum
		if !u.holds && !pending {
			continue
		}
		want, bound := u.Request, u.Expected
		if u.holds {
			want, bound = u.held, u.bound()
		}
		if demand[p.Quota] == nil {
			demand[p.Quota] = map[string]int64{}
		}
		for _, it := range want.Items() {
			amount, missing := it.Amount, bound.Pods
			for _, pod := range w.pods[key] {
				if pod.Quota == p.Quota && !w.ahead(pod) {
					r, _ := pod.Request.Get(it.Name)
					amount -= r
					missing--
				}
			}
			demand[p.Quota][it.Name] += mostOutstanding(bound, amount, it.Name, missing)
		}
	}
	for _, c := range w.s.Accounts().ChangedCounts() {
		if w.shown == nil {
			w.shown = map[accounts.Pair]accounts.Counts{}
		}
		if w.shown[accounts.Pair{Queue: c.Queue, Quota: c.Quota}] = c; c.Pending+c.Admitted+c.Parked == 0 {
			delete(w.shown, accounts.Pair{Queue: c.Queue, Quota: c.Quota})
		}
	}
	require.Len(t, w.shown, len(counts))
	for _, c := range w.s.Accounts().Counts() {
		require.Equal(t, c, w.shown[accounts.Pair{Queue: c.Queue, Quota: c.Quota}])
		require.Equal(t, counts[accounts.Pair{Queue: c.Queue, Quota: c.Quota}], c)
		delete(counts, accounts.Pair{Queue: c.Queue, Quota: c.Quota})
	}
	require.Empty(t, counts)
	for name, sum := range sums {
		require.Equal(t, sum, w.s.Accounts().CountsOf(name))
	}
	for _, quota := range w.s.Accounts().DirtyDemand() {
		w.demand(quota)
	}
	for _, name := range leafNames {
		require.True(t, w.s.Accounts().Demand(name).Equal(resources.FromMap(demand[name])), "demand of %s: %s, want %v", name,
			w.s.Accounts().Demand(name), demand[name])
		require.True(t, w.told[name].Equal(w.s.Accounts().Demand(name)), "demand of %s was told as %s", name, w.told[name])
	}
}

// demand is told whenever it changed.
func (w *world) demand(quota string) {
	if w.told == nil {
		w.told = map[string]resources.List{}
	}
	w.told[quota] = w.s.Accounts().Demand(quota)
}

// checkPositions: lines are sorted, and nobody in them fits.
func (w *world) checkPositions(t require.TestingT) {
	for _, name := range []string{"q1", "q2", "q3", "q4", "q5"} {
		var want []unit.Unit
		for _, u := range w.units {
			if _, _, grows := w.growth(u); u.Queue == name && (grows || (w.inLine(u) && w.inside(u, nil))) {
				want = append(want, u.asIt())
			}
		}
		spec := w.queues[name]
		slices.SortFunc(want, func(a, b unit.Unit) int {
			if servedBefore(spec.Policy, a, b) {
				return -1
			}
			return 1
		})
		first := w.s.First(name, 1000)
		require.Len(t, first, len(want))
		for i, u := range want {
			position, ok := w.s.Position(u.Key)
			require.True(t, ok)
			require.Equal(t, i+1, position)
			require.Equal(t, u.Key, first[i].Unit.Key)
			require.NotEqual(t, unit.ReasonPending, first[i].Reason, "%s fits, yet it was not admitted: %s", u.Key,
				first[i].Message)
			w.checkExplanation(t, first[i])
		}
		w.checkPage(t, name, first)
	}
}

// checkOverdue: a unit that is not to go says of pods alone that nothing lets them go.
func (w *world) checkOverdue(t require.TestingT) {
	for key, u := range w.s.roster.units {
		if u.isAdmitted() && u.overdue.Reason != "" {
			require.Equal(t, w.o.astray(w.units[key]), u.overdue.Reason, "what %s says of its pods", key)
		} else if u.isAdmitted() && u.spec.Unsuspendable {
			m := w.units[key]
			_, goes := w.o.goes(m)
			require.False(t, !goes && w.o.astray(m) != "", "%s does not say it", key)
		}
	}
}

// checkExplanation compares the reported shortages of a unit with those of the oracle, which examined all eligible
// units in a queue that is not full.
func (w *world) checkExplanation(t require.TestingT, u Waiting) {
	e, ok := w.s.Explain(u.Unit.Key)
	require.True(t, ok)
	require.Equal(t, u.Position, e.Position)
	if u.Unit.Phase == unit.PhaseReserved { // that it asks for more as well does not matter yet
		require.Equal(t, unit.ReasonWaitingForChecks, e.Reason)
		return
	}
	require.Equal(t, u.Reason, e.Reason)
	require.Equal(t, u.Message, e.Message)
	bindings, missing := 0, map[string]int64{}
	for _, sh := range e.Shortages {
		if sh.Binds {
			bindings++
			require.Contains(t, e.Message, strconv.Quote(sh.Level))
			require.Contains(t, e.Message, sh.Resource)
		}
		gate := sh.Level
		if sh.Kind == decide.LimitMin {
			gate += "/min"
		}
		missing[gate+" "+sh.Resource] = sh.Missing
		require.Equal(t, sh.Limit-sh.Used-sh.Outstanding-sh.Guaranteed, sh.Free)
		require.GreaterOrEqual(t, sh.Guaranteed, int64(0))
		require.Equal(t, sh.Used, sh.UsedByUnits+sh.UsedByOthers)
		require.GreaterOrEqual(t, sh.UsedByOthers, int64(0))
	}
	switch e.Reason {
	case unit.ReasonQuotaExceeded, unit.ReasonMinExceeded, unit.ReasonBlockedByHead,
		unit.ReasonExceedsGuaranteedShare:
		require.Equal(t, 1, bindings)
		require.Equal(t, w.o.missing[u.Unit.Key], missing, "what %s lacks", u.Unit.Key)
	case unit.ReasonExceedsMax, unit.ReasonExceedsMin:
		require.Equal(t, 1, bindings)
	default:
		require.Zero(t, bindings)
	}
}

func (w *world) populate(t *rapid.T) {
	for _, name := range levelNames {
		w.drawQuota(t, name, treeParents[name])
	}
	for _, name := range []string{"q1", "q2", "q3", "q4"} {
		w.putQueue(drawQueue(t, name))
	}
	for i := range rapid.IntRange(0, unitsAtMost(25)).Draw(t, "units") {
		u := drawUnit(t, i)
		w.upsertUnit(u)
	}
}

// The indexed core admits exactly what sort-and-greedy admits, in the same order, after any history (I1, I4, I5, I6).
func TestIndexedEqualsGreedy(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.populate(t)
		w.decide(t)
		for range rapid.IntRange(0, effort.Steps(40)).Draw(t, "steps") {
			w.step(t)
			if rapid.IntRange(0, 2).Draw(t, "decide") > 0 {
				w.decide(t)
			}
		}
		w.decide(t)
		w.checkAtEnd(t)
	})
}

// crowd fills a valid tree with valid units, most of them in blocking queues, so that claims meet on every level.
func (w *world) crowd(t *rapid.T) {
	for _, name := range levelNames {
		w.tighten(t, name)
	}
	for _, name := range []string{"q1", "q2", "q3", "q4"} {
		q := queue.Spec{
			Name:     name,
			Policy:   rapid.SampledFrom(policyNames).Draw(t, "policy"),
			Priority: rapid.SampledFrom([]int32{0, 0, 0, 1}).Draw(t, "queue priority"), Threshold: 2,
			MaxPending:   -1,
			MaxAdmitted:  rapid.SampledFrom([]int32{-1, -1, -1, 4}).Draw(t, "max admitted"),
			PerNamespace: drawBounds(t),
		}
		if rapid.IntRange(0, 3).Draw(t, "has checks") == 0 {
			drawChecks(t, &q)
		}
		w.putQueue(q)
	}
	for i := range rapid.IntRange(5, unitsAtMost(30)).Draw(t, "units") {
		w.enter(t, i)
	}
}

func (w *world) tighten(t *rapid.T, name string) {
	room := map[string]int64{"root": 14, "a": 10, "b": 8}[name]
	if room == 0 {
		room = 7
	}
	q := Quota{Name: name, Parent: treeParents[name],
		Limit: drawList(t, "limit", room/2, room, false), Min: drawList(t, "min", 2, room-1, false),
		Used: drawList(t, "used", 0, 2, false), NonPreemptibleUsed: drawList(t, "npused", 0, 1, false),
	}
	if name == "root" {
		q.Min = resources.List{}
	} else if q.Shared = rapid.Bool().Draw(t, "shared"); q.Shared {
		q.Max = q.Limit.Add(drawList(t, "max beyond limit", 0, 5, false))
		q.KeepsMin = rapid.IntRange(0, 5).Draw(t, "keeps") == 0
	}
	q.Requested = q.Used.Add(drawList(t, "requested beyond used", 0, 1, false))
	w.putQuota(q)
}

func (w *world) enter(t *rapid.T, i int) {
	u := unit.Unit{
		Key: unitKey(i), UID: fmt.Sprintf("uid-%d", i),
		Queue:    rapid.SampledFrom([]string{"q1", "q2", "q3", "q4"}).Draw(t, "queue"),
		Quota:    rapid.SampledFrom([]string{"a11", "a2", "b1", "b"}).Draw(t, "quota"),
		Priority: rapid.Int32Range(0, 3).Draw(t, "priority"),
		Created:  epoch.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "created")) * time.Second),
		Request:  drawList(t, "request", 0, 4, false), Pods: 1, Active: true,
		NonPreemptible: rapid.IntRange(0, 2).Draw(t, "np") == 0,
		Labels:         rapid.SampledFrom(labels).Draw(t, "labels"),
	}
	drawGangs(t, &u)
	w.upsertUnit(u)
}

func (w *world) stepCrowd(t *rapid.T) {
	i := rapid.IntRange(0, 34).Draw(t, "unit")
	key := unitKey(i)
	switch rapid.IntRange(0, 11).Draw(t, "event") {
	case 10:
		w.stepChecked(t)
	case 11:
		w.stepDoor(t)
	case 0, 1:
		w.enter(t, i)
	case 2, 3:
		w.deleteUnit(key)
	case 4, 5:
		w.tighten(t, rapid.SampledFrom(levelNames).Draw(t, "level"))
	case 6:
		w.stepPod(t, key)
	case 7:
		w.settleAll(t)
	case 8:
		q := w.queues[rapid.SampledFrom([]string{"q1", "q2", "q3", "q4"}).Draw(t, "queue")]
		q.Priority = rapid.Int32Range(0, 1).Draw(t, "queue priority")
		w.putQueue(q)
	case 9:
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "seconds")) * time.Second)
	}
}

// The same where claims of several lines meet on several levels.
func TestIndexedEqualsGreedyUnderClaims(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.crowd(t)
		w.decide(t)
		for range rapid.IntRange(0, effort.Steps(40)).Draw(t, "steps") {
			w.stepCrowd(t)
			w.decide(t)
		}
		w.checkAtEnd(t)
	})
}

// A new state that is fed with the objects, kind by kind in any order, decides as the old one goes on (I8).
func TestRestartEqualsContinuation(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		w := drawFilters(t, Config{})
		w.crowd(t)
		for range rapid.IntRange(0, effort.Steps(15)).Draw(t, "steps") {
			w.stepCrowd(t)
			w.decide(t)
		}
		now := w.now
		for _, key := range w.keys() {
			w.settleUnit(key, w.units[key].attempt, transition.Confirmed)
		}
		w.tighten(t, rapid.SampledFrom(levelNames).Draw(t, "level"))
		w.forgetRemnants()
		// Backoff after refused writes and the places of units that went are kept in memory only.
		w.now = now.Add(time.Hour)
		now = w.o.now
		again := w.restart(rapid.Permutation([]string{"units", "queues", "quotas", "pods"}).Draw(t, "order"))
		w.s.roster.endReplacements(now)
		for _, name := range levelNames {
			is, was := again.Holdings().Read(name).Outstanding().List(), w.s.Holdings().Read(name).Outstanding().List()
			require.True(t, was.Equal(is), "outstanding at %s", name)
		}
		before, after := byKind(w.s.Decide(now)), byKind(again.Decide(now))
		require.Equal(t, evictedBy(before), evictedBy(after))
		require.Equal(t, letGoBy(before), letGoBy(after))
		require.Equal(t, keysOfPlan(before), keysOfPlan(after))
		require.Equal(t, resizedBy(before, false), resizedBy(after, false))
		require.Equal(t, resizedBy(before, true), resizedBy(after, true))
		require.Equal(t, w.s.Accounts().Counts(), again.Accounts().Counts())
		require.Empty(t, again.Audit().Ledger())
	})
}

// forgetRemnants ends the pods of units that hold nothing.
func (w *world) forgetRemnants() {
	for key := range w.remnants() {
		for _, uid := range []string{"p1", "p2"} {
			w.deletePod(key, uid)
		}
	}
}

func (w *world) restart(kinds []string) *State {
	s, now := New(*w.s.roster.cfg), w.now
	for _, kind := range kinds {
		switch kind {
		case "units":
			for _, u := range w.units {
				in := u.Unit
				in.NonPreemptible, in.ResizePending = u.onMin, ordered.MomentOf(u.growsSince) // as the object says it
				s.UpsertUnit(now, in)
			}
		case "queues":
			for _, q := range w.queues {
				s.UpsertQueue(now, q)
			}
		case "quotas":
			for _, q := range w.quotas {
				s.SetQuota(now, q)
			}
		case "pods":
			for key, pods := range w.pods {
				for _, p := range pods {
					s.SetPod(now, key, p)
				}
			}
		}
	}
	return s
}

func keysOfPlan(p sorted) (keys []string) {
	for _, a := range p.Admit {
		keys = append(keys, a.Unit.Key)
	}
	return keys
}

// The same events give the same plans, whatever the order of maps (I13).
func TestDeterminism(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.populate(t)
		w.decide(t)
		for range rapid.IntRange(0, effort.Steps(30)).Draw(t, "steps") {
			w.step(t)
			w.decide(t)
		}
		first := w.plans
		w.plans = nil
		again := New(*w.s.roster.cfg)
		for _, event := range w.journal {
			event(again)
		}
		require.Equal(t, first, w.plans)
	})
}
