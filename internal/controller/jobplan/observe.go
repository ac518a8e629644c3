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

package jobplan

import (
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// Of an observed job the controller writes the unit, and neither the job nor an event: its owner has not asked for a
// queue. The mode of a unit never changes. When that of the job does, the unit is deleted, and the job gets another one
// as if the queue had just been installed.

// observedRules are those of an observed job whose unit is so as well, or is not its own.
var observedRules = rules{observeNew, observeOther, observeWaiting}

func hasObservedUnit(own *v1alpha1.QueueUnit) bool { return own != nil && own.Observed() }

// observe decides about a job that is observed, or has an observed unit.
func observe(s *Situation) Decision {
	if d, ended := finish(s); ended {
		return d
	}
	switch observed := hasObservedUnit(s.own()); {
	case s.Job.Object.GetDeletionTimestamp() != nil:
		return Decision{} // the unit goes with its owner
	case observed && !(s.Managed && s.Observed):
		return do(DeleteUnit{Unit: s.Unit})
	case !s.Managed, s.rel == jobunit.Own && !observed:
		return unmanaged(s)
	case s.Kind.Child != nil && !s.Job.HasChild():
		return Decision{} // the request is not known yet
	}
	if d, answers := observedRules.answer(s); answers {
		return d
	}
	if StartsToRun(s.Job, s.Unit) {
		return mirrorStart(s)
	}
	return report(s)
}

// observeNew gives a job its unit, unless it has no pods.
func observeNew(s *Situation) (Decision, bool) {
	switch {
	case s.rel != jobunit.Absent:
		return Decision{}, false
	case !jobs.CanBeSuspended(s.Job) && s.ask().Empty():
		return Decision{}, true
	default:
		return do(CreateUnit{Unit: s.ask().Unit}), true
	}
}

// observeOther deletes a unit of another job of this name, or one of a finished job. It leaves units of other people
// alone.
func observeOther(s *Situation) (Decision, bool) {
	switch {
	case s.rel == jobunit.Foreign:
		return Decision{}, true
	case s.rel == jobunit.Stale, stageOf(s.Unit.Status.Phase) == over:
		return do(DeleteUnit{Unit: s.Unit}), true
	default:
		return Decision{}, false
	}
}

// observeWaiting keeps a unit true while it would wait, and says what is wrong with its job.
func observeWaiting(s *Situation) (Decision, bool) {
	if stageOf(s.Unit.Status.Phase) != waiting {
		return Decision{}, false
	}
	d, _ := correct(s)
	return d, true
}
