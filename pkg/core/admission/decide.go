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
	"cmp"
	"slices"
	"time"
)

// Decide admits until nothing more fits. It looks only at groups that an event since the last call could
// have made fit. A panic in the evaluation of a unit parks that unit with InternalError. After any other panic the state is
// broken; Suspect says over which unit.
func (s *State) Decide(now time.Time) Plan {
	var plan Plan
	s.resume(now)
	s.evict(&plan)
	for {
		// Every admission moves shares and heads, and with them the order of the queues.
		s.refreshRanks()
		s.reviewClaims()
		s.wakeNext(&s.woken)
		q, ok := s.dirty.Min()
		borrows := !ok
		if borrows && s.wakeEased() {
			continue
		}
		if borrows {
			// Nobody else fits within the limits: what is left is lent.
			s.wakeNext(&s.lendable)
			if q, ok = s.dirty.Min(); !ok {
				if len(s.lendable) > 0 {
					continue // looking at one gate had others looked at
				}
				break
			}
		}
		g, _ := q.dirty.Min()
		before := s.look(g.head)
		s.examine(now, g, borrows, &plan)
		s.looked = before
	}
	s.tellReasons(now, &plan)
	plan.WakeAt = s.wakeAt(now, len(plan.Explain))
	plan.Panics, s.panics = s.panics, 0
	return plan
}

// resume places the units again whose time has come.
func (s *State) resume(now time.Time) {
	for {
		u, ok := s.retries.Min()
		if !ok || u.retry.After(now) {
			return
		}
		s.retryAt(u, time.Time{})
		s.place(now, u)
	}
}

// evict puts the evictions in flight. What a unit holds is free only when its eviction is confirmed.
func (s *State) evict(plan *Plan) {
	for {
		u, ok := s.evictions.Min()
		if !ok {
			return
		}
		s.evictions.Delete(u)
		before := s.look(u)
		reason, message, _ := s.checkAdmitted(u)
		s.looked = before
		if reason == "" {
			continue
		}
		u.stage, u.tenant().attempt = stageEvicting, u.spec.Attempts
		s.account(u)
		plan.Evict = append(plan.Evict, Evict{Unit: u.spec.unit(), Reason: reason, Message: message})
	}
}

// examine decides about the head of a dirty group. Everything that is dirty and served before it has been
// decided, so the claims that bind it are final. borrows: it may go beyond the limits.
func (s *State) examine(now time.Time, g *group, borrows bool, plan *Plan) {
	u := g.head
	if g.queue.full {
		s.markBlocked(g)
		s.unregister(g)
		g.reason = ReasonQueueFull
		s.armHead(now, g)
		return
	}
	plan.Examined++
	v, fault := s.judge(g, u)
	switch {
	case fault != "":
		s.refuse(now, u, ReasonInternalError, fault)
		s.place(now, u)
	case v.fits():
		s.admit(now, u, false, plan)
	case borrows && s.lent(g, &v):
		s.admit(now, u, true, plan)
	default:
		s.block(now, g, &v)
		s.awaitLoan(g, &v)
	}
}

// admit reserves what the unit asks for and puts its admission in flight.
func (s *State) admit(now time.Time, u *unit, borrows bool, plan *Plan) {
	// Before its claim goes: what it claimed is not free for those that wait for claims.
	s.hold(u, u.spec.Request)
	s.leave(now, u)
	s.tellAt(u, time.Time{})
	u.stage = stageAdmitting
	u.tenant().attempt = u.spec.Attempts + 1
	s.account(u)
	plan.Admit = append(plan.Admit, Admit{Unit: u.spec.unit(), Attempt: u.attempt, Request: u.spec.Request, Borrows: borrows})
}

// block registers a group whose head does not fit where the change that can help it will wake it. The first
// blocking unit of a line claims.
func (s *State) block(now time.Time, g *group, v *verdict) {
	s.markBlocked(g)
	g.reason = v.reason()
	s.armHead(now, g)
	if v.stopped == "" && g.key.blocks && g.line.first(g) {
		s.setClaim(g, cmp.Or(v.min.at, v.lowest))
		return
	}
	if g.line != nil && g.line.claim != nil && g.line.claim.group == g {
		// It claims no more: a check stops it now.
		s.dropClaim(g.line)
		s.markBlocked(g)
	}
	if v.stopped != "" {
		s.unregister(g)
		return
	}
	s.registerShort(g, v)
}

// registerShort registers a group where its head is short.
func (s *State) registerShort(g *group, v *verdict) {
	if w := v.first(g); w.at != nil {
		s.register(g, w)
	}
}

// first is how the group waits: at a min that stops it, which it has to pass whether it stays within the limits or borrows;
// then at the lowest level that does, for an amount rather than for claims. So whoever waits for an amount at a level is
// stopped by nothing below it.
func (v *verdict) first(g *group) wait {
	short := wait{at: v.short.at, resource: v.short.resource, need: v.short.need}
	beside := wait{at: v.beside.at, resource: v.beside.resource, need: v.beside.need, forClaim: true}
	switch {
	case v.min.at != nil:
		return v.min
	case beside.at == nil:
		return short
	case short.at == nil || slices.Index(g.gates, beside.at) < slices.Index(g.gates, short.at):
		return beside
	}
	return short
}

// first says whether the head of the group is where the line's claim belongs.
func (ln *line) first(g *group) bool {
	return ln.claim == nil || ln.claim.group == g || g.queue.compare(g.spot, g.queue.spot(ln.claim.unit)) < 0
}

// refuse keeps a unit from being tried for a while that doubles with every refusal in a row.
func (s *State) refuse(now time.Time, u *unit, reason Reason, message string) {
	backoff := s.cfg.RefusedBackoff << min(u.refusals, 5)
	d := u.deal()
	d.refusals++
	d.refusal, d.refusalMessage, d.refusedUntil = reason, message, now.Add(backoff)
}
