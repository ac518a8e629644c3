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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
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

// becomeRunning is the status of a unit whose job runs; the condition has the time since when.
func becomeRunning(u *v1alpha1.QueueUnit, pods podCount, now, since metav1.Time) *v1alpha1.QueueUnit {
	u = unitstatus.Updated(u, now)
	count(u, pods, since)
	u.Status.Phase = v1alpha1.PhaseRunning
	u.Status.Message = ""
	return u
}

// becomeAdopted is the status of a unit that is born for a job that runs already.
// What it holds is what is bound, which the scheduler knows and writes down; the rest of its job it has to ask for.
func becomeAdopted(u *v1alpha1.QueueUnit, pods podCount, now metav1.Time) *v1alpha1.QueueUnit {
	u = unitstatus.Updated(u, now)
	u.Status.Phase = v1alpha1.PhaseRunning
	u.Status.Attempts++
	u.Status.Message = ""
	u.Status.LastAllocateTime = &now
	u.Status.Admissions = nil
	const message = "the job had pods on nodes before it was queued"
	for _, c := range []string{v1alpha1.ConditionQuotaReserved, v1alpha1.ConditionAdmitted} {
		unitstatus.SetCondition(u, c, metav1.ConditionTrue, v1alpha1.ReasonAdopted, message, now)
	}
	unitstatus.SetCondition(u, v1alpha1.ConditionPodsReady, unitstatus.ConditionStatus(pods.all),
		v1alpha1.ReasonAdopted, message, now)
	if u.Status.ExecutionStartTime = nil; pods.all {
		u.Status.ExecutionStartTime = &now
	}
	return u
}
