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
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// A job that is evicted for others may run on for a grace, so that it can write a checkpoint. Its running pods get a
// notice: the time at which the job will be suspended. The job is suspended as soon as all of them have acknowledged.
//
// The end of the grace follows from the eviction in the status of the unit, the annotation of the job, and the bound of
// its queue. So it is the same after a restart, and no later edit gets a job beyond the bound of its queue.

// The pods of a job are looked at again after noticePause, and for noticePausePerPod longer for each of them: a list of
// 10,000 pods takes a second.
const (
	noticePause       = 5 * time.Second
	noticePausePerPod = time.Millisecond / 2
)

// forOthers are the reasons of evictions before which a job may have a grace: it did nothing wrong.
var forOthers = []unit.Reason{unit.ReasonReclaimed, unit.ReasonPreemptedInQueue, unit.ReasonQueueDrained}

// Pod is a pod that runs.
type Pod struct {
	Name, ResourceVersion string
	// SuspendAt is the time in its notice, Checkpointed that of its last checkpoint; zero if it has none.
	SuspendAt, Checkpointed time.Time
}

// PodOf reads a pod. Text that is no time counts as none.
func PodOf(pod metav1.Object) Pod {
	return Pod{
		Name: pod.GetName(), ResourceVersion: pod.GetResourceVersion(),
		SuspendAt:    timeIn(pod, v1alpha1.AnnotationSuspendAt),
		Checkpointed: timeIn(pod, v1alpha1.AnnotationCheckpointed),
	}
}

func timeIn(object metav1.Object, annotation string) time.Time {
	at, err := time.Parse(time.RFC3339, object.GetAnnotations()[annotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// Notice is that a job will be suspended.
type Notice struct {
	// Evicted is when its unit was evicted, SuspendAt when it is suspended at the latest.
	Evicted, SuspendAt time.Time
	Reason             string
	message            string
}

// time of the suspension, as pods and events have it.
func (n *Notice) time() string { return n.SuspendAt.UTC().Format(time.RFC3339) }

// Patch is the merge patch that gives a pod the notice, or takes away the one that it has if there is none.
func (n *Notice) Patch(pod Pod) ([]byte, error) {
	annotations := map[string]any{v1alpha1.AnnotationSuspendAt: nil, extension.AnnotationSoftEviction: nil}
	if n != nil {
		soft, err := json.Marshal(extension.SoftEvictionSpec{
			Timestamp: &metav1.Time{Time: n.Evicted}, Initiator: v1alpha1.CreatedByController, Reason: n.Reason,
		})
		if err != nil {
			return nil, err
		}
		annotations[v1alpha1.AnnotationSuspendAt], annotations[extension.AnnotationSoftEviction] = n.time(), string(soft)
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": pod.ResourceVersion, "annotations": annotations,
	}})
}

// lostToOthers is the condition of a unit that lost its quota to others; nil if it did not.
func lostToOthers(u *v1alpha1.QueueUnit) *metav1.Condition {
	c := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionEvicted)
	if c == nil || c.Status != metav1.ConditionTrue || !slices.Contains(forOthers, unit.Reason(c.Reason)) {
		return nil
	}
	return c
}

// RunsWithoutQuota says that the unit of a job lost its quota to others and that the job has not been suspended since.
func RunsWithoutQuota(job *jobs.Job, u *v1alpha1.QueueUnit) bool {
	return jobunit.Relate(job, u) == jobunit.Own && stageOf(u.Status.Phase) == waiting && lostToOthers(u) != nil &&
		!job.Suspended()
}

// mustStop says that a job has to be suspended although its labels or owners may say by now that no queue manages it.
// Otherwise its owner could keep by such an edit the quota that the unit has lost, for whatever reason.
func mustStop(s *Situation) bool {
	return suspendable(s) && !s.Job.Suspended() && (s.LostUnit || lostAdmission(s) != nil)
}

