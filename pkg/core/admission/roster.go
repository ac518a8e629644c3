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
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/gang"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// roster has all units, and keeps each where its object and the checks say: in line, parked, holding quota, or over.
// It also keeps holdings, accounts and due times in line with that.
type roster struct {
	cfg   *Config
	units map[string]*record // by key
	lines *lines
	// holdings are what units hold.
	holdings    *holding.Book
	preemptions *preemptions
	owners      *owner.Book[*record]
	gangs       *gang.Book[*record]
	accounts    *accounts.Accounts
	telling     *schedule

	// touched are the units of which a fact has changed, or that others depend on, in order.
	touched []*record
	// due are the units that must be looked at when their time comes: something is over then, or must be written.
	due *ordered.Due[*record]
	// looking are the facts of the unit that is looked at.
	looking  life.Facts
	progress *progress
}

// progress is what all parts of a state say of the decision that they take part in.
type progress struct {
	// progress is shared by all parts of a state that take part in a decision.
	changed bool
	// inVain: a unit has a right to preempt, and no set of victims was enough. Any event of a unit may change that.
	inVain bool
	// panics of extensions that were recovered since the last Decide.
	panics int
	// looked is the unit that is being looked at. Between two calls it is nil, unless the last one panicked.
	looked *record
}

func newRoster(cfg *Config, l *lines, held *holding.Book, p *progress) *roster {
	r := &roster{
		cfg: cfg, units: map[string]*record{}, lines: l, holdings: held, owners: owner.NewBook[*record](),
		gangs: l.gangs, accounts: l.accounts,
		due: ordered.NewDue(func(u *record) ordered.Moment { return u.dueAt }, compareAges), progress: p,
	}
	r.preemptions = newPreemptions(r)
	r.telling = newSchedule(cfg, func(u *record) *unit.Saying { return sayingOf(r, u) })
	l.telling = r.telling
	return r
}

// replay applies an object to a unit with no write in flight, if it says anything new.
func (r *roster) replay(now time.Time, u *record, in *unit.Unit) {
	if u.isAdmitted() && in.Phase.Holds() {
		u.observed = true
	}
	u.stay(in)
	if !unit.SamePointee(u.spec.Said, in.Said) {
		told := *u.spec
		told.Said = in.Said
		u.spec = &told
		r.telling.Heard(now, u, in.Said)
	}
	if !u.spec.Same(in) {
		r.apply(now, u, *in)
	}
}

// apply makes the object the truth about a unit with no write in flight.
func (r *roster) apply(now time.Time, u *record, in unit.Unit) {
	if u.isOlder(&in) {
		transition.Keep(&in, u.spec) // only a repetition can say this
	} else if u.isAdmitted() {
		u.observed = true
	}
	former, known := u.spec, r.units[in.Key] == u
	r.leave(u) // its places depend on what it says
	if !in.Created.Equal(former.Created) {
		r.telling.Cancel(u)
	}
	update := func() { u.becomeAsItSays(&in) }
	switch {
	case !known:
		r.contest(&in, func() {
			update()
			r.owners.Add(u)
		})
	case former.SameJob(&in):
		r.contest(&in, func() { r.owners.Change(u, update) }) // knowledge about the job stays
	default: // the unit stands for the former job no longer
		r.contest(former, func() { r.contest(&in, func() { r.owners.Change(u, update) }) })
	}
	r.units[in.Key] = u
	r.lines.queue(in.Queue).refs++
	r.touch(u)
	r.settle(now)
	if known {
		q := r.lines.queue(former.Queue)
		q.refs--
		r.lines.prune(q)
	}
}

// contest runs f, which may change who stands for the job of a unit, and touches those for whom it does.
func (r *roster) contest(in *unit.Unit, f func()) {
	c := candidateOf(in)
	for _, u := range r.owners.Contest(&c, f) {
		r.touch(u)
	}
}

// podsChanged takes in that pods of a unit have changed; left says that none of them is on a node any more.
func (r *roster) podsChanged(now time.Time, unitKey string, left bool) {
	u, ok := r.units[unitKey]
	if !ok {
		r.progress.changed = r.holdings.Keep(now, unitKey, nil) || r.progress.inVain || r.progress.changed
		r.preemptions.reindex(unitKey, nil)
		return
	}
	if left && u.holding {
		u.own().left = now // a new process does not know it, and counts from the admission
	}
	r.progress.changed = true
	r.touch(u)
	r.settle(now)
}

// endReplacements counts the pods again whose time is over.
func (r *roster) endReplacements(now time.Time) {
	for unitKey, p, some := r.holdings.Late(now); some; unitKey, p, some = r.holdings.Late(now) {
		r.podsChanged(now, unitKey, r.holdings.SetPod(now, unitKey, p))
	}
}

// queueChanged brings the units of a queue in line with its object.
func (r *roster) queueChanged(now time.Time, q *queueRecord, reorder bool) {
	if !q.spec.Preemption.PreemptsNothing() {
		r.preemptions.begin()
	}
	if reorder {
		r.reorder(now, q)
	}
	for _, key := range r.holdings.Holders(q.name) { // the queue says for how long they may
		r.touch(r.units[key])
	}
	for _, g := range q.line.Groups() {
		r.lines.checkAgain(now, g)
	}
	r.settle(now)
	r.lines.ranking.Touch(q, q.name)
	r.progress.changed = true
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
	delete(r.lines.unsettled, q)
	policy, fault := r.lines.policyOf(q)
	if q.fault = fault; fault != "" {
		r.progress.panics++
	}
	q.line.Reorder(policy)
	for _, u := range units {
		r.touch(u)
	}
	r.settle(now)
}

// settleBounds places the units again that may be in line now and were not, or the other way round.
func (r *roster) settleBounds(now time.Time) {
	byName := func(a, b *queueRecord) int { return strings.Compare(a.name, b.name) }
	for len(r.lines.unsettled) > 0 { // once more where units of another queue followed
		for _, q := range slices.SortedFunc(maps.Keys(r.lines.unsettled), byName) {
			for moved := q.pending.Settle(); len(moved) > 0; moved = q.pending.Settle() {
				for _, u := range moved {
					r.touch(u)
				}
				r.settle(now)
			}
			delete(r.lines.unsettled, q)
		}
	}
}
