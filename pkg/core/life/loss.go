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
	"fmt"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Loss is how a unit loses what it holds.
type Loss struct {
	Reason  unit.Reason
	Message string
	// RequeueAt, unless zero: phase TimeoutBackoff until then, for the time that Requeues says.
	RequeueAt time.Time
	Requeues  int64
	// Deactivate, unless empty: it is not tried again, for this reason, before its spec is changed.
	Deactivate unit.Reason
	// Executed is for how long its job has run in all, if a time bounds that; else zero.
	Executed time.Duration
}

// Apply changes an object to the state after the loss of its held quota.
func (d *Loss) Apply(in *unit.Unit) {
	in.Phase = unit.PhaseEnqueued
	if !d.RequeueAt.IsZero() {
		in.Phase, in.RequeueAt, in.Requeues = unit.PhaseTimeoutBackoff, d.RequeueAt, d.Requeues
	}
	if in.Deactivate = nil; d.Deactivate != "" {
		in.Deactivate = &unit.Deactivation{Reason: d.Deactivate, Message: d.Message}
		in.RequeueAt, in.Requeues = time.Time{}, 0
	}
	in.Executed, in.RanSince, in.Checks = d.Executed, time.Time{}, nil
	in.Ready, in.NotReadySince = false, time.Time{}
	in.Kept = false
	in.SetNothingHeld()
	in.BecomeWhole()
	in.Move()
}

// ForOthers says that others have the unit lose what it holds: neither its user nor its job does.
func (d *Loss) ForOthers() bool {
	return d.Reason == unit.ReasonReclaimed || d.Reason == unit.ReasonPreemptedInQueue ||
		d.Reason == unit.ReasonQueueDrained
}

// LossOf an admitted unit says why and how it loses what it holds; without a reason it keeps it.
func LossOf(f *Facts) Loss {
	v := rulingNow(f)
	return lossOf(f, &v, expiryOf(f, v.heldBack))
}

func lossOf(f *Facts, v *ruling, x Expiry) (d Loss) {
	if f.Unit.Quarantined {
		return d
	}
	rules := keeps
	if f.Unit.Observed {
		rules = keepsObserved
	}
	switch b := firstOf(rules, f); {
	case b.reason != "":
		d.Reason, d.Message = b.reason, b.message
	case v.reason != "":
		d.Reason, d.Message = v.reason, v.message
		switch {
		case v.unasked:
		case v.rejected:
			d.Deactivate = v.reason
		default:
			d.putOff(f, v.retryAfter)
		}
	case !x.Over(f.Now):
		return d
	case x.Reason == unit.ReasonMaximumExecutionTime:
		d.Reason, d.Message, d.Deactivate = x.Reason, x.Message(), x.Reason
	default:
		d.Reason, d.Message = x.Reason, x.Message()
		d.putOff(f, 0)
	}
	d.Executed = executed(f, &d)
	return d
}

// putOff has a unit wait after it lost its admission: for so long or, if that is zero, for longer each time. A unit
// that was tried as often as its queue allows must be made inactive instead.
func (d *Loss) putOff(f *Facts, wait time.Duration) {
	n, most := f.Unit.Requeues+1, f.Queue.MostEvictions
	if most > 0 && n >= most {
		d.Deactivate = unit.ReasonRequeueLimitReached
		d.Message += fmt.Sprintf("; it lost its admission so %d times in a row, which is the most that its queue allows", n)
		return
	}
	d.RequeueAt, d.Requeues = f.Now.Add(wait), n
	if wait <= 0 {
		d.RequeueAt = backlog.RequeueAt(f.Now, f.Unit.UID, n)
	}
}

// executed is the total run time of a unit at the loss of its admission. It is zero without a bound, and after the time
// is over, so that a reactivated unit may run for the whole time again.
func executed(f *Facts, d *Loss) time.Duration {
	if d.Deactivate != "" || !f.Holds || f.Unit.Admitted.IsZero() || executionTime(f) <= 0 {
		return 0
	}
	since := runsSince(f)
	if !f.Unit.Phase.Releases() || since.IsZero() {
		return f.Unit.Executed // the unit does not run again yet
	}
	return f.Unit.Executed + max(f.Now.Sub(since), 0)
}
