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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Admitted says whether the unit is admitted and its write is confirmed.
func (s *State) Admitted(unitKey string) bool {
	u, ok := s.roster.units[unitKey]
	return ok && (u.confirmed() || u.leaves())
}

// Waiting is one row of a queue listing.
type Waiting struct {
	Unit     unit.Unit
	Position int // from 1
	Reason   unit.Reason
	Message  string
}

// Position of a waiting unit in its queue from 1, in O(log n). Units that are parked by themselves have none;
// units that their queue or quota stops keep theirs.
func (s *State) Position(unitKey string) (int, bool) {
	u, ok := s.roster.units[unitKey]
	if !ok || u.group == nil {
		return 0, false
	}
	return u.group.Line().Position(u), true
}

// First lists the first n waiting units of a queue, with reasons.
func (s *State) First(queue string, n int) []Waiting {
	q, ok := s.lines.byName[queue]
	if !ok || n <= 0 {
		return nil
	}
	s.lines.refresh()
	var out []Waiting
	q.line.Walk(func(u *record) bool {
		found, message := newWhy(s).inLine(u)
		out = append(out, Waiting{Unit: *u.spec, Position: len(out) + 1, Reason: found.Reason, Message: message})
		return len(out) < n
	})
	return out
}
