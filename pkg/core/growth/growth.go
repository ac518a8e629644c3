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

package growth

import (
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Expected bounds held quota by the pods that are still expected. While the unit holds quota, they are as many as its
// object says. If a job has become smaller, the difference is free once that is written. Until then the job may become
// greater again (I1).
func Expected(u *unit.Unit, holds bool) unit.Expected {
	x := u.Expected
	if holds && x.Pods > 0 {
		x.Pods = max(x.Pods, u.HeldPods)
	}
	return x
}

// Growth is what a unit that holds quota asks for beyond it.
type Growth struct {
	// Need is neither held nor used by its pods yet; Total is what the unit would hold with it, for so many Pods.
	Need, Total resources.List
	Pods        int64
	// Unchecked: admission checks would have to answer for it, and did not.
	Unchecked bool
}

// Same says that units wait alike for both.
func (g *Growth) Same(o *Growth) bool {
	return g.Need.Same(o.Need) && g.Total.Same(o.Total) && g.Unchecked == o.Unchecked
}

// Size is how much an admitted unit holds, and how much it ought to.
type Size struct {
	held, used, asked resources.List
	// late is what pods that have been leaving for long use, in addition to used. It is asked for, and not taken for the
	// unit's without asking.
	late resources.List
	// Pods that it is for: those that its job asks for, or has still.
	Pods int64
	// The unit asks for more, and not only for successors of pods that have been leaving for long.
	Anew bool
	// shrinks says that it may be less than what is held: its job has become smaller. Pods that are away for a moment
	// are no reason. fewer: it is for fewer pods than its object says.
	shrinks, fewer bool
	// unrecorded: the object has no held amount. adopted: then the request of bound pods counts, else the whole request.
	unrecorded, adopted bool
}

// SizeOf is that of a unit that holds this much, and whose pods have these charges in its quota.
func SizeOf(u *unit.Unit, held resources.List, charges *ledger.Charges) Size {
	s := Size{
		held: held, used: charges.Assigned.Sub(charges.Late), late: charges.Late, asked: u.Request,
		Pods: max(u.Pods, charges.Pods), shrinks: u.Pods < u.HeldPods,
		unrecorded: !u.SaysHeld(), adopted: u.Adopted,
		Anew: !held.Covers(u.Request) || !held.Covers(charges.All.Sub(charges.Late)),
	}
	if u.Sizes != nil && charges.Pods > u.Pods {
		// The number that it was admitted with has to do: those beyond it wait in the gate, or are of a run before and go.
		s.Pods = u.Pods
	} else if !s.asked.Covers(charges.All) {
		s.asked = s.asked.Max(charges.All)
	}
	s.fewer = s.Pods < u.HeldPods
	return s
}

// Write is the amount to hold without asking: less than now, or the use of its pods.
func (s *Size) Write() (next resources.List, other bool) {
	switch {
	case s.unrecorded && s.adopted && !s.used.IsZero():
		return s.used, true
	case s.unrecorded && !s.adopted && !s.held.IsZero():
		return s.held, true
	case s.fewer && s.held.Covers(s.asked), s.shrinks && !s.asked.Covers(s.held):
		return s.held.Min(s.asked), true
	case !s.held.Covers(s.asked) && s.held.Max(s.used).Covers(s.asked):
		return s.held.Max(s.asked), true
	}
	return resources.List{}, false
}

// Growth is what the unit has to ask for.
func (s *Size) Growth() Growth {
	if s.held.Covers(s.asked) {
		return Growth{}
	}
	total := s.held.Max(s.asked)
	need := total.Sub(s.held.Max(s.used.Add(s.late))).Floor0()
	if need.IsZero() {
		return Growth{} // its pods use it already
	}
	return Growth{Need: need, Total: total, Pods: s.Pods}
}
