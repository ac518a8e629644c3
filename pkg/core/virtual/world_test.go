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

package virtual_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var config = admission.Config{PartialAdmission: true}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

// live is a state that is fed as an engine does: pods of an admitted unit are bound at once, and used follows them.
type live struct {
	now    time.Time
	state  *admission.State
	quotas map[string]admission.Quota
	queues []queue.Spec
	runs   map[string]time.Duration
	units  map[string]unit.Unit
	ends   []end
	pods   map[string][]admission.Pod
	starts map[string]time.Time
	wake   time.Time
}

type end struct {
	at  time.Time
	key string
}

func newLive() *live {
	return &live{
		now: epoch, state: admission.New(config), quotas: map[string]admission.Quota{},
		runs: map[string]time.Duration{}, units: map[string]unit.Unit{}, pods: map[string][]admission.Pod{},
		starts: map[string]time.Time{},
	}
}

func (l *live) setQuota(q admission.Quota) {
	l.quotas[q.Name] = q
	l.state.SetQuota(l.now, q)
}

// use changes the used amounts of a quota and of all above it.
func (l *live) use(quota string, change func(resources.List) resources.List) {
	for name := quota; name != ""; name = l.quotas[name].Parent {
		q := l.quotas[name]
		q.Used = change(q.Used)
		if name == quota {
			q.Requested, q.Terms.OwnUsed = change(q.Requested), change(q.Terms.OwnUsed)
		}
		l.setQuota(q)
	}
}

func (l *live) settle() {
	for {
		plan := l.state.Decide(l.now)
		for _, w := range plan.Writes {
			u := *w.Of()
			w.Apply(l.now, &u)
			l.state.Settle(l.now, u.Key, w.Attempt(), transition.Confirmed)
			l.units[u.Key] = u
			switch w.(type) {
			case *transition.Admit:
				l.bind(&u)
				l.ends = append(l.ends, end{l.now.Add(l.runs[u.Key]), u.Key})
				l.starts[u.Key] = l.now
			case *transition.Evict:
				l.ends = slices.DeleteFunc(l.ends, func(e end) bool { return e.key == u.Key })
				l.unbind(u.Key)
			}
		}
		for i := range plan.Foresee {
			l.state.Foreseen(l.now, &plan.Foresee[i], true, "")
		}
		if len(plan.Writes)+len(plan.Foresee) == 0 {
			l.wake = plan.WakeAt
			return
		}
	}
}

func (l *live) bind(u *unit.Unit) {
	each, _ := u.Held.Get("cpu")
	for i := range u.Pods {
		p := admission.Pod{UID: fmt.Sprintf("%s-%d", u.UID, i), Quota: u.Quota, Request: cpu(each / u.Pods), Assigned: true}
		l.use(u.Quota, p.Request.Add)
		l.state.SetPod(l.now, u.Key, p)
		l.pods[u.Key] = append(l.pods[u.Key], p)
	}
}

func (l *live) unbind(key string) {
	for _, p := range l.pods[key] {
		l.state.DeletePod(l.now, key, p.UID)
		l.use(p.Quota, func(all resources.List) resources.List { return all.Sub(p.Request) })
	}
	delete(l.pods, key)
}

// next moves on to the time when something happens, up to a time. Without any it says so.
func (l *live) next(until time.Time) bool {
	l.settle()
	at := l.wake
	for _, e := range l.ends {
		if at.IsZero() || e.at.Before(at) {
			at = e.at
		}
	}
	if at.IsZero() || at.After(until) {
		return false
	}
	l.now = at
	for _, e := range slices.Clone(l.ends) {
		if !e.at.After(at) {
			l.ends = slices.DeleteFunc(l.ends, func(o end) bool { return o == e })
			l.unbind(e.key)
			l.state.DeleteUnit(l.now, e.key)
			delete(l.units, e.key)
		}
	}
	return true
}

