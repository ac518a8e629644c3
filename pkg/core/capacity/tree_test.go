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

package capacity

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

func cpuAndGPU(c, g int64) resources.List {
	return resources.FromMap(map[string]int64{"cpu": c, "gpu": g})
}

func TestRoute(t *testing.T) {
	tree := NewTree(ledger.New())
	require.Equal(t, `quota "team" does not exist`, tree.Route("team").Broken)
	tree.Set(Quota{Name: "team", Parent: "dept", Limit: cpu(1)})
	require.Equal(t, `quota "team": its parent "dept" does not exist`, tree.Route("team").Broken)
	tree.Set(Quota{Name: "dept", Parent: "root", Limit: cpu(2), Shared: true})
	tree.Set(Quota{Name: "root", Limit: cpu(3)})
	route := tree.Route("team")
	require.Empty(t, route.Broken)
	require.True(t, route.Shared)
	require.Len(t, route.Limits(false), 3)
	require.Len(t, route.Limits(true), 6)
	require.Same(t, route, tree.Route("team"), "nothing changed")
	structure := tree.Structure()
	require.True(t, tree.Set(Quota{Name: "dept", Parent: "root", Limit: cpu(9), Shared: true}))
	require.False(t, tree.Set(Quota{Name: "dept", Parent: "root", Limit: cpu(9), Shared: true}), "no news")
	require.Equal(t, structure, tree.Structure(), "amounts are no news of routes")
	tree.Set(Quota{Name: "root", Parent: "team", Limit: cpu(3)})
	require.Equal(t, `quota "team": its parents form a circle at "team"`, tree.Route("team").Broken)
	tree.Delete("dept")
	tree.Delete("root")
	require.Equal(t, `quota "team": its parent "dept" does not exist`, tree.Route("team").Broken, "the first")
}

func TestAnyShared(t *testing.T) {
	tree := NewTree(ledger.New())
	require.False(t, tree.AnyShared())
	tree.Set(Quota{Name: "a", Shared: true})
	tree.Set(Quota{Name: "b", Shared: true})
	tree.Set(Quota{Name: "a"})
	require.True(t, tree.AnyShared())
	tree.Delete("b")
	require.False(t, tree.AnyShared())
}

// The shares that queues are ordered by: the greatest over all resources that are in use.
func TestShares(t *testing.T) {
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		used, held, least, most resources.List
		ofMin, ofLimit          float64
	}{
		"nothing is in use":     {least: cpu(4), most: cpu(8)},
		"used":                  {used: cpu(2), least: cpu(4), most: cpu(8), ofMin: 0.5, ofLimit: 0.25},
		"held":                  {held: cpu(2), least: cpu(4), most: cpu(8), ofMin: 0.5, ofLimit: 0.25},
		"used and held":         {used: cpu(2), held: cpu(4), least: cpu(4), most: cpu(8), ofMin: 1, ofLimit: 0.75},
		"a little":              {used: cpu(1), least: cpu(4), most: cpu(8), ofMin: 0.25, ofLimit: 0.125},
		"no min, no max":        {used: cpu(1), ofMin: 1},
		"min and max of zero":   {used: cpu(1), least: cpu(0), most: cpu(0), ofMin: 1, ofLimit: inf},
		"min and max of one":    {used: cpu(1), least: cpu(1), most: cpu(1), ofMin: 1, ofLimit: 1},
		"zero in use of no min": {used: cpu(0)},
		"what is used counts beside": {used: cpuAndGPU(1, 3), least: cpuAndGPU(4, 4), most: cpuAndGPU(4, 8),
			ofMin: 0.75, ofLimit: 0.375},
		"what is held counts beside":    {used: cpu(1), held: cpuAndGPU(0, 3), least: cpuAndGPU(4, 4), ofMin: 0.75},
		"held of a resource not used":   {held: cpuAndGPU(2, 1), least: cpuAndGPU(2, 4), ofMin: 1},
		"used counts once, however":     {used: cpuAndGPU(2, 2), held: cpuAndGPU(2, 2), least: cpuAndGPU(8, 8), ofMin: 0.5},
		"less than nothing is in use":   {used: cpu(-1), least: cpu(0), most: cpu(0)},
		"held makes up for it not more": {used: cpu(-1), held: cpu(1), least: cpu(0), most: cpu(0)},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledger.New()
			tree := NewTree(l)
			tree.Set(Quota{Name: "q", Used: c.used, Min: c.least, Limit: c.most})
			l.Reserve("u", "q", c.held, false)
			tree.Changed("q")
			tree.Refresh()
			ofMin, ofLimit := tree.Route("q").Levels[0].Shares()
			require.Equal(t, []float64{c.ofMin, c.ofLimit}, []float64{ofMin, ofLimit})
		})
	}
}

