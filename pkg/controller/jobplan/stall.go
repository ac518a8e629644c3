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
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/stall"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/unitcondition"
)

// An admitted job that does not run says why. Most jobs run within seconds, so nobody looks before StallPatience. Each
// look reads pods and events from the API server, so looks become rarer the longer the job has been admitted.

const (
	// StallPatience is how long after its admission a job may be without all its pods before somebody looks.
	StallPatience = 40 * time.Second
	// Looks are between this and that time apart.
	leastStallInterval = time.Minute
	mostStallInterval  = 10 * time.Minute
)

// sayStall adds to a decision about an admitted job why the job does not run, or when to look for that.
func sayStall(s *Situation, d Decision) Decision {
	if len(d.Do) > 0 || s.Unit.Status.LastAllocateTime == nil || s.Job.SuspensionSeen() || countPods(s).all {
		return d
	}
	if wait := stallDue(s).Sub(s.Now.Time); wait > 0 {
		d.After = sooner(d.After, wait)
		return d
	}
	if s.Stall == nil {
		return look(LookAtStall)
	}
	after := updated(s.Unit, s.Now)
	before := meta.FindStatusCondition(s.Unit.Status.Conditions, v1alpha1.ConditionPodsReady)
	if !setStall(after, s.Stall, s.Now) {
		d.After = sooner(d.After, stallInterval(s, s.Now.Time))
		return d
	}
	step := PatchUnitStatus{Before: s.Unit, After: after}
	now := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionPodsReady)
	if s.Stall.Reason != "" && (before == nil || before.Reason != now.Reason || now.Reason == v1alpha1.ReasonPodsLost) {
		step.Event = event.Warning(s.Stall.Reason, "Run", event.Short(s.Stall.Message))
	}
	return do(step)
}

// stallDue is when somebody has to look. A look of an earlier admission does not count.
func stallDue(s *Situation) time.Time {
	admitted := s.Unit.Status.LastAllocateTime.Time
	first := admitted.Add(StallPatience)
	if s.Stall != nil {
		return first
	}
	if !s.StallSeen.Before(first) {
		return s.StallSeen.Add(stallInterval(s, s.StallSeen))
	}
	return first
}

// stallInterval after a look at this time grows with the time since the admission.
func stallInterval(s *Situation, seen time.Time) time.Duration {
	return min(max(seen.Sub(s.Unit.Status.LastAllocateTime.Time)/4, leastStallInterval), mostStallInterval)
}

// setStall says in a unit why its job does not run, and whether that is news. Where pods were ready once, the reason and
// the time stay, because a time-out goes by them.
func setStall(u *v1alpha1.QueueUnit, found *stall.Finding, now metav1.Time) bool {
	was := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionPodsReady)
	reason, message := found.Reason, found.Message
	switch {
	case was != nil && was.Reason == v1alpha1.ReasonPodsLost && reason != "":
		lost, _, _ := strings.Cut(was.Message, lostFor)
		reason, message = v1alpha1.ReasonPodsLost, lost+lostFor+fmt.Sprintf("%s: %s", found.Reason, found.Message)
	case reason != "":
	case was != nil && unitcondition.Stalled(was.Reason):
		reason, message = v1alpha1.ReasonPodsStarting, someReady
	default:
		return false
	}
	if was != nil && was.Status == metav1.ConditionFalse && was.Reason == reason && was.Message == message {
		return false
	}
	setCondition(u, v1alpha1.ConditionPodsReady, metav1.ConditionFalse, reason, message, now)
	return true
}

// lostFor separates how many pods are ready from why the others are not.
const lostFor = "; "

// sooner is the shorter of two times that are not zero.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
