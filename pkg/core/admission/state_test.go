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
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// When all objects are gone, nothing of them is left (I7, I12). That holds on a leader and on a standby, which never
// decides and writes no reasons.
func TestNothingStays(t *testing.T) {
	for _, leads := range []bool{true, false} {
		t.Run(fmt.Sprint("leads=", leads), func(t *testing.T) {
			effort.Check(t, func(t *rapid.T) { nothingStays(t, leads) })
		})
	}
}

func nothingStays(t *rapid.T, leads bool) {
	w := newWorld()
	w.populate(t)
	for range rapid.IntRange(0, 30).Draw(t, "steps") {
		w.step(t)
		if leads {
			w.decide(t)
		}
	}
	s, now := w.s, w.now
	for _, name := range []string{"q1", "q2", "q3", "q4", "q5"} {
		s.DeleteQueue(now, name)
	}
	for _, key := range w.keys() {
		s.DeleteUnit(now, key)
	}
	for key, pods := range w.pods {
		for uid := range pods {
			s.DeletePod(now, key, uid)
		}
	}
	for _, name := range levelNames {
		s.DeleteQuota(now, name)
	}
	for _, c := range w.live {
		s.SetConsumer(now, c, false)
	}
	if leads {
		s.Decide(now)
	}
	s.Accounts().DirtyDemand()
	s.Accounts().ChangedCounts()
	s.Elections()
	require.Zero(t, s.lines.tree.Len())
	require.Zero(t, s.roster.owners.Len())
	require.Zero(t, s.roster.gangs.Len())
	require.Zero(t, s.roster.telling.Len())
	require.Zero(t, s.roster.due.Len())
	for of, field := range map[string]any{
		"roster": s.roster, "lines": s.lines, "ranking": &s.lines.ranking, "pass": s.pass, "accounts": s.roster.accounts,
		"holdings": s.roster.holdings,
	} {
		requireNothingIn(t, of, reflect.ValueOf(field).Elem())
	}
}

// configured are fields that do not follow from objects.
var configured = map[string]bool{"lines.policies": true, "lines.extensions": true}

// requireNothingIn looks at every map and slice of a struct.
func requireNothingIn(t *rapid.T, of string, in reflect.Value) {
	for i := range in.NumField() {
		name := of + "." + in.Type().Field(i).Name
		if kind := in.Field(i).Kind(); (kind == reflect.Map || kind == reflect.Slice) && !configured[name] {
			require.Zero(t, in.Field(i).Len(), name)
		}
	}
}

// Entries of a queue about a namespace go with the units of the namespace.
func TestNothingStaysOfANamespace(t *testing.T) {
	s := New(Config{})
	s.SetQuota(epoch, Quota{Name: "root", Limit: resources.FromMap(map[string]int64{"cpu": 2})})
	s.UpsertQueue(epoch, queue.Spec{
		Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1,
		PerNamespace: &queue.NamespaceBounds{MaxPending: 1, MaxAdmitted: 1},
	})
	for i := range 4 {
		s.UpsertUnit(epoch, unit.Unit{
			Key: fmt.Sprintf("ns%d/u", i%2) + fmt.Sprint(i), UID: fmt.Sprint(i), Queue: "q", Quota: "root", Pods: 1,
			Request: resources.FromMap(map[string]int64{"cpu": 1}), Active: true,
		})
	}
	plan := byKind(s.Decide(epoch))
	require.Equal(t, []string{"ns0/u0", "ns1/u1"}, keysOfPlan(plan))
	q := s.lines.byName["q"]
	require.Equal(t, 1, s.roster.holdings.CountOf(q.name, "ns1"))
	for i := range 4 {
		s.DeleteUnit(epoch, fmt.Sprintf("ns%d/u%d", i%2, i))
	}
	s.Decide(epoch)
	require.Zero(t, s.roster.holdings.CountOf(q.name, "ns1"))
}

