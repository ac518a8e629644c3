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
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/testing/effort"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world feeds the same random events to the state and to the plain maps that the oracle reads.
type world struct {
	s *State
	o *oracle
	// shown is what ChangedCounts said so far.
	shown map[pair]QueueCounts
	// journal repeats the events for the determinism test.
	journal []func(*State)
	plans   []string
}

func newWorld() *world {
	s := New(Config{ExplainAfter: 5 * time.Second, ExplainEvery: 30 * time.Second, RefusedBackoff: 10 * time.Second})
	return &world{s: s, o: &oracle{
		s: s, now: epoch,
		queues: map[string]Queue{}, quotas: map[string]Quota{}, pods: map[string]map[string]Pod{}, live: map[string]Consumer{},
	}}
}

func (w *world) do(event func(*State)) {
	w.journal = append(w.journal, event)
	event(w.s)
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

func (w *world) setQuota(t *rapid.T, name, parent string) {
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
	}
	q.Requested = q.Used.Add(drawList(t, "requested beyond used", 0, 2, true))
	if rapid.IntRange(0, 3).Draw(t, "limits jobs") == 0 {
		q.Limit = q.Limit.Add(resources.FromMap(map[string]int64{resources.Jobs: rapid.Int64Range(0, 4).Draw(t, "jobs")}))
	}
	w.putQuota(q)
}

func (w *world) putQuota(q Quota) {
	w.o.quotas[q.Name] = q
	now := w.o.now
	w.do(func(s *State) { s.SetQuota(now, q) })
}

func (w *world) putQueue(q Queue) {
	w.o.queues[q.Name] = q
	now := w.o.now
	w.do(func(s *State) { s.UpsertQueue(now, q) })
}

func drawQueue(t *rapid.T, name string) Queue {
	q := Queue{
		Name:        name,
		Policy:      rapid.SampledFrom([]string{"Priority", "FIFO", "Block", "Intelligent", "Block", "Priority", "Nonsense"}).Draw(t, "policy"),
		Priority:    rapid.Int32Range(0, 1).Draw(t, "queue priority"),
		Threshold:   2,
		Held:        rapid.IntRange(0, 9).Draw(t, "held") == 0,
		MaxAdmitted: rapid.SampledFrom([]int32{-1, -1, -1, 0, 1, 3}).Draw(t, "max admitted"),
	}
	if rapid.IntRange(0, 5).Draw(t, "restricted") == 0 {
		q.Quotas = []string{"a11", "b1"}
	}
	return q
}

func drawUnit(t *rapid.T, i int) Unit {
	u := Unit{
		Key: fmt.Sprintf("ns/u%d", i), UID: fmt.Sprintf("uid-%d", i),
		Queue:    rapid.SampledFrom([]string{"q1", "q2", "q3", "q4", "q1", "q2", "q3", "q5"}).Draw(t, "queue"),
		Quota:    rapid.SampledFrom(leafNames).Draw(t, "quota"),
		Priority: rapid.Int32Range(0, 3).Draw(t, "priority"),
		Created:  epoch.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "created")) * time.Second),
		Request:  drawList(t, "request", 0, 5, true), Pods: 1,
		NonPreemptible: rapid.IntRange(0, 2).Draw(t, "np") == 0,
		Active:         rapid.IntRange(0, 19).Draw(t, "inactive") > 0,
		Phase:          PhaseEnqueued,
	}
	if rapid.Bool().Draw(t, "pods are known") {
		u.Expected = Expected{Pods: rapid.Int64Range(1, 3).Draw(t, "expected pods"), Each: drawList(t, "each", 0, 2, false)}
	}
	switch rapid.IntRange(0, 14).Draw(t, "kind") {
	case 0:
		u.Phase, u.Held, u.Attempts = PhaseRunning, u.Request, 1
	case 1:
		u.Consumer = Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: "j", UID: rapid.SampledFrom([]string{"j1", "j2"}).Draw(t, "consumer")}
		u.Consumer.Name += u.Consumer.UID
		u.ConsumerManaged = rapid.Bool().Draw(t, "managed")
		u.OwnedByConsumer = rapid.Bool().Draw(t, "owned")
		u.Misnamed = u.ConsumerManaged && rapid.Bool().Draw(t, "misnamed")
	case 2:
		u.RequeueAt, u.Phase = epoch.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "requeue"))*time.Second), PhaseTimeoutBackoff
	case 3:
		u.Pods = rapid.Int64Range(-1, 0).Draw(t, "pods")
	case 4:
		u.Phase = PhaseSucceed
	}
	return u
}

