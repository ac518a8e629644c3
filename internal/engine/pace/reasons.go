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

package pace

import "time"

// shareOfCapacity is how much of what the API server was seen to take reasons may be: one write in so many.
const shareOfCapacity = 10

// Reasons bounds the writes of reasons to so many per second. They are at most a tenth of the writes that the API
// server was seen to take. Unused writes are kept for a second.
type Reasons struct {
	perSecond float64
	// saved is how many may be written at once, at that time.
	saved float64
	at    time.Time
	// took is how long a write took lately. The other field is how many writes were under way at the same time, itself
	// included. Both are zero while no write was seen. By Little's law the number over the time is how many writes the API
	// server took in a second.
	took, beside float64
	// wanted is when the core wants to tell reasons; zero for never.
	wanted time.Time
}

// NewReasons allows so many a second, and those of the first second at once.
func NewReasons(perSecond int, now time.Time) Reasons {
	return Reasons{perSecond: float64(perSecond), saved: float64(perSecond), at: now}
}

// Seen takes note of a write: how long it took, and how many were under way at the same time, itself included.
func (p *Reasons) Seen(took time.Duration, beside int) {
	if took <= 0 || beside <= 0 {
		return
	}
	const weight = 8
	if p.took == 0 {
		p.took, p.beside = took.Seconds(), float64(beside)
		return
	}
	p.took += (took.Seconds() - p.took) / weight
	p.beside += (float64(beside) - p.beside) / weight
}

// rate is how many may be written in a second now.
func (p *Reasons) rate() float64 {
	if p.took == 0 {
		return p.perSecond
	}
	return min(p.perSecond, p.beside/p.took/shareOfCapacity)
}

// Allowance is how many may be written now.
func (p *Reasons) Allowance(now time.Time) int {
	if d := now.Sub(p.at); d > 0 {
		p.saved = min(max(p.perSecond, 1), p.saved+d.Seconds()*p.rate())
		p.at = now
	}
	return int(p.saved + roundingError)
}

// roundingError is what sums of parts of a second may be short of a whole.
const roundingError = 1e-6

// Spend takes note of what was written. To have looked for something costs as much as one.
func (p *Reasons) Spend(n int) { p.saved -= float64(max(n, 1)) }

// Want has reasons wanted from that time on; zero for never.
func (p *Reasons) Want(at time.Time) { p.wanted = at }

// Next is when reasons may be written that are wanted; zero for never.
func (p *Reasons) Next() time.Time {
	if p.wanted.IsZero() {
		return time.Time{}
	}
	missing := 1 - p.saved
	if missing <= roundingError {
		return p.wanted
	}
	return Later(p.wanted, p.at.Add(time.Duration(missing/p.rate()*float64(time.Second))+1))
}
