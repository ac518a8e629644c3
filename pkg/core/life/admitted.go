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
	isNotTaken,
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

// staysInItsQuota has a unit that names another quota than it holds quota in wait for that one, as soon as none of its
// pods is on a node. Until then it stays where its pods are charged.
func staysInItsQuota(f *Facts) breach {
	if !f.Unit.Leaves() || f.Pods.Assigned > 0 {
		return breach{}
	}
	return broken(unit.ReasonQuotaChanged,
		"the job names quota %q now; it gives back what it holds in quota %q and waits", f.Unit.MovesTo, f.Unit.Quota)
}

// isAnsweredFor has a unit that was let go and holds nothing wait in line, if admission checks have to answer for all
// that it asks for. It could not get that as growth, and has nothing to lose.
func isAnsweredFor(f *Facts) breach {
	u := f.Unit
	if !u.Phase.Releases() || !u.Wants().IsZero() || u.Request.IsZero() || len(AdmissionChecks(f)) == 0 ||
		Unfit(u) || f.Pods.Assigned > 0 {
		return breach{}
	}
	return broken(unit.ReasonChecksChanged, "the job holds nothing and asks for %s, which admission checks did not "+
		"answer for; it waits to be admitted with that", u.Request)
}

// isNotTaken has a unit give what it holds to one that has the right to it, see package reclaim.
func isNotTaken(f *Facts) breach {
	switch by := f.TakenBy; {
	case by == "" || keepsPods(f):
		return breach{}
	case by == f.Unit.Quota: // one of higher priority
		return broken(unit.ReasonPreemptedInQueue,
			"queue %q gives what the job held to one of higher priority; the job waits for room", f.Unit.Queue)
	default:
		return broken(unit.ReasonReclaimed,
			"quota %q takes back its min, which quota %q had borrowed; the job waits for room", by, f.Unit.Quota)
	}
}

// keepsPods says that a unit has pods on nodes that cannot be taken away: those that nobody owns, whose unit has no
// consumer, and those of a job that cannot be suspended.
func keepsPods(f *Facts) bool {
	return (f.Unit.Consumer == unit.Consumer{} || f.Unit.Unsuspendable) && f.Pods.Assigned > 0
}