// The number of units that a decision examines does not depend on how many wait.
func TestCostIsFlat(t *testing.T) {
	for _, policy := range []string{"Priority", "Block", "FIFO"} {
		t.Run(policy, func(t *testing.T) {
			few, many := examined(t, 300, policy), examined(t, 6_000, policy)
			require.LessOrEqual(t, float64(many), 1.5*float64(few), "%d at 300 units, %d at 6,000", few, many)
		})
	}
}

func examined(t *testing.T, units int, policy string) int {
	scale := scaleOf(units, 3, 8, policy)
	s := scale.state()
	plan := byKind(s.Decide(epoch))
	sum := 0
	for i := range 100 {
		require.NotEmpty(t, plan.Admit)
		s.DeleteUnit(epoch, plan.Admit[0].Unit.Key)
		s.UpsertUnit(epoch, scale.unit(units+i))
		next := byKind(s.Decide(epoch))
		sum += next.Examined
		plan.Admit = append(plan.Admit[1:], next.Admit...)
	}
	return sum
}

// A change of an object that arrived during a write counts at once after it, and nothing follows from the former state.
func TestWhatWasSeenWhileAWriteWasInFlightCountsAtOnce(t *testing.T) {
	amount := func(cpu, gpu int64) resources.List {
		return resources.FromMap(map[string]int64{"cpu": cpu, "gpu": gpu})
	}
	u := unit.Unit{
		Key: "ns/u", UID: "u", Queue: "q", Quota: "team", Phase: unit.PhaseRunning, Active: true, Attempts: 1,
		Stated:  unit.Stated{Admitted: epoch, Held: amount(1, 4), HeldPods: 2, Recorded: true},
		Request: amount(5, 1), Pods: 1,
	}
	begun := func() *State {
		s := New(Config{})
		s.SetQuota(epoch, Quota{Name: "team", Limit: amount(10, 10)})
		s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
		s.UpsertUnit(epoch, u)
		require.Len(t, byKind(s.Decide(epoch)).Resize, 1, "it gives gpu back")
		return s
	}
	counts := func(s *State, seen unit.Unit, outcome transition.Outcome) {
		t.Helper()
		s.UpsertUnit(epoch, seen)
		s.Settle(epoch.Add(time.Second), "ns/u", 1, outcome)
		is := s.roster.units["ns/u"]
		require.Equal(t, int32(7), is.spec.Priority)
		require.True(t, is.spec.Held.Equal(amount(1, 1)), is.spec.Held)
		require.Equal(t, ordered.MomentOf(epoch.Add(time.Second)), is.growsSince, "it asks for more from now on")
	}
	older, written := u, u
	older.Priority, written.Priority = 7, 7
	written.Held, written.HeldPods = amount(1, 1), 1
	counts(begun(), older, transition.Confirmed)
	counts(begun(), written, transition.Refuted)
}

func TestObservationWithoutNewsWakesNothing(t *testing.T) {
	s := scaleOf(1000, 3, 8, "Block").state()
	s.Decide(epoch)
	for _, name := range []string{"root", "dept", "leaf0", "leaf1", "leaf2"} {
		s.SetQuota(epoch, s.quota(name))
	}
	for _, u := range s.roster.units {
		if u.waits() {
			s.UpsertUnit(epoch, *u.spec)
		}
	}
	require.Zero(t, byKind(s.Decide(epoch)).Examined)
}

// Whichever quotas a queue accepted before, it accepts those that its object names now.
func TestQuotasOfAQueueChange(t *testing.T) {
	lists := map[string][]string{"all": nil, "none": {}, "a": {"a"}, "b": {"b"}, "a, b": {"a", "b"}, "b, a": {"b", "a"}}
	for from, before := range lists {
		for to, after := range lists {
			s := New(Config{})
			s.SetQuota(epoch, Quota{Name: "b"})
			s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Priority", Quotas: before, MaxPending: -1, MaxAdmitted: -1})
			s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Priority", Quotas: after, MaxPending: -1, MaxAdmitted: -1})
			s.UpsertUnit(epoch, unit.Unit{Key: "ns/u", UID: "u", Queue: "q", Quota: "b", Pods: 1, Active: true})
			accepted := after == nil || slices.Contains(after, "b")
			require.Equal(t, accepted, len(byKind(s.Decide(epoch)).Admit) == 1, "from %s to %s", from, to)
		}
	}
}

