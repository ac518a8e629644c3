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
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/stall"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// What the pods of an admitted job do is told in the status of its unit: how many of them are ready, and whether all
// are, and which of them have ended well and do not come again. A unit is written for that at most once every
// ReportInterval; quota that others may use is given back sooner.

const (
	// ReportInterval is for reports.
	ReportInterval  = 30 * time.Second
	reclaimInterval = 5 * time.Second
)

// podCount is how many pods of an admitted job are ready, in the order of its admissions, and whether all are that its
// unit holds quota for.
type podCount struct {
	ready []int64
	all   bool
}

// countPods of the job. Those that it waits for beyond what it holds are not missed, nor those that have ended.
func countPods(s *Situation) podCount {
	pods := int64(0)
	for i := range s.demand.UnitSets {
		pods += int64(s.demand.UnitSets[i].Count)
	}
	admitted, sizes := int64(0), make([]jobs.PodSetSize, len(s.Unit.Status.Admissions))
	for i := range s.Unit.Status.Admissions {
		a := &s.Unit.Status.Admissions[i]
		admitted += a.Replicas
		sizes[i] = jobs.PodSetSize{Name: a.Name, Pods: a.Replicas}
	}
	if admitted > 0 {
		for i := range s.Unit.Status.ReclaimablePods {
			admitted += int64(s.Unit.Status.ReclaimablePods[i].Count)
		}
	}
	if admitted > 0 {
		pods = min(pods, admitted)
	}
	return podCount{ready: s.Job.ReadyOf(sizes), all: s.Job.AllReady(pods)}
}

// report follows the pods of a job that runs.
func report(s *Situation) Decision {
	if s.Unit.Status.Phase != v1alpha1.PhaseRunning || s.Job.SuspensionSeen() {
		return Decision{}
	}
	after := s.Unit.DeepCopy()
	count(after, countPods(s), s.Now)
	reclaims := setReclaimable(s, after)
	if equality.Semantic.DeepEqual(after.Status, s.Unit.Status) {
		return Decision{}
	}
	interval := ReportInterval
	if reclaims {
		interval = reclaimInterval
	}
	if last := s.Unit.Status.LastUpdateTime; last != nil {
		if wait := last.Add(interval).Sub(s.Now.Time); wait > 0 {
			return Decision{After: min(wait, interval)}
		}
	}
	now := s.Now
	after.Status.LastUpdateTime = &now
	if reclaims || allReady(after) != allReady(s.Unit) {
		return do(PatchUnitStatus{Before: s.Unit, After: after}) // quota and time-outs go by it
	}
	return do(Report{Before: s.Unit, After: after})
}

// setReclaimable names in a unit the pods of its job that have ended well and do not come again, and says whether that
// is news. If the job starts again from scratch, these pods come again, and the unit asks for them.
func setReclaimable(s *Situation, u *v1alpha1.QueueUnit) bool {
	var reclaimable []v1alpha1.ReclaimablePod
	ended := s.Job.Reclaimable()
	for i := range s.demand.UnitSets {
		set := &s.demand.UnitSets[i]
		if n := min(ended[set.Name], set.Count); n > 0 {
			reclaimable = append(reclaimable, v1alpha1.ReclaimablePod{Name: set.Name, Count: n})
		}
	}
	if equality.Semantic.DeepEqual(u.Status.ReclaimablePods, reclaimable) {
		return false
	}
	u.Status.ReclaimablePods = reclaimable
	return true
}

// reclaim is for a job that does not run: what its unit asks for is written at once.
func reclaim(s *Situation) (Decision, bool) {
	after := unitstatus.Updated(s.Unit, s.Now)
	if !setReclaimable(s, after) {
		return Decision{}, false
	}
	return do(PatchUnitStatus{Before: s.Unit, After: after}), true
}

// beginTime has the time of the job count, if it does not yet.
func beginTime(u *v1alpha1.QueueUnit, now metav1.Time) {
	if u.Status.ExecutionStartTime != nil {
		return
	}
	if allReady(u) { // as a release before it says it, and the stand-alone Koord-Queue
		now = meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionPodsReady).LastTransitionTime
	}
	u.Status.ExecutionStartTime = &now
}

func allReady(u *v1alpha1.QueueUnit) bool {
	return meta.IsStatusConditionTrue(u.Status.Conditions, v1alpha1.ConditionPodsReady)
}

// count tells in a unit how many pods of its job are ready. The condition tells it as well; what the scheduler wrote
// there stays as long as not all are.
func count(u *v1alpha1.QueueUnit, pods podCount, now metav1.Time) {
	running := int64(0)
	for i := range u.Status.Admissions {
		a := &u.Status.Admissions[i]
		a.Running = pods.ready[i]
		running += a.Running
	}
	before := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionPodsReady)
	switch {
	case pods.all:
		u.Status.RequeueState = nil // what kept it from running is over
		if !allReady(u) {
			beginTime(u, now)
			unitstatus.SetCondition(u, v1alpha1.ConditionPodsReady, metav1.ConditionTrue, v1alpha1.ReasonPodsRunning,
				"all pods of the job are ready", now)
		}
	case allReady(u):
		beginTime(u, now)
		unitstatus.SetCondition(u, v1alpha1.ConditionPodsReady, metav1.ConditionFalse, v1alpha1.ReasonPodsLost,
			fmt.Sprintf("pods of the job were ready and are not any more: %d are", running), now)
	case before == nil || u.Status.Phase != v1alpha1.PhaseRunning:
		unitstatus.SetCondition(u, v1alpha1.ConditionPodsReady, metav1.ConditionFalse, v1alpha1.ReasonPodsStarting,
			stall.SomeReady, now)
		// The pods began to run at this time. The condition may have been False before, for a stall or an eviction.
		meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionPodsReady).LastTransitionTime = now
	}
}
