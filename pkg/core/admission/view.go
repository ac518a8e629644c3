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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/answers"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/words"
)

// Releases says whether pods of the unit may go: it is admitted, confirmed, and waits for nothing else (I3). Which of
// them may, Granted says.
func (s *State) Releases(unitKey string) bool {
	u, ok := s.roster.units[unitKey]
	return ok && u.confirmed() && u.spec.Phase.Releases()
}

// Of answers what is asked about a unit that is admitted; of no other one.
func Of[T any](s *State, unitKey string, now time.Time, ask func(*life.Facts) T) (answer T) {
	if u, ok := s.roster.units[unitKey]; ok && u.confirmed() {
		answer = ask(s.roster.facts(now, u))
	}
	return answer
}

// Elections lists, once and in order, the jobs for which another unit stands by now, or none, and those that came or
// went.
func (s *State) Elections() []unit.Consumer { return s.roster.owners.Elections() }

// StandsFor is the key of the unit that stands for a job; empty if none does. managed says that the job is of a kind
// that the controller manages.
func (s *State) StandsFor(c unit.Consumer, managed bool) string {
	if u, ok := s.roster.owners.StandsFor(c, managed); ok {
		return u.spec.Key
	}
	return ""
}

// InFlight says whether a write of the unit is not settled yet.
func (s *State) InFlight(unitKey string) bool {
	u, ok := s.roster.units[unitKey]
	return ok && u.inFlight()
}

// Live says whether the consumer was last reported to be live.
func (s *State) Live(c unit.Consumer) bool { return s.roster.owners.IsLive(c) }

// Line visits the pending units of a queue in its order, with their positions from 1, until visit returns false. Parked
// units are not open. visit must change neither units nor the state. A visit costs O(1).
func (s *State) Line(queue string, visit func(position int, u *unit.Unit, open bool) bool) {
	q, ok := s.lines.byName[queue]
	if !ok {
		return
	}
	position := 0
	q.line.Walk(func(u *record) bool {
		position++
		return visit(position, u.spec, u.group.Open())
	})
}

// Why tells the state of any unit in words. The reason is empty for a unit that is admitted or over.
func (s *State) Why(unitKey string) (unit.Reason, string, bool) {
	u, ok := s.roster.units[unitKey]
	if !ok {
		return "", "", false
	}
	switch {
	case u.stage == transition.Over:
		return "", fmt.Sprintf("over: %s", u.spec.Phase), true
	case u.reserves():
		return unit.ReasonPending, writing(u), true
	case u.waits():
	case u.inFlight():
		return "", writing(u), true
	case u.spec.Phase == unit.PhaseReserved:
		return unit.ReasonWaitingForChecks, life.WaitsForChecks(s.roster.facts(time.Time{}, u)), true
	case u.spec.Observed:
		return "", "would be admitted", true
	case !hasReason(u):
		return "", "admitted; holds " + u.held.Words(), true
	}
	s.lines.refresh()
	found, message := newWhy(s).waiting(u)
	return found.Reason, u.reader().Would(message), true
}

// writing is the write in flight in words, and the held amount until its outcome is known.
func writing(u *record) string { return u.flight.Kind().Writing + "; holds " + u.held.Words() }

// Limits of all levels, and what pods outside of units are measured against there.
func (s *State) Limits() capacity.Reader {
	s.lines.checkGroups()
	return s.lines.tree
}

// Queues lists all queues that exist or that a unit names, sorted by name. Of the latter it has the name alone.
func (s *State) Queues() (list []queue.Spec) {
	for _, name := range s.lines.names() {
		q := s.lines.byName[name].spec
		q.Name = name
		list = append(list, q)
	}
	return list
}

// Units are those that hold quota, and those that wait in line, for a place in it or for a time. Others may wait for a
// unit on hold of their gang group. A write in flight counts as applied. Each costs as much as to copy a pointer.
func (s *State) Units(now time.Time) []*unit.Unit {
	list := make([]*unit.Unit, 0, len(s.roster.units))
	for _, u := range s.roster.units {
		in := u.spec
		waits := u.group != nil && u.group.Notes.answer.Reason == "" || // no check of an extension stops it
			u.parked == unit.ReasonQueueOverflow || u.parked == unit.ReasonBackoff && in.RequeueAt.After(now) ||
			u.parked == unit.ReasonInactive && in.GangGroup != ""
		if u.stage != transition.Over && !in.Observed && (waits || u.mayHold()) {
			list = append(list, u.soon(now))
		}
	}
	return list
}

