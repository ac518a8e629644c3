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

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
)

// wait keeps the job suspended and its unit true while it is in the queue.
func (p *planner) wait() []Action {
	if !p.Kind.Open(p.Job).Suspended() && (p.suspendable() || p.adopting()) {
		return p.holdOrAdopt()
	}
	if p.deactivates() {
		return []Action{p.deactivate()}
	}
	if actions := p.correct(); actions != nil {
		return actions
	}
	return p.restore()
}

// holdOrAdopt: a job that is not admitted is suspended, unless its adoption has only begun.
func (p *planner) holdOrAdopt() []Action {
	if !p.FreshUnit {
		// The cache of units may be behind that of jobs, after a start above all: a job that has just been resumed is not
		// suspended again on old news, which would take its pods away.
		return []Action{ReadUnit{}}
	}
	switch {
	case p.adopting():
	case p.madeNoPod() && p.Refusal == nil:
		return []Action{LookAtRefusals{}}
	default:
		return append([]Action{p.suspend()}, p.tellRefusal()...)
	}
	switch p.Bound { // looked at again: anybody who may write units could have written the annotation
	case BoundUnknown:
		return []Action{LookAtPods{}}
	case BoundSome:
		if !p.demand.counted() {
			// What it holds cannot be said. Its pods on nodes are in used, it is left alone, and its unit says what is wrong.
			if after := becomeParked(p.Unit, p.demand.problem, p.Now); after != nil {
				return []Action{PatchUnitStatus{Before: p.Unit, After: after}}
			}
			return nil
		}
		after := becomeAdopted(p.Unit, p.countPods(), p.Now)
		return []Action{PatchUnitStatus{Before: p.Unit, After: after}}
	case BoundNone:
		if !p.suspendable() {
			return p.correct()
		}
		return []Action{p.suspend()}
	default:
		return nil
	}
}

func (p *planner) adopting() bool {
	phase := p.Unit.Status.Phase
	return p.Unit.Annotations[v1alpha1.AnnotationAdopted] != "" && !evicted(p.Unit) &&
		(phase == "" || phase == v1alpha1.PhaseEnqueued) && (p.Unit.Spec.Active == nil || *p.Unit.Spec.Active)
}

// correct sets the unit right while it holds nothing, and says in its condition what is wrong with the job.
func (p *planner) correct() []Action {
	if holdsQuota(p.Unit.Status.Phase) {
		return nil
	}
	if after := corrected(p.Unit, p.want); after != nil {
		step := PatchUnit{Before: p.Unit, After: after}
		if !createdByUs(p.Unit) {
			step.Event = event.Warning("UnitCorrected", "Correct",
				fmt.Sprintf("QueueUnit %s was changed by another client; its request is that of the job again", p.Unit.Name))
		}
		return []Action{step}
	}
	if actions := p.reclaimed(); actions != nil {
		return actions
	}
	if p.demand.problem == nil || inactiveByHand(p.Unit) {
		return nil
	}
	if after := becomeParked(p.Unit, p.demand.problem, p.Now); after != nil {
		return []Action{PatchUnitStatus{Before: p.Unit, After: after}}
	}
	return nil
}

// reopen replaces a unit that says the job is over while it is not: somebody wrote its status, and the job would
// never run.
func (p *planner) reopen() []Action {
	return []Action{DeleteUnit{Unit: p.Unit, Event: event.Warning("UnitReplaced", "Delete",
		fmt.Sprintf("QueueUnit %s had ended, and the job has not; the job gets a new QueueUnit", p.Unit.Name))}}
}
