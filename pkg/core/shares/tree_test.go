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

package shares

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// That the numbers are Koordinator's is compared with Koordinator itself, in internal/quota.

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

func cpuAndGPU(c, g int64) resources.List {
	return resources.FromMap(map[string]int64{"cpu": c, "gpu": g})
}

// forest is a tree with a top of that much cpu.
type forest struct {
	*testing.T
	*Tree
}

func newForest(t *testing.T, total int64) *forest {
	f := &forest{t, NewTree()}
	f.Set("top", Spec{Part: Top, Max: cpu(total)})
	return f
}

// quota sets one whose weight is its max.
func (f *forest) quota(name, parent string, least, most int64, change ...func(*Spec)) {
	s := Spec{Part: Sharing, Parent: parent, Min: cpu(least), Max: cpu(most), Weight: cpu(most), ScalesMin: true}
	for _, c := range change {
		c(&s)
	}
	f.Set(name, s)
}

func keeps(s *Spec) { s.KeepsMin = true }

func (f *forest) ask(name string, amount int64) { f.SetDemand(name, Demand{Request: cpu(amount)}) }

// limits are those of the named quotas after a settle; -1 where none is known.
func (f *forest) limits(names ...string) (amounts []int64) {
	f.Settle()
	for _, name := range names {
		limit, known := f.Limit(name)
		amount, named := limit.Get("cpu")
		require.Equal(f, known, named)
		if !known {
			amount = -1
		}
		amounts = append(amounts, amount)
	}
	return amounts
}

func TestTwoQuotasShare(t *testing.T) {
	for name, c := range map[string]struct{ a, b, wantA, wantB int64 }{
		"nothing asked":                            {0, 0, 0, 0},
		"the other does not need its share":        {80, 10, 80, 10},
		"both ask for more than half":              {80, 80, 50, 50},
		"what one leaves over the other gets":      {80, 45, 55, 45},
		"what is asked above max changes nothing":  {800, 45, 55, 45},
		"less than nothing is asked for":           {-5, 45, 0, 45},
		"no more is asked than anybody could have": {1 << 62, 1 << 62, 50, 50},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForest(t, 100)
			f.quota("a", "top", 40, 100)
			f.quota("b", "top", 40, 100)
			f.ask("a", c.a)
			f.ask("b", c.b)
			require.Equal(t, []int64{c.wantA, c.wantB}, f.limits("a", "b"))
		})
	}
}

// The promised part of min without demand is all of it, unless min shrinks with the total.
func TestPromised(t *testing.T) {
	for total, want := range map[int64]int64{100: 40, 50: 10} {
		f := newForest(t, total)
		f.quota("a", "top", 40, 100)
		f.quota("b", "top", 40, 100)
		f.ask("a", 10)
		require.Equal(t, []int64{10}, f.limits("a"))
		require.Equal(t, cpu(want), f.Promised("a"))
	}
}

func TestMinShrinksWhereThereIsTooLittle(t *testing.T) {
	f := newForest(t, 50)
	f.quota("a", "top", 60, 100)
	f.quota("b", "top", 40, 100)
	f.ask("a", 80)
	f.ask("b", 80)
	require.Equal(t, []int64{30, 20}, f.limits("a", "b"))
	owed := func(name string) int64 {
		amount, known := f.Owed(name, "cpu")
		require.True(t, known)
		return amount
	}
	require.EqualValues(t, 30, owed("a"))
	require.EqualValues(t, 20, owed("b"))
	_, known := f.Owed("top", "cpu")
	require.False(t, known, "a top has no min")
	_, known = f.Owed("a", "gpu")
	require.False(t, known, "nobody shares that")
	for _, name := range []string{"a", "b"} {
		f.Set(name, Spec{Part: Sharing, Parent: "top", Min: cpu(40), Max: cpu(100), Weight: cpu(100)})
	}
	require.Equal(t, []int64{40, 40}, f.limits("a", "b"), "unless it does not")
	require.EqualValues(t, 40, owed("a"))
	f.Set("top", Spec{Part: Top, Max: cpu(100)})
	require.Equal(t, []int64{50, 50}, f.limits("a", "b"))
}

