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

// Package unitstatus reads the statuses of units, and makes those that the controller gives to them.
package unitstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// forOthers are the reasons of evictions before which a job may have a grace: it did nothing wrong.
var forOthers = []unit.Reason{unit.ReasonReclaimed, unit.ReasonPreemptedInQueue, unit.ReasonQueueDrained}

// Eviction is the condition of a unit that was evicted and not admitted since; nil if it was not.
func Eviction(u *v1alpha1.QueueUnit) *metav1.Condition {
	c := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionEvicted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}

// LostToOthers is the condition of a unit that lost its quota to others; nil if it did not.
func LostToOthers(u *v1alpha1.QueueUnit) *metav1.Condition {
	c := Eviction(u)
	if c == nil || !slices.Contains(forOthers, unit.Reason(c.Reason)) {
		return nil
	}
	return c
}

// Evicted says whether a unit that waits was admitted before and lost it.
func Evicted(u *v1alpha1.QueueUnit) bool {
	return u.Status.Phase == v1alpha1.PhaseTimeoutBackoff || Eviction(u) != nil
}

// Updated is a copy of the unit of which the status changes now.
func Updated(u *v1alpha1.QueueUnit, now metav1.Time) *v1alpha1.QueueUnit {
	u = u.DeepCopy()
	u.Status.LastUpdateTime = &now
	return u
}

// Ended is the status of a unit whose job has ended: it holds nothing any more (I7).
func Ended(u *v1alpha1.QueueUnit, end jobs.End, now metav1.Time) *v1alpha1.QueueUnit {
	u = Updated(u, now)
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
	if u.Observed() { // the unit keeps the time since which it would have waited, or run
		SetCondition(u, v1alpha1.ConditionFinished, metav1.ConditionTrue, reason, message, now)
		return u
	}
	for _, held := range []string{
		v1alpha1.ConditionQuotaReserved, v1alpha1.ConditionAdmitted, v1alpha1.ConditionPodsReady,
		v1alpha1.ConditionResizePending, v1alpha1.ConditionCannotSuspend,
	} {
		if meta.FindStatusCondition(u.Status.Conditions, held) != nil {
			SetCondition(u, held, metav1.ConditionFalse, reason, message, now)
		}
	}
	SetCondition(u, v1alpha1.ConditionFinished, metav1.ConditionTrue, reason, message, now)
	return u
}

// Parked says in the unit's condition why the controller made it inactive; nil when it says so already.
func Parked(u *v1alpha1.QueueUnit, p *jobunit.Problem, now metav1.Time) *v1alpha1.QueueUnit {
	c := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionQuotaReserved)
	if c != nil && c.Status == metav1.ConditionFalse && c.Reason == p.Reason && c.Message == p.Message {
		return nil
	}
	u = Updated(u, now)
	u.Status.Message = p.Message
	SetCondition(u, v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, p.Reason, p.Message, now)
	return u
}

// SetCondition sets a condition of a unit, which changes now if its status does.
func SetCondition(
	u *v1alpha1.QueueUnit, kind string, status metav1.ConditionStatus, reason, message string, now metav1.Time,
) {
	meta.SetStatusCondition(&u.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: u.Generation, LastTransitionTime: now,
	})
}

// ConditionStatus is True or False.
func ConditionStatus(ok bool) metav1.ConditionStatus {
	if ok {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
