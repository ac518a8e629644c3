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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// hostile is a tenant next to another one. Both have a quota of their own, and the levels above have enough for both.
// Everything that it may write is drawn at its worst: the spec of units in its own namespace, and the pods there.
type hostile struct {
	units, events int
	// gone counts its jobs that are.
	gone int
}

// job is the one that it has now. The UID of a job that is gone never comes back.
func (h *hostile) job() unit.Consumer {
	return unit.Consumer{Kind: "Job.v1.batch", Namespace: "evil", Name: "own", UID: fmt.Sprintf("own-%d", h.gone)}
}

func (h *hostile) unit(t *rapid.T) unit.Unit {
	h.units++
	amount := rapid.SampledFrom([]int64{0, 1, 2, 11, -1, resources.Greatest, resources.Greatest + 1})
	u := unit.Unit{
		Key: fmt.Sprintf("evil/u%d", rapid.IntRange(0, 12).Draw(t, "hostile unit")), UID: fmt.Sprintf("evil-%d", h.units),
		Queue:    rapid.SampledFrom([]string{"evil", "evil", "good", "none"}).Draw(t, "hostile queue"),
		Quota:    rapid.SampledFrom([]string{"evil", "evil", "evil", "none"}).Draw(t, "hostile quota"),
		Priority: rapid.SampledFrom([]int32{-1 << 31, 0, 1<<31 - 1}).Draw(t, "hostile priority"),
		Created:  epoch.Add(time.Duration(rapid.IntRange(-9, 9).Draw(t, "hostile created")) * time.Hour),
		Request: resources.FromMap(map[string]int64{
			"cpu": amount.Draw(t, "hostile cpu"), "made-up": amount.Draw(t, "hostile made-up"),
		}),
		Pods: rapid.Int64Range(-1, 3).Draw(t, "hostile pods"), Active: rapid.IntRange(0, 3).Draw(t, "hostile active") > 0,
		NonPreemptible: rapid.Bool().Draw(t, "hostile np"), Phase: unit.PhaseEnqueued,
		Adopting: rapid.IntRange(0, 5).Draw(t, "hostile adopting") == 0,
	}
	switch rapid.IntRange(0, 4).Draw(t, "hostile consumer") {
	case 0: // the other tenant's job, by all that can be known of it
		u.Consumer = unit.Consumer{Kind: "Job.v1.batch", Namespace: rapid.SampledFrom([]string{"ns", "evil"}).Draw(t, "of"),
			Name: "jj1", UID: "j1"}
		u.ConsumerManaged, u.OwnedByConsumer = rapid.Bool().Draw(t, "hostile managed"), true
	case 1:
		u.Consumer, u.ConsumerManaged = h.job(), true
	case 2: // its job ran before: so the controller says
		u.Adopting, u.Adopted, u.Phase = false, true, unit.PhaseRunning
	}
	return u
}

// step is one event of its own.
func (h *hostile) step(t *rapid.T, s *State, now time.Time) {
	h.events++
	key := fmt.Sprintf("evil/u%d", rapid.IntRange(0, 12).Draw(t, "hostile key"))
	uid := fmt.Sprintf("evil-p%d", rapid.IntRange(0, 9).Draw(t, "hostile pod"))
	switch rapid.IntRange(0, 6).Draw(t, "hostile event") {
	case 0, 1:
		s.UpsertUnit(now, h.unit(t))
	case 2: // asks for more or less, whatever it holds
		if u, ok := s.roster.units[key]; ok && !u.inFlight() {
			edited := *u.spec
			edited.Request = resources.FromMap(map[string]int64{
				"cpu": rapid.SampledFrom([]int64{0, 1, 5, 10, 2_000_000_000}).Draw(t, "hostile size"),
			})
			edited.Pods = rapid.Int64Range(0, 1<<31).Draw(t, "hostile count")
			s.UpsertUnit(now, edited)
		}
	case 3:
		s.DeleteUnit(now, key)
	case 4:
		p := Pod{
			UID: uid, Quota: rapid.SampledFrom([]string{"evil", "none"}).Draw(t, "hostile pod quota"),
			Request:  resources.FromMap(map[string]int64{"cpu": rapid.Int64Range(0, 3).Draw(t, "hostile pod cpu")}),
			Assigned: rapid.IntRange(0, 2).Draw(t, "hostile assigned") == 0, Leaving: rapid.Bool().Draw(t, "hostile leaving"),
		}
		p.Assigned = p.Assigned && passes(s, "evil", p)
		s.SetPod(now, key, p)
		observeUsed(s, now)
	case 5:
		s.DeletePod(now, key, uid)
		observeUsed(s, now)
	case 6:
		live := rapid.Bool().Draw(t, "hostile live")
		s.SetConsumer(now, h.job(), live)
		if !live {
			h.gone++
		}
	}
}

// settle has its writes succeed, or not.
func (h *hostile) settle(t *rapid.T, s *State, now time.Time, plan *sorted) {
	outcome := func(key string, attempt int64) {
		if strings.HasPrefix(key, "evil/") {
			s.Settle(now, key, attempt, rapid.SampledFrom([]transition.Outcome{
				transition.Confirmed, transition.Confirmed, transition.Refuted, transition.Refused,
			}).Draw(t, "hostile outcome"))
		}
	}
	for i := range plan.Evict {
		outcome(plan.Evict[i].Unit.Key, plan.Evict[i].Unit.Attempts)
	}
	for i := range plan.Admit {
		outcome(plan.Admit[i].Unit.Key, plan.Admit[i].Number)
	}
	for i := range plan.Resize {
		outcome(plan.Resize[i].Unit.Key, plan.Resize[i].Attempt())
	}
}

