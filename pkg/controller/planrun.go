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
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// runningDelay is for how long a job runs before its unit says so: nobody reads it of one that ends sooner, and it
// would be a fourth of what such a job has written.
const runningDelay = 2 * time.Second

// run lets an admitted job go and mirrors that it runs.
func (p *planner) run() []Action {
	if p.heldByOwner() {
		return p.holdBack()
	}
	if p.deactivates() {
		return []Action{p.deactivate()} // the unit before it was, and this one was adopted
	}
	if !p.Kind.Open(p.Job).Suspended() {
		running := p.Kind.Open(p.Job).Running()
		if p.Kind.Open(p.Job).SuspendedByUs() {
			return p.resumeAnew(running)
		}
		if actions := p.recharge(); actions != nil {
			return actions
		}
		if actions := p.follow(); actions != nil {
			return actions
		}
		if actions := p.mirrorStart(); actions != nil {
			return append(p.tellQuota(), actions...)
		}
		return append(p.tellQuota(), p.report()...)
	}
	if p.parkedFor(reasonEstimateChanged) || p.parkedFor(reasonSuspendedByOwner) {
		return nil // the scheduler takes the admission back, then the unit is set right where it waits
	}
	if p.suspendedByOwner() {
		return []Action{p.requeueSuspended()}
	}
	if actions := p.reclaimed(); actions != nil {
		return actions
	}
	if !p.truthful() {
		if p.estimatedOtherwise() {
			return []Action{p.reconsider()}
		}
		return []Action{DeleteUnit{Unit: p.Unit, Event: event.Warning("UnitReplaced", "Delete",
			"the job no longer has the admitted request; it waits again")}}
	}
	return p.resume()
}

// follow keeps the size that the unit asks for that of its job while the job runs. What is beyond what the unit holds
// it has to wait for; what is less it gives back. As long as the job has the pods that it was admitted with in part,
// its unit stays as it is. Whether it is preemptible was decided when it was admitted: what it has borrowed is not what
// is promised.
func (p *planner) follow() []Action {
	have, want := p.Unit.Spec.PodSets, p.want.Spec.PodSets
	sameName := func(a, b v1alpha1.PodSet) bool { return a.Name == b.Name }
	if p.demand.problem != nil || !slices.EqualFunc(have, want, sameName) {
		return nil
	}
	after := p.Unit.DeepCopy()
	before, now := int64(0), int64(0)
	for i := range want {
		set := &after.Spec.PodSets[i]
		p.resize(set, want[i].Count)
		before, now = before+int64(have[i].Count), now+int64(set.Count)
	}
	correctTime(after, p.want)
	request := p.demand.of(after.Spec.PodSets, p.Creation)
	if !equality.Semantic.DeepEqual(after.Spec.Request, request) {
		after.Spec.Request, after.Spec.Resource = request, nil
	}
	if !p.relabelled() && after.Labels != nil {
		for _, key := range v1alpha1.QuotaLabels {
			set(after.Labels, key, p.want.Labels[key])
		}
	}
	if equality.Semantic.DeepEqual(after, p.Unit) {
		return nil
	}
	step := PatchUnit{Before: p.Unit, After: after}
	switch {
	case now > before:
		step.Event = event.Normal("Grows", "Queue",
			fmt.Sprintf("the job asks for %d pods instead of %d; the additional pods wait for quota", now, before))
	case now < before:
		step.Event = event.Normal("Shrinks", "Queue",
			fmt.Sprintf("the job asks for %d pods instead of %d; the quota of the others is free again", now, before))
	}
	return []Action{step}
}

// relabelled says whether a running job names another quota than its pods were made with. They stay charged to that
// one, and so does the unit, until the job is resumed anew.
func (p *planner) relabelled() bool {
	return p.Unit.Labels[v1alpha1.LabelQuotaName] != p.want.Labels[v1alpha1.LabelQuotaName] && p.chargedElsewhere()
}

func (p *planner) tellQuota() []Action {
	if p.demand.problem != nil || !p.relabelled() {
		return nil
	}
	return []Action{Tell{Event: event.Warning("QuotaChanged", "Queue", fmt.Sprintf(
		"the job names quota %q now; while it runs, its pods are charged to quota %q of its admission",
		p.want.Labels[v1alpha1.LabelQuotaName], p.Unit.Labels[v1alpha1.LabelQuotaName]))}}
}

// mirrorStart says that the job runs, once it has for a while.
func (p *planner) mirrorStart() []Action {
	if !startsToRun(p.Kind, p.Job, p.Unit) {
		return nil
	}
	since := p.Now
	if p.RunningSince != nil {
		since = *p.RunningSince
	}
	if ran := p.Now.Sub(since.Time); ran < runningDelay {
		return []Action{PlanLater{After: runningDelay - ran}}
	}
	return []Action{PatchUnitStatus{Before: p.Unit, After: becomeRunning(p.Unit, p.countPods(), p.Now, since),
		Event: event.Normal("Running", "Run", "pods of the job run")}}
}

