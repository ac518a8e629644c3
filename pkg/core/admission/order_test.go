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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// lined is one queue with room for nothing, so that all that enters waits.
func lined(policy string) *State {
	s := New(Config{})
	none := resources.FromMap(map[string]int64{"cpu": 0})
	s.SetQuota(epoch, Quota{Name: "root", Limit: none})
	for _, name := range []string{"a", "b"} {
		s.SetQuota(epoch, Quota{Name: name, Parent: "root", Limit: none})
	}
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: policy, Threshold: 2, MaxPending: -1, MaxAdmitted: -1})
	return s
}

var policyNames = slices.Sorted(maps.Keys(queue.Builtin()))

// Positions equal those of a sorted list while units enter and leave, and priorities and policies change. A unit that
// was turned back keeps its position (I5).
func TestPositionsEqualASortedList(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(rt *rapid.T) {
		t := effort.Plain(rt)
		policy := rapid.SampledFrom(policyNames).Draw(rt, "policy")
		s, waiting := lined(policy), map[string]unit.Unit{}
		for range rapid.IntRange(1, effort.Steps(120)).Draw(rt, "steps") {
			i := rapid.IntRange(0, 30).Draw(rt, "unit")
			u := unit.Unit{
				Key: fmt.Sprintf("ns/u%d", i), UID: fmt.Sprintf("uid-%d", i*7%31), Queue: "q", Pods: 1, Active: true,
				Quota: []string{"a", "b"}[i%2], Request: resources.FromMap(map[string]int64{"cpu": int64(1 + i%3)}),
				Priority: rapid.Int32Range(0, 3).Draw(rt, "priority"), Created: epoch.Add(time.Duration(i%4) * time.Second),
			}
			switch rapid.IntRange(0, 9).Draw(rt, "event") {
			case 0, 1:
				delete(waiting, u.Key)
				s.DeleteUnit(epoch, u.Key)
			case 2:
				policy = rapid.SampledFrom(policyNames).Draw(rt, "next policy")
				s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: policy, Threshold: 2, MaxPending: -1, MaxAdmitted: -1})
			case 3: // the unit was admitted, and returns
				u.Phase, u.Held, u.Attempts = unit.PhaseDequeued, u.Request, 1
				s.UpsertUnit(epoch, u)
				u.Phase, u.Held = unit.PhaseTimeoutBackoff, resources.List{}
				fallthrough
			default:
				waiting[u.Key] = u
				s.UpsertUnit(epoch, u)
			}
			comparePositions(t, s, policy, waiting)
		}
	})
}

func comparePositions(t require.TestingT, s *State, policy string, waiting map[string]unit.Unit) {
	var want []unit.Unit
	for _, u := range waiting {
		want = append(want, u)
	}
	slices.SortFunc(want, func(a, b unit.Unit) int {
		if servedBefore(policy, a, b) {
			return -1
		}
		return 1
	})
	for i, u := range want {
		if at, ok := s.Position(u.Key); !ok || at != i+1 {
			require.Fail(t, "position", "%s is at %d (%t), want %d", u.Key, at, ok, i+1)
		}
	}
	first := s.First("q", 3)
	require.Len(t, first, min(3, len(want)))
	for i := range first {
		require.Equal(t, want[i].Key, first[i].Unit.Key)
	}
	require.Empty(t, s.First("q", 0))
	last := 0
	s.Line("q", func(position int, u *unit.Unit, _ bool) bool {
		require.Equal(t, last+1, position)
		require.Equal(t, want[last].Key, u.Key)
		last = position
		return true
	})
	require.Len(t, want, last)
	require.Empty(t, s.Audit().Queue("q"))
}

// Every pending unit that is not parked is in its group. Every group knows its first unit, and no group is empty.
func TestGroupsAndTheirHeads(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(rt *rapid.T) {
		t := effort.Plain(rt)
		w := newWorld()
		w.populate(rt)
		for range rapid.IntRange(0, effort.Steps(60)).Draw(rt, "steps") {
			w.step(rt)
			if rapid.IntRange(0, 3).Draw(rt, "decide") == 0 {
				w.decide(t)
			}
		}
		checkGroups(t, w)
		w.decide(t)
		checkGroups(t, w)
	})
}

func checkGroups(t require.TestingT, w *world) {
	s := w.s
	members, pooled := map[*group]int{}, map[*accounts.Pool]int{}
	for key, u := range s.roster.units {
		pooled[u.counted.Pool]++
		if u.group == nil {
			continue
		}
		g := u.group
		members[g]++
		l := s.lines.byName[u.spec.Queue].line
		require.Same(t, l, g.Line())
		request, total, sizes := leastOf(*u.spec), "", ""
		if !u.waits() {
			request, total = u.grows.Need, u.grows.Total.Key()
		} else if u.spec.Sizes != nil && u.spec.GangGroup == "" {
			sizes = u.spec.Sizes.String()
		}
		namespace := ""
		if s.lines.byName[u.spec.Queue].bounds().MaxAdmitted >= 0 {
			namespace = u.spec.Namespace()
		}
		alone := ""
		if u.spec.GangGroup != "" && u.waits() {
			alone = u.spec.Key
		}
		require.Equal(t, backlog.Key{
			Namespace: namespace, Alone: alone, Gang: alone != "",
			Quota: u.spec.Quota, Request: request.Key(), Total: total, Sizes: sizes, NonPreemptible: u.nonPreemptible(),
			Blocks: l.Policy().Blocks(u.spec.Priority), Unchecked: !u.waits() && w.unchecked(w.units[key]),
		}, g.Key(), key)
		require.False(t, l.Before(u, g.Head()), "%s is before the head of its group", key)
	}
	groups := 0
	for _, q := range s.lines.byName {
		open := 0
		for _, g := range q.line.Groups() {
			groups++
			require.Equal(t, members[g], g.Len())
			if g.Notes.ask.Jobs > 0 {
				require.Equal(t, members[g], pooled[&g.Notes.pool])
			} else {
				require.Zero(t, pooled[&g.Notes.pool], "they are admitted")
			}
			require.Equal(t, g.Open(), !g.Notes.isParked())
			if g.Open() {
				open++
			}
		}
		q.line.Heads(func(*group) bool { open--; return true })
		require.Zero(t, open, "open groups have their places among the heads")
	}
	require.Equal(t, len(members), groups, "groups without units")
}