// Outstanding amounts of a limit, in its own terms.
func TestOutstandingOfALimit(t *testing.T) {
	l := ledger.New()
	tree := NewTree(l)
	tree.Set(Quota{Name: "q", Limit: resources.FromMap(map[string]int64{"cpu": 9, resources.Jobs: 5}), Min: cpu(9)})
	l.Reserve("a", "q", cpu(2), true)
	l.Reserve("b", "q", cpu(4), false)
	tree.Changed("q")
	limits := tree.Route("q").Limits(true)
	require.EqualValues(t, 6, limits[0].Outstanding("cpu"))
	require.EqualValues(t, 2, limits[0].Outstanding(resources.Jobs))
	require.EqualValues(t, 2, limits[1].Outstanding("cpu"), "of min the non-preemptible part")
	free, limited := limits[0].Free(resources.Jobs)
	require.True(t, limited)
	require.EqualValues(t, 3, free)
	_, limited = limits[1].Free(resources.Jobs)
	require.False(t, limited, "min does not name it")
}

func TestWithin(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "q", Limit: cpu(4), Used: cpu(4)})
	tree.Set(Quota{Name: "other", Limit: cpuAndGPU(1, 1)})
	tree.Refresh()
	level := tree.Route("q").Levels[0]
	require.True(t, level.Within(tree.Need(cpuAndGPU(4, 9), 1)), "whatever is in use, and of gpu there is no limit")
	require.False(t, level.Within(tree.Need(cpu(5), 1)))
}

// A quota that went is remembered while something is held there or below, and counts where it counted.
func TestRememberedLevels(t *testing.T) {
	l := ledger.New()
	tree := NewTree(l)
	tree.Set(Quota{Name: "root", Limit: cpu(10)})
	tree.Set(Quota{Name: "dept", Parent: "root", Limit: cpu(10)})
	tree.Set(Quota{Name: "team", Parent: "dept", Limit: cpu(10)})
	l.Reserve("u", "team", cpu(4), false)
	tree.Changed("team")
	tree.Delete("team")
	tree.Delete("dept")
	free, _ := tree.Route("root").Limits(false)[0].Free("cpu")
	require.EqualValues(t, 6, free)
	require.Equal(t, 3, tree.Len())
	l.Release("u")
	tree.Changed("team")
	require.Equal(t, 1, tree.Len())
	free, _ = tree.Route("root").Limits(false)[0].Free("cpu")
	require.EqualValues(t, 10, free)
	require.False(t, tree.Delete("dept"), "it went before")
}

// Levels whose parents form a circle do not keep each other alive.
func TestCircleOfLevelsIsForgotten(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "a", Parent: "b", Limit: cpu(1)})
	tree.Set(Quota{Name: "b", Parent: "a", Limit: cpu(1)})
	tree.Delete("a")
	tree.Delete("b")
	require.Zero(t, tree.Len())
	require.Empty(t, tree.children)
	require.Zero(t, tree.numbers.Len())
}

func TestShort(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "root", Limit: cpuAndGPU(4, 2), Used: cpuAndGPU(1, 3)})
	view := NewView(tree)
	lim := tree.Route("root").Limits(false)[0]
	need := func(c, g int64) []int64 { return tree.Need(cpuAndGPU(c, g), 1) }
	short := func(need []int64, leaf bool) string {
		number, claimed, short := view.Short(lim, need, leaf)
		if !short {
			return ""
		}
		if claimed {
			return tree.Resource(number) + " claimed"
		}
		return tree.Resource(number)
	}
	require.Empty(t, short(need(3, 0), false))
	require.Equal(t, "gpu", short(need(3, 0), true), "the leaf is overspent")
	require.Equal(t, "cpu", short(need(4, 0), false))
	view.Claim(lim, need(2, 0))
	require.Equal(t, "cpu claimed", short(need(2, 0), false))
	require.Equal(t, "cpu claimed", short(need(3, 0), false), "it would fit exactly but for the claims")
	require.Equal(t, "gpu", short(need(2, 1), false), "what lacks without claims counts")
	require.Empty(t, short(need(1, 0), false))
	view.Begin()
	require.Empty(t, short(need(3, 0), false))
}

