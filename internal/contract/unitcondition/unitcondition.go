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

// Package unitcondition lists the conditions of a QueueUnit, with the process that writes each and its reasons.
package unitcondition

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Reasons of conditions that the controller sets.
const (
	ReasonSucceeded = "Succeeded"
	ReasonFailed    = "Failed"

	// ReasonQuotaMismatch parks units of jobs that name more than one quota.
	ReasonQuotaMismatch = "QuotaMismatch"
	// ReasonUnsupportedJob parks units of jobs that their kind says cannot be queued.
	ReasonUnsupportedJob = "UnsupportedJob"
	// ReasonOtherScheduler parks units of jobs whose pods go to a scheduler that no queue holds them back from.
	ReasonOtherScheduler = "OtherScheduler"
	// ReasonSlowTermination parks units of jobs whose pods would keep their quota long after the job was suspended.
	ReasonSlowTermination = "SlowTermination"
	// ReasonAmbiguousQueue is of jobs that name more than one queue in the words of several systems. They have no unit.
	ReasonAmbiguousQueue = "AmbiguousQueue"
	// ReasonHeldByOwner parks units of jobs whose owner does not want them to run now.
	ReasonHeldByOwner = "HeldByOwner"
	// ReasonSuspendedByOwner parks units of jobs that somebody has suspended since they were admitted.
	ReasonSuspendedByOwner = "SuspendedByOwner"
	// ReasonEstimateChanged parks units that were admitted with an outdated estimate, until they wait again.
	ReasonEstimateChanged = "EstimateChanged"
	// ReasonQuotaChanged parks units of jobs that name another quota than they were admitted in, until they wait again.
	ReasonQuotaChanged = "QuotaChanged"
	// ReasonCannotSuspend is of units that lost their admission a while ago and whose jobs still run.
	ReasonCannotSuspend = "CannotSuspend"
	// ReasonNotPlaced parks units that wait for Reservations of the stand-alone Koord-Queue, until they are in line again.
	ReasonNotPlaced = "NotPlaced"

	// ReasonJobNotResumed says that the controller, or the API server, refuses to resume an admitted job.
	ReasonJobNotResumed = "JobNotResumed"
	// ReasonPodsNotCreated says that pods of an admitted job cannot be created, or that it has none.
	ReasonPodsNotCreated = "PodsNotCreated"
	// ReasonPodsGated says that pods of an admitted job have scheduling gates that the queue did not set.
	ReasonPodsGated = "PodsGated"
	// ReasonPodsPending says that pods of an admitted job find no node.
	ReasonPodsPending = "PodsPending"
	// ReasonContainersWaiting says that pods of an admitted job are on nodes and their containers do not run yet.
	ReasonContainersWaiting = "ContainersWaiting"
	// ReasonContainersCrashing says that containers of an admitted job end with errors.
	ReasonContainersCrashing = "ContainersCrashing"
)

// Stalled says that a reason of the condition PodsReady is why an admitted job does not run.
func Stalled(reason string) bool { return slices.Contains(stalled, reason) }

// Row says that a writer gives a condition a status.
type Row struct {
	Type   string
	Status metav1.ConditionStatus
	By     unit.Writer
	// Reasons that it gives; any where Why says which they are.
	Reasons []string
	Why     string
}

const (
	waits = "why it waits"
	lost  = "why it lost its admission"
)

