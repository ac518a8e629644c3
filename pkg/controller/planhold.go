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
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// The owner of a job may hold it: it waits at its place and holds nothing. One that runs gives back what it holds
// first, and is suspended then, as any job that loses its admission. What cannot be suspended is held while it waits.

// checkHeld makes it a problem of the job that its owner holds it, unless it has another.
func (p *planner) checkHeld() {
	runs := p.Unit != nil && p.rel == own && stageOf(p.Unit.Status.Phase) == released
	if p.demand.problem != nil || p.Job.GetAnnotations()[v1alpha1.AnnotationHold] != "true" || runs && !p.suspendable() {
		return
	}
	p.demand.problem = &problem{
		Reason:  reasonHeldByOwner,
		Message: "the job is held by its annotation " + v1alpha1.AnnotationHold + "; it keeps its place until that is gone",
	}
}

func (p *planner) heldByOwner() bool {
	return p.demand.problem != nil && p.demand.problem.Reason == reasonHeldByOwner
}

// holdBack has the scheduler take the admission back. What comes after it is that the unit waits.
func (p *planner) holdBack() []Action {
	if active := p.Unit.Spec.Active; active != nil && !*active {
		return nil // that was asked for, by us or by a person
	}
	after := p.Unit.DeepCopy()
	park(after, p.demand.problem)
	after.Annotations[v1alpha1.AnnotationHold] = "true" // as units have it that wait, or they would be written once more
	return []Action{PatchUnit{Before: p.Unit, After: after, Event: normal("Held", "Queue",
		"the job is held by its annotation "+v1alpha1.AnnotationHold+"; it gives its quota back and keeps its place")}}
}
