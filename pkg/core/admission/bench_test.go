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
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// benchScale is how much of everything a benchmark has.
type benchScale struct {
	waiting, queues, shapes int
	policy                  string
	// names of resources that every unit asks for and every quota limits, if more than two.
	names int
	// parts are all switched on. Every unit can run with half of its pods, and has time-outs of its queue and a bound of
	// its execution time. No time ends during the benchmark.
	parts bool
}

func scaleOf(waiting, queues, shapes int, policy string) benchScale {
	return benchScale{waiting: waiting, queues: queues, shapes: shapes, policy: policy}
}

func (c benchScale) String() string {
	return fmt.Sprintf("policy=%s/queues=%d/shapes=%d/waiting=%d", c.policy, c.queues, c.shapes, c.waiting)
}

// benchBottleneck is what all queues share; the requests are from near nothing to benchLargest, evenly.
const (
	benchBottleneck = 240_000
	benchLargest    = 8_000
)

func (c benchScale) unit(i int) unit.Unit {
	n := i % c.queues
	u := unit.Unit{
		Key: fmt.Sprintf("ns/u%08d", i), UID: fmt.Sprintf("uid-%08x", i*2654435761%(1<<32)),
		Queue: fmt.Sprintf("q%d", n), Quota: fmt.Sprintf("leaf%d", n),
		Priority: int32(i % 5), Created: epoch.Add(time.Duration(i/10) * time.Second),
		Request: c.amounts(benchLargest*int64(1+i/c.queues%c.shapes)/int64(c.shapes), 1<<30),
		Pods:    1, Active: true,
	}
	if c.parts {
		u.Pods, u.MaximumExecution = 8, 1000*time.Hour
		u.Sizes = unit.NewSizes([]unit.PodSetSize{{Count: 8, Least: 4, Request: u.Request}})
	}
	return u
}

// amounts of cpu and memory, and as much of every other resource as of cpu.
func (c benchScale) amounts(cpu, memory int64) resources.List {
	amounts := map[string]int64{"cpu": cpu, "memory": memory}
	for i := range c.names - len(amounts) {
		amounts[fmt.Sprintf("example.com/device-%02d", i)] = cpu
	}
	return resources.FromMap(amounts)
}

// state has one leaf quota per queue, all under one department that is the bottleneck.
func (c benchScale) state() *State {
	s := New(Config{
		ExplainAfter: 5 * time.Second, ExplainEvery: time.Minute, RefusedBackoff: time.Second, PartialAdmission: c.parts,
	})
	c.fill(s)
	return s
}

func (c benchScale) fill(s *State) {
	cpu := func(n int64) resources.List { return c.amounts(n, 1<<50) }
	s.SetQuota(epoch, Quota{Name: "root", Limit: cpu(1 << 40)})
	s.SetQuota(epoch, Quota{Name: "dept", Parent: "root", Limit: cpu(benchBottleneck), Max: cpu(benchBottleneck)})
	for i := range c.queues {
		name := fmt.Sprintf("leaf%d", i)
		s.SetQuota(epoch, Quota{Name: name, Parent: "dept", Limit: cpu(200_000), Max: cpu(200_000), Min: cpu(8_000)})
		q := queue.Spec{Name: fmt.Sprintf("q%d", i), Policy: c.policy, MaxPending: -1, MaxAdmitted: -1}
		if c.parts {
			q.HeartbeatTimeout, q.Execution.Default = 1000*time.Hour, 1000*time.Hour
		}
		s.UpsertQueue(epoch, q)
	}
	for i := range c.waiting {
		s.UpsertUnit(epoch, c.unit(i))
	}
}

// benchWorld is a full cluster in its steady state. One admitted job ends and is submitted again, as the last of its
// priority, and jobs that fit are admitted. The number of pending units stays the same.
type benchWorld struct {
	benchScale
	s   *State
	now time.Time
	// told is when a reason was told last.
	told time.Time
	// running are the admitted jobs, the oldest at first.
	running []unit.Unit
	first   int

	admitted, examined, ended, explained int
	// decide is processor time in Decide, total of all that the turns did.
	decide, total time.Duration
	// clock is what reading the thread's time costs.
	clock time.Duration
}

func (c benchScale) world() *benchWorld {
	w := &benchWorld{benchScale: c, s: c.state(), now: epoch.Add(time.Duration(c.waiting/10+1) * time.Second)}
	w.admit()
	for range 4 * len(w.running) {
		w.turn()
	}
	w.forget()
	return w
}

