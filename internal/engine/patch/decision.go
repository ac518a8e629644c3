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

package patch

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Of is the status that a write of the core makes.
func Of(w transition.Write, x *Subject, now time.Time) Status {
	switch w := w.(type) {
	case *transition.Admit:
		return admit(w, x, now)
	case *transition.Dequeue:
		return release(x, now)
	case *transition.Resize:
		return resize(w, x, now)
	case *transition.Evict:
		return evict(w, x, now)
	case *transition.Preempt:
		return take(w, now)
	default:
		panic(fmt.Sprintf("no patch for a write of kind %s", w.Kind().Name))
	}
}

func admit(d *transition.Admit, x *Subject, now time.Time) Status {
	u, at := x.Object, metav1.NewTime(now)
	reserved, held := "quota is reserved: "+d.Request.String(), d.Request
	if d.Counts != nil {
		reserved = fmt.Sprintf("quota is reserved for %d of %d pods: %s", d.Pods, u.Pods, d.Request)
	}
	if d.Borrows {
		reserved += lentMessage
	}
	phase, admitted := unit.PhaseDequeued, admittedCondition(d.Number, "")
	if u.Observed {
		held, reserved = resources.List{}, "quota would be reserved: "+d.Request.String()
		admitted.Reason, admitted.Message = v1alpha1.ReasonObserved, objects.WouldHaveWaited(u, now)
	}
	if len(d.Checks) > 0 {
		phase = unit.PhaseReserved
		admitted.Status, admitted.Reason = metav1.ConditionFalse, string(unit.ReasonWaitingForChecks)
		admitted.Message = "waits for admission checks: " + strings.Join(d.Checks, ", ")
	}
	conditions := Conditions(u, now,
		metav1.Condition{Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionTrue, Reason: "QuotaReserved",
			Message: reserved},
		admitted,
	)
	if evicted := u.Condition(v1alpha1.ConditionEvicted); evicted != nil && evicted.Status == metav1.ConditionTrue {
		meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: v1alpha1.ConditionEvicted, Status: metav1.ConditionFalse, Reason: "Admitted",
			Message: "admitted again", ObservedGeneration: u.Generation, LastTransitionTime: at,
		})
	}
	shown := x.effective(held)
	shown["quota"] = d.Unit.Quota
	if d.Unit.Kept {
		shown["preemptable"] = false
	}
	status := Status{
		"phase":            string(phase),
		"attempts":         d.Number,
		"admissions":       objects.AdmissionsOf(u.AdmittedSets(d.Counts), held, d.Pods),
		"lastAllocateTime": at,
		"lastUpdateTime":   at,
		"conditions":       conditions,
		"effective":        shown,
	}
	if patch, some := objects.ChoicePatch(u.Choice, objects.ChoiceOf(d.Unit, x.Named)); some {
		status["quotaChoice"] = patch
	}
	if u.Message != "" {
		status["message"] = "" // most have none, and a field that is not there costs nothing
	}
	if len(d.Checks) > 0 || u.WasAsked {
		status["admissionChecks"] = askedChecks(u, d.Checks, at)
	}
	inherit(status, d.Unit, u, now)
	return status
}

// lentMessage follows what is reserved for a unit that borrows.
const lentMessage = "; part of it is beyond the runtime of its quota"

// admittedCondition says that a unit may run, and what it passed before.
func admittedCondition(attempt int64, passed string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionTrue, Reason: "Admitted",
		Message: fmt.Sprintf("admitted, attempt %d%s", attempt, passed)}
}

// askedChecks is the status of checks for which quota has just been reserved: none has answered. In the write that
// reserves it, that takes the place of the answers about a former reservation. How often they had the unit tried again
// stays counted.
func askedChecks(u *objects.Unit, names []string, at metav1.Time) []map[string]any {
	asked := make([]map[string]any, 0, len(names))
	for _, name := range names {
		state := map[string]any{
			"name": name, "state": string(unit.CheckPending), "lastTransitionTime": at,
			"message": "asked when quota was reserved",
		}
		if n := u.Retried[name]; n > 0 {
			state["retryCount"] = n
		}
		asked = append(asked, state)
	}
	return asked
}