// arrive makes units wait that are alike, most often one. Their size is a multiple of their pods.
func (l *live) arrive(t *rapid.T) {
	pods := rapid.Int64Range(1, 4).Draw(t, "pods")
	u := unit.Unit{
		Created: l.now, Active: true, Phase: unit.PhaseEnqueued, Pods: pods,
		Queue: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "queue"), MaxPriority: 9,
		Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), Request: cpu(pods * rapid.Int64Range(1, 3).Draw(t, "size")),
		NonPreemptible: rapid.IntRange(0, 5).Draw(t, "kind") == 0,
	}
	u.Quota = u.Queue
	if rapid.IntRange(0, 4).Draw(t, "partial") == 0 && pods > 1 {
		u.Sizes = unit.NewSizes([]unit.PodSetSize{{Count: pods, Least: 1, Request: u.Request}})
	}
	other := map[string]string{"a": "b", "b": "c", "c": "a"}[u.Quota]
	if rapid.IntRange(0, 3).Draw(t, "several quotas") == 0 {
		u.Quotas = u.Quota + "," + other
	}
	if gangs := rapid.SampledFrom([]string{"", "", "", "x", "y", "x,y"}).Draw(t, "gangs"); gangs != "" {
		group := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "gang group")
		of := strings.NewReplacer("x", "x"+group, "y", "y"+group)
		u.GangGroup, u.Gangs = of.Replace("x,y"), of.Replace(gangs)
	}
	number := 1
	if rapid.IntRange(0, 9).Draw(t, "crowd") == 0 {
		number = rapid.IntRange(1, 80).Draw(t, "number")
	}
	runs := rapid.SliceOfN(rapid.IntRange(1, 300), number, number).Draw(t, "seconds")
	namespace := rapid.SampledFrom([]string{"ns", "other"}).Draw(t, "namespace")
	for _, seconds := range runs {
		l.adds(u, namespace, time.Duration(seconds)*time.Second)
	}
}

// suspend a unit, which gives back what it holds and waits for its owner.
func (l *live) suspend(t *rapid.T) {
	if keys := slices.Sorted(maps.Keys(l.units)); len(keys) > 0 && rapid.IntRange(0, 5).Draw(t, "suspends") == 0 {
		key := rapid.SampledFrom(keys).Draw(t, "suspended")
		u := l.units[key]
		u.Active = false
		l.units[key] = u
		l.state.UpsertUnit(l.now, u)
	}
}

func (l *live) adds(u unit.Unit, namespace string, runs time.Duration) {
	u.UID = fmt.Sprint("u", len(l.runs))
	u.Key = namespace + "/" + u.UID
	u.Consumer = unit.Consumer{Kind: "Job", Namespace: namespace, Name: u.UID, UID: u.UID}
	u.ConsumerManaged, u.OwnedByConsumer = true, true
	l.state.SetConsumer(l.now, u.Consumer, true)
	l.runs[u.Key], l.units[u.Key] = runs, u
	l.state.UpsertUnit(l.now, u)
}

// watcher notes when units are admitted last.
type watcher map[string]time.Time

func (w watcher) Admitted(now time.Time, u *unit.Unit) { w[u.Key] = now }
func (w watcher) Evicted(time.Time, *unit.Unit)        {}
func (w watcher) Ended(time.Time, *unit.Unit)          {}