// startsToRun: pods of an admitted job run, and its unit does not say so yet. Until the job's controller has noted the
// resumption, their count is that of an earlier run.
func startsToRun(kind *jobs.Kind, job *unstructured.Unstructured, unit *v1alpha1.QueueUnit) bool {
	return unit != nil && stageOf(unit.Status.Phase) == released && unit.Status.Phase != v1alpha1.PhaseRunning &&
		kind.Open(job).Running() > 0 && !kind.Open(job).Suspended() && !kind.Open(job).SuspensionSeen()
}

// resumeAnew is for a job that bears our mark and was resumed by hand just before it was admitted. The gate holds its
// pods for as long as the mark is there. So it is suspended again, and then resumed with all that its pods need; where
// pods run, the mark alone is taken away.
func (p *planner) resumeAnew(running int64) []Action {
	if running > 0 {
		after := p.Job.DeepCopy()
		p.Kind.Edit(after).UnmarkSuspended()
		return []Action{PatchJob{Before: p.Job, After: after}}
	}
	return []Action{p.suspendToRecharge()}
}

func (p *planner) suspendToRecharge() Action {
	after := p.Job.DeepCopy()
	if err := p.Kind.Edit(after).SetSuspend(true); err != nil {
		return Tell{Event: event.Warning("CannotSuspend", "Suspend", event.Short(err.Error()))}
	}
	p.Kind.Edit(after).MarkSuspended()
	return PatchJob{Before: p.Job, After: after, Event: event.Normal("Suspended", "Suspend",
		"its pods lack the label of its quota or updates of admission checks; "+
			"the job is resumed with them")}
}

// recharge is for an admitted job whose pods are not charged where its unit holds quota, or lack what admission checks
// asked for: it was resumed by hand, or ran before it was queued. The gate lets none of the former go. As soon as no
// pod of it is on a node it is suspended, and then resumed with what its pods need.
func (p *planner) recharge() []Action {
	if !p.suspendable() || !p.hasPending() || !p.chargedElsewhere() && !p.lacksUpdates() {
		return nil
	}
	switch p.bound() {
	case BoundUnknown:
		return []Action{LookAtPods{}}
	case BoundNone:
		return []Action{p.suspendToRecharge()}
	case BoundSome:
		return nil
	default:
		return nil
	}
}

// hasPending says whether pods of the job may be on no node: there are more than are ready, or nobody says how many
// there are and none is ready.
func (p *planner) hasPending() bool {
	running := p.Kind.Open(p.Job).Running()
	if !p.Kind.CountsPods() {
		return running == 0
	}
	return p.Kind.Open(p.Job).Active() > running
}

// truthful says whether what was admitted is what the job asks for (I3).
func (p *planner) truthful() bool {
	return p.demand.problem == nil &&
		p.Unit.Spec.ConsumerRef.UID == p.Job.GetUID() &&
		p.sameQuota() && p.covered()
}

// sameQuota says whether the unit was admitted in the quota that the job names, and drew on as much of it.
func (p *planner) sameQuota() bool {
	have, want := p.Unit.Labels, p.want.Labels
	return have[v1alpha1.LabelQuotaName] == want[v1alpha1.LabelQuotaName] &&
		(have[v1alpha1.LabelPreemptible] == "false") == (want[v1alpha1.LabelPreemptible] == "false")
}

// estimatedOtherwise says whether the unit differs in nothing that the job itself says: what the cluster does to its
// pods has changed since it was estimated.
func (p *planner) estimatedOtherwise() bool {
	have, want := p.Unit, p.want
	if !createdByUs(have) || p.demand.problem != nil || have.Spec.ConsumerRef.UID != p.Job.GetUID() ||
		!sameScheduling(have.Spec.PodSets, want.Spec.PodSets) {
		return false
	}
	return !p.sameQuota() || !equality.Semantic.DeepEqual(have.Spec.Request, want.Spec.Request)
}

// reconsider has the unit give its admission back. It keeps its place, as a unit that was deleted would not (I5).
func (p *planner) reconsider() Action {
	after := p.Unit.DeepCopy()
	park(after, &problem{Reason: reasonEstimateChanged})
	return PatchUnit{Before: p.Unit, After: after, Event: event.Warning("EstimateChanged", "Queue",
		"Koordinator would count the pods of the job differently now; it waits again at its position")}
}

// parkedFor says whether the unit was made inactive for this reason.
func (p *planner) parkedFor(reason string) bool {
	active := p.Unit.Spec.Active
	return active != nil && !*active && p.Unit.Annotations[v1alpha1.AnnotationParkedReason] == reason
}
