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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// patience bounds when and for how long a unit keeps others waiting.
//
// The first unit of a blocking queue does so at once. In a queue that does not block, others pass a unit that does not
// fit, on purpose; after claimAfter it claims as well, since smaller ones could pass it without end.
//
// A unit that asks for what never comes free would claim it without end, on every level that its quota shares. So a claim
// ends after claimTimeout, if that is set. After that the unit blocks nobody: it is served in its turn, and what is behind
// it as if it did not wait.
//
// A unit that has waited for claimAfter moves its queue ahead of others of the same priority, see queue.Rank.Overdue.
//
// The time begins when a pass that admits nobody finds the unit to claim or, in a queue that does not block, to be short.
// It goes on until the unit is admitted, also while another unit is first. A new process starts to count at zero.
type patience struct {
	// claimAfter is how long a unit is short before it claims where it does not at once; zero is for ever. claimTimeout is
	// how long a unit may claim; zero is no bound.
	claimAfter, claimTimeout time.Duration
	// next is when the first claim begins or ends of those that were noted last; zero if none does.
	next time.Time
	// ended counts claims that have. moved: since noteClaims was asked last, a unit came to wait for too long, or ended the
	// claim of one that did.
	ended int
	moved bool
}

// claims says whether a unit may claim now. atOnce: it need not wait for that.
func (p *pass) claims(now time.Time, u *record, atOnce bool) bool {
	begin, end := p.claimTime(u, atOnce)
	switch {
	case begin.IsZero():
		return atOnce
	case now.Before(begin):
		return false
	case end.IsZero() || now.Before(end):
		return true
	}
	if !u.claimEnded {
		u.own().claimEnded, p.moved = true, p.moved || u.overlong
		p.ended++
	}
	return false
}

// claimTime is when the claim of a unit begins and ends; zero where that is not known, or never.
func (p *patience) claimTime(u *record, atOnce bool) (begin, end time.Time) {
	if u.claimsSince.IsZero() || !atOnce && p.claimAfter <= 0 {
		return time.Time{}, time.Time{}
	}
	begin = u.claimsSince
	if !atOnce {
		begin = begin.Add(p.claimAfter)
	}
	if p.claimTimeout > 0 {
		end = begin.Add(p.claimTimeout)
	}
	return begin, end
}

// noteClaims begins the time of those that claim, or will. It says whether the order of queues may be another one now.
func (p *pass) noteClaims(now time.Time) (moved bool) {
	p.next = time.Time{}
	for i := range p.asks.Claims() {
		of := p.asks.Claims()[i].Of
		p.noteClaim(now, of.unit, of.group.Notes.ask.Blocking || of.group.Notes.takes)
	}
	for i := range p.asks.Heads() {
		if h := &p.asks.Heads()[i]; h.Waits() && !h.Of.group.Notes.ask.Blocking {
			p.noteClaim(now, h.Of.unit, false)
		}
	}
	moved, p.moved = p.moved, false
	return moved
}

// noteClaim begins the time of a unit, and notes when its claim begins or ends.
func (p *pass) noteClaim(now time.Time, u *record, atOnce bool) {
	if p.claimAfter <= 0 && (p.claimTimeout <= 0 || !atOnce) {
		return
	}
	if u.claimsSince.IsZero() {
		u.own().claimsSince = now
	}
	begin, end := p.claimTime(u, atOnce)
	long := u.claimsSince.Add(p.claimAfter)
	if p.claimAfter > 0 && !u.overlong && !now.Before(long) {
		u.own().overlong, p.moved = true, true
	}
	for _, at := range []time.Time{begin, end, long} {
		if at.After(now) {
			p.next = ordered.Earlier(p.next, at)
		}
	}
}

// claimsMove says that a claim begins or ends, so that a pass finds another state than the one before.
func (p *patience) claimsMove(now time.Time) bool {
	return !p.next.IsZero() && !now.Before(p.next)
}
