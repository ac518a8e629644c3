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
	"container/list"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// mostLooked bounds the units that are looked at to find one that is to be told something, mostOfRound those of one
// group in its turn.
const mostLooked, mostOfRound = 256, 16

// telling plans which unit is told why it waits, and when. Namespaces take turns: the units of one, however many, delay
// what units of another are told by one unit each. Of one namespace the unit that waits longest is told first:
//   - a unit that has come into line, or was parked, is due by itself, some seconds later, the oldest first;
//   - when the reason of a group changes a round of its units begins, each such group in its turn. It finds those that
//     are to be told something else: first who was told nothing for longest. Every second unit that is told is one of
//     these.
//
// Nobody is told what its object says already (I12), and nobody more often than once in a while. What a unit costs here
// when something happens does not depend on how many wait: a round goes on only as units are told.
type telling struct {
	after, every time.Duration
	// due are units by themselves, found are those of rounds. No unit is in both.
	due, found *ordered.Turns[*record]
	// rounds are groups of which a round is made; later are those of which one begins at a time, the earliest first.
	// A group that is gone leaves them at once: a standby tells nobody anything.
	rounds, later *list.List
	// ofRound says that the last one told was found in a round.
	ofRound bool
}

// round is a look at all units of a group.
type round struct {
	backlog.Round[*record]
	// in is the list that the group is in, and turn its place there; nil while no round is made.
	in   *list.List
	turn *list.Element
	from time.Time
}

// report is what a unit was told last, and when: what its object says, unless that is on its way. said is nil if it was
// told nothing, or that it waits for nothing.
type report struct {
	said *unit.Saying
	at   ordered.Moment
}

func newTelling(cfg *Config) telling {
	turns := func() *ordered.Turns[*record] {
		return ordered.NewTurns(func(u *record) ordered.Moment { return u.reportAt }, compareAges,
			func(u *record) string { return u.spec.Namespace() })
	}
	return telling{
		after: cfg.ExplainAfter, every: cfg.ExplainEvery, rounds: list.New(), later: list.New(),
		due: turns(), found: turns(),
	}
}

// move sets when a unit is due; zero for never.
func (t *telling) move(u *record, at ordered.Moment) {
	among := t.due
	if u.found {
		among = t.found
	}
	among.Move(u, at, func(m ordered.Moment) { u.reportAt = m })
	u.found = u.found && at != 0
}

// find plans to tell a unit of a round that has no time yet: in the order in which they were told something last.
func (t *telling) find(u *record) {
	u.found = true
	t.move(u, max(ordered.MomentOf(t.mayAgain(u)), 1))
}

// plan has a unit told at that time, or when it may be told something again.
func (t *telling) plan(u *record, at time.Time) {
	t.move(u, ordered.MomentOf(ordered.Later(at, t.mayAgain(u))))
}

// mayAgain is when a unit may be told something again; zero for one that was told nothing.
func (t *telling) mayAgain(u *record) (at time.Time) {
	if u.report.at == 0 {
		return at
	}
	return u.report.at.Time().Add(t.every)
}

// parked plans to tell why a unit is parked.
func (t *telling) parked(now time.Time, u *record, reason unit.Reason) {
	switch {
	case untold(reason):
		t.move(u, 0)
	case fleeting[reason]:
		t.plan(u, now.Add(t.after))
	default:
		t.plan(u, now)
	}
}

// fleeting reasons are often over before anybody could read them: informers of two kinds race, and the controller
// makes the default queue of a new quota.
var fleeting = map[unit.Reason]bool{
	unit.ReasonConsumerNotFound: true, unit.ReasonKindNotListed: true, unit.ReasonInactive: true,
	unit.ReasonWriteRefused: true,
	unit.ReasonUnknownQueue: true, unit.ReasonUnknownQuota: true, unit.ReasonRestoring: true,
}

// untold says whether whoever caused the reason has written it down already.
func untold(reason unit.Reason) bool {
	return reason == unit.ReasonAdopting || reason == unit.ReasonBackoff
}

// joined plans to tell a unit that came into line why it waits there.
func (t *telling) joined(now time.Time, u *record) {
	at := now.Add(t.after)
	switch n := &u.group.Notes; {
	case n.isParked():
		t.parked(now, u, n.parked.Reason)
	case u.reportAt == 0 || u.reportAt > ordered.MomentOf(at): // what changes all the time is told as well
		t.plan(u, at)
	}
}

// about sets what the units of a group are told of from now on; nothing until that is known.
func (t *telling) about(now time.Time, g *group, to subject) {
	n := &g.Notes
	if n.subject == to {
		return
	}
	n.missed = n.missed || n.subject != (subject{})
	n.subject, n.saying = to, nil
	if to != (subject{}) && n.missed {
		n.missed = false
		t.begin(now, g)
	}
}

// begin a round of a group, or have the one that is made go around once more.
func (t *telling) begin(now time.Time, g *group) {
	r := &g.Notes.round
	r.Begin()
	if r.in != nil {
		return
	}
	if fleeting[g.Notes.subject.Reason] {
		r.from = now.Add(t.after)
		r.enter(t.later, g)
		return
	}
	r.enter(t.rounds, g)
}

