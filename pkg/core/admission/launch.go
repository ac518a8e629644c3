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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// mostResizes bounds the writes of one Decide of what units hold that need not ask for it.
const mostResizes = 256

// launch puts a write of a unit in flight. From here on the unit is not due, and in no line unless the write leaves it
// there.
func (r *roster) launch(u *record, w transition.Write, plan *transition.Plan) {
	if w.Kind().StaysInLine() {
		r.unplace(u)
	} else {
		u.waitsAs(patience.Wait{})
		r.leave(u)
		r.telling.Cancel(u)
	}
	u.own().flight = w
	r.owners.Moved(u)
	r.touch(u)
	plan.Writes = append(plan.Writes, w)
}

// admit reserves the granted amount of a unit and puts the write in flight.
func (r *roster) admit(u *record, gets unit.Size, borrows bool, plan *transition.Plan) {
	if u.holding {
		r.resize(u, &transition.Resize{Held: u.grows.Total, Pods: u.grows.Pods, Asked: true, Borrows: borrows}, plan)
		return
	}
	var checks []string
	q := &r.lines.queue(u.spec.Queue).spec
	for _, c := range life.AdmissionChecks(&life.Facts{Unit: u.spec, Queue: q, Config: &r.cfg.Rules}) {
		checks = append(checks, c.Name)
	}
	w := &transition.Admit{
		Number: u.spec.Attempts + 1, Request: gets.Request, Pods: gets.Pods, Counts: gets.Counts, Checks: checks,
		Borrows: borrows,
	}
	r.leave(u)                                         // its place depends on its quota
	kept := u.spec.Unpreemptable && q.Preemption.Keeps // whatever it says since
	if gets.Quota != "" || kept != u.spec.Kept {
		in := *u.spec
		in.Kept = kept
		in.Choose(gets.Quota)
		u.spec = &in
	}
	w.Unit = u.spec
	r.launch(u, w, plan)
	r.hold(u, gets.Request)
}

// resize puts in flight that a unit holds another amount. Until the outcome is known it holds the greater of both.
func (r *roster) resize(u *record, w *transition.Resize, plan *transition.Plan) {
	w.Unit = u.spec
	r.launch(u, w, plan)
	r.hold(u, u.held.Max(w.Held))
}

// writeDue puts the writes in flight that are due without a decision. First units lose quota, the last admitted first.
// Then units that have passed their checks are released. Then held amounts change. Lost quota is free only after its
// confirmation.
func (r *roster) writeDue(now time.Time, plan *transition.Plan) {
	for _, u := range r.dueWrites(now, life.WriteLoss) {
		r.launch(u, &transition.Evict{Unit: u.spec, Loss: life.LossOf(r.facts(now, u))}, plan)
	}
	r.settle(now) // units of their gang groups stay
	for _, u := range r.dueWrites(now, life.WriteRelease) {
		r.launch(u, &transition.Dequeue{Unit: u.spec}, plan)
	}
	resizes := r.dueWrites(now, life.WriteSize)
	for _, u := range resizes[:min(len(resizes), mostResizes)] {
		r.resize(u, &transition.Resize{Held: u.next, Pods: u.nextPods}, plan)
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
