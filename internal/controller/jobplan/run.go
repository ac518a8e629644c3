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

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/resumption"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// A job that was admitted and is not suspended runs, and its unit follows it.

// RunningDelay is the time that a job runs before its unit gets phase Running. For a job that ends sooner this write
// would be a quarter of all its writes, and nobody would read it.
const RunningDelay = 2 * time.Second

// follow keeps the requested size of the unit equal to that of its job while the job runs. The unit waits for an
// increase and gives back a decrease. While the job has the pods of a partial admission, its unit stays unchanged.
// Preemptibility was decided at the admission: borrowed quota is not guaranteed.
func follow(s *Situation) (Decision, bool) {
	have, want := s.Unit.Spec.PodSets, s.ask().Unit.Spec.PodSets
	sameName := func(a, b v1alpha1.PodSet) bool { return a.Name == b.Name }
	if s.ask().Problem() != nil || !slices.EqualFunc(have, want, sameName) {
		return Decision{}, false
	}
	after, counts := s.Unit.DeepCopy(), resumption.Admitted(s.Unit, have)
	before, now := int64(0), int64(0)
	for i := range want {
		set := &after.Spec.PodSets[i]
		resumption.Resize(set, want[i].Count, counts)
		before, now = before+int64(have[i].Count), now+int64(set.Count)
	}
	jobunit.CorrectTime(after, s.ask().Unit)
	request := s.ask().Demand.Of(after.Spec.PodSets, s.Terms.Creation)
	jobunit.CorrectRequest(after, request)
	if !relabelled(s) && after.Labels != nil {
		for _, key := range v1alpha1.QuotaLabels {
			jobunit.Set(after.Labels, key, s.ask().Unit.Labels[key])
		}
	}
	if equality.Semantic.DeepEqual(after, s.Unit) {
		return Decision{}, false
	}
	step := PatchUnit{Before: s.Unit, After: after}
	switch {
	case now > before:
		step.Event = event.Normal("Grows", "Queue",
			fmt.Sprintf("the job asks for %d pods instead of %d; the additional pods wait for quota", now, before))
	case now < before:
		step.Event = event.Normal("Shrinks", "Queue",
			fmt.Sprintf("the job asks for %d pods instead of %d; the quota of the others is free again", now, before))
	}
	return do(step), true
}

// relabelled says whether a running job names another quota than its pods were created with. The pods and the unit stay
// charged to the former quota until the job is suspended and resumed.
func relabelled(s *Situation) bool {
	return s.Unit.Labels[v1alpha1.LabelQuotaName] != s.ask().Unit.Labels[v1alpha1.LabelQuotaName] &&
		s.resumption().ChargedElsewhere()
}

func tellQuota(s *Situation) []Action {
	if s.ask().Problem() != nil || !relabelled(s) {
		return nil
	}
	return []Action{tell(event.Warning("QuotaChanged", "Queue", fmt.Sprintf(
		"the job names quota %q now; while it runs, its pods are charged to quota %q of its admission",
		s.ask().Unit.Labels[v1alpha1.LabelQuotaName], s.Unit.Labels[v1alpha1.LabelQuotaName])))}
}

// mirror what the pods of a job do: that it runs, once it has for a while, and then how many of them are ready.
func mirror(s *Situation) (d Decision, answers bool) {
	if StartsToRun(s.Job, s.Unit) {
		d = mirrorStart(s)
	} else {
		d = sayStall(s, report(s))
	}
	d.Do = append(tellQuota(s), d.Do...)
	return d, true
}

func mirrorStart(s *Situation) Decision {
	since := s.Now
	if s.RunningSince != nil {
		since = *s.RunningSince
	}
	if ran := s.Now.Sub(since.Time); ran < RunningDelay {
		return Decision{After: RunningDelay - ran}
	}
	return do(PatchUnitStatus{Before: s.Unit, After: s.ready().Running(s.Unit, s.Now, since)})
}

// StartsToRun: pods of an admitted job run, and its unit does not say so yet. Until the job's controller has noted the
// resumption, their count is that of an earlier run.
func StartsToRun(job *jobs.Job, unit *v1alpha1.QueueUnit) bool {
	return unit != nil && stageOf(unit.Status.Phase) == released && unit.Status.Phase != v1alpha1.PhaseRunning &&
		job.Running() > 0 && !job.Suspended() && !job.SuspensionSeen()
}

// resumeAnew is for a job that somebody resumed by hand just before its admission, and that still has the mark of the
// controller. The gate keeps its pods from being scheduled while the mark is there. So the job is suspended again, and
// then resumed with all that its pods need. If pods run already, only the mark is removed.
func resumeAnew(s *Situation) (Decision, bool) {
	switch {
	case !s.Job.SuspendedByUs():
		return Decision{}, false
	case s.Job.Running() == 0:
		return do(suspendToRecharge(s.Job)), true
	}
	after := s.Job.Edit()
	after.UnmarkSuspended()
	return do(PatchJob{Before: s.Job, After: after.Job()}), true
}

func suspendToRecharge(job *jobs.Job) Action {
	return suspendWith(job, event.Normal("Suspended", "Suspend",
		"its pods lack the label of its quota or updates of admission checks; "+
			"the job is resumed with them"))
}

// recharge is for an admitted job whose pods are charged to another quota, or lack updates of admission checks. It was
// resumed by hand, or ran before it was queued. The gate holds the pods of the former. As soon as no pod is on a node,
// the job is suspended, and then resumed with everything that its pods need.
func recharge(s *Situation) (Decision, bool) {
	if !suspendable(s.Job) || !hasPending(s.Job) ||
		!s.resumption().ChargedElsewhere() && !s.resumption().LacksUpdates() {
		return Decision{}, false
	}
	return ifNotBound(bound(s), func() Decision { return do(suspendToRecharge(s.Job)) })
}

// hasPending says whether pods of the job may be on no node. Either more exist than are ready, or their number is
// unknown and none is ready.
func hasPending(job *jobs.Job) bool {
	running := job.Running()
	if !job.Kind.CountsPods() {
		return running == 0
	}
	return job.Active() > running
}