// enter puts the group at the end of a list.
func (r *round) enter(in *list.List, g *group) { r.in, r.turn = in, in.PushBack(g) }

// leave takes the group out of its list.
func (r *round) leave() {
	if r.in != nil {
		r.in.Remove(r.turn)
		r.in, r.turn = nil, nil
	}
}

// first is the group whose turn it is in a list; nil if the list is empty.
func first(of *list.List) *group {
	if e := of.Front(); e != nil {
		return e.Value.(*group)
	}
	return nil
}

// next is when somebody may be to be told something; zero for never.
func (t *telling) next(now time.Time) time.Time {
	var at time.Time
	if t.rounds.Len() > 0 {
		return now
	}
	if g := first(t.later); g != nil {
		at = g.Notes.round.from
	}
	for _, among := range []*ordered.Turns[*record]{t.due, t.found} {
		if due := among.At(ordered.MomentOf(now)); due != 0 {
			at = ordered.Earlier(at, ordered.Later(due.Time(), now))
		}
	}
	return at
}

// Tell says what units are to be told of why they wait, so many at most, and when to ask again; zero means that nobody
// is to be told anything before something happens. Whoever calls it paces what is written.
func (s *State) Tell(now time.Time, most int) (list []Explain, again time.Time) {
	t := &s.telling
	for g := first(t.later); g != nil && !g.Notes.round.from.After(now); g = first(t.later) {
		g.Notes.round.leave()
		g.Notes.round.enter(t.rounds, g)
	}
	s.findInRounds(most * mostLooked)
	for looks := most * mostLooked; len(list) < most && looks > 0; {
		u := s.nextToTell(now, &looks)
		if u == nil {
			break
		}
		said := s.sayingOf(u)
		u.report = &report{said: said, at: ordered.MomentOf(now)}
		list = append(list, Explain{Unit: u.spec, Saying: *said})
	}
	return list, t.next(now)
}

// TellAt is when Tell wants to be called; zero means not before something happens.
func (s *State) TellAt(now time.Time) time.Time { return s.telling.next(now) }

// nextToTell takes by turns one that is due by itself and one that was found in a round. Nobody may be found because no
// look is left.
func (r *roster) nextToTell(now time.Time, looks *int) *record {
	t := &r.telling
	for range 2 {
		among := t.due
		if t.ofRound = !t.ofRound; t.ofRound {
			among = t.found
		}
		for ; *looks > 0; *looks-- {
			u, ok := among.Next(ordered.MomentOf(now))
			if !ok {
				break
			}
			t.move(u, 0)
			if u.group != nil && u.group.Notes.subject == (subject{}) {
				u.group.Notes.missed = true
			}
			if r.isNews(u) {
				return u
			}
		}
	}
	return nil
}

// findInRounds goes on with the rounds of groups, with so many looks at units. Those that are due by themselves are
// told so.
func (r *roster) findInRounds(looks int) {
	t := &r.telling
	visit := func(u *record) {
		if u.reportAt == 0 && r.isNews(u) {
			t.find(u)
		}
	}
	for t.rounds.Len() > 0 && looks > 0 {
		g := first(t.rounds)
		n := &g.Notes.round
		n.leave()
		looked, over := backlog.Go(&n.Round, g, min(looks, mostOfRound), seatOf, visit)
		if looks -= looked + 1; over {
			*n = round{}
		} else {
			n.enter(t.rounds, g)
		}
	}
}

// seatOf a unit is as much of a unit as its place depends on: the unit itself may leave, or have another place.
func seatOf(u *record) *record {
	it, seat := u.Item(), newRecord()
	seat.spec = unit.Unit{Key: it.Key, UID: it.UID, Priority: it.Priority, Created: it.Created}
	return seat
}

// isNews says whether there is something to tell a unit that it was not told last.
func (r *roster) isNews(u *record) bool {
	said := r.sayingOf(u)
	return said != nil && !unit.SamePointee(said, u.report.said)
}

// hear takes what an object says that its unit was told: that is the truth, whoever wrote it (I8).
func (r *roster) hear(now time.Time, u *record, in *unit.Unit) {
	if unit.SamePointee(u.spec.Said, in.Said) {
		return
	}
	u.spec.Said = in.Said
	u.report = &report{said: in.Said, at: u.report.at}
	if u.reportAt == 0 && r.isNews(u) {
		r.telling.plan(u, now.Add(r.telling.after))
	}
}

// Unsaid says that what Tell said last of a unit was not written. It is told later.
func (s *State) Unsaid(now time.Time, unitKey string) {
	u, ok := s.units[unitKey]
	if !ok {
		return
	}
	u.report = &report{said: u.spec.Said, at: ordered.MomentOf(now)}
	if s.isNews(u) {
		s.telling.plan(u, now)
	}
}

// Says is what a unit is to be told now; false if it is nothing.
func (s *State) Says(unitKey string) (unit.Saying, bool) {
	u, ok := s.units[unitKey]
	if !ok {
		return unit.Saying{}, false
	}
	said := s.sayingOf(u)
	if said == nil {
		return unit.Saying{}, false
	}
	return *said, true
}
