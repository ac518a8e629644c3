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

package decide_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/rightful"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

// world is a cluster of 10 cpu with two quotas of 8 each, of which 6 are used in the first.
func world() *capacity.Tree {
	tree := capacity.NewTree(ledger.New())
	tree.Set(capacity.Quota{Name: "root", Limit: cpu(10), Used: cpu(6)})
	tree.Set(capacity.Quota{Name: "a", Parent: "root", Limit: cpu(8), Max: cpu(8), Used: cpu(6)})
	tree.Set(capacity.Quota{Name: "b", Parent: "root", Limit: cpu(8), Max: cpu(8)})
	return tree
}

func ask(tree *capacity.Tree, quota string, amount int64) *decide.Ask {
	a := &decide.Ask{Route: tree.Route(quota), Jobs: 1, Request: cpu(amount), Total: cpu(amount)}
	a.Need, a.Limits = tree.Need(a.Request, a.Jobs), a.Route.Limits(false)
	return a
}

// Heads are served in order, and each finds what the claims of blocking heads ahead leave.
func TestHeadsFitBesideClaims(t *testing.T) {
	type head struct {
		quota    string
		cpu      int64
		blocks   bool
		nextLine bool // the head is the first of another line
		found    string
	}
	for name, heads := range map[string][]head{
		"nothing is short":         {{quota: "a", cpu: 2, found: "fits"}},
		"the leaf is short":        {{quota: "a", cpu: 3, found: "QuotaExceeded a"}},
		"the level above is short": {{quota: "b", cpu: 5, found: "QuotaExceeded root"}},
		"who does not block keeps nothing": {
			{quota: "a", cpu: 3, found: "QuotaExceeded a"}, {quota: "a", cpu: 2, found: "fits"},
		},
		"behind a claim in its quota": {
			{quota: "a", cpu: 3, blocks: true, found: "QuotaExceeded a"}, {quota: "a", cpu: 2, found: "BlockedByHead a"},
		},
		"nothing is claimed above that is not free below": {
			{quota: "a", cpu: 3, blocks: true, found: "QuotaExceeded a"}, {quota: "b", cpu: 4, nextLine: true, found: "fits"},
		},
		"a claim above binds another quota": {
			{quota: "b", cpu: 5, blocks: true, found: "QuotaExceeded root"},
			{quota: "a", cpu: 1, nextLine: true, found: "BlockedByHead root"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := world()
			p := decide.New[int](tree, rightful.New(tree))
			p.Begin()
			p.Line()
			for i, h := range heads {
				if h.nextLine {
					p.Line()
				}
				fits := p.Try(i, ask(tree, h.quota, h.cpu))
				if !fits && h.blocks {
					p.Block()
				}
				if h.found == "fits" {
					require.True(t, fits, i)
					continue
				}
				require.False(t, fits, i)
				found := p.Heads()[i].Cause().Finding(tree)
				require.Equal(t, h.found, string(found.Reason)+" "+found.Level, i)
			}
		})
	}
}

// A head that fits would fit with a smaller request as well, whatever is claimed ahead of it.
func TestASmallerRequestFitsWhereALargerOneDoes(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		amount := func(least, most int64, what string) int64 { return rapid.Int64Range(least, most).Draw(t, what) }
		tree := capacity.NewTree(ledger.New())
		tree.Set(capacity.Quota{Name: "root", Limit: cpu(amount(8, 20, "total")), Used: cpu(amount(0, 8, "used"))})
		for _, of := range [][2]string{{"org", "root"}, {"a", "org"}, {"b", "org"}} {
			quota := of[0]
			tree.Set(capacity.Quota{Name: quota, Parent: of[1], Max: cpu(16), Min: cpu(amount(0, 4, "min of "+quota)),
				Limit: cpu(amount(0, 12, "share of "+quota)), Used: cpu(amount(0, 6, "used of "+quota)), Shared: true})
		}
		rights, larger := rightful.New(tree), amount(1, 12, "ahead")
		p, fitted := decide.New[int](tree, rights), false
		for n := int64(12); n > 0; n-- {
			p.Begin()
			p.Line()
			if !p.Try(0, ask(tree, "b", larger)) {
				p.Block()
			}
			p.Line()
			fits := p.Try(1, ask(tree, "a", n))
			require.True(t, fits || !fitted, "%d does not fit where %d does", n, n+1)
			fitted = fits
		}
	})
}

