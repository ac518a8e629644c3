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
	"sort"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
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
	// pending are the bounds of the line.
	pending *backlog.Bounds[*record, notes]

	// rank, while ranked, is its place in the ranking.
	rank   QueueRank
	ranked bool
}

// currentRank is false if no unit of the queue is eligible.
func (q *queueRecord) currentRank() (QueueRank, bool) {
	first, ok := q.line.Head()
	if !ok {
		return QueueRank{}, false
	}
	ofMin, ofMax := first.Notes.ask.Leaf().Shares()
	return QueueRank{
		Name: q.name, Priority: q.spec.Priority, ShareOfMin: ofMin, ShareOfMax: ofMax, Head: first.Head().Item(),
	}, true
}

// shareChanged says whether a ranked queue has another share than its rank says.
func (q *queueRecord) shareChanged() bool {
	first, ok := q.line.Head()
	if !ok {
		return true
	}
	ofMin, ofMax := first.Notes.ask.Leaf().Shares()
	return ofMin != q.rank.ShareOfMin || ofMax != q.rank.ShareOfMax
}

// queues are those that exist or that a unit names.
type queues struct {
	byName   map[string]*queueRecord
	policies map[string]queue.Factory
	holdings *holding.Book
}

func newQueues(extensions map[string]queue.Factory, held *holding.Book) queues {
	policies := queue.Builtin()
	for name, factory := range extensions {
		policies[name] = factory
	}
	return queues{byName: map[string]*queueRecord{}, policies: policies, holdings: held}
}

// record finds or makes the queue of a name.
func (qs *queues) record(name string) *queueRecord {
	q, ok := qs.byName[name]
	if !ok {
		q = &queueRecord{
			name: name, line: backlog.NewLine[*record, notes](qs.policies[defaultPolicy](0)),
		}
		q.pending = q.newBounds()
		qs.byName[name] = q
	}
	return q
}

// defaultPolicy orders the units of a queue whose policy is not known.
const defaultPolicy = "Priority"

// prune forgets a queue that does not exist and that no unit names. The next decision takes it out of the ranking, if
// one has put it there.
func (r *roster) prune(q *queueRecord) {
	if q.known || q.refs > 0 {
		return
	}
	delete(r.queues.byName, q.name)
	if !q.ranked {
		delete(r.ranking.touched, q)
	}
}

// names of all queues, sorted.
func (qs *queues) names() []string {
	out := make([]string, 0, len(qs.byName))
	for name := range qs.byName {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// policyOf is the policy that the queue names; the default where that is not known, or panics while it is made. Then
// the units are parked.
func (qs *queues) policyOf(q *queueRecord) (policy queue.Policy, fault string) {
	policy = qs.policies[defaultPolicy](q.spec.Threshold)
	factory, ok := qs.policies[q.spec.Policy]
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

// knownPolicies in words.
func (qs *queues) knownPolicies() string {
	names := make([]string, 0, len(qs.policies))
	for name := range qs.policies {
		names = append(names, name)
	}
	sort.Strings(names)
	return unit.Quoted(names)
}

// queueChanged brings the units of a queue in line with its object.
func (r *roster) queueChanged(now time.Time, q *queueRecord, reorder bool) {
	if reorder {
		r.reorder(now, q)
	}
	for _, key := range r.holdings.Holders(q.name) { // the queue says for how long they may
		r.touch(r.units[key])
	}
	for _, g := range q.line.Groups() {
		r.checkAgain(now, g)
	}
	r.settle(now)
	r.ranking.touch(q)
	r.changed = true
}

// reorder moves all units of a queue into the order of its present policy, and into the line as its bounds say.
func (r *roster) reorder(now time.Time, q *queueRecord) {
	units := make([]*record, 0, q.line.Len())
	q.line.Walk(func(u *record) bool { units = append(units, u); return true })
	units = append(units, q.pending.Outside()...)
	for _, u := range units {
		r.unplace(u)
	}
	q.pending = q.newBounds()
	delete(r.unsettled, q)
	policy, fault := r.queues.policyOf(q)
	if q.fault = fault; fault != "" {
		r.panics++
	}
	q.line.Reorder(policy)
	for _, u := range units {
		r.touch(u)
	}
	r.settle(now)
}