func TestParentsLimitTheirChildren(t *testing.T) {
	f := newForest(t, 100)
	f.quota("p1", "p", 10, 80)
	f.quota("p2", "p", 10, 80)
	f.quota("q", "top", 40, 100)
	f.ask("p1", 80)
	f.ask("q", 10)
	require.Equal(t, []int64{-1, 10}, f.limits("p1", "q"), "a quota without its parent has no share")
	f.quota("p", "top", 60, 80)
	require.Equal(t, []int64{80, 80, 0, 10}, f.limits("p", "p1", "p2", "q"))
	f.ask("p2", 30)
	require.Equal(t, []int64{80, 50, 30, 10}, f.limits("p", "p1", "p2", "q"))
	f.Delete("p")
	f.ask("q", 100)
	require.Equal(t, []int64{-1, -1, 100}, f.limits("p", "p1", "q"))
	f.quota("p", "top", 60, 80)
	require.Equal(t, []int64{60, 30, 30, 40}, f.limits("p", "p1", "p2", "q"), "what is asked below is known")
}

func TestAQuotaThatMovesTakesAlongWhatItAsksFor(t *testing.T) {
	f := newForest(t, 100)
	f.quota("p", "top", 20, 20)
	f.quota("r", "top", 80, 80)
	f.quota("c", "p", 0, 60)
	f.quota("d", "c", 0, 60)
	f.ask("d", 60)
	require.Equal(t, []int64{20, 0, 20}, f.limits("p", "r", "d"))
	f.quota("c", "r", 0, 60)
	require.Equal(t, []int64{0, 60, 60}, f.limits("p", "r", "d"))
	f.quota("c", "d", 0, 60)
	require.Equal(t, []int64{0, 0, -1, -1}, f.limits("p", "r", "c", "d"), "they form a circle")
	f.quota("c", "p", 0, 60)
	require.Equal(t, []int64{20, 0, 20}, f.limits("p", "r", "d"))
	f.Delete("d")
	f.quota("d", "c", 0, 60)
	require.Equal(t, []int64{0, 0}, f.limits("p", "d"), "another one of the name")
}

func TestMinThatIsKeptIsAskedFor(t *testing.T) {
	f := newForest(t, 100)
	f.quota("p", "top", 0, 100)
	f.quota("kept", "p", 40, 100, keeps)
	f.quota("b", "top", 0, 100)
	f.ask("b", 100)
	require.Equal(t, []int64{40, 40, 60}, f.limits("p", "kept", "b"))
	f.quota("kept", "p", 40, 30, keeps)
	require.Equal(t, []int64{30, 30, 70}, f.limits("p", "kept", "b"), "up to max")
}

func TestWhatIsUsedIsGuaranteed(t *testing.T) {
	f := newForest(t, 100)
	guarantees := func(s *Spec) { s.GuaranteesUsed, s.KeepsMin = true, true }
	f.quota("p", "top", 0, 100, guarantees)
	f.quota("a", "p", 10, 100, guarantees)
	f.quota("b", "top", 0, 100, guarantees)
	f.SetDemand("a", Demand{Request: cpu(80), Assigned: cpu(80)})
	f.ask("b", 100)
	require.Equal(t, []int64{80, 80, 20}, f.limits("p", "a", "b"))
}

// A quota apart has no share. Its use is subtracted from the total, and its demand counts like any other.
func TestAQuotaApart(t *testing.T) {
	f := newForest(t, 100)
	f.quota("a", "top", 0, 100)
	f.ask("a", 100)
	f.Set("default", Spec{Part: Apart, Parent: "top", Max: cpu(1 << 40)})
	require.Equal(t, []int64{100, -1}, f.limits("a", "default"))
	f.SetDemand("default", Demand{Request: cpu(20), Assigned: cpu(20)})
	require.Equal(t, []int64{80}, f.limits("a"), "it has no weight")
	f.Set("default", Spec{Part: Apart, Parent: "top", Max: cpu(1 << 40), Weight: cpu(1 << 40)})
	require.Equal(t, []int64{60}, f.limits("a"), "it is deducted twice, as Koordinator does")
	f.SetDemand("default", Demand{})
	require.Equal(t, []int64{100}, f.limits("a"))
}

func TestResourcesThatMaxDoesNotName(t *testing.T) {
	f := newForest(t, 100)
	f.Set("top", Spec{Part: Top, Max: cpuAndGPU(100, 8)})
	f.quota("a", "top", 0, 100)
	f.SetDemand("a", Demand{Request: cpuAndGPU(10, 6)})
	f.Settle()
	limit, _ := f.Limit("a")
	require.Equal(t, cpu(10), limit)
	gpus := func(s *Spec) { s.Max, s.Weight = cpuAndGPU(100, 4), cpuAndGPU(1, 1) }
	f.quota("a", "top", 0, 100, gpus)
	f.quota("p", "top", 0, 100)
	f.quota("c", "p", 0, 100, gpus)
	f.SetDemand("c", Demand{Request: cpuAndGPU(1, 1)})
	f.Settle()
	limit, _ = f.Limit("a")
	require.Equal(t, cpuAndGPU(10, 4), limit)
	limit, _ = f.Limit("c")
	require.Equal(t, cpuAndGPU(1, 4), limit, "its parent does not name it: max limits it")
}