// Explain says why a unit is pending. For any other unit it answers like Why. It compares the unit with the claims
// ahead of it in the last pass, even if it is behind a head. The cost is O(depth x (resources + claims)), however many
// units there are.
func (s *State) Explain(unitKey string) (answers.Explanation, bool) {
	reason, message, ok := s.Why(unitKey)
	if !ok {
		return answers.Explanation{}, false
	}
	e := answers.Explanation{Reason: reason, Message: message}
	u := s.roster.units[unitKey]
	if !u.waits() && u.group == nil {
		return e, true
	}
	if u.group == nil {
		e.Until = u.dueAt.Time()
		return e, true
	}
	line := u.group.Line()
	e.Position, e.Waiting = line.Position(u), line.Len()
	if first, ok := line.First(); ok && first != u {
		e.First = first.spec.Key
	}
	e.Shortages = newWhy(s).shortages(u)
	e.Remarks = words.Remarks(u.reader(), e.Shortages, decide.Bind(e.Shortages, reason), message)
	return e, true
}

// Accounts count the units, and sum what they ask for beyond their pods. They are valid until the state changes.
func (s *State) Accounts() *accounts.Accounts {
	s.lines.checkGroups()
	return s.roster.accounts
}

// Holdings answer what units hold, and which of their pods may start.
func (s *State) Holdings() holding.Reader { return s.roster.holdings }

// Page copies n units of a queue in its order, after the first skip ones, and says how many are in line. It costs
// O(log of that, and n), and puts nothing in words; Explain does, for one unit.
func (s *State) Page(queue string, skip, n int) (page []answers.Row, waiting int) {
	q, ok := s.lines.byName[queue]
	if !ok {
		return nil, 0
	}
	waiting = q.line.Len()
	if n = min(n, waiting-skip); n <= 0 {
		return nil, waiting
	}
	s.lines.refresh()
	page = make([]answers.Row, 0, n)
	found := findings{why: newWhy(s), of: map[*group]unit.Finding{}}
	q.line.WalkAt(skip, func(u *record) bool {
		page = append(page, found.row(u, skip+len(page)+1))
		return len(page) < n
	})
	return page, waiting
}

// Rows copies the same as Page for these units, if they exist. A unit that is not in line has no position, and a parked
// one has the reason. The cost is O(log n) for each.
func (s *State) Rows(keys []string) map[string]answers.Row {
	s.lines.refresh()
	rows := make(map[string]answers.Row, len(keys))
	found := findings{why: newWhy(s), of: map[*group]unit.Finding{}}
	for _, key := range keys {
		u, ok := s.roster.units[key]
		if !ok {
			continue
		}
		position := 0
		if u.group != nil {
			position = u.group.Line().Position(u)
		}
		rows[key] = found.row(u, position)
	}
	return rows
}

func (f *findings) row(u *record, position int) answers.Row {
	r := answers.Row{
		Key: u.spec.Key, Quota: u.spec.Quota, Position: position, Priority: u.spec.Priority, Created: u.spec.Created,
		Request: wishesOf(u), Holding: u.holding,
	}
	switch {
	case u.group != nil:
		r.Finding = f.at(u.group)
		if u == u.group.Head() { // the search was for that
			r.DryRun = u.group.Notes.obstacle.DryRun
		}
	case u.waits():
		r.Finding = unit.Finding{Reason: u.parked}
	}
	return r
}

// Victims counts, for each queue with dryRun or observed units, the units that would lose what they hold without that,
// each once. It looks at about 10,000 of them.
func Victims(s *State) map[string]int {
	counts := map[string]int{}
	for name, q := range s.lines.byName {
		if q.spec.Preemption.DryRun || q.groups[roundOfObserved] > 0 {
			var victims reclaim.Victims
			q.line.Heads(func(g *group) bool { return victims.Add(g.Notes.obstacle.DryRun) })
			counts[name] = victims.Len()
		}
	}
	return counts
}

// PodsUse is what the pods of a unit on nodes ask for, those that are leaving aside. It costs O(1), however many pods
// there are.
func (s *State) PodsUse(unitKey string) resources.List {
	u, ok := s.roster.units[unitKey]
	if !ok {
		return resources.List{}
	}
	return s.roster.holdings.Charges(unitKey, u.spec.Quota).Assigned
}

// Audit returns the audit of the state as it is. Between two calls it finds nothing.
func (s *State) Audit() Audit { return Audit{s.lines, s.roster} }

// Telling says which units are to be told why they wait, and when.
func (s *State) Telling() Telling { return Telling{s.roster} }
