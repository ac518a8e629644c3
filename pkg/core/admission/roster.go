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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// roster has all units, and keeps each where its object and the checks say: in line, parked, holding quota, or over.
// What follows from that it keeps as well: the ledger, the accounts, what is due.
type roster struct {
	cfg        Config
	extensions extensions
	ledger     *ledger.Ledger
	tree       *capacity.Tree
	owners     *owner.Book[*record]
	units      map[string]*record // by key
	queues     queues
	parties    parties
	ranking    ranking
	accounts

	// retries are the units for which something is over at a time: backoff, refusal. evictions are admitted units that
	// must not be.
	retries   *ordered.Due[*record]
	evictions map[*record]struct{}
	// resizes are admitted units that are to hold other than they do, and need not ask for it.
	resizes *ordered.Tree[*record]
	// dequeues are reserved units that have passed their checks.
	dequeues map[*record]struct{}
	telling  telling
	// elections are to be asked for.
	elections owner.Elections
	// shares are those whose units may have to change sides.
	shares map[sharePlace]struct{}

	// remnants are the places that pods keep whose units hold nothing, by the key of the unit.
	remnants map[string]remnant
	leavers  leavers

	// changed: something that a pass looks at is not what it was in the last one.
	changed bool
	// structure is that of the tree when all groups were checked last. quotasChanged is when a quota changed last.
	structure     int64
	quotasChanged time.Time

	// panics of extensions that were recovered since the last Decide.
	panics int
	// looked is the unit that is being looked at. Between two calls it is nil, unless the last one panicked.
	looked *record
}

func newRoster(cfg Config) *roster {
	order := cfg.Order
	if order == nil {
		order = FairOrder{}
	}
	l := ledger.New()
	return &roster{
		cfg: cfg, extensions: cfg.Checks, ledger: l, tree: capacity.NewTree(l), owners: owner.NewBook[*record](),
		units: map[string]*record{}, queues: newQueues(cfg.Policies), parties: newParties(), accounts: newAccounts(),
		retries:   ordered.NewDue(func(u *record) ordered.Moment { return u.retryAt }, compareAges),
		evictions: map[*record]struct{}{}, resizes: ordered.NewTree(compareKeys),
		dequeues: map[*record]struct{}{}, shares: map[sharePlace]struct{}{}, remnants: map[string]remnant{},
		telling: newTelling(&cfg), elections: owner.Elections{}, ranking: newRanking(order),
		leavers: newLeavers(),
	}
}