// A group is granted together or not at all. A head of it that blocks claims where the group is short.
func TestGroupsFitTogether(t *testing.T) {
	tree := world()
	p := decide.New[string](tree, rightful.New(tree))
	try := func(first, second int64) (bool, *decide.Pass[string]) {
		asks := []*decide.Ask{ask(tree, "a", first), ask(tree, "b", second)}
		g := decide.Together(asks)
		p.Begin()
		p.Line()
		met := []int{p.Await("first", asks[0])}
		require.Equal(t, "WaitingForGroup", string(p.Heads()[0].Cause().Stopped))
		p.Line()
		met = append(met, p.Await("second", asks[1]))
		fits := p.TryTogether(&g, met)
		if !fits {
			p.BlockTogether(&g, []int{0})
		}
		return fits, p
	}
	fits, _ := try(1, 3)
	require.True(t, fits)
	fits, p = try(2, 3)
	require.False(t, fits, "each fits alone")
	for _, h := range p.Heads() {
		require.Equal(t, "QuotaExceeded root", strings.Join([]string{
			string(h.Cause().Finding(tree).Reason), h.Cause().Finding(tree).Level,
		}, " "))
	}
	require.Len(t, p.Claims(), 1)
	require.Equal(t, "first", p.Claims()[0].Of)
	require.Equal(t, "second", p.Claims()[0].At, "the turn at which the group was decided")
	require.False(t, p.Try("behind", ask(tree, "b", 3)), "2 of 4 are claimed")
	require.True(t, p.Try("small", ask(tree, "b", 2)))
	never := decide.Together([]*decide.Ask{ask(tree, "a", 5), ask(tree, "a", 4)})
	require.Equal(t, "ExceedsMax", string(never.Never(tree).Reason))
}

// A gang group is too large if any of its quotas has a share that never gets there. Which is the first does not matter.
func TestAGangGroupIsTooLargeForAnyOfItsShares(t *testing.T) {
	tree := world()
	tree.Set(capacity.Quota{Name: "a", Parent: "root", Limit: cpu(8), Max: cpu(8), Min: cpu(8)})
	tree.Set(capacity.Quota{Name: "b", Parent: "root", Limit: cpu(2), Max: cpu(8), Shared: true})
	rights := rightful.New(tree)
	asks := []*decide.Ask{ask(tree, "a", 1), ask(tree, "b", 3)}
	decide.New[int](tree, rights).Begin()
	for range asks {
		slices.Reverse(asks)
		g := decide.Together(asks)
		require.True(t, g.TooLarge(tree, rights), asks[0].Leaf().Name())
	}
}

// The numbers of a shortage name the claims ahead.
func TestShortagesCountClaimsAhead(t *testing.T) {
	tree := world()
	p := decide.New[string](tree, rightful.New(tree))
	p.Begin()
	p.Line()
	require.False(t, p.Try("first", ask(tree, "a", 3)))
	p.Block()
	g := decide.Alone(ask(tree, "a", 2))
	require.Empty(t, p.Shortages(&g, nil))
	list := p.Shortages(&g, []decide.Ahead[string]{{Claim: &p.Claims()[0], By: "first", In: "other"}})
	require.Len(t, list, 1)
	sh := list[0]
	require.Equal(t, []any{"a", "cpu", int64(2), int64(2), int64(3), int64(3), "first", "other"},
		[]any{sh.Level, sh.Resource, sh.Request, sh.Free, sh.Claimed, sh.Missing, sh.ClaimedBy, sh.ClaimedIn})
	require.Equal(t, "BlockedByHead", string(decide.ReasonOf(list)))
	require.Same(t, &list[0], decide.Bind(list, decide.ReasonOf(list)))
	require.True(t, list[0].Binds)
}

// A head that is withheld keeps its room from those behind it, if it fits there.
func TestWithheld(t *testing.T) {
	tree := world()
	p := decide.New[string](tree, rightful.New(tree))
	for _, tc := range []struct{ asks, claims int64 }{{2, 1}, {3, 0}} {
		p.Begin()
		p.Line()
		require.Equal(t, tc.claims == 1, p.Try("first", ask(tree, "a", tc.asks)))
		p.Withhold(0)
		require.Len(t, p.Claims(), int(tc.claims))
		p.Line()
		require.Equal(t, tc.claims == 0, p.Try("behind", ask(tree, "a", 1)))
	}
}
