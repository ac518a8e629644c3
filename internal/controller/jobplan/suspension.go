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
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownerhold"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// A job is suspended by one field. If its annotations have no room for a mark, only the field is written, and the stamp
// of the admission goes. The status of the unit says the rest: a job without a stamp whose unit was admitted before was
// suspended by the controller.

// suspensionTimeout is how long an eviction may take until its unit says that the job was not suspended.
const suspensionTimeout = time.Minute

// lostAdmission is the condition of a unit that lost its admission; nil if it did not, or waits for another reason.
func lostAdmission(own *v1alpha1.QueueUnit) *metav1.Condition {
	if own == nil || stageOf(own.Status.Phase) != waiting {
		return nil
	}
	return unitstatus.Eviction(own)
}

// suspendedBare says that a job that ran was suspended without a mark, or that its owner took mark and stamp away.
func suspendedBare(job *jobs.Job, own *v1alpha1.QueueUnit) bool {
	return !ownerhold.Stamped(job) && own.Status.Attempts > 1 && (job.Started() || job.Active() > 0)
}

// overdue tells in the unit that its job was to be suspended a while ago and was not. A refusal of a moment is not
// told.
func overdue(s *Situation) []Action {
	c := lostAdmission(s.own())
	if c == nil || s.SuspensionRefused == "" || s.Now.Sub(c.LastTransitionTime.Time) < suspensionTimeout {
		return nil
	}
	return sayCannotSuspend(s.Unit, s.Now, "the API server refuses to suspend the job: "+s.SuspensionRefused)
}

// overdueInDeletion reports a job that is being deleted and stays, with its pods. Its own controller ignores the
// suspension of such a job.
func overdueInDeletion(s *Situation) Decision {
	c := lostAdmission(s.own())
	if c == nil || s.Job.Suspended() || s.Job.Active() == 0 {
		return Decision{}
	}
	if left := c.LastTransitionTime.Add(suspensionTimeout).Sub(s.Now.Time); left > 0 {
		return Decision{After: left}
	}
	return endLeft(s, do(sayCannotSuspend(s.Unit, s.Now,
		"the job is being deleted, a finalizer keeps it, and its pods run: remove the finalizer or delete the pods")...))
}

func sayCannotSuspend(u *v1alpha1.QueueUnit, now metav1.Time, why string) []Action {
	if meta.IsStatusConditionTrue(u.Status.Conditions, v1alpha1.ConditionCannotSuspend) {
		return nil
	}
	after := unitstatus.Updated(u, now)
	told := event.Warning(unitcondition.ReasonCannotSuspend, "Suspend", event.Short(why))
	unitstatus.SetCondition(after, v1alpha1.ConditionCannotSuspend, metav1.ConditionTrue, told.Reason,
		event.Short(why), now)
	return []Action{PatchUnitStatus{Before: u, After: after, Event: told}}
}

// withdrawOverdue takes it back as soon as the job is suspended or admitted.
func withdrawOverdue(s *Situation) (Decision, bool) {
	if !meta.IsStatusConditionTrue(s.Unit.Status.Conditions, v1alpha1.ConditionCannotSuspend) ||
		!s.Job.Suspended() && stageOf(s.Unit.Status.Phase) == waiting {
		return Decision{}, false
	}
	after, reason := unitstatus.Updated(s.Unit, s.Now), v1alpha1.ReasonSuspended
	if !s.Job.Suspended() {
		reason = v1alpha1.ReasonAdmittedAgain
	}
	unitstatus.SetCondition(after, v1alpha1.ConditionCannotSuspend, metav1.ConditionFalse, reason, "", s.Now)
	return do(PatchUnitStatus{Before: s.Unit, After: after}), true
}

// endLeft ends the pods that the job of an admitted unit has left behind, where that is configured, and then goes on.
// The job was deleted with `--cascade=orphan`, or a finalizer keeps it.
func endLeft(s *Situation, then Decision) Decision {
	if !s.EndsLeft || s.Unit.Status.Attempts == 0 || s.Unit.Observed() {
		return then
	}
	if s.Left == nil {
		return look(LookAtLeft)
	}
	if len(s.Left) > 0 {
		then.Do = append([]Action{EndPods{Pods: s.Left}}, then.Do...)
	}
	return then
}