// stopWithoutUnit suspends a job whose unit was deleted during the grace. It would be adopted with its running pods,
// and its owner could keep the quota of others.
func stopWithoutUnit(s *Situation) (Decision, bool) {
	if !s.LostUnit || !mustStop(s) {
		return Decision{}, false
	}
	return do(suspend(s)), true
}

// noticeOf a job that may run on; nil if it is suspended now. A job that was suspended since its eviction, and that
// somebody has resumed, has no grace.
func noticeOf(s *Situation) *Notice {
	c := lostToOthers(s.Unit)
	if c == nil || s.Job.SuspendedByUs() {
		return nil
	}
	n := &Notice{
		Evicted: c.LastTransitionTime.Time, SuspendAt: c.LastTransitionTime.Add(graceOf(s)),
		Reason: c.Reason, message: c.Message,
	}
	if !s.Now.Time.Before(n.SuspendAt) || n.acknowledged(timeIn(s.Job.Object, v1alpha1.AnnotationCheckpointed)) {
		return nil
	}
	return n
}

// graceOf a job is what it asks for, up to the bound of its queue.
func graceOf(s *Situation) time.Duration {
	seconds, err := strconv.ParseInt(s.read.Object.GetAnnotations()[v1alpha1.AnnotationGrace], 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, s.MostGrace)
}

// acknowledged by a checkpoint of this time. Times of evictions are whole seconds.
func (n *Notice) acknowledged(checkpoint time.Time) bool { return !checkpoint.Before(n.Evicted) }

// giveNotice lets a job run on until its grace is over or all its running pods have acknowledged.
func giveNotice(s *Situation) (Decision, bool) {
	n := noticeOf(s)
	if n == nil {
		return Decision{}, false
	}
	if s.Running == nil {
		return look(LookAtRunning), true
	}
	var untold []Pod
	saved := true
	for _, pod := range s.Running {
		if n.acknowledged(pod.Checkpointed) {
			continue
		}
		saved = false
		if !pod.SuspendAt.Equal(n.SuspendAt) {
			untold = append(untold, pod)
		}
	}
	if saved {
		return Decision{}, false
	}
	d := do(tell(event.Warning("WillSuspend", "Suspend", event.Short(fmt.Sprintf(
		"the job will be suspended at %s unless it acknowledges before by the annotation %s: %s",
		n.time(), v1alpha1.AnnotationCheckpointed, n.message)))))
	if len(untold) > 0 {
		d.Do = append(d.Do, Notify{Pods: untold, Notice: n, Most: 2 * len(s.Running)})
	}
	d.After = min(n.SuspendAt.Sub(s.Now.Time), noticePause+time.Duration(len(s.Running))*noticePausePerPod)
	return d, true
}

// withdrawNotice is for a job that was admitted again before it was suspended: its pods are those of the attempt
// before, and may have a notice. The job gets the stamp of this attempt, so that this is done once. A job without a
// stamp was adopted, which was its first attempt.
func withdrawNotice(s *Situation) (Decision, bool) {
	_, stamped := stampOf(s)
	switch {
	case !stamped && s.Unit.Status.Attempts <= 1 || wasResumed(s) || !suspendable(s):
		return Decision{}, false
	case !s.FreshUnit: // the stamp may be of a later attempt than the cache has
		return look(LookAtUnit), true
	case s.Running == nil:
		return look(LookAtRunning), true
	}
	d := Decision{}
	told := slices.DeleteFunc(slices.Clone(s.Running), func(pod Pod) bool { return pod.SuspendAt.IsZero() })
	if len(told) > 0 {
		d.Do = append(d.Do, Notify{Pods: told, Most: 2 * len(s.Running)})
	}
	after := s.Job.Edit()
	after.Annotate(v1alpha1.AnnotationResumed, resumedStamp(s.Unit))
	d.Do = append(d.Do, PatchJob{Before: s.Job, After: after.Job()})
	return d, true
}
