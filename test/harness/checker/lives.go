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
	"strconv"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// exists says whether a job is there, and not about to go.
func (c *Checker) exists(job string) bool {
	j, known := c.jobs[job]
	return known && !c.gone[job] && !j.Deleting
}

// judgeUnit compares the next state of a unit with the one before (I2, I3, I9).
func (c *Checker) judgeUnit(is, was Unit, known, deleted bool) {
	if deleted {
		switch {
		case c.exists(is.Job):
			c.report(UnitLost, is.Key, "was deleted in phase %s while its job was there", is.Phase)
		case is.Job == "" && rulebook.Holds(was.Phase):
			c.report(AdmissionLost, is.Key, "was deleted in phase %q", was.Phase)
		}
		return
	}
	// An outdated cache can recreate the unit of a deleted job; the garbage collector removes it.
	if first := c.first[is.Job]; first != "" && first != is.UID && c.exists(is.Job) {
		c.report(SecondUnit, is.Key, "is not the first unit of its job")
	}
	if is.Job != "" {
		c.first[is.Job] = is.UID
	}
	if known {
		c.judgeChange(is, was)
	}
	if is.Phase == unit.PhaseDequeued && was.Phase != is.Phase {
		c.dequeuedIn(is)
	}
}

func (c *Checker) judgeChange(is, was Unit) {
	if is.Phase != was.Phase && !rulebook.Follows(was.Phase, is.Phase, "scheduler") &&
		!rulebook.Follows(was.Phase, is.Phase, "controller") {
		c.report(IllegalPhase, is.Key, "%q became %q", was.Phase, is.Phase)
	}
	held := rulebook.Holds(was.Phase) && rulebook.Holds(is.Phase)
	if is.Attempts < was.Attempts || held && was.Attempts > 0 && is.Attempts != was.Attempts {
		c.report(Attempts, is.Key, "from %d in phase %q to %d in phase %q", was.Attempts, was.Phase, is.Attempts, is.Phase)
	}
	lost := rulebook.Holds(was.Phase) && !rulebook.Holds(is.Phase) && !rulebook.Over(is.Phase)
	if lost && (is.Job == "" || c.exists(is.Job)) && !c.again(is) {
		c.report(AdmissionLost, is.Key, "%q became %q", was.Phase, is.Phase)
	}
}

// dequeuedIn counts a release in an attempt.
func (c *Checker) dequeuedIn(qu Unit) {
	key := qu.UID + "/" + strconv.FormatInt(qu.Attempts, 10)
	if c.dequeued[key]++; c.dequeued[key] > 1 {
		c.report(DequeuedTwice, qu.Key, "became Dequeued %d times in attempt %d", c.dequeued[key], qu.Attempts)
	}
}

// again says whether a unit may lose its admission and get another.
func (c *Checker) again(qu Unit) bool { return c.Again != nil && c.Again(qu) }

// applyJob takes the next state of a job.
func (c *Checker) applyJob(is Job, deleted bool) {
	if deleted {
		c.gone[is.UID] = true
		return
	}
	was, known := c.jobs[is.UID]
	c.jobs[is.UID] = is
	if !known || is.Part {
		return
	}
	switch phase := c.UnitFor(is.UID).Phase; {
	case was.Suspended && !is.Suspended && !rulebook.Holds(phase):
		c.report(ResumedUnadmitted, is.Name, "was resumed while its unit was %q", phase)
	case !was.Suspended && is.Suspended && rulebook.Holds(phase):
		c.report(SuspendedAdmitted, is.Name, "was suspended while its unit was %q", phase)
	}
}
