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

// How long decisions wait for each other: pauseFactor times as long as the last one took, but maxPause at most.
const (
	pauseFactor = 4
	maxPause    = 10 * time.Millisecond
)

// Decisions keeps decisions from taking more than a share of a processor. An idle engine decides at once; what comes
// while it pauses is decided together.
type Decisions struct {
	// took says how long a decision took that began then.
	took func(begun time.Time) time.Duration
	// free is the end of the pause; owed says that a decision waits for it.
	free time.Time
	owed bool
	// again is when the core wants to decide though nothing happens; zero for never.
	again time.Time
}

// NewDecisions lets the first decision be made at once. The function says how long a decision took that began then.
func NewDecisions(took func(begun time.Time) time.Duration) Decisions { return Decisions{took: took} }

// Ready says whether a decision may be made now. Otherwise one is owed, and Next says when.
func (p *Decisions) Ready(now time.Time) bool {
	p.owed = now.Before(p.free)
	return !p.owed
}

// Decided takes note of a decision that ended now, and of when the next one is wanted.
func (p *Decisions) Decided(begun, now, again time.Time) {
	p.free, p.again = now.Add(min(pauseFactor*p.took(begun), maxPause)), again
}

// Failed says that no decision came of it. Somebody else knows when to try again.
func (p *Decisions) Failed() { p.again = time.Time{} }

// Next is when a decision must be made though nothing happens; zero for never.
func (p *Decisions) Next() time.Time {
	if p.owed {
		return p.free
	}
	if p.again.IsZero() {
		return time.Time{}
	}
	return Later(p.again, p.free)
}