// Also the very first unit of a state is not admitted into a quota that nobody has seen.
func TestFirstUnitOfAnUnknownQuota(t *testing.T) {
	s := New(Config{})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	s.UpsertUnit(epoch, unit.Unit{Key: "ns/u", UID: "u", Queue: "q", Quota: "missing", Pods: 1, Active: true})
	require.Empty(t, byKind(s.Decide(epoch)).Admit)
	reason, _, _ := s.Why("ns/u")
	require.Equal(t, unit.ReasonUnknownQuota, reason)
}

// Whichever field of an observation is new, it is taken.
func TestEveryFieldOfAQuotaCounts(t *testing.T) {
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	for name, change := range map[string]func(*Quota){
		"parent":      func(q *Quota) { q.Parent = "other" },
		"limit":       func(q *Quota) { q.Limit = cpu(5) },
		"max":         func(q *Quota) { q.Max = cpu(5) },
		"min":         func(q *Quota) { q.Min = cpu(5) },
		"used":        func(q *Quota) { q.Used = cpu(5) },
		"used of min": func(q *Quota) { q.NonPreemptibleUsed = cpu(5) },
		"requested":   func(q *Quota) { q.Requested = cpu(5) },
		"shared":      func(q *Quota) { q.Shared = true },
		"keeps min":   func(q *Quota) { q.KeepsMin = true },
		"closed":      func(q *Quota) { q.Closed = true },
	} {
		s := New(Config{})
		q := Quota{
			Name: "q", Parent: "root", Limit: cpu(1), Max: cpu(1), Min: cpu(1), Used: cpu(1),
			NonPreemptibleUsed: cpu(1), Requested: cpu(1),
		}
		s.SetQuota(epoch, q)
		change(&q)
		s.SetQuota(epoch, q)
		require.Equal(t, q, s.quota("q"), name)
	}
}

// lifo is a policy as somebody else would write it.
type lifo struct{}

func (lifo) Compare(a, b queue.Item) int {
	if c := b.Created.Compare(a.Created); c != 0 {
		return c
	}
	return queue.Builtin()["FIFO"](0).Compare(a, b)
}
func (lifo) Blocks(int32) bool { return false }

// byName is a queue order as somebody else would write it.
type byName struct{}

func (byName) Compare(a, b queue.Rank) int {
	if a.Name > b.Name {
		return -1
	} else if a.Name < b.Name {
		return 1
	}
	return 0
}

func TestExtensions(t *testing.T) {
	s := New(Config{
		Policies: map[string]queue.Factory{"LIFO": func(int32) queue.Policy { return lifo{} }},
		Order:    byName{},
	})
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	s.SetQuota(epoch, Quota{Name: "root", Limit: cpu(5)})
	for _, name := range []string{"a", "b"} {
		s.UpsertQueue(epoch, queue.Spec{Name: name, Policy: "LIFO", MaxPending: -1, MaxAdmitted: -1})
		for i := range 3 {
			s.UpsertUnit(epoch, unit.Unit{
				Key: fmt.Sprintf("ns/%s%d", name, i), UID: fmt.Sprintf("%s%d", name, i), Queue: name, Quota: "root",
				Request: cpu(1), Pods: 1, Active: true, Created: epoch.Add(time.Duration(i) * time.Second),
			})
		}
	}
	require.Equal(t, []string{"ns/b2", "ns/b1", "ns/b0", "ns/a2", "ns/a1"}, keysOfPlan(byKind(s.Decide(epoch))))
}

// switchCheck is a check whose answer depends on something outside.
type switchCheck struct{ open bool }

func (*switchCheck) Key(unit.Unit) string { return "" }
func (c *switchCheck) Check(unit.Unit) (unit.Reason, string) {
	if c.open {
		return "", ""
	}
	return "Closed", "closed for now"
}