func drawLive(t *rapid.T) *live {
	l := newLive()
	l.setQuota(admission.Quota{Name: "root", Limit: cpu(20), Max: cpu(20), Terms: capacity.Terms{Part: shares.Top}})
	shared := rapid.Bool().Draw(t, "shared")
	for _, name := range []string{"a", "b", "c"} {
		most := rapid.Int64Range(6, 20).Draw(t, "max")
		q := admission.Quota{Name: name, Parent: "root", Max: cpu(most), Min: cpu(rapid.Int64Range(0, 6).Draw(t, "min"))}
		if q.Limit = q.Max; shared {
			q.Limit, q.Shared = resources.List{}, true
			q.Terms = capacity.Terms{Part: shares.Sharing, Weight: cpu(most)}
		}
		l.setQuota(q)
		spec := queue.Spec{
			Name: name, MaxPending: -1, MaxAdmitted: -1, Threshold: 1,
			Policy: rapid.SampledFrom([]string{"Priority", "FIFO", "Block", "Intelligent"}).Draw(t, "policy"),
		}
		if bounded := rapid.IntRange(0, 9).Draw(t, "bounded"); bounded < 3 {
			spec.MaxPending = rapid.SampledFrom([]int32{-1, 3}).Draw(t, "max pending")
			spec.PerNamespace = &queue.NamespaceBounds{MaxPending: int32(bounded) + 1, MaxAdmitted: int32(bounded)*2 - 1}
		}
		spec.Preemption.Reclaim = rapid.SampledFrom([]queue.Victims{
			queue.VictimsNone, queue.VictimsOfLowerPriority, queue.VictimsAny,
		}).Draw(t, "reclaims")
		spec.Preemption.MinRunTime = queue.DefaultMinRunTime
		l.queues = append(l.queues, spec)
		l.state.UpsertQueue(l.now, spec)
	}
	return l
}

// restart forgets what only a process knows, such as when it looked for victims last.
func (l *live) restart() {
	l.state = admission.New(config)
	for _, q := range l.queues {
		l.state.UpsertQueue(l.now, q)
	}
	for _, name := range slices.Sorted(maps.Keys(l.quotas)) {
		l.state.SetQuota(l.now, l.quotas[name])
	}
	for _, key := range slices.Sorted(maps.Keys(l.units)) {
		u := l.units[key]
		l.state.SetConsumer(l.now, u.Consumer, true)
		l.state.UpsertUnit(l.now, u)
		for _, p := range l.pods[key] {
			l.state.SetPod(l.now, key, p)
		}
	}
}

// A forecast with the exact run times, and without arrivals, is what the core then does.
func TestAWorldDoesWhatTheCoreDoes(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		l := drawLive(t)
		for range rapid.IntRange(1, effort.Steps(40)).Draw(t, "arrivals") {
			l.arrive(t)
			l.suspend(t)
			until := l.now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "gap")) * time.Second)
			for l.next(until) {
			}
			l.now = until
		}
		l.settle()
		l.restart()
		facts := virtual.FactsOf(l.state, config, l.now)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(facts.Units), func(i, j int) {
			facts.Units[i], facts.Units[j] = facts.Units[j], facts.Units[i]
		})
		clear(l.starts)
		found := watcher{}
		w := virtual.New(facts, l.now, func(u *unit.Unit, _ time.Time) (time.Duration, bool) {
			return l.runs[u.Key], true
		}, found)
		steps := 0
		for ; w.Step(); steps++ {
			require.Less(effort.Plain(t), steps, 10_000)
		}
		for l.next(epoch.Add(1000 * time.Hour)) {
		}
		require.Equal(effort.Plain(t), l.starts, map[string]time.Time(found))
	})
}

// A unit that lost its admission waits for the gangs of its group, though one of them is on hold.
func TestAGangOnHold(t *testing.T) {
	l := newLive()
	l.setQuota(admission.Quota{Name: "q", Limit: cpu(9), Max: cpu(9)})
	l.state.UpsertQueue(l.now, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	for _, gang := range []string{"x", "y"} {
		l.state.UpsertUnit(l.now, unit.Unit{
			Key: "ns/" + gang, UID: gang, Queue: "q", Quota: "q", Created: l.now, Pods: 1, Request: cpu(1), Attempts: 1,
			Active: gang == "y", Phase: unit.PhaseEnqueued, Stated: unit.Stated{GangGroup: "x,y", Gangs: gang},
		})
	}
	l.settle()
	found := watcher{}
	w := virtual.New(virtual.FactsOf(l.state, config, l.now), l.now, forever, found)
	for w.Step() {
	}
	require.Equal(t, l.starts, map[string]time.Time(found))
	require.Empty(t, found)
}

func forever(*unit.Unit, time.Time) (time.Duration, bool) { return 0, false }
