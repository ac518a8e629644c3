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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/choice"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/eligibility"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/telling"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// notes are facts about a group in addition to its units. The fields that a pass reads are first, together.
type notes struct {
	// ask is that of each unit of the group.
	ask decide.Ask
	// others are asks in the other quotas in which the unit may be admitted.
	others []decide.Ask
	// preempts: the unit has victims, or is about to. inGangGroup is that of the key, which no pass copies for each head.
	preempts, inGangGroup bool
	// answer of the checks of extensions.
	answer queue.Answer
	// cause is what the last whole pass found that keeps the head from going, behind the unit ahead that blocks it.
	cause  cause
	behind *record

	queue *queueRecord
	// parked says why no unit of the group is eligible; the group is not open then.
	parked unit.Finding
	// searched is when the last search for victims of the head was made, and obstacle why it found none.
	searched time.Time
	obstacle reclaim.Obstacle
	// pool is of the units that wait, in the accounts.
	pool accounts.Pool
	// subject is what each unit of the group is told of; none while that is not known. saying is the subject in words,
	// once somebody has asked for it. topic belongs to telling.
	subject subject
	saying  *unit.Saying
	topic   telling.Topic[*record]
}

// finding is the obstacle of the head: that of the last pass or, for a unit that may preempt, that of the search.
func (n *notes) finding(tree *capacity.Tree) unit.Finding {
	if found := n.obstacle.Finding(); found.Reason != "" {
		return found
	}
	return n.cause.Finding(tree)
}

// isParked says that no unit of the group is eligible.
func (n *notes) isParked() bool { return n.parked.Reason != "" }

// checkAgain takes the checks of a whole group again after what they depend on has changed.
func (l *lines) checkAgain(now time.Time, g *group) {
	n := &g.Notes
	a := &n.ask
	a.Need, a.Own = l.tree.Need(a.Request, a.Jobs), l.tree.Need(a.Total.Sub(a.Request), 0)
	a.Route = l.tree.Route(g.Key().Quota)
	a.Limits, n.cause, n.obstacle = a.Route.Limits(a.NonPreemptible), cause{}, reclaim.Obstacle{}
	listed, _ := namesOf(g)
	n.others = choice.Asks(l.tree, a, g.Head().spec.Request, listed)
	x := l.exclusion(g)
	if x.Reason != "" {
		setSubject(l.telling, now, g, subject{Finding: x.Finding, words: x.Message})
	}
	if x.Finding == n.parked && g.Open() != n.isParked() {
		return
	}
	n.parked = x.Finding
	g.SetOpen(!n.isParked())
	l.accounts.SetOpen(&n.pool, accounts.Pair{Queue: n.queue.name, Quota: g.Key().Quota}, g.Open())
	l.headChanged(n.queue)
	if !n.isParked() {
		setSubject(l.telling, now, g, subject{})
	}
}

// exclusion is what keeps all units of a group from being admitted.
func (l *lines) exclusion(g *group) eligibility.Exclusion {
	q := g.Notes.queue
	f := eligibility.Facts{
		QueueName: q.name, QueueKnown: q.known, Queue: &q.spec, Policies: l.policies, PolicyFault: q.fault,
		Ask: &g.Notes.ask, Unchecked: g.Key().Unchecked,
	}
	if names, itself := namesOf(g); itself {
		f.Listed = choice.Listed(l.tree, names)
	}
	return eligibility.Check(f)
}

// namesOf a group are the other quotas in which its units may be admitted. A unit that holds quota, preempts, or is
// decided with others has none. Pods of an observed one are charged to its own.
func namesOf(g *group) (names []string, itself bool) {
	if n := &g.Notes; g.Head().holding || n.preempts || n.inGangGroup || n.ask.Observed {
		return nil, false
	}
	return choice.Names(g.Head().spec, &g.Notes.queue.spec)
}

// ask what the checks of extensions say to the head of a group, once until something has them asked again.
func (l *lines) ask(g *group) queue.Answer {
	g.Notes.answer = l.extensions.Ask(g.Head().spec, g.Notes.answer)
	return g.Notes.answer
}

// checkGroups checks all groups if paths, or the greatest possible amounts, have changed. That is computed on demand,
// because at the start quotas arrive one by one.
func (l *lines) checkGroups() {
	if l.structure == l.tree.Structure() {
		return
	}
	for _, name := range l.names() {
		for _, g := range l.byName[name].line.Groups() {
			l.checkAgain(l.quotasChanged, g)
		}
	}
	l.structure = l.tree.Structure()
}

// refresh brings all that follows from other things up to date: which groups are open, amounts, the order of queues.
func (l *lines) refresh() {
	l.checkGroups()
	l.tree.Refresh()
	l.progress.changed = l.tree.LimitsMoved() || l.progress.changed
	for _, q := range l.ranking.Moved(l.rankChanged) {
		rank, eligible := q.currentRank()
		before := l.progress.looked
		if eligible {
			first, _ := q.line.Head()
			l.progress.looked = first.Head()
		}
		l.ranking.Place(q, rank, eligible)
		l.progress.looked = before
	}
}
