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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/words"
)

// why says why a unit waits, from the roster and what the last pass found.
type why struct {
	lines    *lines
	roster   *roster
	pass     *pass
	progress *progress
}

func newWhy(s *State) *why { return &why{s.lines, s.roster, s.pass, s.progress} }

// hasReason says whether a unit needs a reason: it waits for its request or for growth, or does not use its held quota.
func hasReason(u *record) bool {
	return u.waits() || u.group != nil || u.isAdmitted() && u.overdue.Reason != ""
}

// waiting is why a unit waits, with the numbers of now. All that follows from other things is up to date.
func (w *why) waiting(u *record) (unit.Finding, string) {
	if u.isAdmitted() && u.group == nil {
		return unit.Finding{Reason: u.overdue.Reason}, u.overdue.Message()
	}
	if u.group == nil {
		return unit.Finding{Reason: u.parked}, whyParked(w.roster, u)
	}
	return w.inLine(u)
}

func (w *why) inLine(u *record) (unit.Finding, string) {
	g := u.group
	switch x := w.lines.exclusion(g); {
	case x.Level != "":
		return x.Finding, words.Never(u.reader(), x.Finding, x.Total, x.Most)
	case x.Reason != "":
		return x.Finding, x.Message
	}
	if full := w.lines.whyFull(g); full != "" {
		return unit.Finding{Reason: unit.ReasonQueueFull}, full
	}
	if said, fault := w.tryToAsk(g); fault != "" {
		return unit.Finding{Reason: unit.ReasonInternalError}, fault
	} else if said.Reason != "" {
		return unit.Finding{Reason: said.Reason}, said.Message
	}
	if gg := gangGroupOf(w.lines.gangs, u); gg != nil {
		return w.together(u, gg)
	}
	return w.explain(u)
}

// tryToAsk is ask, for callers outside of a pass.
func (w *why) tryToAsk(g *group) (said queue.Answer, fault string) {
	defer func() {
		if cause := recover(); cause != nil {
			w.progress.panics++
			fault = fmt.Sprintf("internal error while the unit was examined: %v", cause)
		}
	}()
	return w.lines.ask(g), ""
}

// whyParked is the message of the reason for which a unit is parked.
func whyParked(r *roster, u *record) string {
	if u.parked == unit.ReasonQueueOverflow {
		return r.lines.queue(u.spec.Queue).whyOverflow(u)
	}
	return life.WhyParked(r.facts(lastMoment(u), u), u.parked)
}

// findings are why groups wait, each found out once.
type findings struct {
	why *why
	of  map[*group]unit.Finding
}

func (f *findings) at(g *group) unit.Finding {
	found, known := f.of[g]
	if !known {
		found = f.find(g)
		f.of[g] = found
	}
	return found
}

// find takes what the last pass found. Where none was made since the group came, as on a standby, it compares the head
// with its limits.
func (f *findings) find(g *group) unit.Finding {
	n := &g.Notes
	if n.isParked() {
		return n.parked
	}
	if f.why.lines.whyFull(g) != "" {
		return unit.Finding{Reason: unit.ReasonQueueFull}
	}
	if n.cause != (cause{}) {
		return n.finding(f.why.lines.tree)
	}
	if gg := gangGroupOf(f.why.lines.gangs, g.Head()); gg != nil {
		found, _ := f.why.together(g.Head(), gg)
		return found
	}
	found, _ := decide.Find(f.why.shortages(g.Head()))
	return found
}

// together is why a unit waits that is decided with others of its gang group.
func (w *why) together(u *record, gg *gangGroup) (unit.Finding, string) {
	noPlaces := u.group.Notes.cause.Stopped == unit.ReasonWaitingForGroup || !roomForAll(w.lines, nil, gg)
	if noPlaces || !slices.Contains(gg.members, u) || !w.allMet(gg) {
		return unit.Finding{Reason: unit.ReasonWaitingForGroup}, words.WaitsForGroup
	}
	if never := gg.asks.Never(w.lines.tree); never.Reason != "" {
		found := unit.Finding{
			Reason: never.Reason, Level: never.Limit.Level().Name(), Resource: w.lines.tree.Resource(never.Number),
		}
		return found, words.NeverTogether(u.reader(), found, never.Request, never.Most)
	}
	found, message := w.explain(u)
	return found, words.WithGroup + message
}

// allMet says whether a pass meets all members.
func (w *why) allMet(gg *gangGroup) bool {
	for _, u := range gg.members {
		g := u.group
		if !g.Open() || w.lines.whyFull(g) != "" {
			return false
		}
		if said, fault := w.tryToAsk(g); fault != "" || said.Reason != "" {
			return false
		}
	}
	return len(gg.members) > 0
}

// last is the member at whose place a gang group is decided.
func (w *why) last(gg *gangGroup) *record {
	last := gg.members[0]
	for _, u := range gg.members[1:] {
		if w.servedBefore(last, u) {
			last = u
		}
	}
	return last
}

func (w *why) servedBefore(a, b *record) bool {
	q, of := a.group.Notes.queue, b.group.Notes.queue
	if q == of {
		return q.line.Before(a, b)
	}
	return w.lines.ranking.Compare(q, of) < 0
}
