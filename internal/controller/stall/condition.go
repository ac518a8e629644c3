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

package stall

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
)

const (
	// SomeReady is the message of PodsStarting.
	SomeReady = "some pods of the job are ready, and not all"
	// lostFor separates how many pods are ready from why the others are not.
	lostFor = "; "

	// LeastInterval and mostInterval bound the time between two looks at one job.
	LeastInterval = time.Minute
	mostInterval  = 10 * time.Minute
)

// Patience is how long after its admission a job may be without all its pods before somebody looks.
const Patience = 40 * time.Second

// Due is when somebody has to look at a job that was looked at last at the time seen. A look of an earlier admission
// does not count.
func Due(admitted, seen time.Time) time.Time {
	if first := admitted.Add(Patience); seen.Before(first) {
		return first
	}
	return seen.Add(Interval(admitted, seen))
}

// Interval from a look to the next one grows with the time since the admission.
func Interval(admitted, seen time.Time) time.Duration {
	return min(max(seen.Sub(admitted)/4, LeastInterval), mostInterval)
}

// SayIn says in a unit why its job does not run, and whether that is news. If pods were ready once, the reason and the
// time stay, because a time-out depends on them.
func (f *Finding) SayIn(u *v1alpha1.QueueUnit, now metav1.Time) (news bool) {
	was := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionPodsReady)
	reason, message := f.Reason, f.Message
	switch {
	case was != nil && was.Reason == v1alpha1.ReasonPodsLost && reason != "":
		lost, _, _ := strings.Cut(was.Message, lostFor)
		reason, message = v1alpha1.ReasonPodsLost, lost+lostFor+fmt.Sprintf("%s: %s", f.Reason, f.Message)
	case reason != "":
	case was != nil && unitcondition.Stalled(was.Reason):
		reason, message = v1alpha1.ReasonPodsStarting, SomeReady
	default:
		return false
	}
	if was != nil && was.Status == metav1.ConditionFalse && was.Reason == reason && was.Message == message {
		return false
	}
	meta.SetStatusCondition(&u.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionPodsReady, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: u.Generation, LastTransitionTime: now,
	})
	return true
}
