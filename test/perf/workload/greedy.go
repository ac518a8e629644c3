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

package workload

import (
	"container/heap"
	"slices"
	"time"
)

// Schedule is when units were admitted, and when the last one ended.
type Schedule struct {
	Makespan time.Duration
	// Waits are the times from creation to admission, by class.
	Waits [][]time.Duration
}

// Greedy plays the workload in virtual time with admission that costs nothing. At each arrival and end, every waiting
// unit that fits its quota and its group is admitted, by priority, then creation. A figure can be lower than that of
// Greedy: it shows what the limits leave to a queue that always knows and never waits.
func Greedy(w *Workload) Schedule {
	g := newGreedy(w)
	units := w.Units()
	for next := 0; next < len(units) || g.ends.Len() > 0; {
		if next < len(units) && (g.ends.Len() == 0 || units[next].At <= g.ends.items[0].at) {
			g.now = units[next].At
		} else {
			g.now = g.ends.items[0].at
		}
		for g.ends.Len() > 0 && g.ends.items[0].at <= g.now {
			g.end(heap.Pop(&g.ends).(running))
		}
		for ; next < len(units) && units[next].At <= g.now; next++ {
			g.arrive(next, units[next])
		}
		for group := range g.groups {
			if g.groups[group].changed {
				g.admit(group)
			}
		}
	}
	return g.result
}

type greedy struct {
	w      *Workload
	now    time.Duration
	groups []group
	free   []int64 // of each queue
	ends   ends
	cpu    []int64 // of each class
	result Schedule
}

// group has a lane for each class of each of its queues; in a lane the first come is always the first to go.
type group struct {
	free    int64
	lanes   []lane
	changed bool
}

type lane struct {
	class, queue int
	waiting      []arrival
}

type arrival struct {
	order int
	at    time.Duration
}

type running struct {
	at           time.Duration
	class, queue int
}

func newGreedy(w *Workload) *greedy {
	g := &greedy{w: w, groups: make([]group, w.Groups), free: make([]int64, w.Queues())}
	for class := range w.Classes {
		g.cpu = append(g.cpu, w.Classes[class].CPU.MilliValue())
	}
	for queue := range g.free {
		g.free[queue] = w.Quota.Max.MilliValue()
		owner := &g.groups[queue/w.QueuesPerGroup]
		owner.free = w.Quota.GroupMax.MilliValue()
		for class := range w.Classes {
			owner.lanes = append(owner.lanes, lane{class: class, queue: queue})
		}
	}
	g.result.Waits = make([][]time.Duration, len(w.Classes))
	return g
}

func (g *greedy) arrive(order int, u Unit) {
	owner := &g.groups[u.Queue/g.w.QueuesPerGroup]
	l := &owner.lanes[(u.Queue%g.w.QueuesPerGroup)*len(g.w.Classes)+u.Class]
	l.waiting = append(l.waiting, arrival{order, u.At})
	owner.changed = true
}

func (g *greedy) end(r running) {
	owner := &g.groups[r.queue/g.w.QueuesPerGroup]
	owner.free += g.cpu[r.class]
	owner.changed = true
	g.free[r.queue] += g.cpu[r.class]
}

// admit takes from a group what fits.
func (g *greedy) admit(index int) {
	owner := &g.groups[index]
	owner.changed = false
	for {
		best := -1
		for i := range owner.lanes {
			if l := &owner.lanes[i]; len(l.waiting) > 0 && g.cpu[l.class] <= min(owner.free, g.free[l.queue]) &&
				(best < 0 || g.before(l, &owner.lanes[best])) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		l := &owner.lanes[best]
		owner.free -= g.cpu[l.class]
		g.free[l.queue] -= g.cpu[l.class]
		end := g.now + time.Duration(g.w.Classes[l.class].RuntimeMs)*time.Millisecond
		heap.Push(&g.ends, running{at: end, class: l.class, queue: l.queue})
		g.result.Waits[l.class] = append(g.result.Waits[l.class], g.now-l.waiting[0].at)
		l.waiting = l.waiting[1:]
		g.result.Makespan = max(g.result.Makespan, end)
	}
}

func (g *greedy) before(a, b *lane) bool {
	if p, q := g.w.Classes[a.class].Priority, g.w.Classes[b.class].Priority; p != q {
		return p > q
	}
	return a.waiting[0].order < b.waiting[0].order
}

type ends struct{ items []running }

func (e *ends) Len() int           { return len(e.items) }
func (e *ends) Less(i, j int) bool { return e.items[i].at < e.items[j].at }
func (e *ends) Swap(i, j int)      { e.items[i], e.items[j] = e.items[j], e.items[i] }
func (e *ends) Push(x any)         { e.items = append(e.items, x.(running)) }
func (e *ends) Pop() any {
	last := e.items[len(e.items)-1]
	e.items = e.items[:len(e.items)-1]
	return last
}

// Times sums up durations, in milliseconds.
type Times struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Summarize returns mean and percentiles, each one of the durations (nearest rank); zero for none.
func Summarize(durations []time.Duration) Times {
	if len(durations) == 0 {
		return Times{}
	}
	sorted := slices.Sorted(slices.Values(durations))
	sum := 0.0
	for _, d := range sorted {
		sum += millis(d)
	}
	rank := func(percent int) float64 { return millis(sorted[(len(sorted)*percent+99)/100-1]) }
	return Times{
		Mean: sum / float64(len(sorted)), P50: rank(50), P90: rank(90), P95: rank(95), P99: rank(99), Max: rank(100),
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