func TestRecheck(t *testing.T) {
	check := &switchCheck{}
	s := New(Config{Checks: []queue.Check{check}})
	s.SetQuota(epoch, Quota{Name: "root"})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Block", MaxPending: -1, MaxAdmitted: -1})
	s.UpsertUnit(epoch, unit.Unit{Key: "ns/u", UID: "u", Queue: "q", Quota: "root", Pods: 1, Active: true})
	require.Empty(t, byKind(s.Decide(epoch)).Admit)
	reason, message, _ := s.Why("ns/u")
	require.Equal(t, unit.Reason("Closed"), reason)
	require.Equal(t, "closed for now", message)
	check.open = true
	require.Empty(t, byKind(s.Decide(epoch)).Admit, "nobody said so")
	s.Recheck(epoch)
	require.Len(t, byKind(s.Decide(epoch)).Admit, 1)
}

// An answer of a check about an attempt does not count for the next one.
func TestChecksAreAskedAgainAfterARequeue(t *testing.T) {
	check := &switchCheck{open: true}
	s := New(Config{Checks: []queue.Check{check}})
	s.SetQuota(epoch, Quota{Name: "root"})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Block", MaxPending: -1, MaxAdmitted: -1})
	u := unit.Unit{Key: "ns/u", UID: "u", Queue: "q", Quota: "root", Pods: 1, Active: true}
	s.UpsertUnit(epoch, u)
	require.Len(t, byKind(s.Decide(epoch)).Admit, 1)
	s.Settle(epoch, u.Key, 1, transition.Confirmed)
	check.open = false
	u.Phase, u.Attempts, u.RequeueAt = unit.PhaseTimeoutBackoff, 1, epoch.Add(time.Minute)
	s.UpsertUnit(epoch, u)
	require.Empty(t, byKind(s.Decide(epoch)).Admit, "it waits for its time")
	require.Empty(t, byKind(s.Decide(u.RequeueAt)).Admit, "the check would not let it pass now")
	reason, _, _ := s.Why(u.Key)
	require.Equal(t, unit.Reason("Closed"), reason)
}

// The same holds if another unit has kept the group, and with it the answer.
func TestChecksAreAskedAgainBesideUnitsThatWait(t *testing.T) {
	check := &switchCheck{open: true}
	s := New(Config{Checks: []queue.Check{check}})
	one := resources.FromMap(map[string]int64{"cpu": 1})
	s.SetQuota(epoch, Quota{Name: "root", Limit: one})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Block", MaxPending: -1, MaxAdmitted: -1})
	u := unit.Unit{Key: "ns/u", UID: "u", Queue: "q", Quota: "root", Pods: 1, Request: one, Active: true}
	waits := u
	waits.Key, waits.UID, waits.Created = "ns/waits", "waits", epoch
	s.UpsertUnit(epoch, u)
	s.UpsertUnit(epoch, waits)
	require.Equal(t, []string{u.Key}, keysOfPlan(byKind(s.Decide(epoch))))
	s.Settle(epoch, u.Key, 1, transition.Confirmed)
	check.open = false
	u.Phase, u.Attempts = unit.PhaseTimeoutBackoff, 1
	s.UpsertUnit(epoch, u)
	require.Empty(t, byKind(s.Decide(epoch)).Admit, "the check would not let it pass now")
}

// faultyKey panics before a unit has a group.
type faultyKey struct{}

func (faultyKey) Key(u unit.Unit) string                { panic("no key for " + u.Key) }
func (faultyKey) Check(unit.Unit) (unit.Reason, string) { return "", "" }