// Settle names whom it has to, and no others.
func TestSettleNamesWhatMoved(t *testing.T) {
	f := newForest(t, 100)
	for _, name := range []string{"a", "b", "c"} {
		f.quota(name, "top", 0, 100)
	}
	require.ElementsMatch(t, []string{"a", "b", "c"}, f.Settle())
	f.ask("a", 60)
	require.Equal(t, []string{"a"}, f.Settle())
	f.ask("b", 60)
	require.ElementsMatch(t, []string{"a", "b"}, f.Settle())
	f.ask("b", 70)
	require.Empty(t, f.Settle())
	f.Set("top", Spec{Part: Top, Max: cpu(90)})
	require.ElementsMatch(t, []string{"a", "b"}, f.Settle())
	f.Delete("b")
	require.ElementsMatch(t, []string{"a", "b"}, f.Settle())
	require.Empty(t, f.Settle())
}

// A tree that is updated step by step equals a new one, and Settle names every quota whose limit has changed.
func TestTreeEqualsANewOne(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "p", "p1", "p2", "q", "q1"}
	effort.Check(t, func(t *rapid.T) {
		tree, specs, asks, last := NewTree(), map[string]Spec{}, map[string]Demand{}, map[string]resources.List{}
		list := func(label string) resources.List {
			m := map[string]int64{}
			for _, name := range []string{"cpu", "gpu"} {
				if rapid.IntRange(0, 4).Draw(t, label+" names "+name) > 0 {
					m[name] = rapid.Int64Range(0, 20).Draw(t, label)
				}
			}
			return resources.FromMap(m)
		}
		for range rapid.IntRange(1, effort.Steps(30)).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "quota")
			switch rapid.IntRange(0, 6).Draw(t, "event") {
			case 0, 1:
				specs[name] = Spec{
					Part:   rapid.SampledFrom([]Part{Sharing, Sharing, Sharing, Apart}).Draw(t, "part"),
					Parent: rapid.SampledFrom(append([]string{"top", "top"}, names...)).Draw(t, "parent"),
					Min:    list("min"), Max: list("max"), Weight: list("weight"), KeepsMin: rapid.Bool().Draw(t, "keeps"),
					ScalesMin: rapid.Bool().Draw(t, "scales"), GuaranteesUsed: rapid.Bool().Draw(t, "guarantees"),
				}
				tree.Set(name, specs[name])
			case 2:
				specs["top"] = Spec{Part: Top, Max: list("total")}
				tree.Set("top", specs["top"])
			case 3:
				delete(specs, name)
				delete(asks, name)
				tree.Delete(name)
			default:
				if _, known := specs[name]; known {
					asks[name] = Demand{Request: list("request"), Assigned: list("assigned")}
					tree.SetDemand(name, asks[name])
				}
			}
			if rapid.Bool().Draw(t, "settle") {
				checkMoved(t, tree, names, last)
			}
		}
		checkMoved(t, tree, names, last)
		again := NewTree()
		for _, name := range slices.Sorted(maps.Keys(specs)) {
			again.Set(name, specs[name])
			again.SetDemand(name, asks[name])
		}
		again.Settle()
		for _, name := range names {
			want, known := again.Limit(name)
			have, alsoKnown := tree.Limit(name)
			require.Equal(t, fmt.Sprint(known, want), fmt.Sprint(alsoKnown, have), name)
			require.Equal(t, again.Promised(name).String(), tree.Promised(name).String(), name)
			for _, resource := range again.names {
				least, known := again.Owed(name, resource)
				alike, alsoKnown := tree.Owed(name, resource)
				require.Equal(t, fmt.Sprint(known, least), fmt.Sprint(alsoKnown, alike), name)
			}
		}
	})
}

func checkMoved(t *rapid.T, tree *Tree, names []string, last map[string]resources.List) {
	moved := tree.Settle()
	for _, name := range names {
		limit, _ := tree.Limit(name)
		if !slices.Contains(moved, name) {
			require.True(t, limit.Same(last[name]), name)
		}
		last[name] = limit
	}
}
