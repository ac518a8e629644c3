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

package ledger

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

func outstanding(l *Ledger, level string) int64 { return l.Read(level).Outstanding().Get("cpu") }

func TestLife(t *testing.T) {
	l := New()
	l.SetParent("team", "dept")
	l.SetParent("dept", "root")
	require.True(t, l.Reserve("u", "team", cpu(8), false))
	require.False(t, l.Reserve("u", "team", cpu(8), false), "nothing changed")
	for _, level := range []string{"team", "dept", "root"} {
		require.EqualValues(t, 8, outstanding(l, level))
	}
	require.True(t, l.SetPod("u", Pod{UID: "p1", Level: "team", Request: cpu(3)}, true))
	require.EqualValues(t, 5, outstanding(l, "root"))
	require.False(t, l.SetPod("u", Pod{UID: "p2", Level: "other", Request: cpu(3)}, true), "its use shows elsewhere")
	require.True(t, l.SetPod("u", Pod{UID: "p3", Level: "team", Request: cpu(9)}, true))
	require.EqualValues(t, 0, outstanding(l, "root"), "never below zero")
	require.True(t, l.DeletePod("u", "p3"))
	require.False(t, l.DeletePod("u", "p3"))
	require.EqualValues(t, 5, outstanding(l, "root"))
	require.True(t, l.Reserve("u", "team", cpu(4), false))
	require.EqualValues(t, 1, outstanding(l, "dept"))
	require.True(t, l.Release("u"))
	require.False(t, l.Release("u"))
	require.EqualValues(t, 0, outstanding(l, "dept"))
}

func TestExpect(t *testing.T) {
	l := New()
	require.False(t, l.Expect("u", unit.Expected{Pods: 3, Each: cpu(3)}), "it holds nothing")
	l.Reserve("u", "team", cpu(9), false)
	require.False(t, l.Expect("u", unit.Expected{Pods: 3, Each: cpu(3)}), "no pod has come")
	l.SetPod("u", Pod{UID: "p1", Level: "team", Request: cpu(1)}, true)
	require.EqualValues(t, 6, outstanding(l, "team"), "two of three each")
	l.SetPod("u", Pod{UID: "p2", Level: "team", Request: cpu(5)}, true)
	require.EqualValues(t, 3, outstanding(l, "team"), "no more than the estimate leaves")
	l.SetPod("u", Pod{UID: "p3", Level: "other", Request: cpu(1)}, true)
	require.EqualValues(t, 3, outstanding(l, "team"), "it has not come to this quota")
	l.SetPod("u", Pod{UID: "p4", Level: "team", Request: cpu(1)}, true)
	require.EqualValues(t, 0, outstanding(l, "team"), "all are there")
	l.DeletePod("u", "p4")
	require.EqualValues(t, 3, outstanding(l, "team"), "its successor is to come")
	l.Release("u")
	l.Reserve("u", "team", cpu(9), false)
	require.EqualValues(t, 3, outstanding(l, "team"), "nothing is expected any more")
}

func TestNonPreemptible(t *testing.T) {
	l := New()
	l.Reserve("u", "team", cpu(8), true)
	l.SetPod("u", Pod{UID: "p1", Level: "team", Request: cpu(3)}, true)
	require.EqualValues(t, 5, outstanding(l, "team"))
	onMin := func() int64 { return l.Read("team").OutstandingNonPreemptible().Get("cpu") }
	require.EqualValues(t, 8, onMin(), "Koordinator does not count this pod on min")
	l.SetPod("u", Pod{UID: "p1", Level: "team", Request: cpu(3), NonPreemptible: true}, true)
	require.EqualValues(t, 5, onMin())
}

// A pod that is assigned before its unit is known counts all the same: informers race on restart.
func TestPodsBeforeTheUnit(t *testing.T) {
	l := New()
	require.False(t, l.SetPod("u", Pod{UID: "p", Level: "team", Request: cpu(3)}, true))
	l.Reserve("u", "team", cpu(8), false)
	require.EqualValues(t, 5, outstanding(l, "team"))
}

