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

package checker

import (
	"cmp"
	"slices"
	"time"
)

// Sequence puts events that arrive by several watches, each in order but some later than others, into the order
// of their versions. It holds each event back for a delay in which the other watches can catch up, and keeps
// all of them, so that the last word is spoken over the whole history in its exact order. Not safe for
// concurrent use.
type Sequence struct {
	delay   time.Duration
	waiting []arrival
	history []Event
	last    uint64
	late    int
}

type arrival struct {
	at    time.Time
	event Event
}

// NewSequence returns a Sequence that holds events back for delay.
func NewSequence(delay time.Duration) *Sequence { return &Sequence{delay: delay} }

// Add takes an event that arrived at now.
func (s *Sequence) Add(now time.Time, e Event) {
	s.waiting = append(s.waiting, arrival{now, e})
	s.history = append(s.history, e)
}

// Ready returns the events that were held back long enough at now, in order.
func (s *Sequence) Ready(now time.Time) []Event {
	// One that waited long enough takes all of lower versions with it.
	var upTo uint64
	for _, a := range s.waiting {
		if now.Sub(a.at) >= s.delay {
			upTo = max(upTo, a.event.Version)
		}
	}
	var ready []Event
	s.waiting = slices.DeleteFunc(s.waiting, func(a arrival) bool {
		if a.event.Version > upTo {
			return false
		}
		ready = append(ready, a.event)
		return true
	})
	byVersion(ready)
	for _, e := range ready {
		if e.Version < s.last {
			s.late++
		}
		s.last = max(s.last, e.Version)
	}
	return ready
}

// Late is the number of events that Ready gave out of order, because they arrived later than the delay.
func (s *Sequence) Late() int { return s.late }

// History returns all events, in exact order.
func (s *Sequence) History() []Event {
	all := slices.Clone(s.history)
	byVersion(all)
	return all
}

func byVersion(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Version, b.Version) })
}
