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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/preemption"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// Units reclaim what others borrow, whatever the order of their queues, until nobody waits whose request is within
// the mins of all its quotas. That comes to an end.
func TestReclaimServesEachMin(t *testing.T) {
	effort.Check(t, func(rt *rapid.T) {
		w := drawClaimants(rt, t, "Priority")
		quota, together := "", false // a gang group is of two in one quota: of several it may keep what a min promises
		w.fill(rt, func(i int) (string, string) {
			if i%2 == 0 {
				together = rapid.IntRange(0, 2).Draw(rt, "together") == 0
			}
			if i%2 == 0 || !together {
				quota = w.drawQuota(rt)
			}
			if !together {
				return quota, ""
			}
			return quota, fmt.Sprintf(" gangs=x%[1]d,y%[1]d/%[2]s%[1]d", i/2, []string{"x", "y"}[i%2])
		})
		w.requireRest(rt)
		for _, u := range w.units {
			promised, cpu := u.Phase.Waits(), int64(0)
			for _, o := range w.units {
				if o.Key == u.Key || u.GangGroup != "" && o.GangGroup == u.GangGroup && o.Phase.Waits() {
					its, _ := o.Request.Get("cpu")
					cpu += its
				}
			}
			for level := u.Quota; level != "root"; level = w.parents[level] {
				promised = promised && heldAt(w.story, w.parents, level)+cpu <= int64(1000*w.mins[level])
			}
			require.False(rt, promised, "%s waits in %s, though it is within each min", u.Key, u.Quota)
		}
	})
}

// Preemption ends, whatever the quotas, queues and priorities of the units of a gang group are, and however many of
// them are of one gang.
func TestPreemptionOfGangGroupsEnds(t *testing.T) {
	effort.Check(t, func(rt *rapid.T) {
		w := drawClaimants(rt, t, "Priority", "Block", "FIFO")
		w.fill(rt, func(int) (string, string) {
			return w.drawQuota(rt), rapid.SampledFrom([]string{
				"", " gangs=x,y/x", " gangs=x,y/x", " gangs=x,y/y", " gangs=v,w/v", " gangs=v,w/w", " gangs=v,w/v,w",
			}).Draw(rt, "gangs")
		})
		w.requireRest(rt)
	})
}

// claimants are units in a tree of quotas, most of which may preempt others.
type claimants struct {
	*story
	mins    map[string]int
	parents map[string]string
}

func drawClaimants(rt *rapid.T, t *testing.T, policies ...string) *claimants {
	w := &claimants{
		story: newStory(t), mins: map[string]int{},
		parents: map[string]string{"a": "org", "b": "org", "c": "root", "d": "root", "org": "root"},
	}
	w.out = &strings.Builder{}
	for _, leaf := range []string{"a", "b", "c", "d"} {
		w.mins[leaf] = rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(rt, "min of "+leaf)
	}
	w.mins["org"] = w.mins["a"] + w.mins["b"]
	free := rapid.IntRange(0, 3).Draw(rt, "unpromised")
	w.line(fmt.Sprintf("quota root limit=cpu:%d used=none", w.mins["org"]+w.mins["c"]+w.mins["d"]+free))
	for _, name := range []string{"org", "a", "b", "c", "d"} {
		most := w.mins[name] + rapid.IntRange(0, 6).Draw(rt, "max of "+name)
		w.line(fmt.Sprintf("quota %s parent=%s min=cpu:%d max=cpu:%d", name, w.parents[name], w.mins[name], most))
	}
	for _, queue := range []string{"p", "q", "r"} {
		w.line(fmt.Sprintf("queue %s reclaim=any within=%s priority=%d policy=%s", queue,
			rapid.SampledFrom([]string{"", "lower"}).Draw(rt, "within"), rapid.IntRange(0, 2).Draw(rt, "of queue"),
			rapid.SampledFrom(policies).Draw(rt, "policy")))
	}
	return w
}

func (w *claimants) drawQuota(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "quota")
}

// fill has units come, some of them after a decision. of says in which quota one is, and its gangs.
func (w *claimants) fill(rt *rapid.T, of func(i int) (quota, gangs string)) {
	for i := range 2 * rapid.IntRange(2, 8).Draw(rt, "pairs") {
		quota, gangs := of(i)
		w.line(fmt.Sprintf("job j%d uid=%d", i, i))
		w.line(fmt.Sprintf("unit u%d queue=%s quota=%s request=cpu:%d priority=%d job=j%d:%d%s", i,
			rapid.SampledFrom([]string{"p", "q", "r"}).Draw(rt, "queue"), quota, rapid.IntRange(1, 4).Draw(rt, "cpu"),
			rapid.IntRange(0, 2).Draw(rt, "priority"), i, i, gangs))
		if rapid.Bool().Draw(rt, "decide") {
			w.line("decide confirm")
		}
	}
}

