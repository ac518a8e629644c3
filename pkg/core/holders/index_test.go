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

package holders

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

// Each protection says what it means for a gang group, and no two mean the same for those that are preempted together.
func TestEachProtectionHasARankInAGangGroup(t *testing.T) {
	ranks := map[int]Protection{}
	for p := range Protections {
		require.NotEqual(t, inGang[p].stays, inGang[p].rank > 0, "protection %d", p)
		if other, same := ranks[inGang[p].rank]; !inGang[p].stays {
			require.False(t, same, "%d is as %d", p, other)
			ranks[inGang[p].rank] = p
		}
	}
}

// A gang group is protected no better than its least protected unit, but while a write of one is in flight.
func TestAGangGroupIsOneHolder(t *testing.T) {
	early, late := epoch.Add(time.Second), epoch.Add(time.Minute)
	kept := func(until time.Time) Hold { return Hold{Protection: Unprotected, Until: until} }
	for name, tc := range map[string]struct {
		a, b       Hold
		protection Protection // now, and until
		until      time.Time
	}{
		"nobody":                {},
		"one adopted":           {a: Hold{Protection: Adopted}},
		"both adopted":          {a: Hold{Protection: Adopted}, b: Hold{Protection: Adopted}, protection: Adopted},
		"one for a time":        {a: kept(late)},
		"both for a time":       {a: kept(late), b: kept(early), protection: ByRunTime, until: early},
		"one in flight":         {a: Hold{Protection: InFlight}, protection: InFlight},
		"for a time, adopted":   {a: kept(late), b: Hold{Protection: Adopted}, protection: ByRunTime, until: late},
		"in flight, for a time": {a: Hold{Protection: InFlight}, b: kept(late), protection: InFlight},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				tree := treeOf("a", "b")
				x := New[string](tree)
				tc.a.GangGroup, tc.b.GangGroup, tc.a.Gangs, tc.b.Gangs = "g", "g", "x", "y"
				tc.a.Quota, tc.b.Quota, tc.a.Key, tc.b.Key = "a", "b", "1", "2"
				tc.a.Priority, tc.b.Priority, tc.a.Evictions, tc.b.Evictions = 1, 2, 2, 1
				tc.a.Admitted, tc.b.Admitted = epoch.Add(-3*time.Second), epoch.Add(-time.Second)
				x.Set("1", tc.a, cpu(1))
				x.Set("2", tc.b, cpu(4))
				x.Refresh(epoch)
				c := x.units["1"].holder.Class
				require.Same(t, c, x.units["2"].holder.Class)
				n, protection, until := c.Protected(epoch)
				if tc.protection == Unprotected {
					require.Zero(t, n)
				} else {
					require.Equal(t, []any{int64(1), tc.protection, tc.until}, []any{n, protection, until})
				}
				require.Equal(t, []any{int32(1), int64(1)}, []any{c.Priority, c.Evictions})
				x.Leaves()[0].Classes(func(c *Class[string]) { require.Len(t, c.Parts(), 2) })
				require.InDelta(t, 7, x.units["1"].holder.lost(epoch, 0), 0)
				tc.a, tc.b = tc.b, tc.a
			}
		})
	}
}

func TestJudge(t *testing.T) {
	kept, asks := unit.Unit{Stated: unit.Stated{Kept: true}}, unit.Unit{Stated: unit.Stated{Unpreemptable: true}}
	for name, tc := range map[string]struct {
		unit           unit.Unit
		policy         queue.Preemption
		nonPreemptible bool
		inFlight       bool
		want           Protection
		runs           time.Duration
	}{
		"a job":                          {},
		"pods that nobody owns":          {unit: unit.Unit{Unsuspendable: true}, want: NotSuspendable},
		"non-preemptible":                {nonPreemptible: true, want: NonPreemptible},
		"adopted":                        {unit: unit.Unit{Adopted: true}, want: Adopted},
		"adopted, and its queue lets":    {unit: unit.Unit{Adopted: true}, policy: queue.Preemption{Adopted: true}},
		"its queue keeps it":             {policy: queue.Preemption{Protected: true}, want: ByItsQueue},
		"it asked before":                {unit: kept, policy: queue.Preemption{Keeps: true}, want: ByItself},
		"it asks for that since":         {unit: asks, policy: queue.Preemption{Keeps: true}},
		"it asked, and its queue is not": {unit: kept},
		"it runs for a while":            {policy: queue.Preemption{MinRunTime: time.Minute}, runs: time.Minute},
		"what is wrong with the state":   {unit: unit.Unit{Quarantined: true}, want: NotSuspendable},
		"its status is written":          {policy: queue.Preemption{Protected: true}, inFlight: true, want: InFlight},
	} {
		t.Run(name, func(t *testing.T) {
			tc.unit.ConsumerManaged, tc.unit.Phase, tc.unit.Admitted = true, unit.PhaseDequeued, epoch
			h := Hold{}
			h.Judge(&tc.unit, &tc.policy, tc.nonPreemptible, tc.inFlight)
			require.Equal(t, tc.want, h.Protection)
			require.Equal(t, epoch.Add(tc.runs), h.Until)
		})
	}
}

