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
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/testing/effort"
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
	require.Zero(t, tree.numbers.len())
}

func TestShort(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "root", Limit: cpuAndGPU(4, 2), Used: cpuAndGPU(1, 3)})
	tree.Refresh()
	lim := tree.Route("root").Limits(false)[0]
	need := func(c, g int64) []int64 { return tree.Need(cpuAndGPU(c, g)) }
	short := func(need []int64, leaf bool) string {
		found, short := lim.Short(need, leaf)
		if !short {
			return ""
		}
		if found.Claimed {
			return tree.Resource(found.Number) + " claimed"
		}
		return tree.Resource(found.Number)
	}
	require.Empty(t, short(need(3, 0), false))
	require.Equal(t, "gpu", short(need(3, 0), true), "the leaf is overspent")
	require.Equal(t, "cpu", short(need(4, 0), false))
	lim.Claim(need(2, 0))
	require.Equal(t, "cpu claimed", short(need(2, 0), false))
	require.Equal(t, "gpu", short(need(2, 1), false), "what lacks without claims counts")
	require.Empty(t, short(need(1, 0), false))
	lim.Unclaim()
	require.Empty(t, short(need(3, 0), false))
}

// Nobody can make vectors longer by asking for resources that nobody limits, and what nobody limits any more is
// forgotten.
func TestNumbering(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "root", Limit: cpuAndGPU(4, 2)})
	tree.Set(Quota{Name: "team", Parent: "root", Limit: cpu(4), Min: resources.FromMap(map[string]int64{"memory": 1})})
	require.Len(t, tree.Need(resources.FromMap(map[string]int64{"made-up": 1})), 3)
	require.Equal(t, []int64{1, 5, 0}, tree.Need(cpuAndGPU(1, 5)))
	structure := tree.Structure()
	tree.Set(Quota{Name: "root", Limit: cpu(4)})
	require.NotEqual(t, structure, tree.Structure())
	require.Equal(t, []int64{1, 0}, tree.Need(cpuAndGPU(1, 5)))
	tree.Set(Quota{Name: "root", Limit: resources.FromMap(map[string]int64{"cpu": 4, resources.Jobs: 3})})
	require.Equal(t, []int64{0, 1, 0}, tree.Need(resources.List{}), "every unit is one")
}

func TestLending(t *testing.T) {
	tree := NewTree(ledger.New())
	tree.Set(Quota{Name: "root", Limit: cpu(10)})
	tree.Set(Quota{Name: "a", Parent: "root", Limit: cpu(3), Max: cpu(8), Shared: true, Used: cpu(1), Requested: cpu(2)})
	tree.Set(Quota{Name: "b", Parent: "root", Limit: cpu(3), Max: cpu(9), Min: cpu(3), KeepsMin: true})
	a, b := tree.Route("a"), tree.Route("b")
	lending := tree.Lend()
	require.True(t, lending.Allows(a, tree.Need(cpu(5))), "10 less 2 that a asks for and 3 that b keeps")
	require.False(t, lending.Allows(a, tree.Need(cpu(6))))
	o, some := lending.Obstacle(a, tree.Need(cpu(7)))
	require.True(t, some)
	require.Equal(t, Obstacle{tree.Route("a").Levels[0], "cpu", 1}, o, "8 less 2")
	require.False(t, lending.Allows(b, tree.Need(cpu(1))), "b has no share to go beyond")
	lending.Claim(b, tree.Need(cpu(3)))
	require.False(t, lending.Allows(a, tree.Need(cpu(3))))
	require.True(t, lending.Allows(a, tree.Need(cpu(2))))
	lending.Shut(a.Levels[1])
	require.False(t, lending.Allows(a, tree.Need(cpu(1))))
	require.True(t, tree.Lend().Allows(a, tree.Need(cpu(5))), "another round")
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

// What is remembered of amounts equals a tree that is made anew of the same facts.
func TestTreeEqualsANewOne(t *testing.T) {
	t.Parallel()
	names := []string{"root", "a", "b", "a1", "b1"}
	rapid.Check(t, func(t *rapid.T) {
		l := ledger.New()
		tree := NewTree(l)
		quotas, asks := map[string]Quota{}, map[string]int64{}
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
				if name != "root" {
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
			tree.Lend().Allows(tree.Route(name), tree.Need(cpu(1))) // so that something is remembered
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
		again.Refresh()
		lending, other := tree.Lend(), again.Lend()
		for name := range quotas {
			x, y := tree.Route(name), again.Route(name)
			if x.Broken != "" || y.Broken != "" {
				continue // levels that are remembered are not made anew
			}
			for i := range x.Levels {
				p, q := x.Levels[i], y.Levels[i]
				require.True(t, slices.Equal(p.limit.free, q.limit.free), name)
				require.True(t, slices.Equal(p.min.free, q.min.free), name)
				if tree.Len() == len(quotas) {
					require.True(t, slices.Equal(p.Asked(), q.Asked()), name)
					require.True(t, slices.Equal(lending.at(p).free, other.at(q).free), name)
				}
			}
		}
	})
}