func TestMove(t *testing.T) {
	l := New()
	l.SetParent("team", "a")
	l.SetParent("a", "root")
	l.Reserve("u", "team", cpu(8), false)
	l.SetParent("team", "b")
	require.EqualValues(t, 0, outstanding(l, "a"))
	require.EqualValues(t, 8, outstanding(l, "b"))
	require.EqualValues(t, 0, outstanding(l, "root"), "b has no parent yet")
	l.SetParent("b", "root")
	require.EqualValues(t, 8, outstanding(l, "root"))
	l.Reserve("u", "a", cpu(8), false)
	require.EqualValues(t, 0, outstanding(l, "b"))
	require.EqualValues(t, 8, outstanding(l, "root"), "once, not twice")
}

// A unit that holds nothing is counted all the same, and moves with its quota.
func TestMoveOfAUnitThatHoldsNothing(t *testing.T) {
	l := New()
	l.SetParent("team", "a")
	l.Reserve("u", "team", resources.List{}, false)
	require.EqualValues(t, 1, l.Read("a").Units())
	l.SetParent("team", "b")
	require.EqualValues(t, 0, l.Read("a").Units())
	require.EqualValues(t, 1, l.Read("b").Units())
}

func TestWhereAUnitHolds(t *testing.T) {
	l := New()
	l.SetParent("team", "a")
	l.SetPod("u", Pod{UID: "p", Level: "team", Request: cpu(1)}, true)
	require.False(t, l.Read("team").Holds(), "its pod is not what the unit holds")
	l.Reserve("u", "team", cpu(1), false)
	require.True(t, l.Read("team").Holds())
	require.False(t, l.Read("a").Holds(), "below it")
	require.False(t, l.Read("nowhere").Holds())
	l.Release("u")
	require.False(t, l.Read("team").Holds())
}

func TestPath(t *testing.T) {
	l := New()
	l.SetParent("team", "a")
	l.SetParent("a", "root")
	require.Equal(t, []string{"team", "a", "root"}, l.Path("team"))
	require.Equal(t, []string{"unknown"}, l.Path("unknown"))
	require.Empty(t, l.Path(""))
	l.SetParent("root", "a")
	require.Equal(t, []string{"team", "a", "root"}, l.Path("team"), "up to where it comes back to itself")
}

func TestExpectedSame(t *testing.T) {
	x := unit.Expected{Pods: 2, Each: cpu(1)}
	require.True(t, x.Same(unit.Expected{Pods: 2, Each: cpu(1)}))
	require.False(t, x.Same(unit.Expected{Pods: 3, Each: cpu(1)}))
	require.False(t, x.Same(unit.Expected{Pods: 2, Each: cpu(2)}))
	require.False(t, x.Same(unit.Expected{Pods: 2}))
}

// Parents that form a circle for a moment neither hang nor lose anything.
func TestCircle(t *testing.T) {
	l := New()
	l.Reserve("u", "a", cpu(8), false)
	l.SetParent("a", "b")
	l.SetParent("b", "a")
	require.EqualValues(t, 8, outstanding(l, "b"))
	l.SetParent("a", "root")
	require.EqualValues(t, 8, outstanding(l, "root"))
	require.EqualValues(t, 0, outstanding(l, "b"))
	l.SetParent("a", "a")
	require.EqualValues(t, 8, outstanding(l, "a"))
}

func TestNothingStays(t *testing.T) {
	l := New()
	l.SetParent("team", "root")
	l.SetPod("u", Pod{UID: "p", Level: "team", Request: cpu(1)}, true)
	l.Reserve("u", "team", cpu(8), true)
	l.Release("u")
	l.DeletePod("u", "p")
	l.SetParent("team", "")
	require.Empty(t, l.levels)
	require.Empty(t, l.entries)
}

func TestCompare(t *testing.T) {
	a, b := New(), New()
	a.Reserve("u", "team", cpu(8), true)
	b.Reserve("u", "team", cpu(5), false)
	b.Reserve("v", "team", resources.List{}, false)
	require.Equal(t, []Difference{
		{Level: "team", Resource: "cpu", Ledger: 8, Rebuilt: 5},
		{Level: "team", Resource: "cpu (non-preemptible)", Ledger: 8, Rebuilt: 0},
		{Level: "team", Resource: resources.Jobs, Ledger: 1, Rebuilt: 2},
	}, a.Compare(b))
}

