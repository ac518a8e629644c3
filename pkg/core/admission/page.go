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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Place is one unit in line, copied: it stays true of its moment whatever happens to the state.
type Place struct {
	Key, Quota string
	// Position in the queue from 1.
	Position int
	Priority int32
	Created  time.Time
	// Request is what the unit waits for. Holding: it is admitted, and waits for more than it holds.
	Request resources.List
	Holding bool
	// Finding is what the last pass found of the unit's group. Its reason is never empty.
	unit.Finding
}

// Page copies n units of a queue in its order, after the first skip ones, and says how many are in line. It costs
// O(log of that, and n), and puts nothing in words; Explain does, for one unit.
func (s *State) Page(queue string, skip, n int) (page []Place, waiting int) {
	q, ok := s.lines.byName[queue]
	if !ok {
		return nil, 0
	}
	waiting = q.line.Len()
	if n = min(n, waiting-skip); n <= 0 {
		return nil, waiting
	}
	s.lines.refresh()
	page = make([]Place, 0, n)
	found := findings{why: s.why(), of: map[*group]unit.Finding{}}
	q.line.WalkAt(skip, func(u *record) bool {
		page = append(page, Place{
			Key: u.spec.Key, Quota: u.spec.Quota, Position: skip + len(page) + 1, Priority: u.spec.Priority,
			Created: u.spec.Created, Request: wishesOf(u), Holding: u.holding, Finding: found.at(u.group),
		})
		return len(page) < n
	})
	return page, waiting
}

// Places copies what Page does of these units, as far as they exist. Those that are not in line have no position; one
// that is parked has the reason. It costs O(log n) for each.
func (s *State) Places(keys []string) map[string]Place {
	s.lines.refresh()
	places := make(map[string]Place, len(keys))
	found := findings{why: s.why(), of: map[*group]unit.Finding{}}
	for _, key := range keys {
		u, ok := s.roster.units[key]
		if !ok {
			continue
		}
		p := Place{
			Key: key, Quota: u.spec.Quota, Priority: u.spec.Priority, Created: u.spec.Created, Request: wishesOf(u),
			Holding: u.holding,
		}
		switch {
		case u.group != nil:
			p.Position, p.Finding = u.group.Line().Position(u), found.at(u.group)
		case u.stage == stageWaiting:
			p.Finding = unit.Finding{Reason: u.parked}
		}
		places[key] = p
	}
	return places
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
		return n.cause.Finding(f.why.lines.tree)
	}
	if y := partyOf(f.why.lines.gangs, g.Head()); y != nil {
		found, _ := f.why.together(g.Head(), y)
		return found
	}
	list := f.why.shortages(g.Head())
	reason := decide.ReasonOf(list)
	if binding := decide.Bind(list, reason); binding != nil {
		return unit.Finding{Reason: reason, Level: binding.Level, Resource: binding.Resource}
	}
	return unit.Finding{Reason: reason}
}