func release(x *Subject, now time.Time) Status {
	u, passed := x.Object, ""
	if u.Checks != nil {
		names := make([]string, 0, len(u.Checks.Answers))
		for _, a := range u.Checks.Answers {
			if a.State == unit.CheckReady {
				names = append(names, a.Name)
			}
		}
		passed = "; passed admission checks: " + strings.Join(names, ", ")
	}
	at := metav1.NewTime(now)
	return Status{
		"phase":            string(unit.PhaseDequeued),
		"lastAllocateTime": at,
		"lastUpdateTime":   at,
		"conditions":       Conditions(u, now, admittedCondition(u.Attempts, passed)),
	}
}

func resize(d *transition.Resize, x *Subject, now time.Time) Status {
	u, reserved := x.Object, "quota is reserved: "+d.Held.String()
	if d.Borrows {
		reserved += lentMessage
	}
	set := []metav1.Condition{{
		Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionTrue, Reason: "QuotaReserved", Message: reserved,
	}}
	if pending := u.Condition(v1alpha1.ConditionResizePending); pending != nil && pending.Status == metav1.ConditionTrue {
		set = append(set, metav1.Condition{
			Type: v1alpha1.ConditionResizePending, Status: metav1.ConditionFalse, Reason: "Resized", Message: reserved,
		})
	}
	return Status{
		"admissions":     objects.AdmissionsOf(u.Sets, d.Held, d.Pods),
		"lastUpdateTime": metav1.NewTime(now),
		"conditions":     Conditions(u, now, set...),
		"effective":      x.effective(d.Held),
	}
}

func evict(d *transition.Evict, x *Subject, now time.Time) Status {
	u, reason, message := x.Object, d.Reason, objects.Shorten(d.Message)
	if reason == unit.ReasonInactive && u.ParkedFor != "" {
		// Only the controller has deactivated the unit, and says why.
		reason, message = u.ParkedFor, "the controller took the admission back: "+string(u.ParkedFor)
	}
	set := []metav1.Condition{
		{Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionFalse},
		{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionFalse},
		{Type: v1alpha1.ConditionEvicted, Status: metav1.ConditionTrue},
	}
	if d.Deactivate != "" {
		set = append(set, metav1.Condition{Type: v1alpha1.ConditionDeactivationTarget, Status: metav1.ConditionTrue})
	}
	for _, ofAdmitted := range []string{v1alpha1.ConditionPodsReady, v1alpha1.ConditionResizePending} {
		if u.Condition(ofAdmitted) != nil {
			set = append(set, metav1.Condition{Type: ofAdmitted, Status: metav1.ConditionFalse})
		}
	}
	for i := range set {
		set[i].Reason, set[i].Message = string(reason), message
		if of := set[i].Type; d.Deactivate != "" &&
			(of == v1alpha1.ConditionDeactivationTarget || of == v1alpha1.ConditionQuotaReserved) {
			set[i].Reason = string(d.Deactivate)
		}
	}
	status := Status{
		"phase":          string(unit.PhaseEnqueued),
		"admissions":     []v1alpha1.Admission{},
		"lastUpdateTime": metav1.NewTime(now),
		"message":        message,
		"conditions":     Conditions(u, now, set...),
		"effective":      x.effective(resources.List{}),
	}
	objects.LeaveQuota(status, d.Unit.MovesTo, u.Choice)
	if !d.RequeueAt.IsZero() {
		status["phase"] = string(unit.PhaseTimeoutBackoff)
		status["requeueState"] = map[string]any{"count": d.Requeues, "requeueAt": metav1.NewTime(d.RequeueAt)}
	} else if d.Deactivate != "" {
		status["requeueState"] = nil
	}
	if !u.RanSince.IsZero() {
		status["executionStartTime"] = nil
	}
	if d.Executed != u.Executed {
		status["accumulatedPastExecutionTimeSeconds"] = int64(d.Executed.Round(time.Second) / time.Second)
	}
	return status
}

func take(d *transition.Preempt, now time.Time) Status {
	return Status{
		"preemption":     map[string]any{"attempts": d.Unit.Attempts, "holds": d.Holds}, // null takes away the former ones
		"lastUpdateTime": metav1.NewTime(now),
	}
}