// Nobody can make vectors longer by asking for resources that nobody limits, and what nobody limits any more is
// forgotten.
func TestNumbering(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "root", Limit: cpuAndGPU(4, 2)})
	tree.Set(Quota{Name: "team", Parent: "root", Limit: cpu(4), Min: resources.FromMap(map[string]int64{"memory": 1})})
	require.Len(t, tree.Need(resources.FromMap(map[string]int64{"made-up": 1}), 1), 3)
	require.Equal(t, []int64{1, 5, 0}, tree.Need(cpuAndGPU(1, 5), 1))
	structure := tree.Structure()
	tree.Set(Quota{Name: "root", Limit: cpu(4)})
	require.NotEqual(t, structure, tree.Structure())
	require.Equal(t, []int64{1, 0}, tree.Need(cpuAndGPU(1, 5), 1))
	tree.Set(Quota{Name: "root", Limit: resources.FromMap(map[string]int64{"cpu": 4, resources.Jobs: 3})})
	require.Equal(t, []int64{0, 1, 0}, tree.Need(resources.List{}, 1), "every unit is one")
	require.Equal(t, []int64{0, 0, 0}, tree.Need(resources.List{}, 0), "unless it is one already")
}

// A quota that is made again while something is held there gives no other quota's resource away.
func TestNumbersOfAQuotaThatComesBack(t *testing.T) {
	l := ledger.New()
	tree := NewTree(l)
	tree.Set(Quota{Name: "root", Limit: cpuAndGPU(4, 2)})
	tree.Set(Quota{Name: "team", Parent: "root", Limit: cpu(4), Min: cpuAndGPU(2, 1)})
	l.Reserve("u", "team", cpu(1), false)
	tree.Changed("team")
	tree.Delete("team")
	tree.Set(Quota{Name: "team", Parent: "root", Limit: cpu(4)})
	require.Equal(t, []int64{1, 5}, tree.Need(cpuAndGPU(1, 5), 1), "root limits gpu still")
	_, limited := tree.Route("root").Limits(false)[0].Free("gpu")
	require.True(t, limited)
}

func TestLending(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "root", Limit: cpu(10)})
	tree.Set(Quota{Name: "a", Parent: "root", Limit: cpu(3), Max: cpu(8), Shared: true, Used: cpu(1), Requested: cpu(2)})
	tree.Set(Quota{Name: "b", Parent: "root", Limit: cpu(3), Max: cpu(9), Min: cpu(3), KeepsMin: true})
	a, b := tree.Route("a"), tree.Route("b")
	lending := NewLending(tree)
	require.True(t, lending.Allows(a, tree.Need(cpu(5), 1)), "10 less 2 that a asks for and 3 that b keeps")
	require.False(t, lending.Allows(a, tree.Need(cpu(6), 1)))
	o, some := lending.Obstacle(a, tree.Need(cpu(7), 1))
	require.True(t, some)
	require.Equal(t, Obstacle{tree.Route("a").Levels[0], "cpu", 1}, o, "8 less 2")
	require.False(t, lending.Allows(b, tree.Need(cpu(1), 1)), "b has no share to go beyond")
	lending.Claim(b, tree.Need(cpu(3), 1))
	require.False(t, lending.Allows(a, tree.Need(cpu(3), 1)))
	require.True(t, lending.Allows(a, tree.Need(cpu(2), 1)))
	lending.Shut(a.Levels[1])
	require.False(t, lending.Allows(a, tree.Need(cpu(1), 1)))
	require.True(t, NewLending(tree).Allows(a, tree.Need(cpu(5), 1)), "another round")
}

