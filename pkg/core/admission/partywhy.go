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
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/words"
)

// Why a unit waits that is decided with others of its gang group.

func (w *why) together(u *record, y *party) (unit.Finding, string) {
	if !slices.Contains(y.members, u) || !w.allMet(y) || !w.pass.roomForAll(y) {
		return unit.Finding{Reason: unit.ReasonWaitingForGroup}, words.WaitsForGroup
	}
	if never := y.asks.Never(w.lines.tree); never.Reason != "" {
		found := unit.Finding{
			Reason: never.Reason, Level: never.Limit.Level().Name(), Resource: w.lines.tree.Resource(never.Number),
		}
		return found, words.NeverTogether(u.reader(), found, never.Request, never.Most)
	}
	found, message := w.explain(u)
	return found, words.WithGroup + message
}

// allMet says whether a pass meets all members.
func (w *why) allMet(y *party) bool {
	for _, u := range y.members {
		g := u.group
		if !g.Open() || w.lines.whyFull(g) != "" {
			return false
		}
		if said, fault := w.tryToAsk(g); fault != "" || said.reason != "" {
			return false
		}
	}
	return len(y.members) > 0
}

// last is the member at whose place a party is decided.
func (w *why) last(y *party) *record {
	last := y.members[0]
	for _, u := range y.members[1:] {
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
	return w.lines.ranking.compare(q, of) < 0
}
