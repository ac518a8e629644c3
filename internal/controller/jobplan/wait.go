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
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownerhold"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// A job that waits is suspended, and its unit is true while it is in the queue.

// holdOrAdopt: a job that is not admitted is suspended, unless its adoption has only begun.
func holdOrAdopt(s *Situation) (Decision, bool) {
	switch {
	case s.Job.Suspended() || !suspendable(s.Job) && !adopting(s.Unit):
		return Decision{}, false
	case !s.FreshUnit:
		// The cache of units may be older than the cache of jobs, for example after a start. If the job was resumed a moment
		// ago, an outdated unit would have the controller suspend the job again and delete its pods.
		return look(LookAtUnit), true
	case adopting(s.Unit):
		return goOnAdopting(s), true
	case madeNoPod(s.Unit) && s.Refusal == nil:
		return look(LookAtRefusals), true
	default:
		if d, answers := giveNotice(s); answers {
			return d, true
		}
		return do(append(append(overdue(s), suspend(s)), tellRefusal(s.Unit, s.Refusal, s.Now)...)...), true
	}
}

// goOnAdopting checks the pods again: anyone with write access to units can set the annotation.
func goOnAdopting(s *Situation) Decision {
	d, answers := ifNotBound(s.Bound, func() Decision {
		if suspendable(s.Job) {
			return do(suspend(s))
		}
		d, _ := correct(s)
		return d
	})
	switch {
	case answers:
		return d
	case s.ask().Demand.Counted():
		return do(PatchUnitStatus{Before: s.Unit, After: s.ready().Adopted(s.Unit, s.Now)})
	default:
		// The held amount is unknown. Its pods on nodes are in used, the job is left alone, and its unit reports the fault.
		return sayParked(s)
	}
}

func adopting(u *v1alpha1.QueueUnit) bool {
	phase := u.Status.Phase
	return u.Annotations[v1alpha1.AnnotationAdopted] != "" && !unitstatus.Evicted(u) &&
		(phase == "" || phase == v1alpha1.PhaseEnqueued) && !u.Inactive()
}

// correct sets the unit right while it holds nothing, and says in its condition what is wrong with the job.
func correct(s *Situation) (Decision, bool) {
	if holdsQuota(s.Unit.Status.Phase) {
		return Decision{}, false
	}
	if after := jobunit.Corrected(s.Unit, s.ask().Unit); after != nil {
		step := PatchUnit{Before: s.Unit, After: after}
		if !jobunit.CreatedByUs(s.Unit) {
			step.Event = event.Warning("UnitCorrected", "Correct",
				fmt.Sprintf("QueueUnit %s was changed by another client; its request is that of the job again", s.Unit.Name))
		}
		return do(step), true
	}
	if d, answers := reclaim(s); answers {
		return d, true
	}
	if s.ask().Problem() == nil || jobunit.InactiveByHand(s.Unit) {
		return Decision{}, false
	}
	d := sayParked(s)
	return d, len(d.Do) > 0
}

// sayParked says in the unit's condition why it was made inactive, unless it does so already.
func sayParked(s *Situation) Decision {
	if after := unitstatus.Parked(s.Unit, s.ask().Problem(), s.Now); after != nil {
		return do(PatchUnitStatus{Before: s.Unit, After: after})
	}
	return Decision{}
}

// deactivate sets spec.active of a unit to false. The scheduler may not write the spec; it requests the deactivation by
// a condition. A condition of an earlier generation is ignored, so that a user can activate the unit again.
func deactivate(s *Situation) (Decision, bool) {
	c := meta.FindStatusCondition(s.Unit.Status.Conditions, v1alpha1.ConditionDeactivationTarget)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != s.Unit.Generation || s.Unit.Inactive() {
		return Decision{}, false
	}
	after, inactive := s.Unit.DeepCopy(), false
	after.Spec.Active = &inactive
	return do(PatchUnit{Before: s.Unit, After: after, Event: event.Warning("Deactivated", "Queue", event.Short(fmt.Sprintf(
		"%s: %s; it is not retried until an operator sets spec.active of QueueUnit %s to true",
		c.Reason, c.Message, s.Unit.Name)))}), true
}

// madeNoPod says that the unit lost its admission for its job made no pod.
func madeNoPod(u *v1alpha1.QueueUnit) bool {
	c := unitstatus.Eviction(u)
	return c != nil && c.Reason == string(unit.ReasonIdleReservation)
}

// refused says why the job made no pod, where that is known.
func refused(said *string) string {
	if ptr.Deref(said, "") == "" {
		return ""
	}
	return ": " + *said
}

// tellRefusal puts that into the unit.
func tellRefusal(u *v1alpha1.QueueUnit, said *string, now metav1.Time) []Action {
	words := refused(said)
	if words == "" || strings.HasSuffix(u.Status.Message, words) {
		return nil
	}
	after := unitstatus.Updated(u, now)
	after.Status.Message = u.Status.Message + words
	unitstatus.SetCondition(after, v1alpha1.ConditionEvicted, metav1.ConditionTrue, string(unit.ReasonIdleReservation),
		after.Status.Message, now)
	return []Action{PatchUnitStatus{Before: u, After: after}}
}

// The templates of a pending job are as its owner wrote them. Updates of admission checks are removed by the answers in
// the unit, because the record on the job can be forged. So the unit keeps the answers until the updates are removed,
// and no quota is reserved for it before.

// resetEarly makes templates mutable now, so that admission need not wait for it.
func resetEarly(s *Situation) (Decision, bool) {
	if !s.Job.TemplatesFixed() || !s.Job.HasUpdates() && !s.resumption().ChargedElsewhere() {
		return Decision{}, false
	}
	return resetStart(s.Job), true
}

// restore gives a job its templates and numbers of pods back as its owner wrote them, unless the API server would
// refuse it. Plain has the numbers as they are: what is recorded of them may be forged.
func restore(s *Situation) (Decision, bool) {
	after := s.Job.Edit()
	templates := !s.Job.TemplatesFixed() && after.RestoreTemplates(podupdate.AllOf(s.own()))
	step := PatchJob{Before: s.Job}
	switch {
	case s.Job.HasCounts():
		plain := after.Copy()
		plain.DropCounts()
		step.Plain = plain.Job()
		after.RestoreCounts()
	case !templates:
		return Decision{}, false
	}
	step.After = after.Job()
	return do(step), true
}

// forget takes out of a unit what checks and its last quota asked for, once the API server itself says that no template
// has it. Another controller, whose cache is old, may be about to resume the job with the updates. A write of the job
// before that has the API server refuse it.
func forget(s *Situation) (Decision, bool) {
	switch {
	case len(podupdate.AllOf(s.own())) == 0 || holdsQuota(s.Unit.Status.Phase) || s.Job.HasUpdates():
		return Decision{}, false
	case !s.FreshJob:
		return look(LookAtJob), true
	case jobs.CanBeSuspended(s.Job) && !ownerhold.Resumed(s.Job, s.Unit):
		after := s.Job.Edit()
		after.MarkSuspended()
		after.Annotate(v1alpha1.AnnotationResumed, ownerhold.Stamp(s.Unit))
		return do(PatchJob{Before: s.Job, After: after.Job()}), true
	}
	after := s.Unit.DeepCopy()
	for i := range after.Status.AdmissionChecks {
		after.Status.AdmissionChecks[i].PodSetUpdates = nil
	}
	after.Status.QuotaChoice = nil
	return do(PatchUnitStatus{Before: s.Unit, After: after}), true
}
