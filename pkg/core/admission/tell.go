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
)

// tellLimit bounds the explanations of one Decide; the rest follows in the next.
const tellLimit = 64

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// tellAt sets when the reason of a unit is to be told; zero for never.
func (s *State) tellAt(u *unit, at time.Time) {
	to := momentOf(at)
	if u.tell == to {
		return
	}
	if u.tell != 0 {
		s.tellings.Delete(u)
	}
	u.tell = to
	if to != 0 {
		s.tellings.Insert(u)
	}
}

// armParked plans to tell why a unit is parked.
func (s *State) armParked(now time.Time, u *unit) {
	reason := u.parked
	if u.group != nil {
		reason = u.group.parked
	}
	if untold(reason) {
		s.tellAt(u, time.Time{})
		return
	}
	at := now
	if fleeting[reason] {
		at = now.Add(s.cfg.ExplainAfter)
	}
	s.arm(u, reason, at)
}

// fleeting reasons are often over before anybody could read them: informers of two kinds race, and the controller
// makes the default queue of a new quota.
var fleeting = map[Reason]bool{
	ReasonConsumerNotFound: true, ReasonInactive: true, ReasonWriteRefused: true,
	ReasonUnknownQueue: true, ReasonUnknownQuota: true,
}

// untold says whether whoever caused the reason has written it down already.
func untold(reason Reason) bool { return reason == ReasonAdopting || reason == ReasonBackoff }

// armHead plans to tell why the head of a blocked group has waited so long.
func (s *State) armHead(now time.Time, g *group) {
	u := g.head
	if u.headSince == 0 {
		u.headSince = momentOf(now)
	}
	if u.tell == 0 {
		s.arm(u, g.reason, later(now, u.headSince.time().Add(s.cfg.ExplainAfter)))
	}
}

func (s *State) arm(u *unit, reason Reason, at time.Time) {
	if reason == u.told {
		s.tellAt(u, time.Time{})
		return
	}
	if u.told != "" {
		at = later(at, u.toldAt.Add(s.cfg.ExplainEvery))
	}
	s.tellAt(u, at)
}

// tellReasons plans the explanations that are due.
func (s *State) tellReasons(now time.Time, plan *Plan) {
	for len(plan.Explain) < tellLimit {
		u, ok := s.tellings.Min()
		if !ok || u.tell.time().After(now) {
			return
		}
		s.tellAt(u, time.Time{})
		if u.stage != stageWaiting || (u.group != nil && u.group.parked == "" && u.group.head != u && u.told == "") {
			continue
		}
		before := s.look(u)
		reason, message := s.whyWaiting(now, u)
		s.looked = before
		if reason == u.told || untold(reason) {
			continue
		}
		told := u.deal()
		told.told, told.toldAt = reason, now
		plan.Explain = append(plan.Explain, Explain{Unit: u.spec.unit(), Reason: reason, Message: message})
	}
}

// wakeAt is when time alone gives Decide something to do.
func (s *State) wakeAt(now time.Time, told int) time.Time {
	var at time.Time
	if u, ok := s.retries.Min(); ok {
		at = u.retry
	}
	if u, ok := s.tellings.Min(); ok {
		tell := u.tell.time()
		if told == tellLimit && !tell.After(now) {
			tell = now
		}
		if at.IsZero() || tell.Before(at) {
			at = tell
		}
	}
	return at
}
