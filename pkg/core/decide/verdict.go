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
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
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
	// promised says whether the quotas of a head promise what it needs, once that is known.
	promised promise
	reach
}

func (v *verdict) fits() bool { return v.short == nil && v.contended == nil }

// measure compares a request with its limits. The leaf's come first. If it is larger than what is left of a share, and may
// go beyond that, the answer is what is short then.
func (v *verdict) measure(view *capacity.View, a *Ask, need []int64) {
	for p := range a.parts(need) {
		number, claimed, short := v.shortWithin(view, a, p)
		v.note(p.limit, number, claimed, short)
		if v.short != nil && !a.NonPreemptible {
			break // the limits above cannot change the answer
		}
	}
	if v.fits() || !a.Route.Shared {
		return
	}
	if v.reach = reachOf(view, a.parts(need)); v.beyond() {
		*v = verdict{reach: v.reach}
		v.compareBeyond(view, a.parts(need), a.Route.Levels)
	}
}

// shortWithin compares a request with a limit, shares among them. A unit that its quotas promise what it needs passes
// claims that go beyond shares, above its own quota.
func (v *verdict) shortWithin(view *capacity.View, a *Ask, p part) (number int, claimed, short bool) {
	number, claimed, short = view.Short(p.limit, p.need, p.leaf)
	if claimed && !p.leaf && view.MayPass(p.limit) && v.promised.to(a, p.need) {
		return view.ShortPassing(p.limit, p.need)
	}
	return number, claimed, short
}

// measureTogether compares what a bundle requests with its limits.
func (v *verdict) measureTogether(view *capacity.View, g *Bundle) {
	for p := range g.parts() {
		number, claimed, short := view.Short(p.limit, p.need, p.leaf)
		v.note(p.limit, number, claimed, short)
	}
	if v.fits() {
		return
	}
	if v.reach = reachOf(view, g.parts()); v.beyond() {
		*v = verdict{reach: v.reach}
		v.compareBeyond(view, g.parts(), g.path())
	}
}

// shortTogether compares what a bundle requests of a limit, beyond shares if the verdict was about that.
func (v *verdict) shortTogether(view *capacity.View, path []*capacity.Level, at part) (number int, claimed, short bool) {
	if v.beyond() {
		return view.ShortBeyond(at.limit, at.need, at.leaf, path)
	}
	return view.Short(at.limit, at.need, at.leaf)
}

// promise says whether each level below the top promises a unit what it needs. That is found out once.
type promise struct{ known, kept bool }

func (p *promise) to(a *Ask, need []int64) bool {
	if !p.known {
		levels := a.Route.Levels
		p.known, p.kept = true, !slices.ContainsFunc(levels[:len(levels)-1], func(l *capacity.Level) bool {
			return !l.Promises(need)
		})
	}
	return p.kept
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
func (h *Head[T]) Waits() bool { return h.stopped == "" && !h.fits() && h.tooLarge == nil }

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
	case h.tooLarge != nil && h.stopped == "":
		c.limit, c.number, c.tooLarge = h.tooLarge, h.number, true
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
