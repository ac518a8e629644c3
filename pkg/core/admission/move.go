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

package admission

import (
	"math"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/growth"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// moveWaiting puts a unit that waits in its line, or parks it.
func (r *roster) moveWaiting(now time.Time, u *record, p life.Class) {
	r.release(now, u)
	switch {
	case p.Parked != "":
		if u.parked != p.Parked {
			r.leave(u)
			r.park(now, u, p.Parked)
		}
	case r.lines.takeIn(u):
		if u.group == nil {
			r.unplace(u)
			r.join(now, u)
		}
	case u.parked != unit.ReasonQueueOverflow:
		r.unplace(u)
		r.park(now, u, unit.ReasonQueueOverflow)
	}
	r.dueAt(u, p.Again)
}

func (r *roster) park(now time.Time, u *record, reason unit.Reason) {
	if u.parked = reason; u.spec.Preempts != "" {
		u.own().outOfDate = u.spec.Preempts
	}
	if untold(reason) {
		r.telling.Cancel(u)
	} else {
		r.telling.Parked(now, u, reason)
	}
}

// moveAdmitted has the ledger hold what an admitted unit holds, and notes the next write of the unit. It puts the unit
// in line for what the unit asks for beyond that.
func (r *roster) moveAdmitted(now time.Time, u *record, p life.Class) {
	stays := u.group != nil && p.InLine && p.Asking == u.growsSince && u.grows.Same(&p.Grows)
	if !stays {
		r.leave(u)
	}
	if p.Holds {
		r.hold(u, p.Held)
	} else {
		r.release(now, u)
	}
	if u.overdue != p.Overdue || u.write != p.Write || u.growsSince != p.Asking {
		u.own().overdue, u.tenure.write, u.tenure.growsSince = p.Overdue, p.Write, p.Asking
	}
	r.gangs.SetChecked(u, p.Checked)
	switch {
	case p.Write != life.WriteNothing:
		p.Again = now
		if p.Write == life.WriteSize {
			u.own().next, u.tenure.nextPods = p.Next, p.NextPods
		}
	case stays:
		u.tenure.grows.Pods = p.Grows.Pods
	case p.InLine:
		u.own().grows = p.Grows
		r.join(now, u)
	}
	if u.group == nil {
		r.telling.Renew(now, u)
	}
	r.dueAt(u, p.Again)
}

// leave takes a unit out of every collection that depends on its place, and of the bounds of its line.
func (r *roster) leave(u *record) {
	r.lines.letOut(u)
	r.unplace(u)
}

func (r *roster) unplace(u *record) {
	if u.group != nil {
		r.lines.part(u)
	}
	if u.parked = ""; u.write != life.WriteNothing {
		u.own().write = life.WriteNothing
	}
	r.dueAt(u, time.Time{})
	r.gangs.SetChecked(u, false)
}

func (r *roster) dueAt(u *record, at time.Time) {
	r.due.Move(u, ordered.MomentOf(at), func(m ordered.Moment) { u.dueAt = m })
}

// lastMoment is just before the unit is due. The rules have placed it until then: a question that comes later, before
// it is placed again, is answered as of that moment.
func lastMoment(u *record) time.Time {
	if u.dueAt == 0 {
		return ordered.Moment(math.MaxInt64).Time()
	}
	return (u.dueAt - 1).Time()
}

// join puts an eligible unit into its line, or parks it for a fault of an extension.
func (r *roster) join(now time.Time, u *record) {
	if fault := r.lines.join(now, u); fault != "" {
		u.refuse(now, r.cfg.RefusedBackoff, unit.ReasonInternalError, fault)
		r.touch(u)
	}
}

// hold has the unit hold this much where its object says. An observed unit holds nothing.
func (r *roster) hold(u *record, held resources.List) {
	if u.spec.Observed {
		held = resources.List{}
	}
	nonPreemptible, t := u.nonPreemptible(), u.own()
	r.progress.changed = r.gangs.SetHolding(u, true) || r.progress.changed
	t.holding, t.held, t.keepsMin = true, held, nonPreemptible
	r.preemptions.byUID[u.spec.UID] = u
	expected := growth.Expected(u.spec, true)
	r.progress.changed = r.holdings.Hold(u.spec.Key, u.place(), held, nonPreemptible, expected) || r.progress.changed
}

// release has the unit hold nothing.
func (r *roster) release(now time.Time, u *record) {
	if !u.holding {
		return
	}
	t := u.tenure
	delete(r.preemptions.byUID, u.spec.UID)
	t.holding, t.held, t.keepsMin, t.growsSince = false, resources.List{}, false, 0
	r.gangs.SetHolding(u, false)
	r.holdings.Release(now, u.spec.Key)
	r.progress.changed = true
}

// grant lets so many pods of a unit go as its object says that it holds; none while it is not admitted (I3).
func (r *roster) grant(u *record) {
	if u.confirmed() && u.holding && u.spec.Phase.Releases() {
		r.holdings.Open(u.spec.Key, u.spec.Wants())
	} else {
		r.holdings.Close(u.spec.Key)
	}
}
