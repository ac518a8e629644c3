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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Protection is why a unit that holds quota cannot be a victim.
type Protection uint8

// The protections.
const (
	Unprotected Protection = iota
	NotSuspendable
	NonPreemptible
	Adopted
	ByItsQueue
	ByItself  // asked for before its admission
	InFlight  // a write of it is
	ByRunTime // until it has run for long enough
	Protections
)

// Hold is what an index knows of one unit.
type Hold struct {
	// Key and UID of the unit. A unit that is not known has no UID.
	Key, UID string
	// Quota in which it keeps something from others.
	Quota string
	// Leaves: it gives that back. Pods: it holds nothing, and its pods are on their way out until LeavesBy. Unsure: nobody
	// knows yet whether somebody asks them to go.
	Leaves, Pods, Unsure bool
	LeavesBy             time.Time
	// The rest is about a unit that stays. Evictions is how often others had it evicted before. Evictions by its user do
	// not count.
	Queue     string
	Priority  int32
	Evictions int64
	Admitted  time.Time // zero while its admission is in flight
	// GangGroup is the name of its gang group; empty for a unit by itself. Gangs are its own, joined by commas.
	GangGroup, Gangs string
	// Protection is why it is no victim at any time. Only ByRunTime ends, at Until.
	Protection Protection
	Until      time.Time
}

// Judge says when and at what cost a unit that holds quota may be preempted, by the policy of its queue. inFlight: a
// write of it is.
func (h *Hold) Judge(in *unit.Unit, q *queue.Preemption, nonPreemptible, inFlight bool) {
	h.Queue, h.Priority = in.Queue, in.PreemptionPriority()
	if in.Phase.Holds() {
		h.Admitted = in.Admitted
	}
	h.Until = h.Admitted.Add(q.MinRunTime)
	if h.Protection = protectionOf(in, q, nonPreemptible); inFlight {
		h.Protection = InFlight
	}
}

func protectionOf(in *unit.Unit, q *queue.Preemption, nonPreemptible bool) Protection {
	switch {
	case !in.ConsumerManaged || in.Unsuspendable || in.Quarantined:
		return NotSuspendable
	case nonPreemptible:
		return NonPreemptible
	case in.Adopted && !q.Adopted:
		return Adopted
	case q.Protected:
		return ByItsQueue
	case q.Keeps && in.Kept:
		return ByItself
	}
	return Unprotected
}

// inGang is what the protection of a unit means for the core of its gang group.
//
// A core is preempted as one: one small unit would keep all that the core has borrowed otherwise. So what it holds is
// the sum of its units, and the rest is that of one of them, as follows.
//
//	protection   the one with the least rank; of equal ones until the earliest time
//	priority     the lowest
//	evictions    the fewest
//	lost work    the sum
//
// A unit that stays is no part of that: it keeps what it holds, and the others may be preempted without it.
var inGang = [Protections]struct {
	stays bool
	rank  int
}{
	NotSuspendable: {stays: true},
	NonPreemptible: {stays: true},
	ByItsQueue:     {stays: true},
	ByItself:       {stays: true},
	InFlight:       {rank: 1}, // held quota of the group is unknown
	Unprotected:    {rank: 2},
	ByRunTime:      {rank: 3}, // as Unprotected, until the earliest time is over
	Adopted:        {rank: 4},
}

// joins says that a unit may be in the core of its gang group.
func (h *Hold) joins() bool { return h.GangGroup != "" && !inGang[h.Protection].stays }
