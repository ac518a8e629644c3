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
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// TestTheGreatestCountThatFits compares a unit alone in a quota with a search from the whole down.
func TestTheGreatestCountThatFits(t *testing.T) {
	effort.Check(t, func(rt *rapid.T) {
		u := unit.Unit{Key: "ns/u", UID: "u", Queue: "q", Quota: "team", Active: true, Phase: unit.PhaseEnqueued, Pods: 1}
		for drawSizes(rt, &u); u.Sizes == nil; {
			rt.Skip("one size")
		}
		limit := drawList(rt, "limit", 0, 30, true)
		s := New(Config{PartialAdmission: true})
		s.SetQuota(epoch, Quota{Name: "team", Limit: limit, Max: drawList(rt, "max", 5, 30, true)})
		s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Block", MaxPending: -1, MaxAdmitted: -1})
		s.UpsertUnit(epoch, u)
		var want *modelSize
		for _, size := range sizesOf(u) {
			most := s.lines.tree.Route("team").Levels[0].Spec().Max
			if limit.Covers(size.request.Mask(limit)) && most.Covers(size.request.Mask(most)) {
				want = &size
				break
			}
		}
		plan := byKind(s.Decide(epoch))
		plain := effort.Plain(rt)
		if want == nil {
			require.Empty(plain, plan.Admit)
			return
		}
		require.Len(plain, plan.Admit, 1)
		got := plan.Admit[0]
		require.Equal(plain, want.pods, got.Pods)
		require.True(plain, want.request.Equal(got.Request), "%s, want %s", got.Request, want.request)
		if got.Counts != nil {
			sum := int64(0)
			for i, n := range got.Counts {
				sum += n
				require.LessOrEqual(plain, n, u.Sizes.Sets()[i].Count)
				require.GreaterOrEqual(plain, n, u.Sizes.Sets()[i].Fewest())
			}
			require.Equal(plain, want.pods, sum)
		} else {
			require.True(plain, got.Request.Equal(u.Request), "it is the whole")
		}
		s.Settle(epoch, u.Key, got.Attempt(), transition.Confirmed)
		s.SetQuota(epoch, Quota{Name: "team"})
		after := byKind(s.Decide(epoch))
		require.Empty(plain, after.Admit)
		require.Empty(plain, after.Resize, "there is room for the rest, and nobody asks for it")
	})
}

// TestUnitsOfOtherSizesAreNotAlike: units that differ in a size are not decided alike.
func TestUnitsOfOtherSizesAreNotAlike(t *testing.T) {
	s := New(Config{PartialAdmission: true})
	s.SetQuota(epoch, Quota{Name: "team", Limit: resources.FromMap(map[string]int64{"cpu": 0})})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	for i, set := range []unit.PodSetSize{
		{Count: 4, Least: 2, Request: cpu(4)}, {Count: 8, Least: 2, Request: cpu(8)}, {Count: 2, Least: 1, Request: cpu(4)},
	} {
		u := unit.Unit{Key: unitKey(i), UID: unitKey(i), Queue: "q", Quota: "team", Active: true, Phase: unit.PhaseEnqueued}
		u.Sizes = unit.NewSizes([]unit.PodSetSize{set})
		u.BecomeWhole()
		s.UpsertUnit(epoch, u)
	}
	require.Len(t, s.lines.byName["q"].line.Groups(), 3, "all of them need 2 at the least")
}
