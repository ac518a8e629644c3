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

// Package inflight limits the writes that one process has in flight, by the latency of the API server. An API server
// that lacks processor time serves all requests alike. So the number in flight is the share that a process takes from
// people.
package inflight

import "time"

const (
	// Prompt is a time for a write that never makes a limit shrink.
	Prompt = 25 * time.Millisecond
	// slower is how many times the best time of its kind a write may take.
	slower = 2
	// shrink is what is left of a limit after a slow write.
	shrink = 0.7
	// bestOf is for how long a best time counts, and up to twice as long.
	bestOf = time.Minute
	// maxKinds bounds the kinds that have a best time of their own.
	maxKinds = 64
)

// Limit is how many writes may be in flight. It grows by one each time as many writes were prompt, and shrinks by a
// factor when one was slow: additive increase, multiplicative decrease. The time is given. A Limit is not safe for
// concurrent use.
type Limit struct {
	least, most, now float64
	// shrunk is when it shrank last. Writes that began before say nothing about the limit of today.
	shrunk time.Time
	best   map[string]*best
}

// best time of a kind of writes: since some time, and in the window before.
type best struct {
	since         time.Time
	now, previous time.Duration
}

// NewLimit starts between the two bounds.
func NewLimit(least, most int) Limit {
	first, last := float64(max(least, 1)), float64(max(least, most, 1))
	return Limit{least: first, most: last, now: min(2*first, last), best: map[string]*best{}}
}

// Writes is how many may be in flight now.
func (l *Limit) Writes() int { return int(l.now) }

// Reports is how many reports may be in flight: at most half of the limit, and one while decisions are at work.
func (l *Limit) Reports(decisions bool) int {
	if decisions {
		return 1
	}
	return max(1, l.Writes()/2)
}

// Answer is what became of a write.
type Answer struct {
	// Kind of writes that take equally long: verb and resource.
	Kind         string
	Begun, Ended time.Time
	// InFlight is how many writes of the process were in flight when it began, itself included.
	InFlight int
	// Overloaded: the server refused it as it has too much to do, or did not answer in time.
	Overloaded bool
}

// Take adapts the limit to an answer.
func (l *Limit) Take(a Answer) {
	took := a.Ended.Sub(a.Begun)
	usual := took
	if !a.Overloaded {
		usual = l.bestFor(a.Kind).take(a.Ended, took)
	}
	switch slow := a.Overloaded || took > max(Prompt, slower*usual); {
	case slow && !a.Begun.Before(l.shrunk):
		l.now, l.shrunk = max(l.least, l.now*shrink), a.Ended
	case !slow && 2*a.InFlight >= int(l.now):
		// A limit that nobody comes near is not shown to be too small.
		l.now = min(l.most, l.now+1/l.now)
	}
}

func (l *Limit) bestFor(kind string) *best {
	if l.best[kind] == nil && len(l.best) >= maxKinds {
		kind = "" // all others together
	}
	if l.best[kind] == nil {
		l.best[kind] = &best{}
	}
	return l.best[kind]
}

// take notes a time and returns the best.
func (b *best) take(now time.Time, took time.Duration) time.Duration {
	switch age := now.Sub(b.since); {
	case b.since.IsZero() || age >= 2*bestOf:
		*b = best{since: now, now: took, previous: took}
	case age >= bestOf:
		*b = best{since: now, now: took, previous: b.now}
	default:
		b.now = min(b.now, took)
	}
	return min(b.now, b.previous)
}