// step draws one event.
func (w *world) step(t *rapid.T) {
	now := w.o.now
	key := fmt.Sprintf("ns/u%d", rapid.IntRange(0, 24).Draw(t, "unit"))
	switch rapid.IntRange(0, 15).Draw(t, "event") {
	case 0, 1, 2, 3:
		u := drawUnit(t, rapid.IntRange(0, 24).Draw(t, "unit number"))
		w.do(func(s *State) { s.UpsertUnit(now, u) })
	case 4:
		w.do(func(s *State) { s.DeleteUnit(now, key) })
	case 5, 6:
		name := rapid.SampledFrom(levelNames).Draw(t, "level")
		w.setQuota(t, name, treeParents[name])
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
		w.o.now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
	case 15:
		if rapid.IntRange(0, 2).Draw(t, "delete queue") == 0 {
			name := rapid.SampledFrom([]string{"q1", "q2", "q3", "q4"}).Draw(t, "queue")
			delete(w.o.queues, name)
			w.do(func(s *State) { s.DeleteQueue(now, name) })
		}
	}
}

func (w *world) moveQuota(t *rapid.T) {
	now := w.o.now
	name := rapid.SampledFrom(levelNames[1:]).Draw(t, "moved level")
	switch rapid.IntRange(0, 2).Draw(t, "move") {
	case 0:
		delete(w.o.quotas, name)
		w.do(func(s *State) { s.DeleteQuota(now, name) })
	case 1:
		w.setQuota(t, name, rapid.SampledFrom(levelNames).Draw(t, "new parent"))
	case 2:
		if q, ok := w.o.quotas[name]; ok {
			q.Parent = treeParents[name]
			w.putQuota(q)
		}
	}
}

func (w *world) stepPod(t *rapid.T, key string) {
	now := w.o.now
	uid := rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "pod")
	if rapid.IntRange(0, 2).Draw(t, "delete pod") == 0 {
		delete(w.o.pods[key], uid)
		w.do(func(s *State) { s.DeletePod(now, key, uid) })
		return
	}
	p := Pod{UID: uid, Quota: rapid.SampledFrom(leafNames).Draw(t, "pod quota"), Request: drawList(t, "pod", 0, 3, true),
		NonPreemptible: rapid.Bool().Draw(t, "pod np"), Assigned: rapid.Bool().Draw(t, "assigned")}
	if u, ok := w.s.units[key]; ok {
		p.Quota = u.spec.Quota
	}
	if w.o.pods[key] == nil {
		w.o.pods[key] = map[string]Pod{}
	}
	w.o.pods[key][uid] = p
	w.do(func(s *State) { s.SetPod(now, key, p) })
}

func (w *world) stepConsumer(t *rapid.T) {
	now := w.o.now
	c := Consumer{Kind: "Job.v1.batch", Namespace: "ns", UID: rapid.SampledFrom([]string{"j1", "j2"}).Draw(t, "consumer")}
	c.Name = "j" + c.UID
	live := rapid.IntRange(0, 3).Draw(t, "live") > 0
	if live {
		w.o.live[c.UID] = c
	} else {
		delete(w.o.live, c.UID)
	}
	w.do(func(s *State) { s.SetConsumer(now, c, live) })
}

// settleAll reports an outcome for some of the writes in flight.
func (w *world) settleAll(t *rapid.T) {
	now := w.o.now
	for _, key := range w.keys() {
		u := w.s.units[key]
		if !u.inFlight() {
			continue
		}
		o := rapid.SampledFrom([]Outcome{OutcomeConfirmed, OutcomeConfirmed, OutcomeConfirmed, OutcomeRefuted, OutcomeRefused, OutcomeUnknown}).Draw(t, "outcome")
		attempt := u.attempt
		w.do(func(s *State) { s.Settle(now, key, attempt, o) })
	}
}

