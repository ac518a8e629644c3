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
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/growth"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/patience"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/telling"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/words"
)

// record is the one of a QueueUnit: what it says, and where it is. There may be very many, and most of them wait.
type record struct {
	// spec is never changed: another one takes its place.
	spec  *unit.Unit
	stage transition.Stage
	// observed: the object itself was seen to hold quota since the admission was confirmed.
	observed bool
	// touched: it is among those that settle looks at.
	touched bool
	// group is set while the unit is in line; parked while it waits and is not.
	group  *group
	parked unit.Reason
	// dueAt is when the unit is looked at again though nothing happens: the key of due. listener belongs to telling.
	dueAt    ordered.Moment
	listener telling.Listener
	// counted is what the unit has added to the accounts.
	counted accounts.Contribution
	*tenure
	refusals *life.Refusals
}

// tenure is about what a unit holds or held.
type tenure struct {
	// holding: it holds held, in the place that its object names.
	holding bool
	held    resources.List
	// keepsMin: it holds that as a non-preemptible unit; see nonPreemptible.
	keepsMin bool
	// flight is the write in flight; nil if there is none. remembered is the object as it was seen during that write.
	flight     transition.Write
	remembered *unit.Unit
	// outOfDate are the holds that the unit preempted when it left its line or gave up.
	outOfDate string
	// preempted counts how often others had it lose what it held. A new process begins at zero.
	preempted int64
	// grows is the growth of the unit, while it is in line for that.
	grows growth.Growth
	// write is the next write of the unit. next is what it is to hold after that, for so many pods.
	write life.Write
	// growsSince is when it began to ask for more than it holds.
	growsSince ordered.Moment
	next       resources.List
	nextPods   int64
	// overdue is what was over when the unit was placed, if nothing is done about it but telling.
	overdue life.Expiry
	// left is when its last pod left its node.
	left time.Time
	// foresight is of the nodes that its pods would find without its victims; nil if nobody asked.
	foresight *reclaim.Foresight
	// standsFor is what units behind it ask for that the state does not know.
	standsFor resources.List
	// front is how long it has waited at the front of its line.
	front patience.Wait
}

// Nothing of that kind: shared and never written.
var (
	noTenure  = &tenure{}
	noRefusal = &life.Refusals{}
	noUnit    = &unit.Unit{}
)

// newRecord is one of which nothing is known.
func newRecord() *record { return &record{spec: noUnit, tenure: noTenure, refusals: noRefusal} }

// own returns the tenure of the unit, to be changed.
func (u *record) own() *tenure {
	if u.tenure == noTenure {
		u.tenure = &tenure{}
	}
	return u.tenure
}

// nonPreemptible says whether the unit draws on min only. While it holds quota, the answer is that of its admission:
// borrowed quota is not guaranteed, whatever its label is now.
func (u *record) nonPreemptible() bool {
	if u.holding {
		return u.keepsMin
	}
	return u.spec.NonPreemptible
}

// stay keeps a unit in the quota of its admission, whatever quota its object names since. The unit has to ask for
// another one, see checkMoves.
func (u *record) stay(in *unit.Unit) {
	if u.isAdmitted() && transition.StageOf(in) == transition.Admitted && in.Quota != u.spec.Quota {
		in.Quota, in.MovesTo = u.spec.Quota, in.Quota
	}
}

func compareKeys(a, b *record) int { return strings.Compare(a.spec.Key, b.spec.Key) }

// Item implements backlog.Unit. The age of growth is the time since which the unit asks for it.
func (u *record) Item() queue.Item {
	it := u.born()
	if u.holding {
		it.Created = u.growsSince.Time()
	}
	return it
}

// compareAges is the order of units that are due at the same time.
func compareAges(a, b *record) int {
	if c := a.spec.Created.Compare(b.spec.Created); c != 0 {
		return c
	}
	return compareKeys(a, b)
}

// born is the age of the unit itself.
func (u *record) born() queue.Item {
	return queue.Item{Priority: u.spec.Priority, Created: u.spec.Created, UID: u.spec.UID, Key: u.spec.Key}
}

// Candidate implements owner.Unit.
func (u *record) Candidate() owner.Candidate {
	c := candidateOf(u.spec)
	c.Standing = u.standing()
	return c
}

