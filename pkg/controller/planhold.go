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

package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
)

// The owner of a job may hold it: it waits at its place and holds nothing. One that runs gives back what it holds
// first, and is suspended then, as any job that loses its admission. What cannot be suspended is held while it waits.
//
// A job that its owner suspends while it runs is held as well. Nothing but the write that resumes a job tells that from
// a job that was born suspended, or is suspended in an old cache: it stamps the job with its unit and attempt. A job
// that is suspended, without our mark, and bears the stamp of the present attempt was stopped by somebody else.

// checkHeld makes it a problem of the job that its owner holds it, unless it has another.
func (p *planner) checkHeld() {
	runs := p.Unit != nil && p.rel == own && stageOf(p.Unit.Status.Phase) == released
	switch {
	case p.demand.problem != nil:
	case p.Job.GetAnnotations()[v1alpha1.AnnotationHold] == "true" && (!runs || p.suspendable()):
		p.demand.problem = &problem{
			Reason:  reasonHeldByOwner,
			Message: "the annotation " + v1alpha1.AnnotationHold + " holds the job; the job keeps its position",
		}
	case p.suspendedByOwner() && !p.RequeuesSuspended:
		p.demand.problem = &problem{
			Reason: reasonSuspendedByOwner,
			Message: "the owner suspended the job; it keeps its position until its owner resumes it, " +
				"or is annotated with " + v1alpha1.AnnotationHold + "=false",
		}
	}
}

func (p *planner) heldByOwner() bool {
	held := p.demand.problem
	return held != nil && (held.Reason == reasonHeldByOwner || held.Reason == reasonSuspendedByOwner)
}

// suspendedByOwner says that somebody else than us has suspended the job since its unit was admitted last. A job that
// was adopted has never been resumed by us.
func (p *planner) suspendedByOwner() bool {
	if p.rel != own || !p.stopped() {
		return false
	}
	if _, stamped := p.Job.GetAnnotations()[v1alpha1.AnnotationResumed]; !stamped {
		return p.Unit.Status.Attempts == 1 // it was adopted
	}
	return p.wasResumed()
}

// stopped says that the job was let go once, or was adopted, and is suspended without our mark.
func (p *planner) stopped() bool {
	_, stamped := p.Job.GetAnnotations()[v1alpha1.AnnotationResumed]
	return p.Kind.CanBeSuspended() && p.Kind.Open(p.Job).Suspended() && !p.Kind.Open(p.Job).SuspendedByUs() &&
		(stamped || p.Unit.Annotations[v1alpha1.AnnotationAdopted] != "")
}

// wasResumed says that the job was resumed for the present attempt of its unit.
func (p *planner) wasResumed() bool {
	return p.Job.GetAnnotations()[v1alpha1.AnnotationResumed] == resumedStamp(p.Unit)
}

// resumedStamp is what the write that resumes a job puts into it.
func resumedStamp(u *v1alpha1.QueueUnit) string {
	return fmt.Sprintf("%s/%d", u.UID, u.Status.Attempts)
}

func stampResumed(job *unstructured.Unstructured, u *v1alpha1.QueueUnit) {
	annotations := job.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationResumed] = resumedStamp(u)
	job.SetAnnotations(annotations)
}

// unstamp takes the stamp back.
func unstamp(job *unstructured.Unstructured) {
	annotations := job.GetAnnotations()
	delete(annotations, v1alpha1.AnnotationResumed)
	if len(annotations) == 0 {
		annotations = nil
	}
	job.SetAnnotations(annotations)
}

// letGo takes back the annotation by which the owner lets a job go on, and that it was suspended by anybody but us.
func (p *planner) letGo() []Action {
	if p.Job.GetAnnotations()[v1alpha1.AnnotationHold] != "false" || p.Kind.OfPods() {
		return nil
	}
	after := p.Job.DeepCopy()
	annotations := after.GetAnnotations()
	delete(annotations, v1alpha1.AnnotationHold)
	after.SetAnnotations(annotations)
	step := PatchJob{Before: p.Job, After: after}
	if p.stopped() { // whatever attempt an old cache says that it is
		p.Kind.Edit(after).MarkSuspended()
		step.Event = event.Normal("LetGo", "Queue", "the owner released the job; it waits at its position")
	}
	return []Action{step}
}

// holdBack has the scheduler take the admission back. What comes after it is that the unit waits.
func (p *planner) holdBack() []Action {
	if active := p.Unit.Spec.Active; active != nil && !*active {
		return nil // that was asked for, by us or by a person
	}
	after := p.Unit.DeepCopy()
	park(after, p.demand.problem)
	note := "the owner suspended the job; its quota is free, and it keeps its position"
	if p.demand.problem.Reason == reasonHeldByOwner {
		after.Annotations[v1alpha1.AnnotationHold] = "true" // as units have it that wait, or they would be written once more
		note = "the job is held by its annotation " + v1alpha1.AnnotationHold +
			"; its quota is free, and it keeps its position"
	}
	return []Action{PatchUnit{Before: p.Unit, After: after, Event: event.Normal("Held", "Queue", note)}}
}

// requeueSuspended has a job that its owner suspended wait again, where its queue wants that.
func (p *planner) requeueSuspended() Action {
	after := p.Unit.DeepCopy()
	park(after, &problem{Reason: reasonSuspendedByOwner})
	return PatchUnit{Before: p.Unit, After: after, Event: event.Normal("Requeued", "Queue",
		"the owner suspended the job; its queue requeues such jobs at their position")}
}