func (w *benchWorld) forget() {
	w.admitted, w.examined, w.ended, w.explained, w.decide, w.total = 0, 0, 0, 0, 0, 0
}

func (w *benchWorld) admit() {
	start := threadTime()
	plan := w.s.Decide(w.now)
	w.decide += threadTime() - start - w.clock
	for _, d := range plan.Writes {
		w.s.Settle(w.now, d.Of().Key, d.Attempt(), transition.Confirmed)
	}
	if w.first > 2*(len(w.running)-w.first) {
		w.running = w.running[:copy(w.running, w.running[w.first:])]
		w.first = 0
	}
	for _, d := range plan.Writes {
		w.running = append(w.running, *d.Of())
	}
	w.admitted += len(plan.Writes)
	w.examined += plan.Examined
	if w.now.Sub(w.told) >= 50*time.Millisecond { // the pace of the engine
		told, _ := w.s.Telling().Next(w.now, 1)
		w.told = w.now
		w.explained += len(told)
	}
}

func (w *benchWorld) turn() {
	if w.first == len(w.running) {
		panic("nothing runs")
	}
	u := w.running[w.first]
	w.first++
	w.now = w.now.Add(time.Millisecond)
	u.Created = w.now
	w.s.DeleteUnit(w.now, u.Key)
	w.s.UpsertUnit(w.now, u)
	w.ended++
	w.admit()
}

// turns makes turns and measures their time; more says whether to go on.
func (w *benchWorld) turns(more func() bool) {
	start, ended := threadTime(), w.ended
	for more() {
		w.turn()
	}
	w.total += threadTime() - start - 2*w.clock*time.Duration(w.ended-ended)
}

func (w *benchWorld) perAdmission(spent time.Duration) float64 {
	return float64(spent) / float64(w.admitted)
}

// threadTime is the processor time that this thread has had: what else runs on the machine is not in it.
func threadTime() time.Duration {
	var spent unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent); err != nil {
		panic(err)
	}
	return time.Duration(spent.Nano())
}

// clockCost is how much of its own time threadTime measures.
func clockCost() time.Duration {
	const readings = 10_000
	start := threadTime()
	for range readings {
		threadTime()
	}
	return (threadTime() - start) / readings
}

// BenchmarkDecide: a turn of benchWorld. Metrics are processor time per admission. decide-ns is Decide alone. turn-ns
// is all calls of a turn: the end, the new unit, Decide, the outcome. reasons is the number of sentences that Decide
// makes for units that have waited long.
func BenchmarkDecide(b *testing.B) {
	var scales []benchScale
	for _, queues := range []int{1, 30, 1000} {
		for _, shapes := range []int{1, 8, 1000} {
			for _, waiting := range []int{1_000, 10_000, 100_000, 1_000_000} {
				scales = append(scales, benchScale{waiting: waiting, queues: queues, shapes: shapes, policy: "Priority"})
			}
		}
	}
	for _, queues := range []int{1, 30, 1000} {
		for _, waiting := range []int{1_000, 10_000, 100_000, 1_000_000} {
			scales = append(scales, benchScale{waiting: waiting, queues: queues, shapes: 8, policy: "Block"})
		}
	}
	for _, scale := range scales {
		var w *benchWorld
		b.Run(scale.String(), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if w == nil {
				w = scale.world()
			}
			w.forget()
			w.clock = clockCost()
			runtime.GC() // of what the making of the units left
			b.ReportAllocs()
			b.ResetTimer()
			w.turns(b.Loop)
			b.ReportMetric(float64(w.admitted)/float64(b.N), "admitted/op")
			b.ReportMetric(float64(w.examined)/float64(w.admitted), "examined/admission")
			b.ReportMetric(float64(w.explained)/float64(w.admitted), "reasons/admission")
			b.ReportMetric(w.perAdmission(w.decide), "decide-ns/admission")
			b.ReportMetric(w.perAdmission(w.total), "turn-ns/admission")
		})
	}
}

// BenchmarkParts: what BenchmarkDecide measures, with the parts that a job need not have, and without.
func BenchmarkParts(b *testing.B) {
	for _, queues := range []int{30, 1000} {
		for _, policy := range []string{"Priority", "Block"} {
			for _, parts := range []bool{false, true} {
				scale := scaleOf(10_000, queues, 8, policy)
				scale.parts = parts
				b.Run(fmt.Sprintf("%s/parts=%t", scale, parts), func(b *testing.B) { scale.world().run(b) })
			}
		}
	}
}