// facts is what a ledger was told, in maps.
type facts struct {
	parents map[string]string
	held    map[string]holding
	pods    map[string]map[string]Pod
}

type holding struct {
	level          string
	amount         resources.List
	nonPreemptible bool
	expected       unit.Expected
}

func newFacts() *facts {
	return &facts{parents: map[string]string{}, held: map[string]holding{}, pods: map[string]map[string]Pod{}}
}

var levels = []string{"root", "a", "b", "c"}

func drawList(t *rapid.T) resources.List {
	return resources.FromMap(rapid.MapOfN(rapid.SampledFrom([]string{"cpu", "gpu"}),
		rapid.OneOf(rapid.Int64Range(0, 6), rapid.Just(resources.Greatest)), 0, 2).Draw(t, "amounts"))
}

func drawExpected(t *rapid.T) unit.Expected {
	if rapid.Bool().Draw(t, "nothing is known") {
		return unit.Expected{}
	}
	return unit.Expected{Pods: rapid.Int64Range(1, 3).Draw(t, "pods"), Each: drawList(t)}
}

// step draws one operation and says it to the ledger and to the maps.
func (f *facts) step(t *rapid.T, l *Ledger) {
	key := rapid.SampledFrom([]string{"u", "v", "w"}).Draw(t, "unit")
	level := rapid.SampledFrom(levels).Draw(t, "level")
	switch rapid.IntRange(0, 5).Draw(t, "operation") {
	case 0:
		h := holding{level, drawList(t), rapid.Bool().Draw(t, "non-preemptible"), drawExpected(t)}
		f.held[key] = h
		l.Reserve(key, h.level, h.amount, h.nonPreemptible)
		l.Expect(key, h.expected)
	case 1:
		delete(f.held, key)
		l.Release(key)
	case 2:
		amount := drawList(t)
		if h, ok := f.held[key]; ok {
			h.amount = amount
			f.held[key] = h
			l.Reserve(key, h.level, h.amount, h.nonPreemptible)
		}
	case 3:
		p := Pod{UID: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pod"), Level: level, Request: drawList(t),
			NonPreemptible: rapid.Bool().Draw(t, "np"), Former: rapid.Bool().Draw(t, "former")}
		if f.pods[key] == nil {
			f.pods[key] = map[string]Pod{}
		}
		f.pods[key][p.UID] = p
		l.SetPod(key, p, true)
	case 4:
		uid := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pod")
		delete(f.pods[key], uid)
		l.DeletePod(key, uid)
	case 5:
		parent := rapid.SampledFrom(append([]string{""}, levels...)).Draw(t, "parent")
		f.parents[level] = parent
		l.SetParent(level, parent)
	}
}

// replay says the facts to a new ledger, in an order that is drawn.
func (f *facts) replay(t *rapid.T) *Ledger {
	l := New()
	var says []func()
	for level, parent := range f.parents {
		says = append(says, func() { l.SetParent(level, parent) })
	}
	for key, h := range f.held {
		says = append(says, func() {
			l.Reserve(key, h.level, h.amount, h.nonPreemptible)
			l.Expect(key, h.expected)
		})
	}
	for key, pods := range f.pods {
		for _, p := range pods {
			says = append(says, func() { l.SetPod(key, p, true) })
		}
	}
	for i := len(says) - 1; i > 0; i-- {
		j := rapid.IntRange(0, i).Draw(t, "swap")
		says[i], says[j] = says[j], says[i]
	}
	for _, say := range says {
		say()
	}
	return l
}

// rebuilt is a new ledger out of the facts that this one was told: parents, holdings and pods.
func rebuilt(l *Ledger) *Ledger {
	out := l.RebuildPods()
	for key, e := range l.entries {
		if e.reserved {
			out.Reserve(key, e.level, e.held, e.nonPreemptible)
			out.Expect(key, e.expected)
		}
	}
	return out
}

