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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/notice"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownerhold"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// noticePause is the time between two looks at the pods of a job. noticePausePerPod is added for each pod: a list of
// 10,000 pods takes a second.
const (
	noticePause       = 5 * time.Second
	noticePausePerPod = time.Millisecond / 2
)

// RunsWithoutQuota says that the unit of a job lost its quota to others and that the job has not been suspended since.
func RunsWithoutQuota(job *jobs.Job, u *v1alpha1.QueueUnit) bool {
	return jobunit.Relate(job, u) == jobunit.Own && stageOf(u.Status.Phase) == waiting &&
		unitstatus.LostToOthers(u) != nil && !job.Suspended()
}

// mustStop says that a job has to be suspended although its labels or owners may say by now that no queue manages it.
// Otherwise its owner could keep by such an edit the quota that the unit has lost, for whatever reason.
func mustStop(s *Situation) bool {
	return suspendable(s.Job) && !s.Job.Suspended() && (s.LostUnit || lostAdmission(s.own()) != nil)
}

// stopWithoutUnit suspends a job whose unit was deleted during the grace. It would be adopted with its running pods,
// and its owner could keep the quota of others.
func stopWithoutUnit(s *Situation) (Decision, bool) {
	if !s.LostUnit || !mustStop(s) {
		return Decision{}, false
	}
	return do(suspend(s)), true
}

// giveNotice lets a job run on until its grace is over or all its running pods have acknowledged. A job that was
// suspended since its eviction, and that somebody has resumed, has no grace.
func giveNotice(s *Situation) (Decision, bool) {
	eviction := unitstatus.LostToOthers(s.Unit)
	if eviction == nil || s.Job.SuspendedByUs() {
		return Decision{}, false
	}
	n := notice.Of(eviction, s.Job, notice.Grace(s.ask().Job, s.MostGrace), s.Now.Time)
	if n == nil {
		return Decision{}, false
	}
	if s.Running == nil {
		return look(LookAtRunning), true
	}
	untold, all := n.Acknowledged(s.Running)
	if all {
		return Decision{}, false
	}
	d := do(tell(event.Warning("WillSuspend", "Suspend", event.Short(fmt.Sprintf(
		"the job will be suspended at %s unless it acknowledges before by the annotation %s: %s",
		n.Time(), v1alpha1.AnnotationCheckpointed, n.Message)))))
	if len(untold) > 0 {
		d.Do = append(d.Do, Notify{Pods: untold, Notice: n, Most: 2 * len(s.Running)})
	}
	d.After = min(n.SuspendAt.Sub(s.Now.Time), noticePause+time.Duration(len(s.Running))*noticePausePerPod)
	return d, true
}

// withdrawNotice is for a job that was admitted again before its suspension. Its pods are those of the attempt before,
// and may have a notice. The job gets the stamp of this attempt, so that this happens once. A job without a stamp was
// adopted, which was its first attempt.
func withdrawNotice(s *Situation) (Decision, bool) {
	switch {
	case !ownerhold.Stamped(s.Job) && s.Unit.Status.Attempts <= 1,
		ownerhold.Resumed(s.Job, s.Unit), !suspendable(s.Job):
		return Decision{}, false
	case !s.FreshUnit: // the stamp may be of a later attempt than the cache has
		return look(LookAtUnit), true
	case s.Running == nil:
		return look(LookAtRunning), true
	}
	d := Decision{}
	told := slices.DeleteFunc(slices.Clone(s.Running), func(pod notice.Pod) bool { return pod.SuspendAt.IsZero() })
	if len(told) > 0 {
		d.Do = append(d.Do, Notify{Pods: told, Most: 2 * len(s.Running)})
	}
	after := s.Job.Edit()
	after.Annotate(v1alpha1.AnnotationResumed, ownerhold.Stamp(s.Unit))
	d.Do = append(d.Do, PatchJob{Before: s.Job, After: after.Job()})
	return d, true
}