// BenchmarkGrowth: what BenchmarkDecide measures, of all numbers of waiting units in turns, so that the load of the
// machine hits all alike. The ratios are to 1,000 waiting units.
func BenchmarkGrowth(b *testing.B) {
	const chunk = 4_000
	sizes := []int{1_000, 10_000, 100_000, 1_000_000}
	for _, scale := range []benchScale{
		{queues: 30, shapes: 8, policy: "Priority"}, {queues: 30, shapes: 8, policy: "Block"},
		{queues: 1000, shapes: 8, policy: "Priority"}, {queues: 30, shapes: 1000, policy: "Priority"},
	} {
		worlds := make([]*benchWorld, 0, len(sizes))
		b.Run(fmt.Sprintf("policy=%s/queues=%d/shapes=%d", scale.policy, scale.queues, scale.shapes), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if len(worlds) == 0 {
				for _, n := range sizes {
					sized := scale
					sized.waiting = n
					worlds = append(worlds, sized.world())
				}
			}
			runtime.GC()
			for _, w := range worlds {
				w.forget()
				w.clock = clockCost()
			}
			times := func(n int) func() bool {
				return func() bool { n--; return n >= 0 }
			}
			for b.Loop() {
				for _, w := range worlds {
					warm := *w
					w.turns(times(chunk / 4))
					warm.now, warm.running, warm.first = w.now, w.running, w.first
					*w = warm
					w.turns(times(chunk))
				}
			}
			b.ReportMetric(0, "ns/op")
			parts := []struct {
				name string
				of   func(*benchWorld) time.Duration
			}{
				{"decide", func(w *benchWorld) time.Duration { return w.decide }},
				{"turn", func(w *benchWorld) time.Duration { return w.total }},
			}
			for _, part := range parts {
				first := worlds[0].perAdmission(part.of(worlds[0]))
				for _, w := range worlds {
					this := w.perAdmission(part.of(w))
					b.ReportMetric(this, fmt.Sprintf("%s-ns@%d", part.name, w.waiting))
					b.ReportMetric(this/first, fmt.Sprintf("%s-ratio@%d", part.name, w.waiting))
				}
			}
		})
	}
}

// BenchmarkVerify: the parts of an audit that each take one turn of the engine.
func BenchmarkVerify(b *testing.B) {
	for _, units := range []int{1_000, 50_000} {
		scale := benchScale{waiting: units, queues: 1, shapes: 8, policy: "Priority"}
		s := scale.state()
		for _, a := range byKind(s.Decide(epoch)).Admit {
			s.Settle(epoch, a.Unit.Key, a.Attempt(), transition.Confirmed)
		}
		for name, verify := range map[string]func() int{
			"sums":  func() int { return len(s.Audit().Ledger()) },
			"queue": func() int { return len(s.Audit().Queue("q0")) },
		} {
			b.Run(fmt.Sprintf("%s/units=%d", name, units), func(b *testing.B) {
				for range b.N {
					if n := verify(); n != 0 {
						b.Fatal(n, "differences")
					}
				}
			})
		}
	}
}

// BenchmarkUnit: a unit enters a queue that holds many, and leaves it.
func BenchmarkUnit(b *testing.B) {
	for _, units := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("waiting=%d", units), func(b *testing.B) {
			scale := benchScale{waiting: units, queues: 1, shapes: 8, policy: "Priority"}
			s := scale.state()
			s.Decide(epoch)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				u := scale.unit(units + i%1000)
				s.UpsertUnit(epoch, u)
				s.DeleteUnit(epoch, u.Key)
			}
		})
	}
}

// BenchmarkPriorityChange: a unit moves in a queue that holds many.
func BenchmarkPriorityChange(b *testing.B) {
	for _, units := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("waiting=%d", units), func(b *testing.B) {
			scale := benchScale{waiting: units, queues: 1, shapes: 8, policy: "Priority"}
			s := scale.state()
			s.Decide(epoch)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				u := *s.roster.units[scale.unit(units-1-i%100).Key].spec
				u.Priority = (u.Priority + 1) % 5
				s.UpsertUnit(epoch, u)
			}
		})
	}
}

// BenchmarkPosition: where a unit stands.
func BenchmarkPosition(b *testing.B) {
	for _, units := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("waiting=%d", units), func(b *testing.B) {
			scale := benchScale{waiting: units, queues: 1, shapes: 8, policy: "Priority"}
			s := scale.state()
			keys := make([]string, units)
			for i := range keys {
				keys[i] = scale.unit(i).Key
			}
			b.ResetTimer()
			for i := range b.N {
				s.Position(keys[i*7919%units])
			}
		})
	}
}

