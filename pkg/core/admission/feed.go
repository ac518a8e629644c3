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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// UpsertUnit takes the unit as the API has it. While a write of the unit is in flight the object is
// remembered and replayed by Settle. A unit whose Phase holds quota is (re-)reserved with Held, fits or not.
func (s *State) UpsertUnit(now time.Time, in Unit) {
	u, ok := s.units[in.Key]
	if ok && u.spec.UID != in.UID {
		// Another object under the same name: nothing of the old one can be true of it.
		s.DeleteUnit(now, in.Key)
		ok = false
	}
	switch {
	case !ok:
		u = newUnit()
		s.apply(now, u, in)
	case u.inFlight():
		u.own().remembered = &in
	default:
		s.replay(now, u, &in)
	}
}

// DeleteUnit forgets the unit and releases what it holds (I7). A write in flight is settled by it.
func (s *State) DeleteUnit(now time.Time, key string) {
	u, ok := s.units[key]
	if !ok {
		return
	}
	u.forgetRemembered()
	s.contest(now, u, func() {
		s.change(u, func() {
			u.stage = stageDone
			s.place(now, u)
		})
		s.owners.Remove(u)
		delete(s.units, key)
	})
	q := s.queues.record(u.spec.Queue)
	q.refs--
	s.queues.prune(q)
}

// replay applies an object to a unit with no write in flight, if it says anything new.
func (s *State) replay(now time.Time, u *unit, in *Unit) {
	if u.stage == stageAdmitted && in.Phase.Holds() {
		u.observed = true
	}
	if !u.spec.same(in) {
		s.apply(now, u, *in)
	}
}

// apply makes the object the truth about a unit with no write in flight.
func (s *State) apply(now time.Time, u *unit, in Unit) {
	if u.stage == stageAdmitted && !u.observed && in.Phase.Waits() && in.Attempts < u.attempt {
		// Older than the admission that was confirmed: only a repetition can say this.
		in.Phase, in.Attempts, in.Held = u.spec.Phase, u.attempt, u.spec.Held
	} else if u.stage == stageAdmitted {
		u.observed = true
	}
	former, known := u.spec, s.units[in.Key] == u
	sameJob := known && former.Consumer == in.Consumer && former.ConsumerManaged == in.ConsumerManaged
	if known && !sameJob {
		// It stands for the former job no longer.
		s.contest(now, u, func() { s.owners.Remove(u) })
	}
	s.contestOf(now, &in, func() {
		s.change(u, func() {
			s.leave(u)
			update := func() {
				u.spec = in
				u.enter(in.stage())
			}
			if sameJob {
				s.owners.Change(u, update)
			} else {
				update()
				s.owners.Add(u)
			}
			s.units[in.Key] = u
			s.queues.record(in.Queue).refs++
			s.place(now, u)
		})
	})
	if known {
		q := s.queues.record(former.Queue)
		q.refs--
		s.queues.prune(q)
	}
}

// contest runs f, which may change who stands for the job of a unit, and places those again for whom it does.
func (s *State) contest(now time.Time, u *unit, f func()) { s.contestOf(now, &u.spec, f) }

func (s *State) contestOf(now time.Time, in *Unit, f func()) {
	c := in.candidate()
	before, some := s.owners.Winner(&c)
	f()
	after, still := s.owners.Winner(&c)
	if before == after {
		return
	}
	for _, u := range []*unit{before, after} {
		if (u == before && !some) || (u == after && !still) || s.units[u.spec.Key] != u {
			continue
		}
		s.change(u, func() { s.place(now, u) })
	}
}

// change runs f, which changes a unit or what it holds, and keeps the accounts.
func (s *State) change(u *unit, f func()) {
	before := s.look(u)
	s.tally(u, -1)
	f()
	s.tally(u, 1)
	s.looked = before
}

// place puts a unit where its stage and the checks say. It is called within change.
func (s *State) place(now time.Time, u *unit) {
	switch u.stage {
	case stageWaiting:
		s.placeWaiting(now, u)
	case stageAdmitted:
		s.placeAdmitted(now, u)
	case stageDone:
		s.leave(u)
		s.reports.move(u, 0)
		s.release(u)
	case stageAdmitting, stageEvicting:
		// Not touched before its write is settled.
	}
}

func (s *State) placeWaiting(now time.Time, u *unit) {
	s.release(u)
	reason, _ := s.checkUnit(now, u)
	if reason == "" {
		if u.group == nil {
			s.leave(u)
			s.join(now, u)
		}
		return
	}
	if u.parked != reason {
		s.leave(u)
		u.parked = reason
		s.reports.parked(now, u, Finding{Reason: reason})
	}
	s.retryAt(u, s.parkedUntil(u))
}

