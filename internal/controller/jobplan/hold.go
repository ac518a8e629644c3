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
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownerhold"
)

// letGo takes back the annotation by which the owner lets a job go on, and that it was suspended by anybody but us.
func letGo(s *Situation) (Decision, bool) {
	if s.Job.Object.GetAnnotations()[v1alpha1.AnnotationHold] != "false" || s.Kind.OfPods() {
		return Decision{}, false
	}
	after := s.Job.Edit()
	after.Annotate(v1alpha1.AnnotationHold, "")
	step := PatchJob{Before: s.Job}
	if ownerhold.Stopped(s.Job, s.Unit) { // whatever attempt an old cache says that it is
		after.MarkSuspended()
		step.Event = event.Normal("LetGo", "Queue", "the owner released the job; it waits at its position")
	}
	step.After = after.Job()
	return do(step), true
}

// holdBack has the scheduler take the admission back. Afterwards the unit waits.
func holdBack(s *Situation) (Decision, bool) {
	held := ownerhold.Problem(s.Job, s.Unit, s.RequeuesSuspended)
	switch {
	case held == nil || s.ask().Problem().Reason != held.Reason: // something else is wrong with the job
		return Decision{}, false
	case s.Unit.Inactive():
		return Decision{}, true // that was asked for, by us or by a person
	}
	note := "the owner suspended the job; its quota is free, and it keeps its position"
	after := jobunit.Parked(s.Unit, held)
	if held.Reason == unitcondition.ReasonHeldByOwner {
		// As units have it that wait, or they would be written once more.
		key := ownerhold.Key(s.Job)
		jobunit.Annotate(after, key, s.Job.Object.GetAnnotations()[key])
		note = "the job is held by its annotation " + key + "; its quota is free, and it keeps its position"
	}
	return do(PatchUnit{Before: s.Unit, After: after, Event: event.Normal("Held", "Queue", note)}), true
}

// requeueSuspended has a job that its owner suspended wait again, where its queue wants that.
func requeueSuspended(s *Situation) (Decision, bool) {
	if !ownerhold.Suspended(s.Job, s.own()) {
		return Decision{}, false
	}
	after := jobunit.Parked(s.Unit, &jobunit.Problem{Reason: unitcondition.ReasonSuspendedByOwner})
	return do(PatchUnit{Before: s.Unit, After: after, Event: event.Normal("Requeued", "Queue",
		"the owner suspended the job; its queue requeues such jobs at their position")}), true
}

// leaveParked: the scheduler takes the admission back, then the unit is set right where it waits.
func leaveParked(s *Situation) (Decision, bool) {
	reason := s.Unit.Annotations[v1alpha1.AnnotationParkedReason]
	return Decision{}, s.Unit.Inactive() && (reason == unitcondition.ReasonEstimateChanged ||
		reason == unitcondition.ReasonQuotaChanged || reason == unitcondition.ReasonSuspendedByOwner)
}