// BenchmarkExplain: all that a unit lacks, in a queue where the first claims for all behind it.
func BenchmarkExplain(b *testing.B) {
	for _, units := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("waiting=%d", units), func(b *testing.B) {
			scale := benchScale{waiting: units, queues: 30, shapes: 8, policy: "Block"}
			s := scale.state()
			s.Decide(epoch)
			keys := make([]string, units)
			for i := range keys {
				keys[i] = scale.unit(i).Key
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if _, ok := s.Explain(keys[i*7919%units]); !ok {
					b.Fatal("unit is not known")
				}
			}
		})
	}
}

// BenchmarkSetQuotaUnchanged: an observation that says nothing new.
func BenchmarkSetQuotaUnchanged(b *testing.B) {
	scale := benchScale{waiting: 10_000, queues: 30, shapes: 8, policy: "Block"}
	s := scale.state()
	s.Decide(epoch)
	q := s.quota("dept")
	b.ResetTimer()
	for range b.N {
		s.SetQuota(epoch, q)
	}
}

// BenchmarkLoans: a turn where everybody borrows. One unit runs at a time in a department whose share is too small for
// any; the first of every blocking queue claims. Its metrics are those of BenchmarkDecide.
func BenchmarkLoans(b *testing.B) {
	for _, queues := range []int{10, 100, 1000} {
		for _, waiting := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("queues=%d/waiting=%d", queues, waiting), func(b *testing.B) {
				lenders(queues, waiting).run(b)
			})
		}
	}
}

// lenders is a world of shared quotas: each leaf gets a part of the total that is too small for any unit.
func lenders(queues, waiting int) *benchWorld {
	w := &benchWorld{benchScale: benchScale{waiting: waiting, queues: queues, shapes: 8, policy: "Block"}}
	w.s = New(Config{ExplainAfter: 5 * time.Second, ExplainEvery: time.Minute, RefusedBackoff: time.Second})
	amounts := func(cpu int64) resources.List { return w.amounts(cpu, 1<<50) }
	w.s.SetQuota(epoch, Quota{Name: "root", Limit: amounts(benchBottleneck)})
	for i := range w.queues {
		w.s.SetQuota(epoch, Quota{
			Name: fmt.Sprintf("leaf%d", i), Parent: "root", Shared: true, Limit: amounts(benchLargest / 8 / 2),
			Max: amounts(benchBottleneck),
		})
		w.s.UpsertQueue(epoch, queue.Spec{Name: fmt.Sprintf("q%d", i), Policy: w.policy, MaxPending: -1, MaxAdmitted: -1})
	}
	for i := range w.waiting {
		w.s.UpsertUnit(epoch, w.unit(i))
	}
	w.now = epoch.Add(time.Duration(w.waiting/10+1) * time.Second)
	w.admit()
	for range 2 * len(w.running) {
		w.turn()
	}
	return w
}

// run measures turns.
func (w *benchWorld) run(b *testing.B) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w.forget()
	w.clock = clockCost()
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	w.turns(b.Loop)
	b.ReportMetric(float64(w.admitted)/float64(b.N), "admitted/op")
	b.ReportMetric(float64(w.examined)/float64(w.admitted), "examined/admission")
	b.ReportMetric(w.perAdmission(w.decide), "decide-ns/admission")
	b.ReportMetric(w.perAdmission(w.total), "turn-ns/admission")
}

// BenchmarkResources: a turn by how many resources the units and the quotas name together.
func BenchmarkResources(b *testing.B) {
	for _, named := range []int{2, 16, 63} {
		for _, waiting := range []int{1_000, 10_000} {
			for _, policy := range []string{"Priority", "Block"} {
				b.Run(fmt.Sprintf("policy=%s/names=%d/waiting=%d", policy, named, waiting), func(b *testing.B) {
					w := &benchWorld{benchScale: benchScale{waiting: waiting, queues: 30, shapes: 8, policy: policy, names: named}}
					w.s = w.state()
					w.now = epoch.Add(time.Duration(waiting/10+1) * time.Second)
					w.admit()
					w.run(b)
				})
			}
		}
	}
}

// quota is the last observation of a quota.
func (s *State) quota(name string) Quota { return *s.lines.tree.Route(name).Levels[0].Spec() }
