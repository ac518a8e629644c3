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
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// The rules, by the stage that a job is in.
var (
	managedRules = rules{
		finish, awaitChild, stopWithoutUnit, enter, replaceStale, yieldName, takeOver, withdrawOverdue, letGo,
	}
	// takeOut restores a job whose unit is about to be deleted. Only the answers in the unit
	// tell the updates from what the owner wrote. The next answers may contradict them.
	takeOut        = rules{resetEarly, restore}
	waitingRules   = rules{holdOrAdopt, giveBack, deactivate, correct, resetEarly, restore, forget}
	runningRules   = rules{holdBack, deactivate, resumeAnew, withdrawNotice, recharge, follow, mirror}
	suspendedRules = rules{
		holdBack, deactivate, leaveParked, requeueSuspended, reclaim, reconsider, replaceUntrue,
		readAgain, awaitPods, resume,
	}
)

// Decide what to do about one job (I13).
func Decide(s Situation) Decision {
	d := decide(&s)
	if needsFreshJob(&s, d) {
		return look(LookAtJob)
	}
	if d.Look != LookNowhere {
		return look(d.Look)
	}
	return d
}

func decide(s *Situation) Decision {
	if s.Job == nil {
		return orphan(s)
	}
	s.rel = jobunit.Relate(s.Job, s.Unit)
	if s.Observed || hasObservedUnit(s.own()) {
		return observe(s)
	}
	if s.Job.Object.GetDeletionTimestamp() != nil {
		return overdueInDeletion(s) // the unit goes with its owner
	}
	if !s.Managed && !isReleased(s.Job, s.own()) && !mustStop(s) {
		return unmanaged(s)
	}
	d, answers := managedRules.answer(s)
	if answers {
		return d
	}
	switch stage := stageOf(s.Unit.Status.Phase); {
	case stage == over:
		d = reopen(s.Unit)
	case stage == waiting:
		d, _ = waitingRules.answer(s)
	case s.Job.Suspended():
		d, _ = suspendedRules.answer(s)
	default:
		d, _ = runningRules.answer(s)
	}
	return d
}

// orphan removes a unit of ours whose job is gone.
func orphan(s *Situation) Decision {
	u := s.Unit
	if u == nil || !jobunit.CreatedByUs(u) || (u.Spec.ConsumerRef == nil) != s.Kind.OfPods() ||
		u.Spec.ConsumerRef != nil && !jobunit.RefersTo(s.Kind, u.Spec.ConsumerRef) {
		return Decision{}
	}
	return endLeft(s, do(DeleteUnit{Unit: u}))
}

// isReleased: a job that was let go keeps its unit to its end, managed or not; its pods carry our marks.
func isReleased(job *jobs.Job, own *v1alpha1.QueueUnit) bool {
	return own != nil && stageOf(own.Status.Phase) == released && !job.Suspended()
}

// unmanaged takes away what is ours, and touches nothing else.
func unmanaged(s *Situation) (d Decision) {
	if s.own() != nil && s.Job.Suspended() && !s.Elsewhere && s.Job.HasUpdates() {
		if d, answers := takeOut.answer(s); answers {
			return d
		}
	}
	if after := handBack(s); after != nil {
		d.Do = append(d.Do, PatchJob{Before: s.Job, After: after, Event: event.Normal("Released", "Resume",
			"the queue no longer manages the job")})
	}
	if own := s.own(); own != nil && jobunit.CreatedByUs(own) && stageOf(own.Status.Phase) != over {
		d.Do = append(d.Do, DeleteUnit{Unit: own})
	}
	if _, over := s.Job.Ended(); !over && errors.Is(s.AliasError, alias.ErrAmbiguous) {
		d.Do = append(d.Do, tell(event.Warning(unitcondition.ReasonAmbiguousQueue, "Queue", event.Short(
			"no queue manages this job: "+s.AliasError.Error()))))
	} else if words := leftOut(s); words != "" {
		why := cmp.Or(s.Asleep, managedjobs.NamesNoQueue)
		if s.AliasError != nil {
			why = s.AliasError.Error()
		}
		d.Do = append(d.Do, tell(event.Warning("Unmanaged", "Queue", event.Short(words+": "+why))))
	}
	return d
}

