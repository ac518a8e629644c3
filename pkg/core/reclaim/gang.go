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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// A gang group is taken as one: one small unit would keep all that the group has borrowed otherwise. So what a group
// holds is the sum of its units, and the rest is that of one of them, as follows.
//
//	protection   the one with the least rank of inGang; of equal ones until the earliest time
//	priority     the lowest
//	evictions    the fewest
//	lost work    the sum
//
// A unit that stays is no part of that: it keeps what it holds, and the others may be taken without it.

// inGang is what the protection of a unit means for its gang group.
var inGang = [protections]struct {
	stays bool
	rank  int
}{
	NotSuspendable: {stays: true},
	NonPreemptible: {stays: true},
	ByItsQueue:     {stays: true},
	ByItself:       {stays: true},
	InFlight:       {rank: 1}, // it is not known what the group holds
	Unprotected:    {rank: 2},
	ByRunTime:      {rank: 3},
	Adopted:        {rank: 4},
}

// Sort joins those of a gang group, and has those come first that cost the least but for lost work. Those of one cost
// stay in their order.
func Sort[T any](units []Holder[T]) (holders []Holder[T]) {
	gangs := map[string]int{} // where those of a gang group are
	for i := range units {
		h := &units[i]
		joins := h.Gang != "" && !inGang[h.Protection].stays
		if at, known := gangs[h.Gang]; known && joins {
			holders[at].Join(h)
			continue
		}
		if joins {
			gangs[h.Gang] = len(holders)
		}
		holders = append(holders, *h)
	}
	slices.SortStableFunc(holders, func(a, b Holder[T]) int { return a.Cost.compare(&b.Cost, -1) })
	return holders
}

// Join has another unit of the same gang group be taken with these, or not at all. Neither is one that stays.
func (h *Holder[T]) Join(o *Holder[T]) {
	h.Of = append(h.Of, o.Of...)
	for _, part := range o.Parts {
		at := slices.IndexFunc(h.Parts, func(p Part) bool { return p.leaf() == part.leaf() && p.Queue == part.Queue })
		if at < 0 {
			h.Parts = append(h.Parts, part)
			continue
		}
		h.Parts[at].Held = plus(h.Parts[at].Held, part.Held)
	}
	h.Priority, h.Evictions = min(h.Priority, o.Priority), min(h.Evictions, o.Evictions)
	h.Lost = plus(h.Lost, o.Lost)
	switch mine, its := inGang[h.Protection].rank, inGang[o.Protection].rank; {
	case mine == its:
		h.Until = ordered.Earlier(h.Until, o.Until)
	case its < mine:
		h.Protection, h.Until = o.Protection, o.Until
	}
}

// plus is the sum of amounts by the numbers of the tree. It changes neither.
func plus[N int64 | float64](a, b []N) []N {
	sum := append(slices.Clone(a), make([]N, max(0, len(b)-len(a)))...)
	for i, n := range b {
		sum[i] += n
	}
	return sum
}
