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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// shortage is one resource of which a gate has too little for a unit.
type shortage struct {
	at       *gate
	resource string
	// need is the request; zero for a resource that the unit does not ask for but its leaf has overspent.
	need, free int64
}

// verdict is the answer about one unit.
type verdict struct {
	// stopped and message come from an extension's check.
	stopped Reason
	message string
	// short is the first gate with too little; beside the first with too little beside the claims, if there
	// is none of the former.
	short, beside shortage
	// min is how it waits at the first min that stops it, either way: what it has to pass also to borrow.
	min wait
	// lowest is the first gate where the unit is short, either way.
	lowest *gate
}

func (v *verdict) fits() bool { return v.stopped == "" && v.short.at == nil && v.beside.at == nil }

func (v *verdict) reason() Reason {
	switch {
	case v.stopped != "":
		return v.stopped
	case v.short.at == nil && v.beside.at != nil:
		return ReasonBlockedByHead
	case v.short.at != nil && v.short.at.isMin():
		return ReasonMinExceeded
	case v.short.at != nil:
		return ReasonQuotaExceeded
	}
	return ReasonPending
}

// judge says whether a unit may be admitted now. It changes nothing, so a panic below it leaves the state
// whole; it is reported as a fault, and counted.
func (s *State) judge(g *group, u *unit) (v verdict, fault string) {
	defer func() {
		if r := recover(); r != nil {
			s.panics++
			fault = fmt.Sprintf("internal error while the unit was examined: %v", r)
		}
	}()
	for _, check := range s.cfg.Checks {
		if reason, message := check.Check(u.spec.unit()); reason != "" {
			return verdict{stopped: reason, message: message}, ""
		}
	}
	return s.measureAll(g, u), ""
}

// measureAll compares a unit with all gates that it has to pass.
func (s *State) measureAll(g *group, u *unit) (v verdict) {
	for _, gt := range s.gatesFor(g) {
		if !s.measure(&v, gt, u) {
			continue
		}
		if gt.isMin() && v.min.at == nil {
			v.min = s.waitAt(gt, u)
		}
		if v.lowest == nil {
			v.lowest = gt
		}
	}
	return v
}

// waitAt is how a unit waits at a gate that stops it.
func (s *State) waitAt(gt *gate, u *unit) wait {
	var v verdict
	s.measure(&v, gt, u)
	if v.short.at != nil {
		return wait{at: gt, resource: v.short.resource, need: v.short.need}
	}
	return wait{at: gt, resource: v.beside.resource, need: v.beside.need, forClaim: true}
}

// measure compares the request of a unit with one gate and says whether it is short there. The leaf counts
// every resource that it limits, as ElasticQuota does when it places pods; other levels only what is asked for.
func (s *State) measure(v *verdict, gt *gate, u *unit) (short bool) {
	leaf := gt.level == u.group.leaf
	request := u.spec.Request.Items()
	i := 0
	for _, f := range gt.free {
		for i < len(request) && request[i].Name < f.Name {
			i++
		}
		var need int64
		if i < len(request) && request[i].Name == f.Name {
			need = request[i].Amount
		}
		if f.Name == resources.Jobs {
			need = 1
		}
		if need == 0 && (!leaf || f.Amount >= 0) {
			continue
		}
		if need > f.Amount {
			short = true
			if v.short.at == nil {
				v.short = shortage{at: gt, resource: f.Name, need: need, free: f.Amount}
			}
			continue
		}
		if gt.book.claims.Len() == 0 {
			continue
		}
		if s.claimedBeyond(gt, f.Name, u, f.Amount-need) {
			short = true
			if v.beside.at == nil {
				v.beside = shortage{at: gt, resource: f.Name, need: need, free: f.Amount}
			}
		}
	}
	return short
}

// ahead says whether a claim binds a unit: of the same queue when the claimant is before it, of another
// queue when that queue is.
func (s *State) ahead(c *claim, u *unit) bool {
	q, own := c.group.queue, u.group.queue
	if q == own {
		return q.compare(q.spot(c.unit), q.spot(u)) < 0
	}
	return s.compareQueues(q, own) < 0
}
