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
	"maps"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/gang"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/places"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/rightful"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shadow"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// line and group are those of the backlog, for the units and the notes of this package.
type (
	line  = backlog.Line[*record, notes]
	group = backlog.Group[*record, notes]
)

// queueRecord is a queue: its object, if there is one, and the units that name it.
type queueRecord struct {
	name  string
	known bool
	spec  queue.Spec
	// fault says why the policy of spec could not be made.
	fault string
	// refs counts the units that name the queue.
	refs int
	line *line
	// pending are the bounds of the line, and places those of its units that hold quota.
	pending *backlog.Bounds[*record, notes]
	places  places.Bounds

	// groups counts those of the line, by the rounds in which a pass looks at them.
	groups [rounds]int
	first  *record // see noteFirst
	// place of it among the queues that are served.
	place queue.Place
}

// currentRank is false if no unit of the queue is eligible.
func (q *queueRecord) currentRank() (queue.Rank, bool) {
	first, ok := q.line.Head()
	if !ok {
		return queue.Rank{}, false
	}
	rank := queue.Rank{Name: q.name, Priority: q.spec.Priority, Overdue: q.overdue(), Head: first.Head().Item()}
	rank.ShareOfMin, rank.ShareOfLimit = first.Notes.ask.Leaf().Shares()
	return rank, true
}

// noteFirst finds the first unit of those that could rightfully get what they ask for. It looks at all before it, as
// the whole pass does that has just ended. It says whether the rank of the queue changes.
func (q *queueRecord) noteFirst(rights *rightful.Book) (changed bool) {
	before := q.overdue()
	q.first = nil
	q.line.Heads(func(g *group) bool {
		if !g.Notes.ask.TooLarge(rights) {
			q.first = g.Head()
		}
		return q.first == nil
	})
	return q.overdue() != before
}

// overdue is since when the unit waits that was first in the last whole pass, if that is too long.
func (q *queueRecord) overdue() (since time.Time) {
	if u := q.first; u != nil && u.group != nil && u.group.Line() == q.line && u.group.Open() {
		since = u.front.Overdue()
	}
	return since
}

// rankChanged says whether a ranked queue has another rank than it was placed with.
func (l *lines) rankChanged(q *queueRecord) bool {
	rank, eligible := q.currentRank()
	return !eligible || rank != q.place.Rank
}

// lines are the queues that exist or that a unit names, and the units in line in each.
type lines struct {
	byName     map[string]*queueRecord
	policies   map[string]queue.Factory
	extensions queue.Checks
	ranking    queue.Ranking[*queueRecord]
	tree       *capacity.Tree
	rights     *rightful.Book
	// holdings are read, to know which queues are full.
	holdings *holding.Book
	gangs    *gang.Book[*record]
	// shadow is of the observed units.
	shadow   shadow.Book
	accounts *accounts.Accounts
	telling  *schedule
	// unsettled are queues of which units have to come into line, or out of it, because of their bounds.
	unsettled map[*queueRecord]struct{}
	// structure is that of the tree when all groups were checked last. quotasChanged is when a quota changed last.
	structure     int64
	quotasChanged time.Time
	progress      *progress
}

func newLines(cfg *Config, tree *capacity.Tree, held *holding.Book, p *progress) *lines {
	order := cfg.Order
	if order == nil {
		order = queue.FairOrder{}
	}
	policies := queue.Builtin()
	for name, factory := range cfg.Policies {
		policies[name] = factory
	}
	return &lines{
		byName: map[string]*queueRecord{}, policies: policies, extensions: cfg.Checks, tree: tree,
		rights:   rightful.New(tree),
		ranking:  queue.NewRanking(order, func(q *queueRecord) *queue.Place { return &q.place }),
		holdings: held, gangs: gang.NewBook(func(u *record) *unit.Unit { return u.spec }), accounts: accounts.New(tree),
		unsettled: map[*queueRecord]struct{}{}, progress: p,
	}
}

// queue finds or makes the queue of a name.
func (l *lines) queue(name string) *queueRecord {
	q, ok := l.byName[name]
	if !ok {
		q = &queueRecord{name: name, line: backlog.NewLine[*record, notes](l.policies[defaultPolicy](0))}
		q.become(noObject, false)
		q.pending = q.newBounds()
		l.byName[name] = q
	}
	return q
}

// defaultPolicy orders the units of a queue whose policy is not known.
const defaultPolicy = "Priority"

// prune forgets a queue that does not exist and that no unit names. The next decision takes it out of the ranking, if
// one has put it there.
func (l *lines) prune(q *queueRecord) {
	if q.known || q.refs > 0 {
		return
	}
	delete(l.byName, q.name)
	l.ranking.Forget(q)
}

// names of all queues, sorted.
func (l *lines) names() []string { return slices.Sorted(maps.Keys(l.byName)) }

// policyOf is the policy that the queue names; the default where that is not known, or panics while it is made. Then
// the units are parked.
func (l *lines) policyOf(q *queueRecord) (policy queue.Policy, fault string) {
	policy = l.policies[defaultPolicy](q.spec.Threshold)
	factory, ok := l.policies[q.spec.Policy]
	if !q.known || !ok {
		return policy, ""
	}
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Sprintf("internal error while policy %q of queue %q was made: %v", q.spec.Policy, q.name, r)
		}
	}()
	return factory(q.spec.Threshold), ""
}