var rows = []Row{
	{v1alpha1.ConditionQuotaReserved, metav1.ConditionTrue, unit.WriterScheduler, []string{"QuotaReserved"}, ""},
	{v1alpha1.ConditionQuotaReserved, metav1.ConditionTrue, unit.WriterController, adopted, ""},
	{v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, unit.WriterScheduler, nil, waits},
	{v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, unit.WriterController, slices.Concat(parked, ended), ""},
	{v1alpha1.ConditionAdmitted, metav1.ConditionTrue, unit.WriterScheduler,
		[]string{"Admitted", v1alpha1.ReasonObserved}, ""},
	{v1alpha1.ConditionAdmitted, metav1.ConditionTrue, unit.WriterController, adopted, ""},
	{v1alpha1.ConditionAdmitted, metav1.ConditionFalse, unit.WriterScheduler, nil,
		lost + ", or `WaitingForAdmissionChecks`"},
	{v1alpha1.ConditionAdmitted, metav1.ConditionFalse, unit.WriterController, ended, ""},
	{v1alpha1.ConditionPodsReady, metav1.ConditionTrue, unit.WriterController,
		[]string{v1alpha1.ReasonPodsRunning, v1alpha1.ReasonAdopted}, ""},
	{v1alpha1.ConditionPodsReady, metav1.ConditionFalse, unit.WriterScheduler, nil,
		lost + ", or why no pod of it is on a node"},
	{v1alpha1.ConditionPodsReady, metav1.ConditionFalse, unit.WriterController, slices.Concat(
		[]string{v1alpha1.ReasonPodsStarting, v1alpha1.ReasonPodsLost, v1alpha1.ReasonAdopted}, stalled, ended), ""},
	{v1alpha1.ConditionFinished, metav1.ConditionTrue, unit.WriterController, ended, ""},
	{v1alpha1.ConditionEvicted, metav1.ConditionTrue, unit.WriterScheduler, nil, lost},
	{v1alpha1.ConditionEvicted, metav1.ConditionTrue, unit.WriterController,
		[]string{string(unit.ReasonIdleReservation)}, ""},
	{v1alpha1.ConditionEvicted, metav1.ConditionFalse, unit.WriterScheduler, []string{"Admitted"}, ""},
	{v1alpha1.ConditionResizePending, metav1.ConditionTrue, unit.WriterScheduler, nil, "why it waits for more"},
	{v1alpha1.ConditionResizePending, metav1.ConditionFalse, unit.WriterScheduler, nil,
		"`Resized`, `NotNeeded`, or " + lost},
	{v1alpha1.ConditionResizePending, metav1.ConditionFalse, unit.WriterController, ended, ""},
	{v1alpha1.ConditionCannotSuspend, metav1.ConditionTrue, unit.WriterController, []string{ReasonCannotSuspend}, ""},
	{v1alpha1.ConditionCannotSuspend, metav1.ConditionFalse, unit.WriterController,
		slices.Concat([]string{v1alpha1.ReasonSuspended, v1alpha1.ReasonAdmittedAgain}, ended), ""},
	{v1alpha1.ConditionDeactivationTarget, metav1.ConditionTrue, unit.WriterScheduler, nil,
		"why it is not tried again"},
}

var (
	adopted = []string{v1alpha1.ReasonAdopted}
	ended   = []string{ReasonSucceeded, ReasonFailed}
	stalled = []string{
		ReasonJobNotResumed, ReasonPodsNotCreated, ReasonPodsGated, ReasonPodsPending, ReasonContainersWaiting,
		ReasonContainersCrashing,
	}
	parked = []string{
		string(unit.ReasonInvalidRequest), string(unit.ReasonUnknownQuota), ReasonQuotaMismatch,
		ReasonUnsupportedJob, ReasonOtherScheduler, ReasonSlowTermination,
		ReasonHeldByOwner, ReasonSuspendedByOwner,
	}
)

// Table is the whole of it.
func Table() []Row { return slices.Clone(rows) }

// Unlawful says which of the changes of the conditions the writer must not write; nil if it may write all.
func Unlawful(before, after []metav1.Condition, by unit.Writer) error {
	for _, c := range after {
		was := meta.FindStatusCondition(before, c.Type)
		if was != nil && was.Status == c.Status && was.Reason == c.Reason && was.Message == c.Message {
			continue
		}
		if !slices.ContainsFunc(rows, func(r Row) bool {
			return r.Type == c.Type && r.Status == c.Status && r.By == by &&
				(r.Reasons == nil || slices.Contains(r.Reasons, c.Reason))
		}) {
			return fmt.Errorf("the %s must not set condition %s to %s for %q", by, c.Type, c.Status, c.Reason)
		}
	}
	return nil
}