// replay applies an object to a unit with no write in flight, if it says anything new.
func (r *roster) replay(now time.Time, u *record, in *unit.Unit) {
	if u.stage == stageAdmitted && in.Phase.Holds() {
		u.observed = true
	}
	u.stay(in)
	if r.hear(now, u, in); !u.spec.Same(in) {
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
	update := func() {
		if !in.Created.Equal(former.Created) {
			r.telling.move(u, 0) // its place there depends on it
		}
		u.spec = in
		u.enter(stageOf(&in))
	}
	join := func() {
		r.change(u, func() {
			r.leave(u)
			if known {
				r.owners.Change(u, update) // what is known of the job stays known
			} else {
				update()
				r.owners.Add(u)
			}
			r.units[in.Key] = u
			r.queues.record(in.Queue).refs++
			r.place(now, u)
			r.keepRemnant(in.Key, u)
		})
	}
	if known && !former.SameJob(&in) {
		r.contestOf(now, &former, func() { r.contestOf(now, &in, join) }) // it stands for the former job no longer
	} else {
		r.contestOf(now, &in, join)
	}
	if known {
		q := r.queues.record(former.Queue)
		q.refs--
		r.prune(q)
	}
}

// contest runs f, which may change who stands for the job of a unit, and places those again for whom it does.
func (r *roster) contest(now time.Time, u *record, f func()) { r.contestOf(now, &u.spec, f) }

func (r *roster) contestOf(now time.Time, in *unit.Unit, f func()) {
	c := candidateOf(in)
	before, some := r.owners.Winner(&c)
	f()
	after, still := r.owners.Winner(&c)
	if before == after {
		return
	}
	if name, live := r.owners.NameOf(&c); !live || !c.Managed || name == c.Consumer.Name {
		r.elections.Note(&c) // pods are never of a job whose name is another one
	}
	for _, u := range []*record{before, after} {
		if (u == before && !some) || (u == after && !still) || r.units[u.spec.Key] != u {
			continue
		}
		r.change(u, func() { r.place(now, u) })
	}
}

// change runs f, which changes a unit or what it holds, and keeps the accounts.
func (r *roster) change(u *record, f func()) {
	before := r.look(u)
	r.tally(u, -1)
	f()
	r.tally(u, 1)
	r.grant(u)
	r.looked = before
}

// grant lets so many pods of a unit go as its object says that it holds; none while it is not admitted (I3).
func (r *roster) grant(u *record) {
	if u.confirmed() && u.holding && u.spec.Phase.Releases() {
		r.ledger.Open(u.spec.Key, u.spec.Wants())
	} else {
		r.ledger.Close(u.spec.Key)
	}
}

// place puts a unit where its stage and the checks say. It is called within change.
func (r *roster) place(now time.Time, u *record) {
	former, party := r.parties.seen[u].party, partyKeyOf(&u.spec).party
	news := r.parties.see(u)
	r.changed = news || r.changed
	r.placeAlone(now, u)
	if r.parties.clear(u, r.cleared(u)) || news {
		r.placeHeldBack(now, u, party)
		if former != party {
			r.placeHeldBack(now, u, former)
		}
	}
}

// placeHeldBack places those of a gang group again that wait for others of it, but for the one that is being placed.
func (r *roster) placeHeldBack(now time.Time, u *record, party string) {
	for _, o := range r.parties.heldBackOf(party) {
		if o != u {
			r.change(o, func() { r.placeAlone(now, o) })
		}
	}
}

// placeAlone leaves those of its gang group where they are.
func (r *roster) placeAlone(now time.Time, u *record) {
	switch u.stage {
	case stageWaiting:
		r.placeWaiting(now, u)
	case stageAdmitted:
		r.placeAdmitted(now, u)
	case stageDone:
		r.leave(u)
		r.telling.move(u, 0)
		r.release(u)
	case stageAdmitting, stageEvicting, stageResizing, stageDequeuing:
		// Not touched before its write is settled.
	}
}

func (r *roster) placeWaiting(now time.Time, u *record) {
	r.release(u)
	reason, _ := checkUnit(r, now, u)
	switch {
	case reason != "":
		if u.parked != reason {
			r.leave(u)
			r.park(now, u, reason)
		}
		r.retryAt(u, r.parkedUntil(u))
	case r.takeIn(u):
		if u.group == nil {
			r.unplace(u)
			r.join(now, u)
		}
	case u.parked != unit.ReasonQueueOverflow:
		r.unplace(u)
		r.park(now, u, unit.ReasonQueueOverflow)
	}
}

func (r *roster) park(now time.Time, u *record, reason unit.Reason) {
	u.parked = reason
	r.telling.parked(now, u, reason)
}

// parkedUntil is when a parked unit is to be looked at though nothing happens; zero for never.
func (r *roster) parkedUntil(u *record) time.Time {
	switch u.parked {
	case unit.ReasonBackoff:
		return u.spec.RequeueAt
	case u.refusal.reason:
		return u.refusal.until
	default:
		return time.Time{}
	}
}

// placeAdmitted makes the ledger hold what the unit holds, and asks for its eviction where it must not
// be admitted.
func (r *roster) placeAdmitted(now time.Time, u *record) {
	r.leave(u)
	u.noteOverdue(expiry{})
	var reason unit.Reason
	var gone bool
	if !u.spec.Quarantined {
		reason, _, gone = checkAdmitted(r, u)
	}
	if gone {
		// Nothing runs any more that could use it.
		r.release(u)
	} else {
		r.hold(u, u.spec.Wants())
	}
	var again time.Time
	if reason == "" && !u.spec.Quarantined {
		reason, again = r.placeChecked(now, u)
	}
	if reason == "" {
		var expires time.Time
		reason, expires = r.placeExpiry(now, u)
		again = earlier(again, expires)
	}
	if reason == "" && !u.spec.Quarantined {
		again = earlier(again, r.placeSize(now, u))
	}
	if u.group != nil { // it waits for more
		r.retryAt(u, again)
		return
	}
	if r.telling.move(u, 0); r.isNews(u) {
		r.telling.plan(u, now)
	}
	switch {
	case reason == "":
		r.retryAt(u, again)
	case now.Before(u.refusal.until):
		r.retryAt(u, u.refusal.until)
	default:
		delete(r.dequeues, u)
		r.evictions[u] = struct{}{}
	}
}

// placeExpiry says why an admitted unit has to go for its time, or when it will. Pods that nothing lets go are noted,
// and told.
func (r *roster) placeExpiry(now time.Time, u *record) (reason unit.Reason, at time.Time) {
	expires := r.expiryOf(now, u)
	switch {
	case !expires.over(now):
		if n := r.notice(u); n.over(now) {
			u.noteOverdue(n)
		} else {
			expires = sooner(expires, n)
		}
	default:
		reason = expires.reason
	}
	return reason, expires.at
}

func (u *record) noteOverdue(x expiry) {
	if u.overdue != x {
		u.own().overdue = x
	}
}

// leave takes a unit out of every collection that depends on its place, and of the share of its namespace.
func (r *roster) leave(u *record) {
	r.letOut(u)
	r.unplace(u)
}

func (r *roster) unplace(u *record) {
	if u.group != nil {
		r.part(u)
	}
	u.parked = ""
	r.retryAt(u, time.Time{})
	delete(r.evictions, u)
	r.resizes.Delete(u)
	delete(r.dequeues, u)
	r.parties.unhold(u)
}

func (r *roster) retryAt(u *record, at time.Time) {
	r.retries.Move(u, ordered.MomentOf(at), func(m ordered.Moment) { u.retryAt = m })
}

// join puts an eligible unit into its line.
func (r *roster) join(now time.Time, u *record) {
	q := r.queues.record(u.spec.Queue)
	key, fault := r.groupKey(q, u)
	if fault != "" {
		u.refuse(now, r.cfg.RefusedBackoff, unit.ReasonInternalError, fault)
		r.place(now, u)
		return
	}
	g, isNew := q.line.Join(u, key)
	u.group = g
	if key.Alone != "" {
		r.parties.join(u)
	}
	n := &g.Notes
	n.answer = answer{} // what a check said to an earlier attempt says nothing to this one
	if isNew {
		n.queue, n.nonPreemptible, n.blocks = q, key.NonPreemptible, key.Blocks
		n.total, n.asks, n.places = u.total(), u.asks(), u.places()
		r.checkAgain(now, g)
	}
	if g.Head() == u {
		r.headChanged(q)
	}
	r.telling.joined(now, u)
}

// groupKey of a unit. A policy or a check of an extension that panics is a fault.
func (r *roster) groupKey(q *queueRecord, u *record) (key backlog.Key, fault string) {
	doing := "put in order"
	defer func() {
		if cause := recover(); cause != nil {
			r.panics++
			fault = fmt.Sprintf("internal error while the unit was %s: %v", doing, cause)
		}
	}()
	q.line.Try(u)
	doing = "examined"
	key = backlog.Key{
		Quota: u.spec.Quota, Request: u.asks().Key(), NonPreemptible: u.nonPreemptible(),
		Blocks: q.line.Policy().Blocks(u.spec.Priority), Checks: r.extensions.keys(u),
	}
	if u.holding {
		key.Total, key.Unchecked = u.total().Key(), len(r.admissionChecks(u)) > 0 && r.sizeOf(u).anew
	} else if u.spec.GangGroup != "" {
		key.Alone = u.spec.Key
	} else if s := u.spec.Sizes; s != nil {
		key.Sizes = s.String()
	}
	if q.bounds().MaxAdmitted >= 0 {
		key.Namespace = u.spec.Namespace()
	}
	return key, ""
}

// part takes a unit out of its line.
func (r *roster) part(u *record) {
	g := u.group
	if g.Head() == u {
		r.headChanged(g.Notes.queue)
	}
	if g.Key().Alone != "" {
		r.parties.part(u)
	}
	if g.Part(u); g.Len() == 0 {
		g.Notes.round.leave()
	}
	u.group = nil
}

func (r *roster) headChanged(q *queueRecord) {
	r.ranking.touch(q)
	r.changed = true
}

// hold makes the ledger say that the unit holds this much where its object says. A unit that stays in its quota is not
// released in between: a quota that went is remembered only as long as something is held there.
func (r *roster) hold(u *record, held resources.List) {
	nonPreemptible, growsSince := u.nonPreemptible(), u.growsSince
	if u.holding && u.quota != u.spec.Quota {
		r.release(u)
	}
	r.holdRemnant(u)
	t, q := u.own(), r.queues.record(u.spec.Queue)
	if t.holding {
		t.queue.hold(u, -1)
	}
	q.hold(u, 1)
	if party := partyKeyOf(&u.spec); party != t.party {
		r.parties.hold(t.party, -1)
		r.parties.hold(party, 1)
		t.party, r.changed = party, true
	}
	r.changed = r.changed || t.queue != q
	t.holding, t.quota, t.queue, t.held = true, u.spec.Quota, q, held
	t.keepsMin, t.growsSince = nonPreemptible, growsSince
	changed := r.ledger.Reserve(u.spec.Key, t.quota, held, nonPreemptible)
	if r.ledger.Expect(u.spec.Key, u.expected()) || changed {
		r.tree.Changed(t.quota)
		r.changed = true
	}
}

// release makes the ledger forget what the unit holds.
func (r *roster) release(u *record) {
	if !u.holding {
		return
	}
	t := u.tenure
	r.ledger.Release(u.spec.Key)
	t.queue.hold(u, -1)
	r.parties.hold(t.party, -1)
	t.party = partyKey{}
	q, quota := t.queue, t.quota
	t.holding, t.held, t.quota, t.queue = false, resources.List{}, "", nil
	t.keepsMin, t.growsSince = false, 0
	r.leaveRemnant(u, q, quota)
	r.tree.Changed(quota) // after that: a quota that went is remembered as long as something is held there
	r.changed = true
}

func (r *roster) podsChange(now time.Time, unitKey string, f func() (outstanding bool)) {
	u, ok := r.units[unitKey]
	if !ok {
		f()
		r.keepRemnant(unitKey, nil)
		return
	}
	r.change(u, func() {
		_, assigned := r.ledger.Pods(unitKey)
		if f() {
			r.tree.Changed(u.quota)
		}
		r.podsLeft(now, u, assigned)
		r.keepRemnant(unitKey, u)
		if u.stage == stageAdmitted && u.holding &&
			(u.queue.spec.Drains || u.spec.MovesTo != "" || r.sizeChanged(u) || r.expiryChanged(now, u)) {
			r.place(now, u)
		}
	})
	r.changed = true
}

// look notes that a unit is looked at from here on and returns the one that was before, which the caller puts back when
// he is done. He must not do so in a defer: after a panic the note is to stay. A panic that is not recovered here
// leaves the state half changed. Whoever owns it builds another one from the objects, which say the same again, so that
// it panics again. What is needed to get out of that is who was being looked at.
func (r *roster) look(u *record) (before *record) {
	before, r.looked = r.looked, u
	return before
}