// While no quota has arrived, units hold in leaves that are all needed. They are looked through when their number has
// doubled, and not for each new one.
func TestLeavesBeforeTheirQuotas(t *testing.T) {
	x := New[string](capacity.NewTree(ledger.New()))
	looked, many := 0, 0
	for i := range 1000 {
		key := fmt.Sprint("u", i)
		x.Set(key, Hold{Key: key, Quota: fmt.Sprint("q", i)}, cpu(1))
		if x.many != many {
			looked, many = looked+i, x.many
		}
	}
	require.Less(t, looked, 2000)
	for i := range 1000 {
		x.Drop(fmt.Sprint("u", i))
	}
	x.Refresh(epoch)
	require.Empty(t, x.leaves)
}

func treeOf(leaves ...string) *capacity.Tree {
	tree := capacity.NewTree(ledger.New())
	tree.Set(capacity.Quota{Name: "root", Limit: cpu(100), Max: cpu(100)})
	for _, name := range leaves {
		tree.Set(capacity.Quota{Name: name, Parent: "root", Limit: cpu(100), Max: cpu(100)})
	}
	return tree
}

// After any changes the index equals a new index of the units that there are. The holders of each leaf come in the
// order in which a scan of all units finds them.
func TestIndexEqualsScan(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		leaves := []string{"a", "b", "c"}
		tree := treeOf("a", "b")
		x, units, promises, now := New[string](tree), map[string]Hold{}, map[string]string{}, epoch
		draw := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
		amounts := map[string]resources.List{}
		for range draw("steps", 40) {
			key := fmt.Sprint(draw("key", 8))
			switch draw("what", 9) {
			case 0:
				x.Drop(key)
				delete(units, key)
			case 1:
				promises[key] = rapid.SampledFrom(leaves).Draw(t, "quota")
				x.Promise(key, promises[key], cpu(3), 1)
			case 2:
				delete(promises, key)
				x.Forgive(key)
			case 3:
				now = now.Add(time.Duration(draw("time", 20)) * time.Second)
			case 4:
				if name := rapid.SampledFrom(leaves).Draw(t, "quota"); !tree.Delete(name) {
					tree.Set(capacity.Quota{Name: name, Parent: "root", Limit: cpu(100), Max: cpu(100)})
				}
			default:
				h := Hold{
					Key: key, UID: key, Quota: rapid.SampledFrom(leaves).Draw(t, "quota"),
					Priority: int32(draw("priority", 1)), Evictions: int64(draw("evictions", 1)),
					Admitted:  now.Add(-time.Duration(draw("ran", 3)) * time.Second),
					GangGroup: rapid.SampledFrom([]string{"", "", "g"}).Draw(t, "gang group"),
					Gangs:     rapid.SampledFrom([]string{"x", "y", "z", "x,y"}).Draw(t, "gangs"),
					Leaves:    draw("leaves", 4) == 0, Pods: draw("pods", 1) == 0, Unsure: draw("unsure", 1) == 0,
					LeavesBy:   now.Add(time.Duration(draw("leaves by", 20)) * time.Second),
					Protection: rapid.SampledFrom([]Protection{Unprotected, Unprotected, Adopted, InFlight}).Draw(t, "protection"),
				}
				h.Until = h.Admitted.Add(time.Duration(draw("runs", 2)) * time.Second)
				units[key], amounts[key] = h, cpu(int64(1+draw("cpu", 2)))
				x.Set(key, h, amounts[key])
			}
			x.Refresh(now)
			scan := New[string](tree)
			for key, h := range units {
				scan.Set(key, h, amounts[key])
			}
			for key, quota := range promises {
				scan.Promise(key, quota, cpu(3), 1)
			}
			require.Empty(t, x.Compare(scan))
			for _, l := range x.Leaves() {
				requireInOrder(t, x, l, now)
			}
		}
	})
}

// requireInOrder: from the heads of a leaf all of it can be reached that may be preempted now, the cheapest first.
func requireInOrder(t *rapid.T, x *Index[string], l *Leaf[string], now time.Time) {
	var all, walked []*Holder[string]
	for _, e := range x.units {
		h := e.holder
		if h != nil && e.at == l && h.Protection == Unprotected && !now.Before(h.until) && !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	compare := func(a, b *Holder[string]) int { return a.Compare(b, now, 0) }
	slices.SortFunc(all, compare)
	for heads := slices.Clone(l.Heads(now, 0)); len(heads) > 0; slices.SortFunc(heads, compare) {
		first := heads[0]
		walked = append(walked, first)
		if heads[0] = first.Next(); heads[0] == nil {
			heads = heads[1:]
		}
	}
	require.Equal(t, len(all), len(walked))
	for i := range all {
		require.Same(t, all[i], walked[i])
	}
}
