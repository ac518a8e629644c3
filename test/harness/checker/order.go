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

package checker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// before says whether a queue with that policy serves u before other.
func (u Unit) before(other Unit, policy string) bool {
	item := func(u Unit) rulebook.Unit { return rulebook.Unit{Priority: u.Priority, Created: u.Created, UID: u.UID} }
	return rulebook.Ahead(policy, item(u), item(other)) != ""
}

// Times in API objects have a resolution of one second, and the scheduler decides after it reads and before it writes.
// So a unit counts as seen if it is decisionLag older than a decision. Two decisions within sameDecision may have been
// made in either order.
const (
	decisionLag  = 2 * time.Second
	sameDecision = time.Second
)

// decided is when it was decided that a unit goes first. A preemptor keeps its turn until its victims have ended.
type decided struct {
	// chose is when units that take chose their victims, by UID.
	chose map[string]time.Time
	// now is the latest time that a unit has named.
	now time.Time
}

func (d *decided) see(unit Unit) {
	for _, at := range []time.Time{unit.Created, unit.AdmittedAt} {
		if at.After(d.now) {
			d.now = at
		}
	}
	if _, known := d.chose[unit.UID]; unit.Takes && !known {
		d.chose[unit.UID] = d.now
	} else if !unit.Takes && !unit.Admitted {
		delete(d.chose, unit.UID)
	}
}

func (d *decided) at(unit Unit) time.Time {
	if at, chose := d.chose[unit.UID]; chose {
		return at
	}
	return unit.AdmittedAt
}

// suspect is an admission that passed a waiting unit, which was perhaps decided with it.
type suspect struct {
	passed string // UID of the unit that waited
	by     Unit
}

// suspect notes every unit that the admission of unit passed.
func (c *Checker) suspect(unit Unit) {
	policy, ok := c.blocking[unit.Queue]
	if !ok {
		return
	}
	if unit.AdmittedAt.IsZero() {
		c.report(Overtaken, unit.Key, "was admitted without a time, so that its order cannot be checked")
		return
	}
	for _, uid := range slices.Sorted(maps.Keys(c.units)) {
		waiting := c.units[uid]
		switch {
		case waiting.Queue != unit.Queue || waiting.Quota != unit.Quota,
			waiting.Admitted || waiting.Attempts > 0 || waiting.Parked,
			!waiting.before(unit, policy),
			c.decided.at(unit).Sub(waiting.Created) < decisionLag,
			c.Unsaid != nil && c.Unsaid(waiting, unit):
			continue
		}
		c.suspects = append(c.suspects, suspect{passed: uid, by: unit})
	}
}

// settle decides about the admissions that passed unit, now that it is admitted itself.
func (c *Checker) settle(unit Unit) {
	c.suspects = slices.DeleteFunc(c.suspects, func(s suspect) bool {
		if s.passed != unit.UID {
			return false
		}
		if late := unit.AdmittedAt.Sub(s.by.AdmittedAt); late > sameDecision {
			c.violations = append(c.violations, c.overtaken(s, fmt.Sprintf("was admitted %s later", late)))
		}
		return true
	})
}

// clear forgets the admissions that passed a unit which was not really in the queue.
func (c *Checker) clear(uid string) {
	c.suspects = slices.DeleteFunc(c.suspects, func(s suspect) bool { return s.passed == uid })
}

func (c *Checker) overtaken(s suspect, how string) Violation {
	waiting := c.units[s.passed]
	return Violation{Overtaken, s.by.Key, fmt.Sprintf(
		"priority %d was admitted in queue %s before %s, priority %d, which was created %s earlier and %s",
		s.by.Priority, s.by.Queue, waiting.Key, waiting.Priority, s.by.AdmittedAt.Sub(waiting.Created), how)}
}
