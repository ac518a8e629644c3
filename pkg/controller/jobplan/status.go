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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/unitcondition"
)

// stage is what a phase means for the job.
type stage int

const (
	// waiting: the job must not run.
	waiting stage = iota
	// released: the job is to run.
	released
	// over: the job has ended.
	over
)

// stageOf reads a phase. An unknown phase counts as waiting, so that an error never releases a job. A phase that holds
// quota without releasing the job counts as waiting as well.
func stageOf(phase v1alpha1.QueueUnitPhase) stage {
	switch p := unit.Phase(phase); {
	case p.Releases():
		return released
	case p.Terminal():
		return over
	default:
		return waiting
	}
}

// holdsQuota says whether a unit that waits has quota reserved all the same; its pod sets are immutable then.
func holdsQuota(phase v1alpha1.QueueUnitPhase) bool {
	p := unit.Phase(phase)
	return p.Holds() && !p.Releases()
}

// Evicted says whether a unit that waits was admitted before and lost it.
func Evicted(u *v1alpha1.QueueUnit) bool {
	return u.Status.Phase == v1alpha1.PhaseTimeoutBackoff ||
		meta.IsStatusConditionTrue(u.Status.Conditions, v1alpha1.ConditionEvicted)
}

// updated is a copy of the unit of which the status changes now.
func updated(u *v1alpha1.QueueUnit, now metav1.Time) *v1alpha1.QueueUnit {
	u = u.DeepCopy()
	u.Status.LastUpdateTime = &now
	return u
}

// becomeRunning is the status of a unit whose job runs; the condition has the time since when.
func becomeRunning(u *v1alpha1.QueueUnit, pods podCount, now, since metav1.Time) *v1alpha1.QueueUnit {
	u = updated(u, now)
	count(u, pods, since)
	u.Status.Phase = v1alpha1.PhaseRunning
	u.Status.Message = ""
	return u
}

// becomeEnded is the status of a unit whose job has ended: it holds nothing any more (I7).
func becomeEnded(u *v1alpha1.QueueUnit, end jobs.End, now metav1.Time) *v1alpha1.QueueUnit {
	u = updated(u, now)
	reason := unitcondition.ReasonFailed
	u.Status.Phase = v1alpha1.PhaseFailed
	if end.Succeeded {
		reason = unitcondition.ReasonSucceeded
		u.Status.Phase = v1alpha1.PhaseSucceed
	}
	message := event.Short(end.Message)
	u.Status.Message = message
	u.Status.Admissions = nil
	u.Status.PodState = nil
	for _, held := range []string{
		v1alpha1.ConditionQuotaReserved, v1alpha1.ConditionAdmitted, v1alpha1.ConditionPodsReady,
		v1alpha1.ConditionResizePending, v1alpha1.ConditionCannotSuspend,
	} {
		if meta.FindStatusCondition(u.Status.Conditions, held) != nil {
			setCondition(u, held, metav1.ConditionFalse, reason, message, now)
		}
	}
	setCondition(u, v1alpha1.ConditionFinished, metav1.ConditionTrue, reason, message, now)
	return u
}

// becomeAdopted is the status of a unit that is born for a job that runs already.
// What it holds is what is bound, which the scheduler knows and writes down; the rest of its job it has to ask for.
func becomeAdopted(u *v1alpha1.QueueUnit, pods podCount, now metav1.Time) *v1alpha1.QueueUnit {
	u = updated(u, now)
	u.Status.Phase = v1alpha1.PhaseRunning
	u.Status.Attempts++
	u.Status.Message = ""
	u.Status.LastAllocateTime = &now
	u.Status.Admissions = nil
	const message = "the job had pods on nodes before it was queued"
	for _, c := range []string{v1alpha1.ConditionQuotaReserved, v1alpha1.ConditionAdmitted} {
		setCondition(u, c, metav1.ConditionTrue, v1alpha1.ReasonAdopted, message, now)
	}
	setCondition(u, v1alpha1.ConditionPodsReady, conditionStatus(pods.all), v1alpha1.ReasonAdopted, message, now)
	if u.Status.ExecutionStartTime = nil; pods.all {
		u.Status.ExecutionStartTime = &now
	}
	return u
}

// becomeParked says in the unit's condition why the controller made it inactive; nil when it says so already.
func becomeParked(u *v1alpha1.QueueUnit, p *jobunit.Problem, now metav1.Time) *v1alpha1.QueueUnit {
	c := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionQuotaReserved)
	if c != nil && c.Status == metav1.ConditionFalse && c.Reason == p.Reason && c.Message == p.Message {
		return nil
	}
	u = updated(u, now)
	u.Status.Message = p.Message
	setCondition(u, v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, p.Reason, p.Message, now)
	return u
}

func setCondition(
	u *v1alpha1.QueueUnit, kind string, status metav1.ConditionStatus, reason, message string, now metav1.Time,
) {
	meta.SetStatusCondition(&u.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: u.Generation, LastTransitionTime: now,
	})
}

func conditionStatus(ok bool) metav1.ConditionStatus {
	if ok {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