// end finishes a unit, or sends it back into its queue.
func (w *world) end(t *rapid.T, key string) {
	now := w.o.now
	u, ok := w.s.units[key]
	if !ok {
		return
	}
	spec := u.spec.unit()
	spec.Phase = rapid.SampledFrom([]Phase{PhaseSucceed, PhaseEnqueued, PhaseRunning, PhaseTimeoutBackoff}).Draw(t, "ends as")
	spec.Attempts = u.attempt
	if !spec.Phase.Holds() {
		spec.Held = resources.List{}
	}
	w.do(func(s *State) { s.UpsertUnit(now, spec) })
}

func (w *world) keys() []string {
	keys := make([]string, 0, len(w.s.units))
	for key := range w.s.units {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// decide runs both and compares.
func (w *world) decide(t require.TestingT) {
	now := w.o.now
	w.s.resume(now) // what time alone makes eligible; Decide does it first
	want := w.o.run()
	var got []string
	w.do(func(s *State) {
		plan := s.Decide(now)
		if s != w.s {
			w.plans = append(w.plans, dump(plan))
			return
		}
		w.plans = append(w.plans, dump(plan))
		for _, a := range plan.Admit {
			got = append(got, a.Unit.Key)
		}
	})
	t = effort.Plain(t)
	require.Equal(t, want, got, "admissions in order")
	if !effort.Wide() {
		w.check(t)
	}
}

// units that a history starts with, at most.
func units(most int) int {
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

func dump(p Plan) string { return fmt.Sprintf("%v", p) }

// check compares every index of the state with a recount.
func (w *world) check(t require.TestingT) {
	require.Empty(t, w.s.Verify(), "ledger equals rebuild (I7)")
	require.Empty(t, w.s.VerifyPlaces(), "every unit is in one place (I2)")
	demand := map[string]map[string]int64{}
	counts := map[pair]QueueCounts{}
	for key, u := range w.s.units {
		p := pair{u.spec.Queue, u.spec.Quota}
		c := counts[p]
		c.Queue, c.Quota = p.queue, p.quota
		eligible := u.stage == stageWaiting && w.o.eligible(u)
		switch {
		case u.stage == stageAdmitted || u.stage == stageEvicting:
			c.Admitted++
		case u.stage == stageAdmitting || eligible:
			c.Pending++
		case u.stage == stageWaiting:
			c.Parked++
		default:
			continue
		}
		counts[p] = c
		if u.holding || eligible {
			want := u.spec.Request
			if u.holding {
				want = u.held
			}
			if demand[p.quota] == nil {
				demand[p.quota] = map[string]int64{}
			}
			for _, it := range want.Items() {
				amount, missing := it.Amount, u.spec.Expected.Pods
				for _, pod := range w.o.pods[key] {
					if pod.Quota == p.quota {
						r, _ := pod.Request.Get(it.Name)
						amount -= r
						missing--
					}
				}
				demand[p.quota][it.Name] += mostOutstanding(u.spec.Expected, amount, it.Name, missing)
			}
		}
	}
	for _, c := range w.s.ChangedCounts() {
		if w.shown == nil {
			w.shown = map[pair]QueueCounts{}
		}
		if w.shown[pair{c.Queue, c.Quota}] = c; c.empty() {
			delete(w.shown, pair{c.Queue, c.Quota})
		}
	}
	require.Len(t, w.shown, len(counts))
	sums := map[string]QueueCounts{}
	for _, c := range w.s.Counts() {
		require.Equal(t, c, w.shown[pair{c.Queue, c.Quota}])
		require.Equal(t, counts[pair{c.Queue, c.Quota}], c)
		delete(counts, pair{c.Queue, c.Quota})
		sum := sums[c.Queue]
		sums[c.Queue] = QueueCounts{
			Queue: c.Queue, Pending: sum.Pending + c.Pending, Admitted: sum.Admitted + c.Admitted, Parked: sum.Parked + c.Parked,
		}
	}
	require.Len(t, w.s.countsOf, len(sums))
	for name, sum := range sums {
		require.Equal(t, sum, w.s.CountsOf(name))
	}
	require.Empty(t, counts)
	for _, name := range leafNames {
		require.True(t, w.s.Demand(name).Equal(resources.FromMap(demand[name])), "demand of %s: %s, want %v", name, w.s.Demand(name), demand[name])
	}
	w.checkPositions(t)
}

func (w *world) checkPositions(t require.TestingT) {
	for name, q := range w.s.queues {
		require.Zero(t, q.dirty.Len()+len(w.s.woken)+len(w.s.lendable)+len(w.s.eased), "nothing is dirty after Decide")
		var want []Unit
		for _, u := range w.s.units {
			if u.group != nil && u.spec.Queue == name {
				want = append(want, u.spec.unit())
			}
		}
		spec := w.o.queues[name]
		slices.SortFunc(want, func(a, b Unit) int {
			if w.o.before(spec, a, b) {
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
			require.NotEqual(t, ReasonPending, first[i].Reason, "%s fits, yet it was not admitted: %s", u.Key, first[i].Message)
			w.checkExplanation(t, first[i])
		}
	}
}

// checkExplanation compares what a unit is said to lack with what the oracle found it to lack, which looked at all that
// is eligible in a queue that is not full.
func (w *world) checkExplanation(t require.TestingT, u Waiting) {
	e, ok := w.s.Explain(u.Unit.Key)
	require.True(t, ok)
	require.Equal(t, u.Reason, e.Reason)
	require.Equal(t, u.Message, e.Message)
	require.Equal(t, u.Position, e.Position)
	bindings, missing := 0, map[string]int64{}
	for _, sh := range e.Shortages {
		if sh.Binds {
			bindings++
			require.Contains(t, e.Message, strconv.Quote(sh.Level))
			require.Contains(t, e.Message, sh.Resource)
		}
		gate := sh.Level
		if sh.Bound == BoundMin {
			gate += "/min"
		}
		missing[gate+" "+sh.Resource] = sh.Missing
		require.Equal(t, sh.Limit-sh.Used-sh.Outstanding, sh.Free)
		require.Equal(t, sh.Used, sh.UsedByUnits+sh.UsedByOthers)
		require.GreaterOrEqual(t, sh.UsedByOthers, int64(0))
	}
	switch e.Reason {
	case ReasonQuotaExceeded, ReasonMinExceeded, ReasonBlockedByHead:
		require.Equal(t, 1, bindings)
		require.Equal(t, w.o.missing[u.Unit.Key], missing, "what %s lacks", u.Unit.Key)
	case ReasonExceedsMax, ReasonExceedsMin:
		require.Equal(t, 1, bindings)
	default:
		require.Zero(t, bindings)
	}
}

func (w *world) populate(t *rapid.T) {
	for _, name := range levelNames {
		w.setQuota(t, name, treeParents[name])
	}
	for _, name := range []string{"q1", "q2", "q3", "q4"} {
		w.putQueue(drawQueue(t, name))
	}
	for i := range rapid.IntRange(0, units(25)).Draw(t, "units") {
		u := drawUnit(t, i)
		now := w.o.now
		w.do(func(s *State) { s.UpsertUnit(now, u) })
	}
}

// The indexed core admits exactly what sort-and-greedy admits, in the same order, after any history (I1, I4, I5, I6).
func TestIndexedEqualsGreedy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
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

// crowd fills a tree that is well formed with units that are all valid, most of them in blocking queues, so
// that claims meet on every level.
func (w *world) crowd(t *rapid.T) {
	for _, name := range levelNames {
		w.tighten(t, name)
	}
	for _, name := range []string{"q1", "q2", "q3", "q4"} {
		w.putQueue(Queue{
			Name:     name,
			Policy:   rapid.SampledFrom([]string{"Block", "FIFO", "Intelligent", "Priority"}).Draw(t, "policy"),
			Priority: rapid.SampledFrom([]int32{0, 0, 0, 1}).Draw(t, "queue priority"), Threshold: 2,
			MaxAdmitted: rapid.SampledFrom([]int32{-1, -1, -1, 4}).Draw(t, "max admitted"),
		})
	}
	for i := range rapid.IntRange(5, units(30)).Draw(t, "units") {
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
	now := w.o.now
	u := Unit{
		Key: fmt.Sprintf("ns/u%d", i), UID: fmt.Sprintf("uid-%d", i),
		Queue:    rapid.SampledFrom([]string{"q1", "q2", "q3", "q4"}).Draw(t, "queue"),
		Quota:    rapid.SampledFrom([]string{"a11", "a2", "b1", "b"}).Draw(t, "quota"),
		Priority: rapid.Int32Range(0, 3).Draw(t, "priority"),
		Created:  epoch.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "created")) * time.Second),
		Request:  drawList(t, "request", 0, 4, false), Pods: 1, Active: true,
		NonPreemptible: rapid.IntRange(0, 2).Draw(t, "np") == 0,
	}
	w.do(func(s *State) { s.UpsertUnit(now, u) })
}

func (w *world) stepCrowd(t *rapid.T) {
	now := w.o.now
	i := rapid.IntRange(0, 34).Draw(t, "unit")
	key := fmt.Sprintf("ns/u%d", i)
	switch rapid.IntRange(0, 8).Draw(t, "event") {
	case 0, 1:
		w.enter(t, i)
	case 2, 3:
		w.do(func(s *State) { s.DeleteUnit(now, key) })
	case 4, 5:
		w.tighten(t, rapid.SampledFrom(levelNames).Draw(t, "level"))
	case 6:
		w.stepPod(t, key)
	case 7:
		w.settleAll(t)
	case 8:
		q := w.o.queues[rapid.SampledFrom([]string{"q1", "q2", "q3", "q4"}).Draw(t, "queue")]
		q.Priority = rapid.Int32Range(0, 1).Draw(t, "queue priority")
		w.putQueue(q)
	}
}

// The same where claims of several lines meet on several levels.
func TestIndexedEqualsGreedyUnderClaims(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
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
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.crowd(t)
		for range rapid.IntRange(0, effort.Steps(15)).Draw(t, "steps") {
			w.stepCrowd(t)
			w.decide(t)
		}
		now := w.o.now
		for _, key := range w.keys() {
			w.s.Settle(now, key, w.s.units[key].attempt, OutcomeConfirmed)
		}
		w.tighten(t, rapid.SampledFrom(levelNames).Draw(t, "level"))
		// Backoff after refused writes is the one thing that is kept in memory only.
		w.o.now = now.Add(time.Hour)
		now = w.o.now
		again := w.restart(rapid.Permutation([]string{"units", "queues", "quotas", "pods"}).Draw(t, "order"))
		for _, name := range levelNames {
			require.True(t, w.s.Outstanding(name).Equal(again.Outstanding(name)), "outstanding at %s", name)
		}
		require.Equal(t, keysOfPlan(w.s.Decide(now)), keysOfPlan(again.Decide(now)))
		require.Equal(t, w.s.Counts(), again.Counts())
		require.Empty(t, again.Verify())
	})
}

func (w *world) restart(kinds []string) *State {
	s, now := New(w.s.cfg), w.o.now
	for _, kind := range kinds {
		switch kind {
		case "units":
			for _, u := range w.s.units {
				s.UpsertUnit(now, u.spec.unit())
			}
		case "queues":
			for _, q := range w.o.queues {
				s.UpsertQueue(now, q)
			}
		case "quotas":
			for _, q := range w.o.quotas {
				s.SetQuota(now, q)
			}
		case "pods":
			for key, pods := range w.o.pods {
				for _, p := range pods {
					s.SetPod(now, key, p)
				}
			}
		}
	}
	return s
}

func keysOfPlan(p Plan) (keys []string) {
	for _, a := range p.Admit {
		keys = append(keys, a.Unit.Key)
	}
	return keys
}

// The same events give byte-identical plans, whatever the order of maps (I13).
func TestDeterminism(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.populate(t)
		w.decide(t)
		for range rapid.IntRange(0, effort.Steps(30)).Draw(t, "steps") {
			w.step(t)
			w.decide(t)
		}
		first := w.plans
		w.plans = nil
		again := New(w.s.cfg)
		for _, event := range w.journal {
			event(again)
		}
		require.Equal(t, first, w.plans)
	})
}
