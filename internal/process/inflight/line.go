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

package inflight

import (
	"container/list"
	"context"
	"sync"

	"k8s.io/utils/clock"
)

// Line lets writes of a process wait for their turn. Decisions go first. Reports, events among them, take at most half
// of the limit. While decisions are in flight or wait, one report goes at a time, so reports are late but never stop.
type Line struct {
	clock clock.PassiveClock

	mu        sync.Mutex
	limit     Limit
	decisions class
	reports   class
}

// class of writes: how many are in flight, and those that wait.
type class struct {
	busy    int
	waiting list.List // of chan struct{}, closed when it may go
}

// NewLine of a process that may have so many writes in flight.
func NewLine(clk clock.PassiveClock, least, most int) *Line {
	return &Line{clock: clk, limit: NewLimit(least, most)}
}

type reportKey struct{}

// Report marks the writes of a context as reports, which nobody waits for.
func Report(ctx context.Context) context.Context { return context.WithValue(ctx, reportKey{}, true) }

func isReport(ctx context.Context) bool { return ctx.Value(reportKey{}) != nil }

// Enter waits until a write may go, or until the context ends. The function that it returns takes the answer; the Line
// itself fills in times and InFlight.
func (l *Line) Enter(ctx context.Context, report bool) (leave func(kind string, overloaded bool), err error) {
	l.mu.Lock()
	c := &l.decisions
	if report {
		c = &l.reports
	}
	turn := make(chan struct{})
	place := c.waiting.PushBack(turn)
	l.next()
	l.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		select {
		case <-turn: // the turn came in the same moment
			c.busy--
		default:
			c.waiting.Remove(place)
		}
		l.next()
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := Answer{Begun: l.clock.Now(), InFlight: l.decisions.busy + l.reports.busy}
	return func(kind string, overloaded bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.busy--
		a.Kind, a.Overloaded, a.Ended = kind, overloaded, l.clock.Now()
		l.limit.Take(a)
		l.next()
	}, nil
}

// next lets those go that may.
func (l *Line) next() {
	for l.decisions.waiting.Len() > 0 && l.decisions.busy+l.reports.busy < l.limit.Writes() {
		l.decisions.letGo()
	}
	for l.reports.waiting.Len() > 0 && l.reports.busy < l.limit.Reports(l.decisions.busy+l.decisions.waiting.Len() > 0) {
		l.reports.letGo()
	}
}

func (c *class) letGo() {
	c.busy++
	close(c.waiting.Remove(c.waiting.Front()).(chan struct{}))
}

// Writes is how many may be in flight now.
func (l *Line) Writes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit.Writes()
}
