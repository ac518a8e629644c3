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
}

func (v *verdict) fits() bool { return v.short == nil && v.contended == nil }

// measure compares a request with its limits. The leaf's come first.
func (v *verdict) measure(view *capacity.View, a *Ask, need []int64) {
	leaf := a.Limits[0].Level()
	for _, lim := range a.Limits {
		v.compare(view, lim, need, lim.Level() == leaf)
		if v.short != nil && !a.NonPreemptible {
			return // the limits above cannot change the answer
		}
	}
}

// compare compares a request with one limit.
func (v *verdict) compare(view *capacity.View, lim *capacity.Limit, need []int64, leaf bool) {
	number, claimed, short := view.Short(lim, need, leaf)
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

// Cause keeps a head from being admitted: what stopped it, a limit that has too little of a resource, or both.
type Cause struct {
	Stopped unit.Reason
	limit   *capacity.Limit
	number  int
	// contended: the limit has too little because of claims alone.
	contended bool
	// Together: the cause is that of all asks of a bundle.
	Together bool
}

// Cause of a head that the last pass did not find to fit.
func (h *Head[T]) Cause() Cause {
	c := Cause{Stopped: h.stopped, Together: h.together}
	switch {
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
	case c.contended:
		found.Reason = unit.ReasonBlockedByHead
	case c.limit.IsMin():
		found.Reason = unit.ReasonMinExceeded
	}
	return found
}
