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

package sim

import (
	"container/heap"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// loop is virtual time and what is to happen in it. Events of one time happen in the order in which they were asked
// for.
type loop struct {
	now   time.Time
	queue events
	seq   int64
	steps int
}

type event struct {
	at  time.Time
	seq int64
	do  func()
}

type events []*event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if c := e[i].at.Compare(e[j].at); c != 0 {
		return c < 0
	}
	return e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push and Pop are for package heap.
func (e *events) Push(x any) { *e = append(*e, x.(*event)) }

// Pop takes the last one.
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return x
}

func (l *loop) at(t time.Time, do func()) {
	if t.Before(l.now) {
		t = l.now
	}
	l.seq++
	heap.Push(&l.queue, &event{at: t, seq: l.seq, do: do})
}

func (l *loop) after(d time.Duration, do func()) { l.at(l.now.Add(d), do) }

// run does what is due until then, or until stop says so, which is asked after each event.
func (l *loop) run(until time.Time, stop func() bool) {
	for len(l.queue) > 0 && !l.queue[0].at.After(until) {
		next := heap.Pop(&l.queue).(*event)
		l.now = next.at
		l.steps++
		next.do()
		if stop() {
			return
		}
	}
	l.now = until
}

// dice are the choices of one part of the world. Each part has its own, so that removing a step from a plan changes few
// choices of the others.
type dice struct{ *rand.Rand }

func newDice(seed uint64, name string) dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return dice{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

// between is a duration in [a, b].
func (d dice) between(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(d.Int64N(int64(b-a)+1))
}

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d dice, from []T) T { return from[d.IntN(len(from))] }
