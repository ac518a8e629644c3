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

// Package podreport writes the state of the pods of an admitted job into the status of its unit. It counts pods that
// are ready, and pods that have succeeded and are not replaced. It is pure: it has neither a client nor a clock.
package podreport

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/stall"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// Ready has the number of ready pods of an admitted job, in the order of its admissions. All says that each pod that
// its unit holds quota for is ready.
type Ready struct {
	Counts []int64
	All    bool
}

// Count the pods of a job whose unit should have these pod sets. Pods beyond the quota that the unit holds are not
// missed, and neither are pods that have ended.
func Count(job *jobs.Job, u *v1alpha1.QueueUnit, sets []v1alpha1.PodSet) Ready {
	pods := int64(0)
	for i := range sets {
		pods += int64(sets[i].Count)
	}
	admitted, sizes := int64(0), make([]jobs.PodSetSize, len(u.Status.Admissions))
	for i := range u.Status.Admissions {
		a := &u.Status.Admissions[i]
		admitted += a.Replicas
		sizes[i] = jobs.PodSetSize{Name: a.Name, Pods: a.Replicas}
	}
	if admitted > 0 {
		for i := range u.Status.ReclaimablePods {
			admitted += int64(u.Status.ReclaimablePods[i].Count)
		}
	}
	if admitted > 0 {
		pods = min(pods, admitted)
	}
	return Ready{Counts: job.ReadyOf(sizes), All: job.AllReady(pods)}
}

// Running is the status of a unit whose job runs; the condition has the time since when.
func (r Ready) Running(u *v1alpha1.QueueUnit, now, since metav1.Time) *v1alpha1.QueueUnit {
	u = unitstatus.Updated(u, now)
	r.SayIn(u, since)
	u.Status.Phase = v1alpha1.PhaseRunning
	u.Status.Message = ""
	return u
}

// Adopted is the status of a new unit for a job that runs already. The unit holds quota for the bound pods, which the
// scheduler knows and writes down. It asks for the rest of its job.
func (r Ready) Adopted(u *v1alpha1.QueueUnit, now metav1.Time) *v1alpha1.QueueUnit {
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
	unitstatus.SetCondition(u, v1alpha1.ConditionPodsReady, unitstatus.ConditionStatus(r.All),
		v1alpha1.ReasonAdopted, message, now)
	if u.Status.ExecutionStartTime = nil; r.All {
		u.Status.ExecutionStartTime = &now
	}
	return u
}

// SayIn a unit how many pods of its job are ready. The condition tells it as well; what the scheduler wrote there stays
// as long as not all are.
func (r Ready) SayIn(u *v1alpha1.QueueUnit, now metav1.Time) {
	running := int64(0)
	for i := range u.Status.Admissions {
		a := &u.Status.Admissions[i]
		a.Running = r.Counts[i]
		running += a.Running
	}
	before := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionPodsReady)
	switch {
	case r.All:
		u.Status.RequeueState = nil // earlier obstacles are over
		if !AllReady(u) {
			beginTime(u, now)
			unitstatus.SetCondition(u, v1alpha1.ConditionPodsReady, metav1.ConditionTrue, v1alpha1.ReasonPodsRunning,
				"all pods of the job are ready", now)
		}
	case AllReady(u):
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

// beginTime has the time of the job count, if it does not yet.
func beginTime(u *v1alpha1.QueueUnit, now metav1.Time) {
	if u.Status.ExecutionStartTime != nil {
		return
	}
	if AllReady(u) { // as a release before it says it, and the stand-alone Koord-Queue
		now = meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionPodsReady).LastTransitionTime
	}
	u.Status.ExecutionStartTime = &now
}

// AllReady says that all pods of the job of a unit were ready when that was told last.
func AllReady(u *v1alpha1.QueueUnit) bool {
	return meta.IsStatusConditionTrue(u.Status.Conditions, v1alpha1.ConditionPodsReady)
}

// SetReclaimable names in a unit the pods of its job that have ended well and do not come again, and says whether that
// is news. If the job starts again from scratch, these pods come again, and the unit asks for them.
func SetReclaimable(u *v1alpha1.QueueUnit, job *jobs.Job, sets []v1alpha1.PodSet) bool {
	var reclaimable []v1alpha1.ReclaimablePod
	ended := job.Reclaimable()
	for i := range sets {
		set := &sets[i]
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
