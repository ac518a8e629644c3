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
	"hash/maphash"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intern"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// conditionFor is the condition that says a reason, and its status while it is so. An admitted unit has no pod on a
// node, or waits for more than it holds.
func conditionFor(u *objects.Unit, reason unit.Reason) (conditionType string, status metav1.ConditionStatus) {
	switch {
	case !u.Phase.Holds():
		return v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse
	case reason.OfPods():
		return v1alpha1.ConditionPodsReady, metav1.ConditionFalse
	default:
		return v1alpha1.ConditionResizePending, metav1.ConditionTrue
	}
}

// Reason is the status that says why a unit waits, as the core has it in e. An admitted unit without a reason waits for
// nothing.
func Reason(e *transition.Explain, x *Subject, now time.Time) Status {
	status := said(x.Object, &e.Saying, now)
	status["effective"] = x.effective(x.Object.Held)
	inherit(status, e.Unit, x.Object, now)
	return status
}

func said(u *objects.Unit, said *unit.Saying, now time.Time) Status {
	about := metav1.Condition{Reason: string(said.Reason), Message: said.Message}
	about.Type, about.Status = conditionFor(u, said.Reason)
	if said.Reason == "" {
		about.Status, about.Reason = metav1.ConditionFalse, "NotNeeded"
		about.Message = "the job asks for at most what the unit holds"
	}
	conditions := Conditions(u, now, about)
	if c := u.Condition(about.Type); c != nil && unit.Reason(c.Reason).Notice() && !said.Reason.Notice() {
		// The unit is in line for growth since it asks for that, and not since another reason was written.
		meta.FindStatusCondition(conditions, about.Type).LastTransitionTime = metav1.NewTime(now)
	}
	status := Status{
		"lastUpdateTime": metav1.NewTime(now),
		"message":        said.Message,
		"conditions":     conditions,
	}
	switch over := !now.Before(u.RequeueAt); {
	case u.Phase == unit.PhaseNone, u.Phase == unit.PhasePreempted,
		u.Phase == unit.PhaseTimeoutBackoff && over:
		status["phase"] = string(unit.PhaseEnqueued)
	}
	return status
}

// Says says whether the object says this already.
func Says(u *objects.Unit, said *unit.Saying) bool {
	about, status := conditionFor(u, said.Reason)
	c := u.Condition(about)
	if said.Reason == "" {
		return c == nil || c.Status != status
	}
	return c != nil && c.Status == status && c.Reason == string(said.Reason) && c.Message == said.Message
}

// SaidIn an object is what it says of why the unit waits, or waits for more than it holds; nil if it says nothing.
func SaidIn(u *objects.Unit) *unit.Saying {
	for i := range u.Conditions {
		c := &u.Conditions[i]
		said := unit.Saying{Reason: unit.Reason(c.Reason), Message: c.Message}
		if about, status := conditionFor(u, said.Reason); c.Type == about && c.Status == status {
			return sharedSayings.Of(&said)
		}
	}
	return nil
}

var sharedSayings = intern.NewPool(hashSaying, func(a, b *unit.Saying) bool { return *a == *b })

func hashSaying(seed maphash.Seed, said *unit.Saying) uint64 { return maphash.Comparable(seed, *said) }
