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
	if never, at := w.never(y); never != "" {
		return w.tooMuch(u, y, never, at)
	}
	found, message := w.explain(u)
	return found, withGroup + message
}

func (w *why) tooMuch(u *record, y *party, never unit.Reason, at verdict) (unit.Finding, string) {
	found := unit.Finding{Reason: never, Level: at.short.Level().Name(), Resource: w.tree.Resource(at.shortNumber)}
	i := slices.IndexFunc(y.asks, func(a partyAsk) bool { return a.limit == at.short })
	most, _ := at.short.Most(at.shortNumber)
	return found, fmt.Sprintf("%s: %s: the jobs of its gang group ask together for %s, and there are never more than %s",
		place(u.spec.Quota, found.Level, at.short.IsMin()), found.Resource,
		resources.Format(found.Resource, y.asks[i].need[at.shortNumber]), resources.Format(found.Resource, most))
}

// ofGroup, in words, of a member of a party.
func (about *subject) ofGroup(g *group) string {
	level := levelWords(g.Key().Quota, about.Level)
	if !slices.ContainsFunc(g.Notes.route.Levels, func(l *capacity.Level) bool { return l.Name() == about.Level }) {
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

// asker is a unit in line, and those with which it is decided, as why sees them.
type asker struct {
	unit, place *record
	party       *party
}

func (w *why) askOf(u *record) asker {
	if y := w.partyOf(u); y != nil && slices.Contains(y.members, u) && w.allMet(y) {
		return asker{u, w.last(y), y}
	}
	return asker{unit: u, place: u}
}

func (a *asker) members() []*record {
	if a.party == nil {
		return []*record{a.unit}
	}
	return a.party.members
}

func (a *asker) limits() []*capacity.Limit {
	if a.party == nil {
		return a.unit.group.Notes.limits
	}
	limits := make([]*capacity.Limit, 0, len(a.party.asks))
	for i := range a.party.asks {
		limits = append(limits, a.party.asks[i].limit)
	}
	return limits
}

func (a *asker) has(u *record) bool { return slices.Contains(a.members(), u) }

// leafIs says whether a limit that one of the members has to keep is of the quota that this one draws on.
func (a *asker) leafIs(lim *capacity.Limit) bool {
	return slices.ContainsFunc(a.members(), func(u *record) bool {
		n := &u.group.Notes
		return lim.Level() == n.leaf() && slices.Contains(n.limits, lim)
	})
}

// needs is what is asked for of a resource at a limit, and total what would be held of it then.
func (a *asker) needs(lim *capacity.Limit, resource string) (sum int64) {
	for _, u := range a.members() {
		if slices.Contains(u.group.Notes.limits, lim) {
			sum = resources.SaturatingAdd(sum, u.needs(resource))
		}
	}
	return sum
}

func (a *asker) total(lim *capacity.Limit, resource string) (sum int64) {
	for _, u := range a.members() {
		if slices.Contains(u.group.Notes.limits, lim) {
			amount, _ := u.total().Get(resource)
			sum = resources.SaturatingAdd(sum, amount)
		}
	}
	return sum
}
