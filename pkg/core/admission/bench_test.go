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
	"testing"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// shapes are the requests of the benchmarks' units, in cpu.
const shapes = 8

func benchUnit(i, queues int) Unit {
	n := i % queues
	return Unit{
		Key: fmt.Sprintf("ns/u%08d", i), UID: fmt.Sprintf("uid-%08x", i*2654435761%(1<<32)),
		Queue: fmt.Sprintf("q%d", n), Quota: fmt.Sprintf("leaf%d", n),
		Priority: int32(i % 5), Created: epoch.Add(time.Duration(i/10) * time.Second),
		Request: resources.FromMap(map[string]int64{"cpu": int64(1000 * (1 + i/queues%shapes)), "memory": 1 << 30}),
		Pods:    1, Active: true,
	}
}

// benchState has one queue and leaf quota per queue, all under one department that is the bottleneck.
func benchState(units, queues int, policy string) *State {
	s := New(Config{ExplainAfter: 5 * time.Second, ExplainEvery: time.Minute, RefusedBackoff: time.Second})
	cpu := func(n int64) resources.List {
		return resources.FromMap(map[string]int64{"cpu": n, "memory": 1 << 50})
	}
	s.SetQuota(epoch, Quota{Name: "root", Limit: cpu(1 << 40)})
	s.SetQuota(epoch, Quota{Name: "dept", Parent: "root", Limit: cpu(240_000), Max: cpu(240_000)})
	for i := range queues {
		name := fmt.Sprintf("leaf%d", i)
		s.SetQuota(epoch, Quota{Name: name, Parent: "dept", Limit: cpu(200_000), Max: cpu(200_000), Min: cpu(8_000)})
		s.UpsertQueue(epoch, Queue{Name: fmt.Sprintf("q%d", i), Policy: policy, MaxAdmitted: -1})
	}
	for i := range units {
		s.UpsertUnit(epoch, benchUnit(i, queues))
	}
	return s
}

// BenchmarkDecide: one admitted job ends, the next is admitted, a new one arrives: the steady state of a full
// cluster. The number of waiting units stays the same.
func BenchmarkDecide(b *testing.B) {
	for _, policy := range []string{"Priority", "Block"} {
		for _, queues := range []int{1, 30} {
			for _, units := range []int{1_000, 10_000, 100_000} {
				b.Run(fmt.Sprintf("%s/queues=%d/waiting=%d", policy, queues, units), func(b *testing.B) {
					benchmarkDecide(b, units, queues, policy)
				})
			}
		}
	}
}

func benchmarkDecide(b *testing.B, units, queues int, policy string) {
	s := benchState(units, queues, policy)
	now := epoch.Add(time.Second)
	var running []string
	admitted, examined := 0, 0
	decide := func() {
		plan := s.Decide(now)
		for _, a := range plan.Admit {
			s.Settle(now, a.Unit.Key, a.Attempt, OutcomeConfirmed)
			running = append(running, a.Unit.Key)
		}
		admitted += len(plan.Admit)
		examined += plan.Examined
	}
	decide()
	next := units
	fresh := make([]Unit, 0, b.N)
	for range b.N {
		fresh = append(fresh, benchUnit(next, queues))
		next++
	}
	admitted, examined = 0, 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		s.DeleteUnit(now, running[0])
		running = running[1:]
		s.UpsertUnit(now, fresh[i])
		decide()
	}
	b.StopTimer()
	b.ReportMetric(float64(admitted)/float64(b.N), "admitted/op")
	b.ReportMetric(float64(examined)/float64(b.N), "examined/op")
}

// BenchmarkVerify: the parts of an audit that each take one turn of the engine.
func BenchmarkVerify(b *testing.B) {
	for _, units := range []int{1_000, 50_000} {
		s := benchState(units, 1, "Priority")
		for _, a := range s.Decide(epoch).Admit {
			s.Settle(epoch, a.Unit.Key, a.Attempt, OutcomeConfirmed)
		}
		for name, verify := range map[string]func() int{
			"sums":  func() int { return len(s.Verify()) },
			"queue": func() int { return len(s.VerifyQueue("q0")) },
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
	for _, units := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", units), func(b *testing.B) {
			s := benchState(units, 1, "Priority")
			s.Decide(epoch)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				u := benchUnit(units+i%1000, 1)
				s.UpsertUnit(epoch, u)
				s.DeleteUnit(epoch, u.Key)
			}
		})
	}
}

// BenchmarkPosition: where a unit stands.
func BenchmarkPosition(b *testing.B) {
	for _, units := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", units), func(b *testing.B) {
			s := benchState(units, 1, "Priority")
			keys := make([]string, units)
			for i := range keys {
				keys[i] = benchUnit(i, 1).Key
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
	for _, units := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", units), func(b *testing.B) {
			s := benchState(units, 30, "Block")
			s.Decide(epoch)
			keys := make([]string, units)
			for i := range keys {
				keys[i] = benchUnit(i, 30).Key
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
	s := benchState(10_000, 30, "Block")
	s.Decide(epoch)
	q := s.levels["dept"].spec
	b.ResetTimer()
	for range b.N {
		s.SetQuota(epoch, q)
	}
}
