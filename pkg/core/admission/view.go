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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Releases says whether pods of the unit may go: it is admitted, confirmed, and waits for nothing else (I3). Which of
// them may, Granted says.
func (s *State) Releases(unitKey string) bool {
	u, ok := s.roster.units[unitKey]
	return ok && u.confirmed() && u.spec.Phase.Releases()
}

// RunsUntil is when a unit has run for as long as it may; zero for never. Its pods end at that time.
func RunsUntil(s *State, unitKey string) time.Time {
	return Of(s, unitKey, time.Time{}, life.RunsUntil)
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
	return ok && u.stage.inFlight()
}

// Live says whether the consumer was last reported to be live.
func (s *State) Live(c unit.Consumer) bool { return s.roster.owners.IsLive(c) }

// Line visits the waiting units of a queue in its order, with their positions from 1, until visit returns false; those
// that are parked are not open. visit must not change units, nor the state. A visit costs O(1).
func (s *State) Line(queue string, visit func(position int, u *unit.Unit, open bool) bool) {
	q, ok := s.lines.byName[queue]
	if !ok {
		return
	}
	position := 0
	q.line.Walk(func(u *record) bool {
		position++
		return visit(position, &u.spec, u.group.Open())
	})
}

// Why tells the state of any unit in words. The reason is empty for a unit that is admitted or over.
func (s *State) Why(unitKey string) (unit.Reason, string, bool) {
	u, ok := s.roster.units[unitKey]
	if !ok {
		return "", "", false
	}
	switch u.stage {
	case stageAdmitting:
		return unit.ReasonPending, "its admission is being written; reserved: " + u.held.String(), true
	case stageAdmitted:
		if u.spec.Phase == unit.PhaseReserved {
			return unit.ReasonWaitingForChecks, life.WaitsForChecks(s.roster.facts(time.Time{}, u)), true
		}
		if u.spec.Observed {
			return "", "would be admitted", true
		}
		if !hasReason(u) {
			return "", "admitted; holds " + u.held.Words(), true
		}
	case stageResizing:
		return "", "admitted; what it holds is being written: " + u.next.Words(), true
	case stageReleasing:
		return "", "passed its admission checks; that is being written", true
	case stageEvicting:
		return "", "its admission is being taken back; holds " + u.held.Words(), true
	case stageDone:
		return "", fmt.Sprintf("over: %s", u.spec.Phase), true
	case stageWaiting, stageTaking:
	}
	s.lines.refresh()
	found, message := newWhy(s).waiting(u)
	return found.Reason, u.reader().Would(message), true
}

// LimitOf is the limit of a level, and what pods outside of units are measured against there; see capacity.Tree.
func LimitOf(s *State, level string) (limit, promised resources.List) {
	s.lines.checkGroups()
	return s.lines.tree.LimitOf(level)
}

// MovedLimits returns, once and in order, the levels whose limit may have changed.
func MovedLimits(s *State) []string { return s.lines.tree.Moved() }

// Queues lists the names of all queues that exist or that a unit names, sorted.
func (s *State) Queues() []string { return s.lines.names() }

// Explain says why a unit waits. For any other unit it says what Why does. It compares the unit with the claims that
// the last pass made ahead of it, behind a head too, and costs O(depth x (resources + claims)), however many units
// there are.
func (s *State) Explain(unitKey string) (Explanation, bool) {
	reason, message, ok := s.Why(unitKey)
	if !ok {
		return Explanation{}, false
	}
	e := Explanation{Reason: reason, Message: message}
	u := s.roster.units[unitKey]
	if !u.stage.waits() && u.group == nil {
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
	decide.Bind(e.Shortages, reason)
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
func (s *State) Page(queue string, skip, n int) (page []Row, waiting int) {
	q, ok := s.lines.byName[queue]
	if !ok {
		return nil, 0
	}
	waiting = q.line.Len()
	if n = min(n, waiting-skip); n <= 0 {
		return nil, waiting
	}
	s.lines.refresh()
	page = make([]Row, 0, n)
	found := findings{why: newWhy(s), of: map[*group]unit.Finding{}}
	q.line.WalkAt(skip, func(u *record) bool {
		page = append(page, found.row(u, skip+len(page)+1))
		return len(page) < n
	})
	return page, waiting
}

// Rows copies what Page does of these units, as far as they exist. Those that are not in line have no position; one
// that is parked has the reason. It costs O(log n) for each.
func (s *State) Rows(keys []string) map[string]Row {
	s.lines.refresh()
	rows := make(map[string]Row, len(keys))
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

func (f *findings) row(u *record, position int) Row {
	r := Row{
		Key: u.spec.Key, Quota: u.spec.Quota, Position: position, Priority: u.spec.Priority, Created: u.spec.Created,
		Request: wishesOf(u), Holding: u.holding,
	}
	switch {
	case u.group != nil:
		r.Finding = f.at(u.group)
		if u == u.group.Head() { // the search was for that
			r.DryRun = u.group.Notes.obstacle.DryRun
		}
	case u.stage.waits():
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