// A level where more is in use than there is lends nothing of that resource; if it is the unit's own quota, nothing at
// all.
func TestLendingOfWhatIsOverspent(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "root", Limit: cpuAndGPU(10, 2), Used: cpuAndGPU(0, 3)})
	leaf := Quota{Name: "a", Parent: "root", Limit: cpuAndGPU(3, 2), Max: cpuAndGPU(8, 2), Shared: true}
	tree.Set(leaf)
	allows := func(need resources.List) (bool, Obstacle) {
		lending := NewLending(tree)
		o, some := lending.Obstacle(tree.Route("a"), tree.Need(need, 1))
		ok := lending.Allows(tree.Route("a"), tree.Need(need, 1))
		require.Equal(t, !ok, some)
		return ok, o
	}
	ok, _ := allows(cpu(8))
	require.True(t, ok, "it asks for nothing of what is overspent above")
	ok, o := allows(cpuAndGPU(8, 1))
	require.False(t, ok)
	require.Equal(t, Obstacle{tree.Route("root").Levels[0], "gpu", 2}, o)
	ok, o = allows(cpu(9))
	require.False(t, ok)
	require.Equal(t, Obstacle{tree.Route("a").Levels[0], "cpu", 1}, o)
	leaf.Used = cpuAndGPU(0, 3)
	tree.Set(leaf)
	ok, o = allows(cpu(1))
	require.False(t, ok)
	require.Equal(t, Obstacle{tree.Route("a").Levels[0], "gpu", 1}, o)
}

// The demand of a level is bounded by its max, and at the top it is the sum of all.
func TestAskedUpToMax(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "root", Limit: cpu(3), Max: cpu(3)})
	tree.Set(Quota{Name: "a", Parent: "root", Limit: cpu(9), Max: cpu(4), Requested: cpu(9)})
	tree.Set(Quota{Name: "b", Parent: "root", Limit: cpu(9), Requested: cpu(2)})
	require.Equal(t, []int64{4}, tree.Route("a").Levels[0].Asked())
	require.Equal(t, []int64{6}, tree.Route("root").Levels[0].Asked())
}

func sharing(name, parent string, most int64) Quota {
	return Quota{
		Name: name, Parent: parent, Max: cpu(most), Shared: true, Terms: Terms{Part: shares.Sharing, Weight: cpu(most)},
	}
}

// The top shares out its limit. Its max also counts capacity that no pod can use.
func TestOnlyTheLimitOfTheTopIsShared(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "root", Limit: cpu(6), Max: cpu(10), Terms: Terms{Part: shares.Top}})
	tree.Set(sharing("a", "root", 10))
	tree.Want("a", func(sum *resources.Sum) { sum.Add(cpu(9)) })
	limit, _ := tree.LimitOf("a")
	require.Equal(t, cpu(6), limit)
	structure := tree.Structure()
	tree.Set(Quota{Name: "root", Limit: cpu(8), Max: cpu(10), Terms: Terms{Part: shares.Top}})
	limit, _ = tree.LimitOf("a")
	require.Equal(t, cpu(8), limit)
	require.Equal(t, structure, tree.Structure(), "no way in the tree is another one")
}

