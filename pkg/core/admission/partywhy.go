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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Why a unit waits that is decided with others of its gang group, in words and in numbers.

const withGroup = "with the other jobs of its gang group: "

const waitsForGroup = "it is admitted together with the other jobs of its gang group (annotation " +
	"gang.scheduling.koordinator.sh/groups), and not all of them can be: each of the gangs needs a job that waits in a " +
	"queue with room for all of them"

func (w *why) together(u *record, y *party) (unit.Finding, string) {
	if !slices.Contains(y.members, u) || !w.allMet(y) || !w.pass.roomForAll(y) {
		return unit.Finding{Reason: unit.ReasonWaitingForGroup}, waitsForGroup
	}
	if never := y.asks.Never(w.tree); never.Reason != "" {
		found := unit.Finding{
			Reason: never.Reason, Level: never.Limit.Level().Name(), Resource: w.tree.Resource(never.Number),
		}
		return found, tooMuch(u, found, never)
	}
	found, message := w.explain(u)
	return found, withGroup + message
}

func tooMuch(u *record, found unit.Finding, never decide.Excess) string {
	return fmt.Sprintf("%s: %s: the jobs of its gang group ask together for %s, and there are never more than %s",
		place(u.spec.Quota, found.Level, never.Limit.IsMin()), found.Resource,
		resources.Format(found.Resource, never.Request), resources.Format(found.Resource, never.Most))
}

// ofGroup, in words, of a member of a party.
func (about *subject) ofGroup(g *group) string {
	level := levelWords(g.Key().Quota, about.Level)
	if !slices.ContainsFunc(g.Notes.ask.Route.Levels, func(l *capacity.Level) bool { return l.Name() == about.Level }) {
		level = fmt.Sprintf("quota %q, on which another of them draws,", about.Level)
	}
	switch about.Reason {
	case unit.ReasonWaitingForGroup:
		return waitsForGroup
	case unit.ReasonExceedsMax:
		what := "use as much " + about.Resource
		if about.Resource == resources.Jobs {
			what = "have as many admitted jobs"
		}
		return fmt.Sprintf("%s may never %s as the jobs of its gang group ask for together", level, what)
	case unit.ReasonExceedsMin:
		return fmt.Sprintf("%s is not guaranteed as much %s as the jobs of its gang group ask for together that are "+
			"non-preemptible: that is above its min", level, about.Resource)
	default:
		return withGroup + about.at(level, g)
	}
}

// allMet says whether a pass meets all members.
func (w *why) allMet(y *party) bool {
	for _, u := range y.members {
		g := u.group
		if !g.Open() || g.Notes.queue.whyFull(g) != "" {
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
	return w.ranking.compare(q, of) < 0
}
