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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/gang"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shadow"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// touch notes that a fact of a unit has changed, or one of another unit on which it depends.
func (r *roster) touch(u *record) {
	if !u.touched {
		u.touched = true
		r.touched = append(r.touched, u)
	}
}

// settle moves each touched unit where it belongs. A panic that is not recovered leaves the state half changed. The
// owner of the state builds another one from the objects. The objects say the same again, so the new state panics as
// well. To prevent that, the owner has to know which unit was being looked at.
func (r *roster) settle(now time.Time) {
	for i := 0; i < len(r.touched); i++ {
		u := r.touched[i]
		u.touched = false
		r.progress.looked = u
		r.settleOne(now, u)
		r.progress.looked = nil
	}
	clear(r.touched)
	r.touched = r.touched[:0]
}

func (r *roster) settleOne(now time.Time, u *record) {
	former, news := r.gangs.SetPresent(u, u.stage != transition.Over)
	r.progress.changed = news || r.progress.inVain || r.progress.changed
	passed := false
	switch {
	case u.stage == transition.Over:
		r.leave(u)
		r.telling.Cancel(u)
		r.release(now, u)
	case u.waits():
		r.moveWaiting(now, u, life.ClassifyWaiting(r.facts(now, u)))
	case u.isAdmitted():
		p := life.ClassifyAdmitted(r.facts(now, u))
		r.moveAdmitted(now, u, p)
		passed = p.Passed
	case u.stage == transition.Admitted && !u.leaves():
		passed = u.soon(now).Phase.Releases() || life.Passed(r.facts(now, u))
	}
	at := u.place()
	r.progress.changed = r.holdings.Keep(now, u.spec.Key, &at) || r.progress.changed
	charges := r.holdings.Charges(u.spec.Key, u.spec.Quota)
	r.accounts.Replace(&u.counted, contributionOf(u, charges))
	cast(&r.lines.shadow, u, charges.Assigned)
	r.grant(u)
	r.preemptions.settle(now, u)
	if r.gangs.SetCleared(u, passed) || news {
		now := gang.GroupOf(u.spec)
		r.touchChecked(u, now)
		if former != now {
			r.touchChecked(u, former)
		}
	}
}

// cast keeps an observed unit, whose pods on nodes use this much, in the shadow.
func cast(b *shadow.Book, u *record, used resources.List) {
	in := u.spec
	switch {
	case !in.Observed || u.stage == transition.Over:
		b.Forget(in.Key)
	case u.waits():
		b.Waits(in.Key, in.Quota, in.NonPreemptible, used)
	case u.reserves():
		b.Holds(in.Key, in.Quota, in.NonPreemptible, u.soon(in.Admitted).Request, used)
	default:
		b.Holds(in.Key, in.Quota, in.NonPreemptible, in.Request, used)
	}
}

// touchChecked touches those of a gang group whose going depends on others of it, but for the one that is settled.
func (r *roster) touchChecked(u *record, gangGroup string) {
	for _, o := range r.gangs.Checked(gangGroup) {
		if o != u {
			r.touch(o)
		}
	}
}

var noQueue queue.Spec

// facts are what the rules about a unit may look at. They are valid until the next call.
func (r *roster) facts(now time.Time, u *record) *life.Facts {
	f := &r.looking
	*f = life.Facts{
		Now: now, Unit: u.spec, Queue: &noQueue, Holds: u.holding, Held: u.held, Left: u.left, Asking: u.growsSince,
		GangsPassed: r.gangs.MayGo(u), PreemptedFor: r.preemptions.preemptors.Of(u.spec.Hold()),
		Refused: u.refusals.Refusal, Config: &r.cfg.Rules,
	}
	if q := r.lines.byName[u.spec.Queue]; q != nil {
		f.Queue, f.QueueKnown = &q.spec, q.known
	}
	c := candidateOf(u.spec)
	f.Job, f.JobSaid = r.owners.Check(&c)
	if w, some := r.owners.Winner(&c); some && w != u {
		f.Rival = w.spec.Key
	}
	f.Pods.All, f.Pods.Assigned = r.holdings.Pods(u.spec.Key)
	if f.Pods.All > 0 {
		f.Pods.Elsewhere, f.Pods.Suspended = r.holdings.Astray(u.spec.Key, u.spec.Quota)
		f.Pods.Charges = r.holdings.Charges(u.spec.Key, u.spec.Quota)
	}
	return f
}

// blame parks the unit that was looked at when an extension panicked.
func (r *roster) blame(now time.Time, fault string) {
	u := r.progress.looked
	r.progress.looked = nil
	r.leave(u)
	u.refuse(now, r.cfg.RefusedBackoff, unit.ReasonInternalError, fault)
	r.touch(u)
	r.settle(now)
}

// touchDue touches the units whose time has come.
func (r *roster) touchDue(now time.Time) { r.due.Until(ordered.MomentOf(now), r.touch) }