// A limit that is computed follows from what pods and units ask for, and from the total.
func TestComputedLimit(t *testing.T) {
	l := ledger.New()
	tree := NewTree(l)
	tree.Set(Quota{Name: "root", Limit: cpu(10), Max: cpu(10), Terms: Terms{Part: shares.Top}})
	a := sharing("a", "root", 10)
	a.Requested, a.Limit = cpu(2), resources.FromMap(map[string]int64{resources.Jobs: 7})
	tree.Set(a)
	tree.Set(sharing("b", "root", 10))
	limit := func(name string) int64 {
		limit, _ := tree.LimitOf(name)
		amount, _ := limit.Get("cpu")
		return amount
	}
	want := func(name string, by int64) { tree.Want(name, func(sum *resources.Sum) { sum.Add(cpu(by)) }) }
	require.EqualValues(t, 2, limit("a"))
	require.True(t, tree.LimitsMoved())
	require.Equal(t, []string{"a", "b", "root"}, tree.Moved())
	want("a", 9)
	require.EqualValues(t, 10, limit("a"))
	require.Equal(t, cpu(9), tree.Wanted("a"))
	require.True(t, tree.LimitsMoved())
	want("a", 9)
	require.EqualValues(t, 10, limit("a"), "it cannot have more")
	require.False(t, tree.LimitsMoved())
	require.Equal(t, []string{"a"}, tree.Moved(), "once")
	want("b", 9)
	require.EqualValues(t, 5, limit("a"))
	require.EqualValues(t, 5, limit("b"))
	require.Equal(t, []string{"a", "b"}, tree.Moved())
	free, _ := tree.Route("a").Limits(false)[0].Free("cpu")
	require.EqualValues(t, 5, free)
	free, _ = tree.Route("a").Limits(false)[0].Free(resources.Jobs)
	require.EqualValues(t, 7, free)
	tree.Set(Quota{Name: "apart", Parent: "root", Limit: cpu(99), Max: cpu(99), Terms: Terms{Part: shares.Apart}})
	want("apart", 4)
	require.EqualValues(t, 5, limit("a"), "what only waits there starves nobody")
	l.Reserve("u", "apart", cpu(4), false)
	tree.Changed("apart")
	require.EqualValues(t, 3, limit("a"), "what is held there is as good as used")
	require.EqualValues(t, 99, limit("apart"))
	tree.Delete("b")
	require.EqualValues(t, 6, limit("a"))
	tree.Set(sharing("b", "root", 10))
	require.EqualValues(t, 3, limit("a"), "what units want is known")
	tree.Delete("root")
	require.EqualValues(t, 0, limit("a"), "the way to the top is broken")
}

// A level that moves takes along what it asks for.
func TestLevelThatMoves(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "root", Limit: cpu(10)})
	tree.Set(Quota{Name: "left", Parent: "root", Limit: cpu(10)})
	tree.Set(Quota{Name: "right", Parent: "root", Limit: cpu(10)})
	asked := func(name string) int64 { return tree.Route(name).Levels[0].Asked()[0] }
	tree.Set(Quota{Name: "team", Parent: "left", Limit: cpu(10), Requested: cpu(4)})
	require.EqualValues(t, 4, asked("left"))
	require.Zero(t, asked("right"))
	tree.Set(Quota{Name: "team", Parent: "right", Limit: cpu(10), Requested: cpu(4)})
	require.Zero(t, asked("left"))
	require.EqualValues(t, 4, asked("right"))
	require.EqualValues(t, 4, asked("root"))
}

// Cached amounts equal those of a new tree.
func TestTreeEqualsANewOne(t *testing.T) {
	t.Parallel()
	names := []string{"root", "a", "b", "a1", "b1"}
	effort.Check(t, func(t *rapid.T) {
		l := ledger.New()
		tree := NewTree(l)
		quotas, asks, wants := map[string]Quota{}, map[string]int64{}, map[string]int64{}
		list := func(label string) resources.List {
			m := map[string]int64{}
			for _, name := range []string{"cpu", "gpu"} {
				if rapid.IntRange(0, 3).Draw(t, label+" names "+name) > 0 {
					m[name] = rapid.Int64Range(0, 9).Draw(t, label)
				}
			}
			return resources.FromMap(m)
		}
		for range rapid.IntRange(1, effort.Steps(30)).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "quota")
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1, 2:
				q := Quota{
					Name: name, Limit: list("limit"), Max: list("max"), Min: list("min"), Used: list("used"),
					Requested: list("requested"), Shared: rapid.Bool().Draw(t, "shared"), KeepsMin: rapid.Bool().Draw(t, "keeps"),
				}
				q.Terms = Terms{
					Part:   rapid.SampledFrom([]shares.Part{shares.None, shares.Sharing, shares.Apart}).Draw(t, "part"),
					Weight: list("weight"), ScalesMin: rapid.Bool().Draw(t, "scales"),
				}
				if q.computed() {
					q.Limit = resources.List{}
				}
				if name == "root" {
					q.Terms.Part = shares.Top
				} else {
					q.Parent = rapid.SampledFrom(names).Draw(t, "parent")
				}
				quotas[name] = q
				tree.Set(q)
			case 3:
				delete(quotas, name)
				tree.Delete(name)
			case 4:
				l.Reserve("u-"+name, name, list("held"), false)
				tree.Changed(name)
			case 5:
				n := rapid.Int64Range(-3, 5).Draw(t, "asks")
				asks[name] += n
				tree.Ask(name, func(sum *resources.Sum) { sum.Add(cpu(n)) })
			}
			switch rapid.IntRange(0, 2).Draw(t, "wants") {
			case 0:
				n := rapid.Int64Range(0, 5).Draw(t, "wants")
				wants[name] += n
				tree.Want(name, func(sum *resources.Sum) { sum.Add(cpu(n)) })
			case 1:
				continue // nobody looks
			}
			NewLending(tree).Allows(tree.Route(name), tree.Need(cpu(1), 1)) // so that something is remembered
			for known := range quotas {
				tree.levels[known].Asked()
			}
		}
		again := NewTree(l)
		for _, q := range quotas {
			again.Set(q)
		}
		for name, n := range asks {
			again.Ask(name, func(sum *resources.Sum) { sum.Add(cpu(n)) })
		}
		for name, n := range wants {
			again.Want(name, func(sum *resources.Sum) { sum.Add(cpu(n)) })
		}
		again.Refresh()
		lending, other := NewLending(tree), NewLending(again)
		for name := range quotas {
			x, y := tree.Route(name), again.Route(name)
			if x.Broken != "" || y.Broken != "" {
				continue // a new tree does not remember levels
			}
			for i := range x.Levels {
				p, q := x.Levels[i], y.Levels[i]
				require.True(t, slices.Equal(p.limit.free, q.limit.free), name)
				limit, promised := tree.LimitOf(p.name)
				freshLimit, freshPromised := again.LimitOf(p.name)
				require.True(t, limit.Same(freshLimit) && promised.Same(freshPromised), name)
				require.True(t, slices.Equal(p.min.free, q.min.free), name)
				if tree.Len() == len(quotas) {
					require.True(t, slices.Equal(p.Asked(), q.Asked()), name)
					require.True(t, slices.Equal(lending.at(p).free, other.at(q).free), name)
				}
			}
		}
	})
}