// parkedUntil is when a parked unit is to be looked at though nothing happens; zero for never.
func (s *State) parkedUntil(u *unit) time.Time {
	switch u.parked {
	case ReasonBackoff:
		return u.spec.RequeueAt
	case u.refusal.reason:
		return u.refusal.until
	default:
		return time.Time{}
	}
}

// placeAdmitted makes the ledger hold what the unit holds, and asks for its eviction where it must not
// be admitted.
func (s *State) placeAdmitted(now time.Time, u *unit) {
	s.leave(u)
	s.reports.move(u, 0)
	u.report = noReport
	if u.spec.Quarantined {
		s.hold(u, u.spec.wants())
		return
	}
	reason, _, gone := s.checkAdmitted(u)
	if gone {
		// Nothing runs any more that could use it.
		s.release(u)
	} else {
		s.hold(u, u.spec.wants())
	}
	switch {
	case reason == "":
	case now.Before(u.refusal.until):
		s.retryAt(u, u.refusal.until)
	default:
		s.evictions[u] = struct{}{}
	}
}

// leave takes a unit out of every collection that depends on its place.
func (s *State) leave(u *unit) {
	if u.group != nil {
		s.part(u)
	}
	u.parked = ""
	s.retryAt(u, time.Time{})
	delete(s.evictions, u)
}

func (s *State) retryAt(u *unit, at time.Time) {
	s.retries.Move(u, backlog.MomentOf(at), func(m backlog.Moment) { u.retryAt = m })
}

// join puts an eligible unit into its line.
func (s *State) join(now time.Time, u *unit) {
	q := s.queues.record(u.spec.Queue)
	key, fault := s.groupKey(q, u)
	if fault != "" {
		s.refuse(now, u, ReasonInternalError, fault)
		s.placeWaiting(now, u)
		return
	}
	g, isNew := q.line.Join(u, key)
	u.group = g
	n := &g.Notes
	n.answer = answer{} // what a check said to an earlier attempt says nothing to this one
	if isNew {
		n.queue, n.request, n.nonPreemptible, n.blocks = q, u.spec.Request, key.NonPreemptible, key.Blocks
		s.checkAgain(now, g)
	}
	if g.Head() == u {
		s.headChanged(q)
	}
	s.reports.joined(now, u)
}

// groupKey of a unit. A policy or a check of an extension that panics is a fault.
func (s *State) groupKey(q *queueRecord, u *unit) (key backlog.Key, fault string) {
	doing := "put in order"
	defer func() {
		if r := recover(); r != nil {
			s.panics++
			fault = fmt.Sprintf("internal error while the unit was %s: %v", doing, r)
		}
	}()
	q.line.Try(u)
	doing = "examined"
	return backlog.Key{
		Quota: u.spec.Quota, Request: u.spec.Request.Key(), NonPreemptible: u.spec.NonPreemptible,
		Blocks: q.line.Policy().Blocks(u.spec.Priority), Checks: s.checkKeys(u),
	}, ""
}

// part takes a unit out of its line.
func (s *State) part(u *unit) {
	g := u.group
	if g.Head() == u {
		s.headChanged(g.Notes.queue)
	}
	g.Part(u)
	u.group = nil
}

func (s *State) headChanged(q *queueRecord) {
	s.ranking.touch(q)
	s.changed = true
}

// refuse keeps a unit from being tried for a while that doubles with every refusal in a row.
func (s *State) refuse(now time.Time, u *unit, reason Reason, message string) {
	backoff := s.cfg.RefusedBackoff << min(u.refusal.times, 5)
	u.refusal = &refusal{times: u.refusal.times + 1, until: now.Add(backoff), reason: reason, message: message}
}

// hold makes the ledger say that the unit holds this much where its object says.
func (s *State) hold(u *unit, held resources.List) {
	if u.holding && (u.quota != u.spec.Quota || u.queue.name != u.spec.Queue) {
		s.release(u)
	}
	t := u.own()
	if !t.holding {
		t.holding, t.quota, t.queue = true, u.spec.Quota, s.queues.record(u.spec.Queue)
		t.queue.holding++
	}
	t.held = held
	changed := s.ledger.Reserve(u.spec.Key, t.quota, held, u.spec.NonPreemptible)
	if s.ledger.Expect(u.spec.Key, u.spec.Expected) || changed {
		s.tree.Changed(t.quota)
		s.changed = true
	}
}

// release makes the ledger forget what the unit holds.
func (s *State) release(u *unit) {
	if !u.holding {
		return
	}
	t := u.tenure
	s.ledger.Release(u.spec.Key)
	s.tree.Changed(t.quota)
	t.queue.holding--
	t.holding, t.held, t.quota, t.queue = false, resources.List{}, "", nil
	s.changed = true
}
