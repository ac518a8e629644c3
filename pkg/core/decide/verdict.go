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

package decide

import (
	"iter"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/rightful"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// verdict compares a request, together with the claims ahead of it, with the limits that it has to keep.
type verdict struct {
	// short is the first limit that has too little without any claim, contended the first that has too little together
	// with the claims. The numbers are those of the resource.
	short, contended             *capacity.Limit
	shortNumber, contendedNumber int
	// first is the first limit other than a min that has too little; inUse says that it has too little without any claim.
	first *capacity.Limit
	inUse bool
	// ofMin: a min is among the limits that have too little.
	ofMin bool
	// promised says whether the quotas of a head promise what it needs, once that is known. To one behind another that
	// blocks its line and claims on its route, nothing is promised, and it does not go beyond shares.
	promised promise
	behind   bool
	rightful.Reach
}

func (v *verdict) fits() bool { return v.short == nil && v.contended == nil }

// rooms are what is free of the limits.
type rooms struct {
	// all has all claims, binding those that bind a unit of another line to which its quotas promise what it needs.
	all, binding *capacity.View
	rights       *rightful.Book
}

// verdictOf a request. Nothing is promised to one that is behind another on its route.
func (r *rooms) verdictOf(a *Ask, need []int64, behind bool) verdict {
	v := verdict{behind: behind}
	v.measure(r, a, need)
	return v
}

// measure compares a request with its limits, the leaf's first. If a request that may go beyond shares is larger than
// the rest of a share, the answer has the shortages beyond it.
func (v *verdict) measure(r *rooms, a *Ask, need []int64) {
	for p := range a.parts(need) {
		number, claimed, short := v.shortWithin(r, a, p)
		v.note(p.Limit, number, claimed, short)
		if v.short != nil && !a.NonPreemptible {
			break // the limits above cannot change the answer
		}
	}
	if !v.fits() && a.Route.Shared {
		v.goBeyond(r, a.parts(need), a.Route.Levels)
	}
}

// shortWithin compares a request with a limit, shares among them. A unit that its quotas promise what it needs passes
// claims where shares are the limits, above its own quota.
func (v *verdict) shortWithin(r *rooms, a *Ask, p part) (number int, claimed, short bool) {
	number, claimed, short = r.all.Short(p.Limit, p.Need, p.Leaf)
	if claimed && !p.Leaf && !v.behind && v.promised.to(r.rights, a, p.Need) {
		return r.binding.Short(p.Limit, p.Need, p.Leaf)
	}
	return number, claimed, short
}

// measureTogether compares what a bundle requests with its limits.
func (v *verdict) measureTogether(r *rooms, g *Bundle) {
	for p := range g.parts() {
		number, claimed, short := r.all.Short(p.Limit, p.Need, p.Leaf)
		v.note(p.Limit, number, claimed, short)
	}
	if !v.fits() {
		v.goBeyond(r, g.parts(), g.path())
	}
}

// goBeyond has the verdict be about a request beyond shares, if it may go there. A request within its shares that only
// claims keep out fits where a larger one would.
func (v *verdict) goBeyond(r *rooms, parts iter.Seq[part], path []*capacity.Level) {
	v.Reach = r.rights.Reach(r.all, parts)
	claimed := !v.Exceeds && v.short == nil
	if v.Exceeds = v.Exceeds && !v.behind; v.behind || !v.Beyond() && !claimed {
		return
	}
	beyond := verdict{Reach: v.Reach}
	for p := range parts {
		number, claimed, short := r.rights.Short(r.all, p, path)
		beyond.note(p.Limit, number, claimed, short)
	}
	if v.Exceeds || beyond.fits() {
		*v = beyond
	}
}

// shortTogether compares what a bundle requests of a limit, beyond shares if the verdict was about that.
func (v *verdict) shortTogether(r *rooms, path []*capacity.Level, p part) bool {
	if v.Beyond() {
		_, _, short := r.rights.Short(r.all, p, path)
		return short
	}
	_, _, short := r.all.Short(p.Limit, p.Need, p.Leaf)
	return short
}

// note takes in how a request compares with one limit.
func (v *verdict) note(lim *capacity.Limit, number int, claimed, short bool) {
	if !short {
		return
	}
	switch {
	case lim.IsMin():
		v.ofMin = true
	case v.first == nil:
		v.first, v.inUse = lim, !claimed
	}
	switch {
	case claimed && v.contended == nil:
		v.contended, v.contendedNumber = lim, number
	case !claimed && v.short == nil:
		v.short, v.shortNumber = lim, number
	}
}

// Waits says that a limit has too little for the head, which nothing else stops, and which can rightfully get so much.
func (h *Head[T]) Waits() bool { return h.stopped == "" && !h.fits() && h.TooLarge == nil }

// Cause keeps a head from being admitted: what stopped it, a limit that has too little of a resource, or both.
type Cause struct {
	Stopped unit.Reason
	limit   *capacity.Limit
	number  int
	// contended: the limit has too little because of claims alone.
	contended bool
	// tooLarge: it is a share beyond which the request can never rightfully go.
	tooLarge bool
	// Together: the cause is that of all asks of a bundle.
	Together bool
}

// Cause of a head that the last pass did not find to fit.
func (h *Head[T]) Cause() Cause {
	c := Cause{Stopped: h.stopped, Together: h.together}
	switch {
	case h.TooLarge != nil && h.stopped == "":
		c.limit, c.number, c.tooLarge = h.TooLarge, h.Number, true
	case h.short != nil:
		c.limit, c.number = h.short, h.shortNumber
	case h.stopped == "" && h.contended != nil:
		c.limit, c.number, c.contended = h.contended, h.contendedNumber, true
	}
	return c
}

// Finding is the cause as a reason.
func (c Cause) Finding(tree *capacity.Tree) unit.Finding {
	if c.limit == nil {
		return unit.Finding{Reason: c.Stopped}
	}
	found := unit.Finding{
		Reason: unit.ReasonQuotaExceeded, Level: c.limit.Level().Name(), Resource: tree.Resource(c.number),
	}
	switch {
	case c.Stopped != "":
		found.Reason = c.Stopped
	case c.tooLarge:
		found.Reason = unit.ReasonExceedsGuaranteedShare
	case c.contended:
		found.Reason = unit.ReasonBlockedByHead
	case c.limit.IsMin():
		found.Reason = unit.ReasonMinExceeded
	}
	return found
}