// Two views of one tree: in one, three units are gone. The other one and the tree do not change.
func TestWouldItFitIfThreeWereGone(t *testing.T) {
	l := ledger.New()
	tree := NewTree(l)
	tree.Set(Quota{Name: "root", Limit: cpu(10), Used: cpu(1)})
	tree.Set(Quota{Name: "team", Parent: "root", Limit: cpu(8)})
	held := map[string]resources.List{"a": cpu(2), "b": cpu(1), "c": cpu(3)}
	for name, amount := range held {
		l.Reserve(name, "team", amount, false)
	}
	tree.Changed("team")
	is, wouldBe := NewView(tree), NewView(tree)
	team, need := tree.Route("team").Limits(false), tree.Need(cpu(6), 1)
	fits := func(v *View) bool {
		return !slices.ContainsFunc(team, func(lim *Limit) bool {
			_, _, short := v.Short(lim, need, lim.Level().Name() == "team")
			return short
		})
	}
	require.False(t, fits(is))
	wouldBe.Claim(team[1], tree.Need(cpu(3), 1))
	for _, amount := range held {
		for _, lim := range team {
			wouldBe.Return(lim, tree.Need(amount, 1))
		}
	}
	require.True(t, fits(wouldBe), "10 less 1 in use and 3 that somebody claims")
	wouldBe.Claim(team[1], tree.Need(cpu(1), 1))
	require.False(t, fits(wouldBe))
	require.False(t, fits(is))
	wouldBe.Begin()
	_, _, short := wouldBe.Short(team[0], tree.Need(cpu(2), 1), true)
	require.False(t, short, "8 less 6 that are held")
	require.False(t, fits(wouldBe), "it is what the tree is")
}

// A view of a tree in which quotas come and go is no longer than the limits of those that are there.
func TestSlotsAreGivenAgain(t *testing.T) {
	tree := NewTree(ledger.New())
	view := NewView(tree)
	for i := range 5 {
		name := fmt.Sprint(i)
		tree.Set(Quota{Name: name, Limit: cpu(int64(i))})
		view.Begin()
		_, _, short := view.Short(tree.Route(name).Limits(false)[0], tree.Need(cpu(int64(i)+1), 1), true)
		require.True(t, short)
		tree.Delete(name)
	}
	require.Len(t, view.rooms, 2)
}
