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

import "time"

// patience bounds for how long the first unit of a blocking queue keeps others waiting. A unit that asks for what
// never comes free would otherwise claim it without end, on every level that its quota shares. After its time it blocks
// nobody: it is served in its turn, and what is behind it as if it did not wait.
//
// The time begins when a pass that admits nobody finds the unit to claim. It goes on until the unit is admitted, also
// while another unit is first. A new process starts to count at zero.
type patience struct {
	// claimTimeout is how long a unit may claim; zero is no bound.
	claimTimeout time.Duration
	// firstEnd is when the first of the claims ends that were noted last; zero if none does.
	firstEnd time.Time
	// ended counts claims that have.
	ended int
}

// claimEnded says that the time of the unit is over.
func (p *pass) claimEnded(now time.Time, u *record) bool {
	if p.claimTimeout <= 0 || u.claimsSince.IsZero() || now.Before(u.claimsSince.Add(p.claimTimeout)) {
		return false
	}
	if !u.claimEnded {
		u.own().claimEnded = true
		p.ended++
	}
	return true
}

// noteClaims begins the time of those that claim.
func (p *pass) noteClaims(now time.Time) {
	p.firstEnd = time.Time{}
	if p.claimTimeout <= 0 {
		return
	}
	for i := range p.asks.Claims() {
		u := p.asks.Claims()[i].Of.unit
		if u.claimsSince.IsZero() {
			u.own().claimsSince = now
		}
		end := u.claimsSince.Add(p.claimTimeout)
		if p.firstEnd.IsZero() || end.Before(p.firstEnd) {
			p.firstEnd = end
		}
	}
}

// endsClaim says that the time of a claim is over, so that a pass finds another state than the one before.
func (p *patience) endsClaim(now time.Time) bool {
	return !p.firstEnd.IsZero() && !now.Before(p.firstEnd)
}
