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

package life

import (
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// keeps are the rules that an admitted unit must not break, in order. A unit that breaks one loses its admission.
var keeps = []rule{
	alone(consumerIsNear), jobIsNotGone, isActive, standsForItsJob, queueDoesNotDrain, staysInItsQuota, isAnsweredFor,
	isNotPreempted,
}

// keepsObserved are those that an admitted observed unit must not break. Nobody else has it lose its admission, since
// its pods would run on.
var keepsObserved = []rule{alone(consumerIsNear), jobIsNotGone, isActive, standsForItsJob, staysInItsQuota}

// jobIsGone says that the job of a unit is known not to exist, so that nothing can use what the unit holds.
func jobIsGone(f *Facts) bool {
	return consumerIsNear(f.Unit).reason == "" && (f.Job == owner.Another || f.Job == owner.Gone)
}

// jobIsNotGone: a consumer that nobody has reported yet is no reason, for informers of two kinds race.
func jobIsNotGone(f *Facts) breach {
	switch f.Job {
	case owner.Another:
		return breach{reason: unit.ReasonConsumerUIDMismatch, message: f.JobSaid}
	case owner.Gone:
		return breach{reason: unit.ReasonConsumerNotFound, message: f.JobSaid}
	case owner.Live, owner.NotSeen:
	}
	return breach{}
}

// queueDoesNotDrain leaves those alone whose pods cannot be taken away: they would use quota that nobody holds.
func queueDoesNotDrain(f *Facts) breach {
	if !f.Queue.Drains || keepsPods(f) {
		return breach{}
	}
	return broken(unit.ReasonQueueDrained, "queue %q takes back what it has admitted", f.Unit.Queue)
}

// staysInItsQuota moves a unit that names another quota than it holds into line there, as soon as no pod of it is on a
// node.
func staysInItsQuota(f *Facts) breach {
	if !f.Unit.Leaves() || f.Pods.Assigned > 0 {
		return breach{}
	}
	return broken(unit.ReasonQuotaChanged,
		"the job names quota %q now; it gives back what it holds in quota %q and waits", f.Unit.MovesTo, f.Unit.Quota)
}

// isAnsweredFor returns a released unit that holds nothing to its line, if admission checks have to answer for its
// whole request. Such a request cannot be growth, and the unit has nothing to lose.
func isAnsweredFor(f *Facts) breach {
	u := f.Unit
	if !u.Phase.Releases() || !u.Wants().IsZero() || u.Request.IsZero() || len(AdmissionChecks(f)) == 0 ||
		Unfit(u) || f.Pods.Assigned > 0 {
		return breach{}
	}
	return broken(unit.ReasonChecksChanged, "the job holds nothing and asks for %s, which admission checks did not "+
		"answer for; it waits to be admitted with that", u.Request)
}

// isNotPreempted evicts a unit for its preemptor, which has the right to that, see package reclaim.
func isNotPreempted(f *Facts) breach {
	switch by := f.PreemptedFor; {
	case by == "" || keepsPods(f):
		return breach{}
	case by == f.Unit.Quota: // one of higher priority
		return broken(unit.ReasonPreemptedInQueue,
			"queue %q gives what the job held to one of higher priority; the job waits for room", f.Unit.Queue)
	case f.Unit.GangGroup != "": // other units of it may be those that borrowed
		return broken(unit.ReasonReclaimed,
			"quota %q gets what the gang group of the job held; the job waits for room", by)
	default:
		return broken(unit.ReasonReclaimed,
			"quota %q takes back its min, which quota %q had borrowed; the job waits for room", by, f.Unit.Quota)
	}
}

// keepsPods says that a unit has pods on nodes that nobody can remove: the unit has no consumer, or its job cannot be
// suspended.
func keepsPods(f *Facts) bool {
	return (f.Unit.Consumer == unit.Consumer{} || f.Unit.Unsuspendable) && f.Pods.Assigned > 0
}
