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
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Status is a merge patch of the status of a unit: a field that is nil is taken away.
type Status = map[string]any

// Subject is the unit that a patch is of, as its object is when the patch is made.
type Subject struct {
	Object *objects.Unit
	// Queue and Quota are the names that the unit resolved to. Named is the object of that queue; nil if there is none.
	Queue, Quota string
	Named        *objects.Queue
}

// Conditions are all conditions of the unit with these set: a merge patch replaces the list as a whole. The
// resource version guards the rest of it.
func Conditions(u *objects.Unit, now time.Time, set ...metav1.Condition) []metav1.Condition {
	conditions := append(make([]metav1.Condition, 0, len(u.Conditions)+len(set)), u.Conditions...)
	for _, c := range set {
		c.ObservedGeneration = u.Generation
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&conditions, c)
	}
	return conditions
}

// effective has the columns of a unit that its spec may lack: queue, quota, the whole request and, if there is any, the
// held amount. Other writes carry it along.
func (x *Subject) effective(held resources.List) map[string]any {
	fields := map[string]any{
		"queue": x.Queue, "quota": x.Quota, "requested": objects.Shorten(x.Object.Request.String()),
	}
	if held.Len() > 0 {
		fields["held"] = objects.Shorten(held.String())
	} else if x.Object.Attempts > 0 {
		fields["held"], fields["preemptable"] = nil, nil
	}
	return fields
}

// inherit adds the record against the job of a unit that its object lacks: the core has it from a former unit of the
// job.
func inherit(status Status, in *unit.Unit, u *objects.Unit, now time.Time) {
	if in.Executed > u.Executed {
		status["accumulatedPastExecutionTimeSeconds"] = int64(in.Executed / time.Second)
	}
	if in.Requeues > u.Requeues || in.RequeueAt.After(u.RequeueAt) {
		state := map[string]any{"count": in.Requeues}
		if !in.RequeueAt.IsZero() {
			state["requeueAt"] = metav1.NewTime(in.RequeueAt)
		}
		status["requeueState"] = state
	}
	conditions, some := status["conditions"].([]metav1.Condition)
	if d := in.Deactivate; some && d != nil && u.Deactivate() == nil {
		meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: v1alpha1.ConditionDeactivationTarget, Status: metav1.ConditionTrue, Reason: string(d.Reason),
			Message: d.Message, LastTransitionTime: metav1.NewTime(now), ObservedGeneration: u.Generation,
		})
		status["conditions"] = conditions
	}
}
