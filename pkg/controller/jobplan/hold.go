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
	"fmt"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/unitcondition"
)

// The owner of a job can put it on hold: the job keeps its position and holds no quota. A running job first gives back
// its quota and is then suspended, like every job that loses its admission. A job that cannot be suspended can be put
// on hold only while it waits.
//
// A job that its owner suspends while it runs is on hold as well. Such a job looks like a job that was created
// suspended, and like a suspended job in an outdated cache. To tell them apart, the write that resumes a job stamps it
// with its unit and attempt. If a suspended job has the stamp of the present attempt and no mark of the controller,
// somebody else suspended it.

// held is the problem of a job that its owner holds; nil if he does not.
func held(s *Situation) *jobunit.Problem {
	runs := s.rel == jobunit.Own && stageOf(s.Unit.Status.Phase) == released
	switch {
	case holdKey(s) != "" && (!runs || suspendable(s)):
		return &jobunit.Problem{
			Reason:  unitcondition.ReasonHeldByOwner,
			Message: "the annotation " + holdKey(s) + " holds the job; the job keeps its position",
		}
	case suspendedByOwner(s) && !s.RequeuesSuspended:
		return &jobunit.Problem{
			Reason: unitcondition.ReasonSuspendedByOwner,
			Message: "the owner suspended the job; it keeps its position until its owner resumes it, " +
				"or is annotated with " + v1alpha1.AnnotationHold + "=false",
		}
	default:
		return nil
	}
}

// holdKey is the annotation by which the owner holds the job, "" if none does. The former one counts without the other.
func holdKey(s *Situation) string {
	annotations := s.Job.Object.GetAnnotations()
	switch hold, said := annotations[v1alpha1.AnnotationHold]; {
	case hold == "true":
		return v1alpha1.AnnotationHold
	case !said && annotations[v1alpha1.AnnotationActive] == "false":
		return v1alpha1.AnnotationActive
	default:
		return ""
	}
}

// suspendedByOwner says that somebody else than us has suspended the job since its unit was admitted last. A job that
// was adopted has never been resumed by us.
func suspendedByOwner(s *Situation) bool {
	if s.rel != jobunit.Own || !stopped(s) {
		return false
	}
	if _, stamped := stampOf(s); !stamped {
		return s.Unit.Status.Attempts == 1 && lostToOthers(s.Unit) == nil // it was adopted
	}
	return wasResumed(s)
}

// stopped says that the job was let go once, or was adopted, and is suspended without our mark.
func stopped(s *Situation) bool {
	_, stamped := stampOf(s)
	return jobs.CanBeSuspended(s.Job) && s.Job.Suspended() && !s.Job.SuspendedByUs() &&
		(stamped || s.Unit.Annotations[v1alpha1.AnnotationAdopted] != "")
}

func stampOf(s *Situation) (stamp string, stamped bool) {
	stamp, stamped = s.Job.Object.GetAnnotations()[v1alpha1.AnnotationResumed]
	return stamp, stamped
}

// wasResumed says that the job was resumed for the present attempt of its unit.
func wasResumed(s *Situation) bool {
	stamp, _ := stampOf(s)
	return stamp == resumedStamp(s.Unit)
}

// resumedStamp is what the write that resumes a job puts into it.
func resumedStamp(u *v1alpha1.QueueUnit) string {
	return fmt.Sprintf("%s/%d", u.UID, u.Status.Attempts)
}

// letGo takes back the annotation by which the owner lets a job go on, and that it was suspended by anybody but us.
func letGo(s *Situation) (Decision, bool) {
	if s.Job.Object.GetAnnotations()[v1alpha1.AnnotationHold] != "false" || s.Kind.OfPods() {
		return Decision{}, false
	}
	after := s.Job.Edit()
	after.Annotate(v1alpha1.AnnotationHold, "")
	step := PatchJob{Before: s.Job}
	if stopped(s) { // whatever attempt an old cache says that it is
		after.MarkSuspended()
		step.Event = event.Normal("LetGo", "Queue", "the owner released the job; it waits at its position")
	}
	step.After = after.Job()
	return do(step), true
}

// holdBack has the scheduler take the admission back. What comes after it is that the unit waits.
func holdBack(s *Situation) (Decision, bool) {
	held := s.demand.Problem
	switch {
	case held == nil ||
		held.Reason != unitcondition.ReasonHeldByOwner && held.Reason != unitcondition.ReasonSuspendedByOwner:
		return Decision{}, false
	case !isActive(s.Unit):
		return Decision{}, true // that was asked for, by us or by a person
	}
	note := "the owner suspended the job; its quota is free, and it keeps its position"
	after := jobunit.Parked(s.Unit, held)
	if held.Reason == unitcondition.ReasonHeldByOwner {
		// As units have it that wait, or they would be written once more.
		key := holdKey(s)
		jobunit.Annotate(after, key, s.Job.Object.GetAnnotations()[key])
		note = "the job is held by its annotation " + key + "; its quota is free, and it keeps its position"
	}
	return do(PatchUnit{Before: s.Unit, After: after, Event: event.Normal("Held", "Queue", note)}), true
}

// requeueSuspended has a job that its owner suspended wait again, where its queue wants that.
func requeueSuspended(s *Situation) (Decision, bool) {
	if !suspendedByOwner(s) {
		return Decision{}, false
	}
	after := jobunit.Parked(s.Unit, &jobunit.Problem{Reason: unitcondition.ReasonSuspendedByOwner})
	return do(PatchUnit{Before: s.Unit, After: after,
		Event: event.Normal("Requeued", "Queue",
			"the owner suspended the job; its queue requeues such jobs at their position")}), true
}

// leaveParked: the scheduler takes the admission back, then the unit is set right where it waits.
func leaveParked(s *Situation) (Decision, bool) {
	reason := s.Unit.Annotations[v1alpha1.AnnotationParkedReason]
	return Decision{}, !isActive(s.Unit) &&
		(reason == unitcondition.ReasonEstimateChanged || reason == unitcondition.ReasonSuspendedByOwner)
}
