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
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Admitted says whether the unit is admitted and its write is confirmed.
func (s *State) Admitted(unitKey string) bool {
	u, ok := s.units[unitKey]
	return ok && (u.stage == stageAdmitted || u.stage == stageEvicting)
}

// Releases says whether pods of the unit may go: it is admitted, its write is confirmed, and its phase releases.
func (s *State) Releases(unitKey string) bool {
	return s.Admitted(unitKey) && s.units[unitKey].spec.Phase.Releases()
}

// InFlight says whether a write of the unit is not settled yet.
func (s *State) InFlight(unitKey string) bool {
	u, ok := s.units[unitKey]
	return ok && u.inFlight()
}

// Position of a waiting unit in its queue from 1, in O(log n). Units that are parked by themselves have none;
// units that their queue or quota stops keep theirs.
func (s *State) Position(unitKey string) (int, bool) {
	u, ok := s.units[unitKey]
	if !ok || u.group == nil {
		return 0, false
	}
	return u.group.queue.waiting.Rank(u.group.queue.spot(u)) + 1, true
}

// First lists the first n waiting units of a queue, in O(n log n).
func (s *State) First(queue string, n int) []Waiting {
	q, ok := s.queues[queue]
	if !ok || n <= 0 {
		return nil
	}
	s.refreshRanks()
	var out []Waiting
	q.waiting.Walk(func(at spot) bool {
		u := at.unit
		reason, message := s.whyInGroup(u)
		out = append(out, Waiting{Unit: u.spec.unit(), Position: len(out) + 1, Reason: reason, Message: message})
		return len(out) < n
	})
	return out
}

// Line visits the waiting units of a queue in its order, with their positions from 1, until visit returns false. What it is
// given is valid during the visit, and the state must not be changed meanwhile. A visit costs O(1); First adds reasons, which cost more.
func (s *State) Line(queue string, visit func(position int, u *Unit) bool) {
	q, ok := s.queues[queue]
	if !ok {
		return
	}
	position := 0
	q.waiting.Walk(func(at spot) bool {
		position++
		s.lined = at.unit.spec.unit()
		return visit(position, &s.lined)
	})
}

// Why tells the state of any unit in words. The reason is empty for a unit that is admitted or over.
func (s *State) Why(unitKey string) (Reason, string, bool) {
	u, ok := s.units[unitKey]
	if !ok {
		return "", "", false
	}
	switch u.stage {
	case stageAdmitting:
		return ReasonPending, "its admission is being written; reserved: " + u.held.String(), true
	case stageAdmitted:
		return "", "admitted; holds " + u.held.String(), true
	case stageEvicting:
		return "", "its admission is being taken back; holds " + u.held.String(), true
	case stageDone:
		return "", fmt.Sprintf("over: %s", u.spec.Phase), true
	case stageWaiting:
	}
	s.refreshRanks()
	reason, message := s.whyWaiting(time.Time{}, u)
	return reason, message, true
}

// whyWaiting is the reason of a unit that waits, with the numbers of now.
func (s *State) whyWaiting(_ time.Time, u *unit) (Reason, string) {
	if u.group == nil {
		return u.parked, u.parkedMessage
	}
	return s.whyInGroup(u)
}

func (s *State) whyInGroup(u *unit) (Reason, string) {
	g := u.group
	if reason, message := s.checkGroup(g); reason != "" {
		return reason, message
	}
	if g.queue.full {
		return ReasonQueueFull, fmt.Sprintf("queue %q has %d admitted units, as many as it may have (%d)",
			g.key.queue, g.queue.holding, g.queue.spec.MaxAdmitted)
	}
	v, fault := s.judge(g, u)
	if fault != "" {
		return ReasonInternalError, fault
	}
	return v.reason(), s.explain(u, &v)
}

// Counts of all queue and quota pairs, sorted.
func (s *State) Counts() []QueueCounts {
	out := make([]QueueCounts, 0, len(s.counts))
	for _, c := range s.counts {
		out = append(out, *c)
	}
	return sortCounts(out)
}

// ChangedCounts returns, once, the counts of the pairs where they changed since the last call, sorted; zeros where no unit
// is any more.
func (s *State) ChangedCounts() []QueueCounts {
	out := make([]QueueCounts, 0, len(s.countsChanged))
	for p := range s.countsChanged {
		if c, ok := s.counts[p]; ok {
			out = append(out, *c)
		} else {
			out = append(out, QueueCounts{Queue: p.queue, Quota: p.quota})
		}
	}
	clear(s.countsChanged)
	return sortCounts(out)
}

func sortCounts(list []QueueCounts) []QueueCounts {
	slices.SortFunc(list, func(a, b QueueCounts) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Quota, b.Quota))
	})
	return list
}

// CountsOf sums the counts of a queue over its quotas. O(1): kept incrementally.
func (s *State) CountsOf(queue string) QueueCounts {
	if c, ok := s.countsOf[queue]; ok {
		return *c
	}
	return QueueCounts{Queue: queue}
}

// Outstanding of a level: what admitted units hold beyond their assigned pods.
func (s *State) Outstanding(level string) resources.List { return s.ledger.Outstanding(level) }
