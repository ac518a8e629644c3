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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/gang"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// roster has all units, and keeps each where its object and the checks say: in line, parked, holding quota, or over.
// What follows from that it keeps as well: what units hold, the accounts, what is due.
type roster struct {
	cfg        Config
	rules      life.Config
	extensions extensions
	holdings   *holding.Book
	tree       *capacity.Tree
	owners     *owner.Book[*record]
	units      map[string]*record // by key
	queues     queues
	gangs      *gang.Book[*record]
	ranking    ranking
	accounts   *accounts.Accounts

	// touched are the units of which a fact has changed, or that others depend on, in order.
	touched []*record
	// due are the units that are to be looked at at a time: something is over then, or is to be written.
	due     *ordered.Due[*record]
	telling *schedule
	// unsettled are queues of which units have to come into line, or out of it, because of its bounds.
	unsettled map[*queueRecord]struct{}

	// changed: something that a pass looks at is not what it was in the last one.
	changed bool
	// structure is that of the tree when all groups were checked last. quotasChanged is when a quota changed last.
	structure     int64
	quotasChanged time.Time

	// panics of extensions that were recovered since the last Decide.
	panics int
	// looking are the facts of the unit that is looked at.
	looking life.Facts
	// looked is the unit that is being looked at. Between two calls it is nil, unless the last one panicked.
	looked *record
}

func newRoster(cfg Config) *roster {
	order := cfg.Order
	if order == nil {
		order = FairOrder{}
	}
	l := ledger.New()
	tree := capacity.NewTree(l)
	held := holding.NewBook(l, tree)
	r := &roster{
		cfg: cfg, extensions: cfg.Checks, holdings: held, tree: tree, owners: owner.NewBook[*record](),
		units: map[string]*record{}, queues: newQueues(cfg.Policies, held), accounts: accounts.New(tree),
		gangs:     gang.NewBook(func(u *record) *unit.Unit { return &u.spec }),
		rules:     life.Config{Timeouts: cfg.Timeouts, Selects: cfg.Selects},
		due:       ordered.NewDue(func(u *record) ordered.Moment { return u.dueAt }, compareAges),
		unsettled: map[*queueRecord]struct{}{},
		ranking:   newRanking(order),
	}
	r.telling = newSchedule(&cfg, r.sayingOf)
	return r
}

// replay applies an object to a unit with no write in flight, if it says anything new.
func (r *roster) replay(now time.Time, u *record, in *unit.Unit) {
	if u.stage == stageAdmitted && in.Phase.Holds() {
		u.observed = true
	}
	u.stay(in)
	if !unit.SamePointee(u.spec.Said, in.Said) {
		u.spec.Said = in.Said
		r.telling.Heard(now, u, in.Said)
	}
	if !u.spec.Same(in) {
		r.apply(now, u, *in)
	}
}

// apply makes the object the truth about a unit with no write in flight.
func (r *roster) apply(now time.Time, u *record, in unit.Unit) {
	if u.stage == stageAdmitted && !u.observed && in.Phase.Waits() && in.Attempts < u.attempt {
		// Older than the admission that was confirmed: only a repetition can say this.
		in.Phase, in.Attempts, in.Held = u.spec.Phase, u.attempt, u.spec.Held
		in.HeldPods, in.Recorded = u.spec.HeldPods, u.spec.Recorded
		in.Admitted, in.Checks = u.spec.Admitted, u.spec.Checks
		in.Quota, in.MovesTo = u.spec.Quota, u.spec.MovesTo
		if in.Sizes != nil {
			in.Become(u.spec.Request, u.spec.Pods)
		}
	} else if u.stage == stageAdmitted {
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
		r.contest(&in, func() { r.owners.Change(u, update) }) // what is known of the job stays known
	default: // it stands for the former job no longer
		r.contest(&former, func() { r.contest(&in, func() { r.owners.Change(u, update) }) })
	}
	r.units[in.Key] = u
	r.queues.record(in.Queue).refs++
	r.touch(u)
	r.settle(now)
	if known {
		q := r.queues.record(former.Queue)
		q.refs--
		r.prune(q)
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
		r.changed = r.holdings.Keep(unitKey, nil) || r.changed
		return
	}
	if left && u.holding {
		u.own().left = now // a new process does not know it, and counts from the admission
	}
	r.changed = true
	r.touch(u)
	r.settle(now)
}

// endReplacements counts the pods again whose time is over.
func (r *roster) endReplacements(now time.Time) {
	for unitKey, p, some := r.holdings.Late(now); some; unitKey, p, some = r.holdings.Late(now) {
		r.podsChanged(now, unitKey, r.holdings.SetPod(now, unitKey, p))
	}
}
