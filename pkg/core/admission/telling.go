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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/telling"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/words"
)

// schedule says which unit is told why it waits, and when.
type schedule = telling.Schedule[*record, notes]

func newSchedule(cfg *Config, saying func(*record) *unit.Saying) *schedule {
	return telling.New(&telling.Config[*record, notes]{
		After: cfg.ExplainAfter, Every: cfg.ExplainEvery, Compare: compareAges, Seat: seatOf, Saying: saying,
		Namespace: func(u *record) string { return u.spec.Namespace() },
		Listener:  func(u *record) *telling.Listener { return &u.listener },
		Group:     func(u *record) *group { return u.group },
		Topic:     func(g *group) *telling.Topic[*record] { return &g.Notes.topic },
	})
}

// seatOf a unit is as much of a unit as its place depends on: the unit itself may leave, or have another place.
func seatOf(u *record) *record {
	it, seat := u.Item(), newRecord()
	seat.spec = &unit.Unit{Key: it.Key, UID: it.UID, Priority: it.Priority, Created: it.Created}
	return seat
}

// untold says whether the reason is already written down by the component that caused it.
func untold(reason unit.Reason) bool {
	return reason == unit.ReasonAdopting || reason == unit.ReasonBackoff
}

// setSubject sets what the units of a group are told of from now on; nothing until that is known.
func setSubject(s *schedule, now time.Time, g *group, to subject) {
	if n := &g.Notes; n.subject != to {
		n.subject, n.saying = to, nil
		s.Changed(now, g, to.Reason)
	}
}

// Telling says which units are to be told why they wait. The caller paces the writes.
type Telling struct{ roster *roster }

// Next lists the units to get a reason now, so many at most, with the time of the next call. Zero means that no unit
// needs a reason before the next event.
func (t Telling) Next(now time.Time, most int) (list []transition.Explain, again time.Time) {
	for _, u := range t.roster.telling.Tell(now, most) {
		list = append(list, transition.Explain{Unit: u.spec, Saying: *u.listener.Said()})
	}
	return list, t.At(now)
}

// At is when Next wants to be called; zero means not before something happens.
func (t Telling) At(now time.Time) time.Time { return t.roster.telling.At(now) }

// Failed says that what Next said last of a unit was not written. It is told later.
func (t Telling) Failed(now time.Time, unitKey string) {
	if u, ok := t.roster.units[unitKey]; ok {
		t.roster.telling.Unsaid(now, u, u.spec.Said)
	}
}

// Of a unit is what it should be told now; false if that is nothing.
func (t Telling) Of(unitKey string) (e transition.Explain, some bool) {
	if u, ok := t.roster.units[unitKey]; ok {
		if said := sayingOf(t.roster, u); said != nil {
			return transition.Explain{Unit: u.spec, Saying: *said}, true
		}
	}
	return e, false
}

// nothingMore is for an admitted unit that waited for more than it held.
var nothingMore = &unit.Saying{}

// subject of a saying: the finding of a group and, if somebody else words it, the words.
type subject struct {
	unit.Finding
	words string
	// together: it is found of all units with which the head of the group is decided.
	together bool
}

// sayingOf is what a unit should be told; nil if that is nothing.
func sayingOf(r *roster, u *record) *unit.Saying {
	switch {
	case u.group != nil:
		return groupSaying(u.group)
	case u.waits() && !untold(u.parked):
		return unit.Say(u.parked, u.reader().Would(unitWords(r, u)))
	case !u.isAdmitted():
		return nil
	case u.overdue.Reason != "":
		return unit.Say(u.overdue.Reason, u.overdue.Message())
	case u.listener.Said() != nil && !u.listener.Said().Reason.OfPods():
		return nothingMore
	default:
		return nil
	}
}

func groupSaying(g *group) *unit.Saying {
	n := &g.Notes
	if n.saying == nil && n.subject != (subject{}) {
		n.saying = unit.Say(n.subject.Reason, headWords(g, n.subject))
	}
	return n.saying
}

// unitWords is about a unit that is parked by itself.
func unitWords(r *roster, u *record) string {
	if u.parked == unit.ReasonQueueOverflow {
		return fmt.Sprintf("queue %q has as many units in line as it may have, in all or of one namespace; this one comes "+
			"into line at its place", u.spec.Queue)
	}
	return whyParked(r, u)
}

// headWords is about what keeps the head of a group from going, and with it all of them.
func headWords(g *group, about subject) string {
	switch to := g.Head().reader(); {
	case about.words != "":
		return words.ToldBy(to, about.words)
	case about.together:
		own := func(l *capacity.Level) bool { return l.Name() == about.Level }
		return words.ToldTogether(to, about.Finding, !slices.ContainsFunc(g.Notes.ask.Route.Levels, own))
	default:
		return words.Told(to, about.Finding)
	}
}