// The ledger equals its rebuild after every operation, and the order of facts does not matter (I7, I8).
func TestLedgerEqualsRebuild(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		l, f := New(), newFacts()
		for range rapid.IntRange(1, effort.Steps(40)).Draw(t, "operations") {
			f.step(t, l)
			require.Empty(t, l.Compare(rebuilt(l)))
			f.compare(t, l)
		}
		require.Empty(t, l.Compare(f.replay(t)))
	})
}

// compare recomputes what is outstanding the dumb way.
func (f *facts) compare(rt *rapid.T, l *Ledger) {
	t := effort.Plain(rt)
	for _, level := range levels {
		var sum resources.Sum
		var units int64
		for key, h := range f.held {
			if !f.below(h.level, level) {
				continue
			}
			units++
			left, there := h.amount, int64(0)
			for _, p := range f.pods[key] {
				if p.Level == h.level {
					if left = left.Sub(p.Request.Mask(h.amount)); !p.Former {
						there++
					}
				}
			}
			sum.Add(mostOf(h.expected, left.Floor0(), there))
		}
		at := l.Read(level)
		require.Equal(t, units, at.Units(), level)
		var assigned, nonPreemptible resources.Sum
		for _, pods := range f.pods {
			for _, p := range pods {
				if f.below(p.Level, level) {
					assigned.Add(p.Request)
					if p.NonPreemptible {
						nonPreemptible.Add(p.Request)
					}
				}
			}
		}
		for _, k := range []string{"cpu", "gpu"} {
			require.Equal(t, assigned.Get(k), at.Assigned().Get(k), "assigned at %s: %s", level, k)
			require.Equal(t, nonPreemptible.Get(k), at.AssignedNonPreemptible().Get(k), "assigned at %s: %s", level, k)
		}
		require.True(t, sum.List().Equal(at.Outstanding().List()),
			fmt.Sprintf("%s: %s, want %s", level, at.Outstanding().List(), sum.List()))
	}
}

// most bounds the dumb way: pod by pod that is missing.
func mostOf(x unit.Expected, left resources.List, there int64) resources.List {
	if x.Pods <= 0 {
		return left
	}
	need := map[string]*big.Int{}
	for range max(x.Pods-there, 0) {
		for _, it := range x.Each.Items() {
			if need[it.Name] == nil {
				need[it.Name] = &big.Int{}
			}
			need[it.Name].Add(need[it.Name], big.NewInt(it.Amount))
		}
	}
	out := map[string]int64{}
	for _, it := range left.Items() {
		_, named := x.Each.Get(it.Name)
		out[it.Name] = it.Amount
		switch most := need[it.Name]; {
		case there >= x.Pods:
			out[it.Name] = 0
		case named && most.Cmp(big.NewInt(it.Amount)) < 0:
			out[it.Name] = most.Int64()
		}
	}
	return resources.FromMap(out)
}

func (f *facts) below(at, level string) bool {
	for seen := map[string]bool{}; at != "" && !seen[at]; at = f.parents[at] {
		if at == level {
			return true
		}
		seen[at] = true
	}
	return false
}

// BenchmarkLedger: the operations of one unit on a tree of some depth, while very many others hold quota.
func BenchmarkLedger(b *testing.B) {
	list := resources.FromMap(map[string]int64{"cpu": 1000, "memory": 1 << 30})
	for _, depth := range []int{2, 4, 8} {
		for _, units := range []int{1_000, 1_000_000} {
			l, leaf := New(), ""
			for i := range depth {
				name := fmt.Sprint("level", i)
				l.SetParent(name, leaf)
				leaf = name
			}
			for i := range units {
				l.Reserve(fmt.Sprint("unit", i), leaf, list, false)
			}
			pod := Pod{UID: "pod", Level: leaf, Request: list}
			for _, op := range []struct {
				name    string
				do, not func()
			}{
				{"reserve+release", func() { l.Reserve("u", leaf, list, false) }, func() { l.Release("u") }},
				{"assign+delete", func() { l.SetPod("unit0", pod, true) }, func() { l.DeletePod("unit0", pod.UID) }},
			} {
				b.Run(fmt.Sprintf("op=%s/depth=%d/units=%d", op.name, depth, units), func(b *testing.B) {
					b.ReportAllocs()
					for range b.N {
						op.do()
						op.not()
					}
				})
			}
		}
	}
}