// requireRest: nothing is decided any more after some time, though no unit ends.
func (w *claimants) requireRest(rt *rapid.T) {
	for round, idle := 0, 0; idle < 3; round++ { // a decision does not search for all
		require.Less(rt, round, 20*len(w.units), "preemption does not end")
		w.out.Reset()
		w.line(fmt.Sprintf("tick %ds", 2+40*idle)) // a unit that preempted in vain waits before the next time
		if w.line("decide confirm"); strings.Contains(w.out.String(), "nothing to do") {
			idle++
		} else {
			idle = 0
		}
	}
	require.Empty(rt, w.s.Audit().Places())
	require.Empty(rt, w.s.Audit().Ledger())
}

// One decision makes so many searches at most. The rest have their turn a second later.
func TestMostSearches(t *testing.T) {
	st := newStory(t)
	st.out = &strings.Builder{}
	for _, line := range []string{
		"quota root limit=cpu:8", "quota full parent=root min=cpu:8 max=cpu:8", "queue q",
		"unit holds queue=q quota=full request=cpu:8", "decide confirm",
	} {
		st.line(line)
	}
	searched := func() (n int) {
		for _, u := range st.s.roster.units {
			if u.group != nil && !u.group.Notes.searched.IsZero() {
				n++
			}
		}
		return n
	}
	for i := range preemption.MostSearches + 3 {
		st.line(fmt.Sprintf("quota quota%d parent=root min=cpu:1 max=cpu:8", i))
		st.line(fmt.Sprintf("queue queue%d reclaim=any", i))
		st.line(fmt.Sprintf("unit u%d queue=queue%d quota=quota%d request=cpu:1", i, i, i))
	}
	st.line("decide")
	require.Equal(t, preemption.MostSearches, searched())
	st.line("tick 1s")
	st.line("decide")
	require.Equal(t, preemption.MostSearches+3, searched())
}

// heldAt is how much cpu units hold at a level and below.
func heldAt(st *story, parents map[string]string, level string) (sum int64) {
	for _, u := range st.units {
		for at := u.Quota; at != ""; at = parents[at] {
			if cpu, _ := u.Held.Get("cpu"); at == level && u.Phase == unit.PhaseDequeued {
				sum += cpu
			}
		}
	}
	return sum
}

// One of a gang group needs nothing of others, and its object still names the victims that it had before it was parked.
func TestAGangGroupPreemptsThoughOneOfItGivesUp(t *testing.T) {
	cores := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n * 1000}) }
	s := New(Config{RefusedBackoff: time.Second})
	for _, q := range []Quota{
		{Name: "root", Limit: cores(4), Max: cores(4)},
		{Name: "owner", Parent: "root", Limit: cores(4), Max: cores(4), Min: cores(4)},
		{Name: "borrower", Parent: "root", Limit: cores(4), Max: cores(4), Min: cores(0)},
		{Name: "elsewhere", Limit: cores(9), Max: cores(9)},
		{Name: "free", Parent: "elsewhere", Limit: cores(9), Max: cores(9), Min: cores(9)},
	} {
		s.SetQuota(epoch, q)
	}
	preemptors := queue.Spec{Name: "takers", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1}
	preemptors.Preemption.Reclaim = queue.VictimsAny
	s.UpsertQueue(epoch, preemptors)
	s.UpsertQueue(epoch, queue.Spec{Name: "others", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	job := func(name, queue, quota string) unit.Unit {
		c := unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: name, UID: "job-" + name}
		s.SetConsumer(epoch, c, true)
		return unit.Unit{
			Key: "ns/" + name, UID: name, Queue: queue, Quota: quota, Created: epoch.Add(-time.Hour), Request: cores(4), Pods: 1,
			Active: true, Consumer: c, ConsumerManaged: true, OwnedByConsumer: true, Phase: unit.PhaseEnqueued,
		}
	}
	victim := job("victim", "others", "borrower")
	victim.Phase, victim.Attempts, victim.Admitted = unit.PhaseRunning, 1, epoch.Add(-time.Hour)
	victim.SetHeld(victim.Request, 1)
	s.UpsertUnit(epoch, victim)
	short, fits := job("short", "takers", "owner"), job("fits", "takers", "free")
	short.GangGroup, short.Gangs, fits.GangGroup, fits.Gangs = "f,s", "s", "f,s", "f"
	fits.Preempts, fits.Active = "gone/1", false
	s.UpsertUnit(epoch, fits)
	fits.Active = true
	s.UpsertUnit(epoch, fits)
	s.UpsertUnit(epoch, short)

	holds := map[string]string{}
	for _, w := range byKind(s.Decide(epoch)).Preempt {
		holds[w.Unit.UID] = w.Joined()
	}
	require.Equal(t, map[string]string{"short": "victim/1", "fits": ""}, holds)
}