func candidateOf(in *unit.Unit) owner.Candidate {
	return owner.Candidate{
		Key: in.Key, Namespace: in.Namespace(), UID: in.UID, Created: in.Created, Consumer: in.Consumer,
		Managed: in.ConsumerManaged, Owned: in.OwnedByConsumer,
	}
}

func (u *record) standing() owner.Standing {
	if u.spec.Misnamed {
		return owner.Unfit
	}
	switch {
	case u.stage == transition.Admitted:
		return owner.Admitted
	case u.reserves():
		return owner.Admitting
	case u.waits() && !life.Unfit(u.spec): // a unit that can never be admitted does not stand in the way of one that can
		return owner.Waiting
	default:
		return owner.Unfit
	}
}

// preempts says that the unit has victims, or is about to.
func preempts(u *record) bool { return u.begins() != "" || preemptedBy(u) != "" }

// preemptedBy are the holds that the unit preempts while it waits, joined by commas; empty for none.
func preemptedBy(u *record) string {
	if !u.waits() || u.spec.Preempts == u.outOfDate {
		return ""
	}
	return u.spec.Preempts
}

// place is where the unit counts, if it holds quota. An observed unit counts in no quota, and while it waits its pods
// count in no queue.
func (u *record) place() (at holding.Place) {
	if !u.spec.Observed || u.mayHold() {
		at.Queue, at.Namespace = u.spec.Queue, u.spec.Namespace()
	}
	if !u.spec.Observed {
		at.Quota = u.spec.Quota
	}
	return at
}

// asks is what the unit asks for where it is in line, at the least.
func (u *record) asks() resources.List {
	if u.holding {
		return u.grows.Need
	}
	return u.spec.Least()
}

// total is the amount that the unit would hold with its request.
func (u *record) total() resources.List {
	if u.holding {
		return u.grows.Total
	}
	return u.spec.Least()
}

// jobs is how much of a limit of jobs the unit takes.
func (u *record) jobs() int64 {
	if u.holding {
		return 0
	}
	return 1
}

// forgetRemembered lets go of what the object said while its write was in flight.
func (u *record) forgetRemembered() {
	if u.remembered != nil {
		u.tenure.remembered = nil
	}
}

// refuse keeps a unit from being tried for a while that doubles with every refusal in a row.
func (u *record) refuse(now time.Time, base time.Duration, reason unit.Reason, message string) {
	u.refusals = u.refusals.Again(now, base, reason, message)
}

// waitsAs has the unit have waited like this at the front of its line.
func (u *record) waitsAs(w patience.Wait) {
	if w != u.front {
		u.own().front = w
	}
}

// countsAs is how a unit counts that is in no group.
func countsAs(u *record) accounts.Count {
	switch {
	case u.stage == transition.Admitted:
		return accounts.Admitted
	case u.reserves():
		return accounts.Pending
	case u.waits():
		return accounts.Parked
	default:
		return accounts.Nothing
	}
}

// contributionOf a unit with such pods to the accounts. If it waits in a group it counts as the group does.
func contributionOf(u *record, charges ledger.Charges) (c accounts.Contribution) {
	if u.stage == transition.Over {
		return c
	}
	c.Of, c.As = accounts.Pair{Queue: u.spec.Queue, Quota: u.spec.Quota}, countsAs(u)
	switch {
	case u.spec.Observed:
		if u.waits() && u.group != nil {
			c.Observe(&u.group.Notes.pool)
		}
	case u.holding:
		c.AskHeld(u.spec, u.held, &charges)
	case u.waits() && u.group != nil:
		c.AskWaiting(u.spec, &u.group.Notes.pool, &charges)
		c.Asks = c.Asks.Add(u.standsFor)
	case u.waits():
		c.Less = charges.Idle
	}
	return c
}

// reader is the unit as the owner of it reads about it.
func (u *record) reader() words.Reader {
	return words.Reader{
		Namespace: u.spec.Namespace(), Queue: u.spec.Queue, Quota: u.spec.Quota, Holds: u.holding, Observed: u.spec.Observed,
		Least: !u.holding && u.spec.Sizes != nil && u.spec.Sizes.Steps() > 0,
	}
}
