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

package telling

import (
	"container/list"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// mostLooked bounds the units that are looked at to find one that should be told something.
const mostLooked = 256

// Config says how long things take, and where a schedule finds what it needs of a unit.
type Config[U backlog.Unit, N any] struct {
	// After is for how long a unit has to wait, or a fleeting reason to last, before it is told. Every is the least time
	// between two things that a unit is told.
	After, Every time.Duration
	// Namespace of a unit.
	Namespace func(U) string
	// Compare is the order of units that are due at the same time.
	Compare func(a, b U) int
	// Listener of a unit.
	Listener func(U) *Listener
	// Group that a unit is in; nil for none.
	Group func(U) *backlog.Group[U, N]
	// Topic of a group.
	Topic func(*backlog.Group[U, N]) *Topic[U]
	// Seat makes a copy of a unit that keeps its place in line: the unit itself may leave, or have another place.
	Seat func(U) U
	// Saying is what a unit should be told now; nil if that is nothing.
	Saying func(U) *unit.Saying
}

// Schedule says which unit is told why it waits, and when.
type Schedule[U backlog.Unit, N any] struct {
	cfg Config[U, N]
	// due are units by themselves, found are those of rounds. No unit is in both.
	due, found *ordered.Turns[U]
	// rounds are groups with a running round. later are groups whose round begins at a time, the earliest first. A deleted
	// group leaves them at once, also on a standby, which writes no reasons.
	rounds, later *list.List
	// ofRound says that the last one told was found in a round.
	ofRound bool
}

// New returns an empty schedule.
func New[U backlog.Unit, N any](cfg *Config[U, N]) *Schedule[U, N] {
	turns := func() *ordered.Turns[U] {
		return ordered.NewTurns(func(u U) ordered.Moment { return cfg.Listener(u).at }, cfg.Compare, cfg.Namespace)
	}
	return &Schedule[U, N]{cfg: *cfg, rounds: list.New(), later: list.New(), due: turns(), found: turns()}
}

// Len is the number of groups and namespaces of which somebody may be to be told something.
func (s *Schedule[U, N]) Len() int {
	return s.rounds.Len() + s.later.Len() + s.due.Len() + s.found.Len()
}

// Cancel has a unit told nothing until that is planned again.
func (s *Schedule[U, N]) Cancel(u U) { s.move(u, 0) }

// move sets when a unit is due; zero for never.
func (s *Schedule[U, N]) move(u U, at ordered.Moment) {
	l, among := s.cfg.Listener(u), s.due
	if l.found {
		among = s.found
	}
	among.Move(u, at, func(m ordered.Moment) { l.at = m })
	l.found = l.found && at != 0
}

// plan has a unit told at that time, or when it may be told something again.
func (s *Schedule[U, N]) plan(u U, at time.Time) {
	s.move(u, ordered.MomentOf(ordered.Later(at, s.mayAgain(u))))
}

// mayAgain is when a unit may be told something again; zero for one that was told nothing.
func (s *Schedule[U, N]) mayAgain(u U) time.Time {
	at := s.cfg.Listener(u).SaidAt()
	if at.IsZero() {
		return at
	}
	return at.Add(s.cfg.Every)
}

// fleeting reasons are often over before anybody could read them. For example, informers of two kinds race, or the
// controller creates the default queue of a new quota.
var fleeting = map[unit.Reason]bool{
	unit.ReasonConsumerNotFound: true, unit.ReasonKindNotListed: true, unit.ReasonInactive: true,
	unit.ReasonWriteRefused: true,
	unit.ReasonUnknownQueue: true, unit.ReasonUnknownQuota: true, unit.ReasonRestoring: true,
}

// Parked plans to tell why a unit is parked: at once, unless the reason is fleeting.
func (s *Schedule[U, N]) Parked(now time.Time, u U, reason unit.Reason) {
	if fleeting[reason] {
		now = now.Add(s.cfg.After)
	}
	s.plan(u, now)
}

// Joined plans to tell a unit that came into line why it waits there, where its group is not parked.
func (s *Schedule[U, N]) Joined(now time.Time, u U) {
	due, at := s.cfg.Listener(u).at, now.Add(s.cfg.After)
	if due == 0 || due > ordered.MomentOf(at) { // a reason that changes all the time is written as well
		s.plan(u, at)
	}
}

// Renew plans the next write of a unit at once, or none if its object has the reason.
func (s *Schedule[U, N]) Renew(now time.Time, u U) {
	s.move(u, 0)
	if s.news(u) != nil {
		s.plan(u, now)
	}
}

// news is the reason of a unit that was not written last; nil for none.
func (s *Schedule[U, N]) news(u U) *unit.Saying {
	said := s.cfg.Saying(u)
	if said == nil || unit.SamePointee(said, s.cfg.Listener(u).Said()) {
		return nil
	}
	return said
}

// Heard takes what an object says that its unit was told: that is the truth, no matter who wrote it (I8).
func (s *Schedule[U, N]) Heard(now time.Time, u U, said *unit.Saying) {
	l := s.cfg.Listener(u)
	l.report = &report{said: said, at: ordered.MomentOf(l.SaidAt())}
	if l.at == 0 && s.news(u) != nil {
		s.plan(u, now.Add(s.cfg.After))
	}
}

// Unsaid takes that the last thing that a unit was told did not come to its object, which says this.
func (s *Schedule[U, N]) Unsaid(now time.Time, u U, said *unit.Saying) {
	s.cfg.Listener(u).report = &report{said: said, at: ordered.MomentOf(now)}
	if s.news(u) != nil {
		s.plan(u, now)
	}
}

// At is when somebody may be to be told something; zero for not before something happens.
func (s *Schedule[U, N]) At(now time.Time) time.Time {
	var at time.Time
	if s.rounds.Len() > 0 {
		return now
	}
	if g := s.first(s.later); g != nil {
		at = s.cfg.Topic(g).from
	}
	for _, among := range []*ordered.Turns[U]{s.due, s.found} {
		if due := among.At(ordered.MomentOf(now)); due != 0 {
			at = ordered.Earlier(at, ordered.Later(due.Time(), now))
		}
	}
	return at
}

// Tell lists the units that get a reason now, at most so many. The listener of each has the reason.
func (s *Schedule[U, N]) Tell(now time.Time, most int) (told []U) {
	s.findInRounds(now, most*mostLooked)
	for looks := most * mostLooked; len(told) < most && looks > 0; {
		u, said := s.next(now, &looks)
		if said == nil {
			break
		}
		s.cfg.Listener(u).report = &report{said: said, at: ordered.MomentOf(now)}
		told = append(told, u)
	}
	return told
}

// next takes by turns a unit that is due by itself and one that a round found, with the reason to write. The unit is
// nil if no look is left.
func (s *Schedule[U, N]) next(now time.Time, looks *int) (u U, said *unit.Saying) {
	for range 2 {
		among := s.due
		if s.ofRound = !s.ofRound; s.ofRound {
			among = s.found
		}
		for ; *looks > 0; *looks-- {
			u, ok := among.Next(ordered.MomentOf(now))
			if !ok {
				break
			}
			s.move(u, 0)
			if g := s.cfg.Group(u); g != nil {
				s.cfg.Topic(g).miss()
			}
			if said := s.news(u); said != nil {
				return u, said
			}
		}
	}
	return u, nil
}