func TestPanicInKeyParks(t *testing.T) {
	s := New(Config{Checks: []queue.Check{faultyKey{}}, RefusedBackoff: time.Second})
	s.SetQuota(epoch, Quota{Name: "root"})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Block", MaxPending: -1, MaxAdmitted: -1})
	s.UpsertUnit(epoch, unit.Unit{Key: "ns/u", UID: "u", Queue: "q", Quota: "root", Pods: 1, Active: true})
	plan := byKind(s.Decide(epoch))
	told, _ := s.Telling().Next(epoch, 64)
	require.Len(t, told, 1)
	require.Equal(t, unit.ReasonInternalError, told[0].Reason)
	require.Equal(t, epoch.Add(time.Second), plan.WakeAt)
	require.Equal(t, 1, plan.Panics)
	require.Zero(t, byKind(s.Decide(epoch)).Panics, "counted once")
	require.NotPanics(t, func() { plan = byKind(s.Decide(epoch.Add(2 * time.Second))) })
	require.Equal(t, 1, plan.Panics, "it is tried again")
}

// faultyCheck panics over a unit that is in line.
type faultyCheck struct{}

func (faultyCheck) Key(unit.Unit) string { return "" }
func (faultyCheck) Check(u unit.Unit) (unit.Reason, string) {
	if u.UID == "bad" {
		panic("no answer for " + u.Key)
	}
	return "", ""
}

func TestPanicOfACheckIsCounted(t *testing.T) {
	s := New(Config{Checks: []queue.Check{faultyCheck{}}, RefusedBackoff: time.Second})
	s.SetQuota(epoch, Quota{Name: "root"})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Block", MaxPending: -1, MaxAdmitted: -1})
	for _, name := range []string{"bad", "good"} {
		s.UpsertUnit(epoch, unit.Unit{Key: "ns/" + name, UID: name, Queue: "q", Quota: "root", Pods: 1, Active: true})
	}
	plan := byKind(s.Decide(epoch))
	require.Equal(t, []string{"ns/good"}, keysOfPlan(plan))
	require.Equal(t, 1, plan.Panics)
	require.Zero(t, byKind(s.Decide(epoch)).Panics, "counted once")
}

// faultyPolicy cannot cope with one unit.
type faultyPolicy struct{ lifo }

func (faultyPolicy) Blocks(priority int32) bool {
	if priority == 13 {
		panic("no rule for it")
	}
	return false
}

func TestPanicOfAPolicyParks(t *testing.T) {
	s := New(Config{
		Policies:       map[string]queue.Factory{"Faulty": func(int32) queue.Policy { return faultyPolicy{} }},
		RefusedBackoff: time.Second,
	})
	s.SetQuota(epoch, Quota{Name: "root"})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Faulty", MaxPending: -1, MaxAdmitted: -1})
	for name, priority := range map[string]int32{"bad": 13, "good": 1} {
		s.UpsertUnit(epoch, unit.Unit{
			Key: "ns/" + name, UID: name, Queue: "q", Quota: "root", Pods: 1, Active: true, Priority: priority,
		})
	}
	plan := byKind(s.Decide(epoch))
	require.Equal(t, []string{"ns/good"}, keysOfPlan(plan))
	require.Equal(t, 1, plan.Panics)
	require.Equal(t, epoch.Add(time.Second), plan.WakeAt)
	reason, message, _ := s.Why("ns/bad")
	require.Equal(t, unit.ReasonInternalError, reason)
	require.Contains(t, message, "no rule for it")
	require.Equal(t, 1, byKind(s.Decide(epoch.Add(time.Second))).Panics, "it is tried again")
}

// faultyOrder cannot cope with one unit at the head of a queue.
type faultyOrder struct{ queue.FairOrder }

func (o faultyOrder) Compare(a, b queue.Rank) int {
	if a.Head.UID == "bad" || b.Head.UID == "bad" {
		panic("no order for it")
	}
	return o.FairOrder.Compare(a, b)
}

func TestSuspectIsWhoWasLookedAt(t *testing.T) {
	s := New(Config{Order: faultyOrder{}})
	s.SetQuota(epoch, Quota{Name: "root"})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Block", MaxPending: -1, MaxAdmitted: -1})
	s.UpsertUnit(epoch, unit.Unit{Key: "ns/good", UID: "good", Queue: "q", Quota: "root", Pods: 1, Active: true})
	s.Decide(epoch)
	require.Empty(t, s.Suspect())
	s.UpsertUnit(epoch,
		unit.Unit{Key: "ns/bad", UID: "bad", Queue: "q", Quota: "root", Pods: 1, Active: true, Priority: 9})
	require.Panics(t, func() { byKind(s.Decide(epoch)) })
	require.Equal(t, "ns/bad", s.Suspect())
	require.Empty(t, s.Suspect(), "once")
}

