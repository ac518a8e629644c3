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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/patience"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/writes"
)

// mostResizes bounds the writes of one Decide of what units hold that need not ask for it.
const mostResizes = 256

// launch puts a write of a unit in flight. From here on the unit is in no line and not due.
func (r *roster) launch(u *record, become func()) {
	u.waitsAs(patience.Wait{})
	r.leave(u)
	r.telling.Cancel(u)
	become()
	r.owners.Moved(u)
	r.touch(u)
}

// admit reserves what a unit gets of what it asks for and puts that in flight.
func (r *roster) admit(u *record, gets unit.Size, borrows bool, plan *writes.Plan) {
	if u.holding {
		d := r.resize(u, u.grows.Total, u.grows.Pods)
		d.Asked, d.Borrows = true, borrows
		plan.Resize = append(plan.Resize, d)
		return
	}
	var checks []string
	for _, c := range life.AdmissionChecks(r.facts(time.Time{}, u)) {
		checks = append(checks, c.Name)
	}
	u.spec.Kept = u.spec.Unpreemptable && r.lines.queue(u.spec.Queue).spec.Preemption.Keeps // whatever it says since
	r.launch(u, func() { u.becomeAdmitting(gets, checks) })
	r.hold(u, gets.Request)
	plan.Admit = append(plan.Admit, writes.Admit{
		Unit: u.spec, Attempt: u.attempt, Request: gets.Request, Pods: gets.Pods, Counts: gets.Counts,
		Checks: checks, Borrows: borrows,
	})
}

// resize puts in flight that a unit holds another amount. Until the outcome is known it holds the greater of both.
func (r *roster) resize(u *record, next resources.List, pods int64) writes.Resize {
	r.launch(u, func() { u.becomeResizing(next, pods) })
	r.hold(u, u.held.Max(next))
	return writes.Resize{Unit: u.spec, Attempt: u.attempt, Held: next, Pods: pods}
}

// writeDue puts the writes in flight that nobody has to ask for: first what units lose, last those that were admitted
// first; then that units go which have passed their checks; then what units hold. What a unit loses is free only when
// that is confirmed.
func (r *roster) writeDue(now time.Time, plan *writes.Plan) {
	for _, u := range r.dueWrites(now, life.WriteLoss) {
		d := &writes.Evict{Unit: u.spec, Loss: life.LossOf(r.facts(now, u))}
		r.launch(u, func() { u.becomeEvicting(d) })
		plan.Evict = append(plan.Evict, *d)
	}
	r.settle(now) // those of their gang groups stay
	for _, u := range r.dueWrites(now, life.WriteRelease) {
		r.launch(u, u.becomeReleasing)
		plan.Dequeue = append(plan.Dequeue, writes.Dequeue{Unit: u.spec})
	}
	resizes := r.dueWrites(now, life.WriteSize)
	for _, u := range resizes[:min(len(resizes), mostResizes)] {
		plan.Resize = append(plan.Resize, r.resize(u, u.next, u.nextPods))
	}
	r.settle(now)
}

// dueWrites returns the units for which this write is due, in the order of their keys. Of losses, those of the units
// that were admitted last come first.
func (r *roster) dueWrites(now time.Time, write life.Write) (units []*record) {
	r.due.Until(ordered.MomentOf(now), func(u *record) {
		if u.write == write {
			units = append(units, u)
		}
	})
	slices.SortFunc(units, func(a, b *record) int {
		if c := b.spec.Admitted.Compare(a.spec.Admitted); c != 0 && write == life.WriteLoss {
			return c
		}
		return compareKeys(a, b)
	})
	return units
}