// leftOut says of a job that goes by no queue where others do what becomes of it.
func leftOut(s *Situation) string {
	switch _, over := s.Job.Ended(); {
	case over:
		return ""
	case s.Unmanaged == managedjobs.UnmanagedWarn:
		return "no queue manages this job, although jobs of this namespace have queues"
	case s.Unmanaged == managedjobs.UnmanagedGate:
		return "no queue manages this job, so its pods are not scheduled"
	case s.Asleep != "" && !s.Job.SuspendedByUs():
		return "the job is suspended and no queue resumes it"
	default:
		return ""
	}
}

// handBack is the job without our marks, resumed if we had suspended it; nil when it carries none. A job that somebody
// else controls now is not resumed: that is for them to decide.
func handBack(s *Situation) *jobs.Job {
	if !s.Job.SuspendedByUs() {
		return nil
	}
	after := s.Job.Edit()
	after.UnmarkSuspended()
	after.Annotate(v1alpha1.AnnotationResumed, "")
	if s.Job.Suspended() {
		after.RestoreCounts()
		if !s.Job.TemplatesFixed() {
			after.RestoreTemplates(podupdate.AllOf(s.own()))
		}
		if !s.Elsewhere && after.SetSuspend(false) != nil {
			return nil
		}
	}
	return after.Job()
}

// finish mirrors the end of the job, once. Its unit goes when it has been finished for as long as such a unit stays.
func finish(s *Situation) (Decision, bool) {
	end, ended := s.Job.Ended()
	switch {
	case !ended:
		return Decision{}, false
	case s.rel != jobunit.Own:
		return Decision{}, true
	case stageOf(s.Unit.Status.Phase) != over:
		// The controller of the job tells its end, as it does when its pods run.
		return do(PatchUnitStatus{Before: s.Unit, After: unitstatus.Ended(s.Unit, end, s.Now)}), true
	}
	finished := meta.FindStatusCondition(s.Unit.Status.Conditions, v1alpha1.ConditionFinished)
	if s.Options.FinishedUnitsTTL <= 0 || finished == nil || !jobunit.CreatedByUs(s.Unit) {
		return Decision{}, true
	}
	if left := finished.LastTransitionTime.Add(s.Options.FinishedUnitsTTL).Sub(s.Now.Time); left > 0 {
		return Decision{After: left}, true
	}
	return do(DeleteUnit{Unit: s.Unit}), true
}

// awaitChild: what a job asks for is not known before its child is there.
func awaitChild(s *Situation) (Decision, bool) {
	if s.Kind.Child == nil || s.Job.HasChild() {
		return Decision{}, false
	}
	return keepOut(s), true
}

// replaceStale deletes the unit of another job of this name.
func replaceStale(s *Situation) (Decision, bool) {
	if s.rel != jobunit.Stale {
		return Decision{}, false
	}
	d := keepOut(s)
	d.Do = append(d.Do, DeleteUnit{Unit: s.Unit, Event: event.Normal("UnitReplaced", "Delete",
		fmt.Sprintf("QueueUnit %s stood for another job of this name", s.Unit.Name))})
	return d, true
}

// yieldName leaves the unit of somebody else alone.
func yieldName(s *Situation) (Decision, bool) {
	if s.rel != jobunit.Foreign {
		return Decision{}, false
	}
	d := keepOut(s)
	d.Do = append(d.Do, tell(event.Warning("NameTaken", "Queue",
		fmt.Sprintf("the job cannot be queued: QueueUnit %s exists and belongs to another object", s.Unit.Name))))
	return d, true
}

// reopen replaces a unit that says the job is over while it is not: somebody wrote its status, and the job would
// never run.
func reopen(u *v1alpha1.QueueUnit) Decision {
	return do(DeleteUnit{Unit: u, Event: event.Warning("UnitReplaced", "Delete",
		fmt.Sprintf("QueueUnit %s had ended, and the job has not; the job gets a new QueueUnit", u.Name))})
}
