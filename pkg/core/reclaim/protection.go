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

package reclaim

import (
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Protection is why nobody takes a unit that holds quota.
type Protection uint8

// The protections.
const (
	Unprotected Protection = iota
	NotSuspendable
	NonPreemptible
	Adopted
	ByItsQueue
	ByItself  // it asked for that before it was admitted
	InFlight  // a write of it is
	ByRunTime // until it has run for long enough
	protections
)

// ProtectionOf a unit that holds quota by the policy of its queue, and until when; zero for one that no time ends.
func ProtectionOf(
	now time.Time, in *unit.Unit, q *queue.Preemption, nonPreemptible bool,
) (p Protection, until time.Time) {
	switch {
	case !in.ConsumerManaged || in.Unsuspendable || in.Quarantined:
		return NotSuspendable, until
	case nonPreemptible:
		return NonPreemptible, until
	case in.Adopted && !q.Adopted:
		return Adopted, until
	case q.Protected:
		return ByItsQueue, until
	case q.Keeps && in.Kept:
		return ByItself, until
	}
	if until = in.Admitted.Add(q.MinRunTime); now.Before(until) {
		return ByRunTime, until
	}
	return Unprotected, time.Time{}
}

// Judge says whether a unit that holds quota may be taken, by the policy of its queue, and at what cost. inFlight: a
// write of it is. It is for a unit by itself, before others join it.
func (h *Holder[T]) Judge(now time.Time, in *unit.Unit, q *queue.Preemption, nonPreemptible, inFlight bool) {
	h.Parts[0].Queue, h.Cost = in.Queue, Cost{
		Priority: in.TakingPriority(), Evictions: h.Evictions, Lost: h.work(now.Sub(in.Admitted)),
	}
	if h.Protection, h.Until = ProtectionOf(now, in, q, nonPreemptible); inFlight {
		h.Protection, h.Until = InFlight, time.Time{}
	}
}

// Obstacle is what keeps a request from what it has a right to.
type Obstacle struct {
	// Level has too little of Resource when all are gone that may be taken.
	Level, Resource string
	// Protected is how much of it units hold that nobody takes, by their protection. Pods is what those pods use that
	// belong to no unit that holds quota.
	Protected [protections]int64
	Pods      int64
	// Until is when the first protection ends; zero if time ends none.
	Until time.Time
	// Bounded: it would have a right to somebody with the priority that its object names.
	Bounded bool
	// InVain is how often in a row what was taken for the same namespace and quota was for nothing: until then nobody
	// looks for more.
	InVain int
	// Unsure: a set of others is enough if pods go of which that is not known yet.
	Unsure bool
	// DryRun is what the request would take, in a queue that takes nothing.
	DryRun DryRun
}

// Some says that there is any.
func (o *Obstacle) Some() bool { return o.Pods > 0 || o.Protected != [protections]int64{} }

// Finding is the obstacle as the reason for which a unit waits; zero if there is none but writes in flight.
func (o *Obstacle) Finding() unit.Finding {
	lasting := *o
	if lasting.Protected[InFlight] = 0; !lasting.Some() {
		return unit.Finding{}
	}
	return unit.Finding{Reason: unit.ReasonHeldByOthers, Level: o.Level, Resource: o.Resource}
}

// obstacle is found when nobody is left who may be taken.
func (s *Search[T]) obstacle(among []Holder[T]) (o Obstacle) {
	level, i := s.lacking()
	if level == nil {
		return o
	}
	o.Level, o.Resource = level.Name(), s.tree.Resource(i)
	o.Pods = level.Limit().InUse(o.Resource) - heldUnder(s.leaving, level, i) - heldUnder(among, level, i)
	for j := range among {
		h, held := &among[j], among[j].held(i)
		if o.Bounded = o.Bounded || bounded(s, h); h.Protection == Unprotected || held == 0 || !s.right.covers(h) {
			continue
		}
		o.Protected[h.Protection] += held
		if !h.Until.IsZero() && (o.Until.IsZero() || h.Until.Before(o.Until)) {
			o.Until = h.Until
		}
	}
	return o
}

// bounded says that the request has no right to a holder, and would have it with the priority that its object names.
func bounded[T any](s *Search[T], h *Holder[T]) bool {
	if s.Named <= s.Priority || h.Protection != Unprotected || s.right.covers(h) {
		return false
	}
	defer func(counts int32) { s.Priority = counts }(s.Priority)
	s.Priority = s.Named
	return s.right.covers(h)
}

// heldUnder is what these hold of a resource under a level.
func heldUnder[T any](holders []Holder[T], level *capacity.Level, number int) (sum int64) {
	for i := range holders {
		for _, p := range holders[i].Parts {
			if slices.Contains(p.Route.Levels, level) {
				sum += p.Held[number]
			}
		}
	}
	return sum
}

func (h *Holder[T]) held(number int) (sum int64) {
	for i := range h.Parts {
		sum += h.Parts[i].Held[number]
	}
	return sum
}