// ofTheOther is what a plan says of the other tenant's units.
func ofTheOther(p sorted, told []transition.Explain) string {
	var b strings.Builder
	note := func(of *unit.Unit, decided ...any) {
		if strings.HasPrefix(of.Key, "ns/") {
			fmt.Fprintln(&b, append(decided, of.Key)...)
		}
	}
	for _, d := range p.Evict {
		was := *d
		was.Unit = nil
		note(d.Unit, *d.Unit, was)
	}
	for _, d := range p.Admit {
		was := *d
		was.Unit = nil
		note(d.Unit, *d.Unit, was)
	}
	for _, d := range p.Resize {
		was := *d
		was.Unit = nil
		note(d.Unit, *d.Unit, was)
	}
	slices.SortFunc(told, func(a, b transition.Explain) int { return strings.Compare(a.Unit.Key, b.Unit.Key) })
	for _, d := range told {
		note(d.Unit, d.Reason)
	}
	return b.String()
}

// Actions of one tenant change nothing for units of another whose quota shares no slack with its own. The plans for
// these are the same, byte for byte, with and without it (I14).
func TestAHostileTenantChangesNothingForOthers(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		alone, beside := neighbourhood(), neighbourhood()
		h := &hostile{}
		now := epoch
		both := func(event func(s *State)) { event(alone); event(beside) }
		for range rapid.IntRange(1, effort.Steps(60)).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1:
				u := drawUnit(t, rapid.IntRange(0, 8).Draw(t, "unit"))
				u.Queue, u.Quota, u.Expected = "good", "good", unit.Expected{} // with that it may come to hold more than its max
				if u.Phase.Holds() {                                           // held quota must be given to it
					u.Phase, u.Held, u.HeldPods, u.Attempts = unit.PhaseEnqueued, resources.List{}, 0, 0
					u.Adopted, u.Recorded = false, false
				}
				both(func(s *State) { s.UpsertUnit(now, u) })
			case 2:
				key := fmt.Sprintf("ns/u%d", rapid.IntRange(0, 8).Draw(t, "deleted"))
				both(func(s *State) { s.DeleteUnit(now, key) })
			case 3:
				key, p := fmt.Sprintf("ns/u%d", rapid.IntRange(0, 8).Draw(t, "unit")), Pod{
					UID: rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "pod"), Quota: "good",
					Request: drawList(t, "pod", 0, 3, true), Assigned: rapid.Bool().Draw(t, "assigned"),
				}
				p.Assigned = p.Assigned && passes(alone, "good", p)
				both(func(s *State) { s.SetPod(now, key, p); observeUsed(s, now) })
			case 4:
				c := unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: "jj1", UID: "j1"}
				live := rapid.IntRange(0, 3).Draw(t, "live") > 0
				both(func(s *State) { s.SetConsumer(now, c, live) })
			case 5:
				now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			}
			for range rapid.IntRange(0, 4).Draw(t, "hostile events") {
				h.step(t, beside, now)
			}
			outcome := rapid.SampledFrom([]transition.Outcome{
				transition.Confirmed, transition.Confirmed, transition.Refuted,
			}).Draw(t, "outcome")
			left, right := byKind(alone.Decide(now)), byKind(beside.Decide(now))
			toldAlone, _ := alone.Telling().Next(now, 1000)
			toldBeside, _ := beside.Telling().Next(now, 1000)
			require.Equal(effort.Plain(t), ofTheOther(left, toldAlone), ofTheOther(right, toldBeside))
			h.settle(t, beside, now, &right)
			settle := func(key string, attempt int64) {
				both(func(s *State) { s.Settle(now, key, attempt, outcome) })
			}
			for i := range left.Evict {
				settle(left.Evict[i].Unit.Key, left.Evict[i].Unit.Attempts)
			}
			for i := range left.Admit {
				settle(left.Admit[i].Unit.Key, left.Admit[i].Number)
			}
			for i := range left.Resize {
				settle(left.Resize[i].Unit.Key, left.Resize[i].Attempt())
			}
		}
		require.Empty(effort.Plain(t), beside.Audit().Ledger())
		require.Empty(effort.Plain(t), beside.Audit().Places())
	})
}

// passes says, like ElasticQuota, that a pod fits into its quota together with used and reserved amounts.
func passes(s *State, quota string, p Pod) bool {
	at := s.Holdings().Read(quota)
	return p.Quota == quota && tenantsMax().Covers(at.Assigned().List().Add(at.Outstanding().List()).Add(p.Request))
}

// observeUsed has used be what assigned pods ask for.
func observeUsed(s *State, now time.Time) {
	assigned := func(at string) resources.List { return s.Holdings().Read(at).Assigned().List() }
	s.SetQuota(now, Quota{Name: "root", Limit: tenantsMax().Add(tenantsMax()), Used: assigned("root")})
	for _, name := range []string{"good", "evil"} {
		s.SetQuota(now, Quota{
			Name: name, Parent: "root", Limit: tenantsMax(), Max: tenantsMax(), Min: drawn(5), Used: assigned(name),
			Requested: assigned(name),
		})
	}
}

func drawn(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n, "gpu": n}) }

// tenantsMax is as much as each tenant may have.
func tenantsMax() resources.List { return drawn(10) }

// neighbourhood is a tree with a quota for each of two tenants. There is as much as both may have.
func neighbourhood() *State {
	s := New(Config{ExplainAfter: 5 * time.Second, ExplainEvery: 30 * time.Second, RefusedBackoff: 10 * time.Second,
		Rules: life.Config{Timeouts: modelTimeouts}})
	observeUsed(s, epoch)
	for _, name := range []string{"good", "evil"} {
		s.UpsertQueue(epoch, queue.Spec{Name: name, Policy: "Block", Quotas: []string{name}, MaxPending: -1, MaxAdmitted: -1})
	}
	return s
}
