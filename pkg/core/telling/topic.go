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

// mostOfRound bounds the units of a group that are looked at in its turn.
const mostOfRound = 16

// Topic is what a schedule keeps of a group, with the group. The units of a new group are told nothing yet.
type Topic[U backlog.Unit] struct {
	// known says that the group has a reason to write. missed: a unit was due while there was none, or written reasons may
	// be outdated.
	known, missed bool
	// round is a look at all units of the group. in is the list that the group is in for it, and turn its place there; nil
	// while no round is made. Where it begins later it does so at from.
	round backlog.Round[U]
	in    *list.List
	turn  *list.Element
	from  time.Time
}

// miss notes that a unit was to be told something while that is not known.
func (t *Topic[U]) miss() { t.missed = t.missed || !t.known }

// leave takes the group out of its list.
func (t *Topic[U]) leave() {
	if t.in != nil {
		t.in.Remove(t.turn)
		t.in, t.turn = nil, nil
	}
}

// Changed says that units of a group get another reason from now on. With no reason they get none until there is one.
func (s *Schedule[U, N]) Changed(now time.Time, g *backlog.Group[U, N], reason unit.Reason) {
	t := s.cfg.Topic(g)
	t.missed = t.missed || t.known
	if t.known = reason != ""; t.known && t.missed {
		t.missed = false
		s.begin(now, g, reason)
	}
}

// Gone says that a group has no unit any more.
func (s *Schedule[U, N]) Gone(g *backlog.Group[U, N]) { s.cfg.Topic(g).leave() }

// begin a round of a group, or have the one that is made go around once more.
func (s *Schedule[U, N]) begin(now time.Time, g *backlog.Group[U, N], reason unit.Reason) {
	t := s.cfg.Topic(g)
	t.round.Begin()
	switch {
	case t.in != nil:
	case fleeting[reason]:
		t.from = now.Add(s.cfg.After)
		s.enter(s.later, g)
	default:
		s.enter(s.rounds, g)
	}
}

// enter puts a group at the end of a list.
func (s *Schedule[U, N]) enter(in *list.List, g *backlog.Group[U, N]) {
	t := s.cfg.Topic(g)
	t.in, t.turn = in, in.PushBack(g)
}

// first is the group whose turn it is in a list; nil if the list is empty.
func (s *Schedule[U, N]) first(of *list.List) *backlog.Group[U, N] {
	if e := of.Front(); e != nil {
		return e.Value.(*backlog.Group[U, N])
	}
	return nil
}

// findInRounds begins the rounds whose time has come, and goes on with all, with so many looks at units.
func (s *Schedule[U, N]) findInRounds(now time.Time, looks int) {
	for g := s.first(s.later); g != nil && !s.cfg.Topic(g).from.After(now); g = s.first(s.later) {
		s.cfg.Topic(g).leave()
		s.enter(s.rounds, g)
	}
	for s.rounds.Len() > 0 && looks > 0 {
		g := s.first(s.rounds)
		t := s.cfg.Topic(g)
		t.leave()
		looked, over := backlog.Go(&t.round, g, min(looks, mostOfRound), s.cfg.Seat, s.find)
		if looks -= looked + 1; over {
			t.round = backlog.Round[U]{}
		} else {
			s.enter(s.rounds, g)
		}
	}
}

// find plans the write of a unit in a round, if its reason is new. The unit with the oldest write is first. A unit that
// is due by itself is left to that.
func (s *Schedule[U, N]) find(u U) {
	l := s.cfg.Listener(u)
	if l.at != 0 || s.news(u) == nil {
		return
	}
	l.found = true
	s.move(u, max(ordered.MomentOf(s.mayAgain(u)), 1))
}