// Amounts at the ends of int64 neither wrap nor let anything pass.
func TestHugeAmounts(t *testing.T) {
	s := New(Config{})
	huge := resources.FromMap(map[string]int64{"cpu": resources.Greatest})
	s.SetQuota(epoch, Quota{Name: "root", Limit: huge})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Block", MaxPending: -1, MaxAdmitted: -1})
	for i := range 20 {
		s.UpsertUnit(epoch, unit.Unit{
			Key: fmt.Sprintf("ns/u%02d", i), UID: fmt.Sprintf("%02d", i), Queue: "q", Quota: "root",
			Request: huge, Pods: 1, Active: true, Created: epoch,
		})
	}
	require.Equal(t, []string{"ns/u00"}, keysOfPlan(byKind(s.Decide(epoch))))
	for i := range 20 {
		key := fmt.Sprintf("ns/u%02d", i)
		u := *s.roster.units[key].spec
		u.Phase, u.Held = unit.PhaseRunning, huge
		s.Settle(epoch, key, 1, transition.Confirmed)
		s.UpsertUnit(epoch, u)
	}
	require.Empty(t, s.Audit().Ledger())
	for i := range 20 {
		s.DeleteUnit(epoch, fmt.Sprintf("ns/u%02d", i))
	}
	require.True(t, s.Holdings().Read("root").Outstanding().IsZero(), "what was added can be taken away")
}

// Nothing of a unit is true of another object of its name: neither what it holds nor the answer to its write (I3).
func TestAnotherObjectOfTheName(t *testing.T) {
	s, units := placed(t)
	for _, name := range []string{"flying", "admitted"} {
		again := units[name]
		again.UID += "-2"
		again.Phase, again.Attempts, again.Held, again.Active = unit.PhaseEnqueued, 0, resources.List{}, false
		s.UpsertUnit(epoch, again)
		s.Settle(epoch, again.Key, 1, transition.Confirmed)
		require.False(t, s.Admitted(again.Key), name)
		require.Empty(t, s.Audit().Unit(again), name)
	}
	require.True(t, s.Holdings().Read("team").Outstanding().IsZero())
	require.Empty(t, s.Audit().Ledger())
	require.Empty(t, s.Audit().Places())
}

// The demand of a unit follows its pods as they appear, change and disappear.
func TestDemandFollowsThePods(t *testing.T) {
	s, units := placed(t)
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	first := units["first"]
	first.Request, first.Expected = cpu(6), unit.Expected{Pods: 2, Each: cpu(3)}
	before := s.Accounts().Demand("team").Sub(units["first"].Request)
	s.UpsertUnit(epoch, first)
	asks := func(want int64) {
		t.Helper()
		got, _ := s.Accounts().Demand("team").Sub(before).Get("cpu")
		require.Equal(t, want, got)
	}
	asks(6)
	s.SetPod(epoch, first.Key, Pod{UID: "p", Quota: "team", Request: cpu(1)})
	asks(3)
	s.SetPod(epoch, first.Key, Pod{UID: "p", Quota: "team", Request: cpu(5)})
	asks(1)
	s.SetPod(epoch, first.Key, Pod{UID: "p", Quota: "root", Request: cpu(5)})
	asks(6)
	s.SetPod(epoch, first.Key, Pod{UID: "p", Quota: "team", Request: cpu(1)})
	s.SetPod(epoch, first.Key, Pod{UID: "q", Quota: "team", Request: cpu(1)})
	asks(0)
	s.DeletePod(epoch, first.Key, "q")
	asks(3)
	s.DeletePod(epoch, first.Key, "p")
	asks(6)
}
