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

package life

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/growth"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Write is what must be written of a unit that holds quota.
type Write uint8

// The writes, in the order in which they are made.
const (
	WriteNothing Write = iota
	WriteLoss          // the unit loses its held quota
	WriteRelease       // the unit has passed its admission checks and is released
	WriteSize          // the unit holds another amount, without asking for it
)

// Class is where a unit belongs.
type Class struct {
	// Parked is why a unit that waits is not in its line; empty for one that is.
	Parked unit.Reason
	// Holds: it holds Held, and writes this.
	Holds bool
	Held  resources.List
	Write Write
	// Next is what it is to hold after WriteSize, for so many pods.
	Next     resources.List
	NextPods int64
	// Asking is since when it asks for more than it holds; zero if it does not. InLine: it waits for that, which is Grows.
	Asking ordered.Moment
	InLine bool
	Grows  growth.Growth
	// Passed: it was let go, or has passed its own checks. Checked: it is reserved and has, so that it may go once the
	// other gangs of its group have.
	Passed, Checked bool
	// Overdue is what is wrong with it that it goes on with, and is told.
	Overdue Expiry
	// Again is when to look at it again though nothing happens; zero for never.
	Again time.Time
}

// ClassifyWaiting says where a unit belongs that waits.
func ClassifyWaiting(f *Facts) Class {
	b := firstOf(waits, f)
	return Class{Parked: b.reason, Again: b.until}
}

// ClassifyAdmitted says where a unit belongs that is admitted, with no write in flight. It holds what its object says,
// unless nothing runs any more that could use it; the facts say so then.
func ClassifyAdmitted(f *Facts) (c Class) {
	f.Holds, f.Held = true, f.Unit.Wants()
	if !f.Unit.Quarantined && jobIsGone(f) {
		f.Holds, f.Held, f.Asking = false, resources.List{}, 0
	}
	c = Class{Holds: f.Holds, Held: f.Held, Asking: f.Asking}
	v := rulingNow(f)
	x := expiryOf(f, v.heldBack)
	c.Passed = f.passed(&v)
	if lossOf(f, &v, x).Reason != "" {
		if f.refused() {
			c.Again = f.Refused.Until
		} else {
			c.Write = WriteLoss
		}
		return c
	}
	c.Checked = v.passes && !f.Unit.Quarantined
	switch {
	case !c.Checked || v.heldBack:
	case f.refused():
		c.Again = f.Refused.Until
	default:
		c.Write = WriteRelease
	}
	c.waitForTimes(f, x)
	if !f.Unit.Quarantined {
		c.fit(f)
	}
	return c
}

// Passed says that a unit that holds quota was let go, or may be as far as its own checks say.
func Passed(f *Facts) bool {
	v := rulingNow(f)
	return f.passed(&v)
}

func (f *Facts) passed(v *ruling) bool { return f.Holds && (f.Unit.Phase.Releases() || v.passes) }

// waitForTimes notes what comes with time.
func (c *Class) waitForTimes(f *Facts, x Expiry) {
	if n := notice(f); n.Over(f.Now) {
		c.Overdue = n
	} else {
		x = sooner(x, n)
	}
	c.Again = ordered.Earlier(c.Again, x.At)
}

// fit sets the held amount of an admitted unit, and the growth that it waits for.
func (c *Class) fit(f *Facts) {
	if disbelieved(f.Unit) || f.Unit.Observed || !f.Unit.Phase.Holds() || !f.Holds {
		return
	}
	s := growth.SizeOf(f.Unit, f.Held, &f.Pods.Charges)
	next, other := s.Write()
	grows := s.Growth()
	if !other {
		c.Asking = since(f, !grows.Need.IsZero())
	}
	switch {
	case !other && grows.Need.IsZero():
	case f.refused():
		c.Again = ordered.Earlier(c.Again, f.Refused.Until)
	case c.Write == WriteRelease: // growth waits for the release
	case other:
		c.Write, c.Next, c.NextPods = WriteSize, next, s.Pods
	default:
		grows.Unchecked = s.Anew && len(AdmissionChecks(f)) > 0
		c.InLine, c.Grows = true, grows
	}
}

// since is when a unit began to ask for more than it holds. It orders the unit in its line for as long as the unit asks
// for any more. By the age of its job, a small job that came early would grow ahead of all later ones. A new process
// reads the time from the object, which has it soon after.
func since(f *Facts, asks bool) ordered.Moment {
	switch {
	case !asks:
		return 0
	case f.Asking != 0:
		return f.Asking
	case f.Unit.ResizePending != 0:
		return f.Unit.ResizePending
	default:
		return ordered.MomentOf(f.Now.Truncate(time.Second))
	}
}
