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
	"fmt"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// moveWaiting puts a unit that waits in its line, or parks it.
func (r *roster) moveWaiting(now time.Time, u *record, p life.Place) {
	r.release(u)
	switch {
	case p.Parked != "":
		if u.parked != p.Parked {
			r.leave(u)
			r.park(now, u, p.Parked)
		}
		r.dueAt(u, p.Again)
	case r.takeIn(u):
		if u.group == nil {
			r.unplace(u)
			r.join(now, u)
		}
	case u.parked != unit.ReasonQueueOverflow:
		r.unplace(u)
		r.park(now, u, unit.ReasonQueueOverflow)
	}
}

func (r *roster) park(now time.Time, u *record, reason unit.Reason) {
	u.parked = reason
	if untold(reason) {
		r.telling.Cancel(u)
	} else {
		r.telling.Parked(now, u, reason)
	}
}

// moveAdmitted has the ledger hold what an admitted unit holds, puts it in line for what it asks for beyond that, and
// notes what is to be written of it.
func (r *roster) moveAdmitted(now time.Time, u *record, p life.Place) {
	stays := u.group != nil && p.InLine && p.Asking == u.growsSince && u.grows.Same(&p.Grows)
	if !stays {
		r.leave(u)
	}
	if p.Holds {
		r.hold(u, p.Held)
	} else {
		r.release(u)
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
	if q, ok := r.queues.byName[u.spec.Queue]; ok && !q.pending.None() {
		q.pending.Leave(u)
		r.boundsChanged(q)
	}
	r.unplace(u)
}

func (r *roster) unplace(u *record) {
	if u.group != nil {
		r.part(u)
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

// join puts an eligible unit into its line.
func (r *roster) join(now time.Time, u *record) {
	q := r.queues.record(u.spec.Queue)
	key, fault := r.groupKey(q, u)
	if fault != "" {
		u.refuse(now, r.cfg.RefusedBackoff, unit.ReasonInternalError, fault)
		r.touch(u)
		return
	}
	g, isNew := q.line.Join(u, key)
	u.group = g
	if key.Alone != "" {
		r.gangs.Join(u)
	}
	n := &g.Notes
	n.answer = answer{} // what a check said to an earlier attempt says nothing to this one
	if isNew {
		n.queue, n.ask = q, decide.Ask{
			Request: u.asks(), Total: u.total(), Jobs: u.jobs(), NonPreemptible: key.NonPreemptible, Blocking: key.Blocks,
		}
		r.checkAgain(now, g)
	}
	if g.Head() == u {
		r.headChanged(q)
	}
	if n.isParked() {
		r.telling.Parked(now, u, n.parked.Reason)
	} else {
		r.telling.Joined(now, u)
	}
}

// groupKey of a unit. A policy or a check of an extension that panics is a fault.
func (r *roster) groupKey(q *queueRecord, u *record) (key backlog.Key, fault string) {
	doing := "put in order"
	defer func() {
		if cause := recover(); cause != nil {
			r.panics++
			fault = fmt.Sprintf("internal error while the unit was %s: %v", doing, cause)
		}
	}()
	q.line.Try(u)
	doing = "examined"
	key = backlog.Key{
		Quota: u.spec.Quota, Request: u.asks().Key(), NonPreemptible: u.nonPreemptible(),
		Blocks: q.line.Policy().Blocks(u.spec.Priority), Checks: r.extensions.keys(u),
	}
	if u.holding {
		key.Total, key.Unchecked = u.total().Key(), u.grows.Unchecked
	} else if u.spec.GangGroup != "" {
		key.Alone = u.spec.Key
	} else if s := u.spec.Sizes; s != nil {
		key.Sizes = s.String()
	}
	if q.bounds().MaxAdmitted >= 0 {
		key.Namespace = u.spec.Namespace()
	}
	return key, ""
}

// part takes a unit out of its line.
func (r *roster) part(u *record) {
	g := u.group
	if g.Head() == u {
		r.headChanged(g.Notes.queue)
	}
	if g.Key().Alone != "" {
		r.gangs.Part(u)
	}
	if g.Part(u); g.Len() == 0 {
		r.telling.Gone(g)
	}
	u.group = nil
}

func (r *roster) headChanged(q *queueRecord) {
	r.ranking.touch(q)
	r.changed = true
}

// hold has the unit hold this much where its object says.
func (r *roster) hold(u *record, held resources.List) {
	nonPreemptible, t := u.nonPreemptible(), u.own()
	r.changed = r.gangs.SetHolding(u, true) || r.changed
	t.holding, t.held, t.keepsMin = true, held, nonPreemptible
	expected := life.Expected(&u.spec, true)
	r.changed = r.holdings.Hold(u.spec.Key, u.place(), held, nonPreemptible, expected) || r.changed
}

// release has the unit hold nothing.
func (r *roster) release(u *record) {
	if !u.holding {
		return
	}
	t := u.tenure
	t.holding, t.held, t.keepsMin, t.growsSince = false, resources.List{}, false, 0
	r.gangs.SetHolding(u, false)
	r.holdings.Release(u.spec.Key)
	r.changed = true
}

// grant lets so many pods of a unit go as its object says that it holds; none while it is not admitted (I3).
func (r *roster) grant(u *record) {
	if u.confirmed() && u.holding && u.spec.Phase.Releases() {
		r.holdings.Open(u.spec.Key, u.spec.Wants())
	} else {
		r.holdings.Close(u.spec.Key)
	}
}
