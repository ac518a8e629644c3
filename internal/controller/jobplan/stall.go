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
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownerhold"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/stall"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
)

// An admitted job that does not run says why. Most jobs run within seconds, so nobody looks before stall.Patience. Each
// look reads pods and events from the API server, so looks become rarer the longer the job has been admitted.

// sayStall adds to a decision about an admitted job why the job does not run, or when to look for that.
func sayStall(s *Situation, d Decision) Decision {
	if len(d.Do) > 0 || s.Unit.Status.LastAllocateTime == nil || s.Job.SuspensionSeen() || s.ready().All {
		return d
	}
	admitted, before := s.Unit.Status.LastAllocateTime.Time, s.StallSeen
	if s.Stall != nil {
		before = time.Time{} // this look is the answer
	}
	if wait := stall.Due(admitted, before).Sub(s.Now.Time); wait > 0 {
		d.After = sooner(d.After, wait)
		return d
	}
	if s.Stall == nil {
		return look(LookAtStall)
	}
	after := unitstatus.Updated(s.Unit, s.Now)
	if !s.Stall.SayIn(after, s.Now) {
		d.After = sooner(d.After, stall.Interval(admitted, s.Now.Time))
		return d
	}
	step := PatchUnitStatus{Before: s.Unit, After: after}
	was := meta.FindStatusCondition(s.Unit.Status.Conditions, v1alpha1.ConditionPodsReady)
	now := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionPodsReady)
	if s.Stall.Reason != "" && (was == nil || was.Reason != now.Reason || now.Reason == v1alpha1.ReasonPodsLost) {
		step.Event = event.Warning(s.Stall.Reason, "Run", event.Short(s.Stall.Message))
	}
	return do(step)
}

// NotResumed says on an admitted job, and in its unit, why the job cannot be resumed.
func NotResumed(u *v1alpha1.QueueUnit, why error, now metav1.Time) []Action {
	e := event.Warning("CannotResume", "Resume", event.Short(why.Error()))
	e.Of = ownerhold.Stamp(u) // once for each admission, since events are kept for an hour or so
	steps := []Action{tell(e)}
	found, after := stall.NotResumed(why), unitstatus.Updated(u, now)
	// A refusal may have other words each time, and each write has the job resumed again.
	before, last := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionPodsReady), u.Status.LastUpdateTime
	lately := before != nil && before.Reason == found.Reason && last != nil && now.Sub(last.Time) < stall.LeastInterval
	if !lately && found.SayIn(after, now) {
		steps = append(steps, PatchUnitStatus{Before: u, After: after})
	}
	return steps
}

// sooner is the shorter of two times that are not zero.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
