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
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownerhold"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/resumption"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// reconsider returns the admission of a unit whose job asks for the same pods, if their quota or the cluster's changes
// to them differ now. The unit keeps its position, which a new one would not (I5).
func reconsider(s *Situation) (Decision, bool) {
	have, want, now := s.Unit, s.ask().Unit, s.resumption()
	if now.Truthful() || !jobunit.CreatedByUs(have) || s.ask().Problem() != nil ||
		have.Spec.ConsumerRef.UID != s.Job.Object.GetUID() || !jobunit.SameScheduling(have.Spec.PodSets, want.Spec.PodSets) ||
		now.SameQuota() && equality.Semantic.DeepEqual(have.Spec.Request, want.Spec.Request) {
		return Decision{}, false
	}
	reason, words := unitcondition.ReasonEstimateChanged, "Koordinator would count the pods of the job differently now"
	if was, is := have.Labels[v1alpha1.LabelQuotaName], want.Labels[v1alpha1.LabelQuotaName]; was != is {
		reason, words = unitcondition.ReasonQuotaChanged, fmt.Sprintf("the job names quota %q now, and not %q", is, was)
	}
	return do(PatchUnit{Before: have, After: jobunit.Parked(have, &jobunit.Problem{Reason: reason}),
		Event: event.Warning(reason, "Queue", words+"; it waits again at its position")}), true
}

// replaceUntrue deletes a unit that was admitted with something else.
func replaceUntrue(s *Situation) (Decision, bool) {
	if s.resumption().Truthful() {
		return Decision{}, false
	}
	if d, answers := takeOut.answer(s); answers && s.Job.HasUpdates() {
		return d, true
	}
	return do(DeleteUnit{Unit: s.Unit, Event: event.Warning("UnitReplaced", "Delete",
		"the job no longer has the admitted request; it waits again")}), true
}

// readAgain: the job was resumed for this attempt, and we have suspended it since: the cache of units is behind, and
// the attempt is over. Two controllers, one of them with such a cache, would resume and suspend it in turns.
func readAgain(s *Situation) (Decision, bool) {
	return look(LookAtUnit), s.Job.SuspendedByUs() && ownerhold.Resumed(s.Job, s.Unit) && !s.FreshUnit
}

// awaitPods waits for pods from before the suspension to end. If the job were resumed now, its controller might delete
// some of them after they were bound, and the job would run them twice (I3). Others might lack the quota label.
func awaitPods(s *Situation) (Decision, bool) {
	mayHavePods := s.Job.SuspendedByUs() || suspendedBare(s.Job, s.Unit) ||
		s.resumption().ChargedElsewhere() && (s.Job.Started() || s.Job.Active() > 0)
	return Decision{}, mayHavePods && !settled(s.Job)
}

// resume lets the job go in one write, with what its pods need to be charged and recognised. The job asks for what was
// admitted (I3).
func resume(s *Situation) (Decision, bool) {
	r, after := s.resumption(), s.Job.Edit()
	after.UnmarkSuspended()
	after.Annotate(v1alpha1.AnnotationResumed, ownerhold.Stamp(s.Unit))
	if err := release(r, after, s.Options.ChecksOff); err != nil {
		return do(NotResumed(s.Unit, err, s.Now)...), true
	}
	step := PatchJob{Before: s.Job, Event: event.Normal("Admitted", "Resume", r.Words())}
	if s.Job.TemplatesFixed() {
		if r.FilledOtherwise() {
			return resetStart(s.Job), true
		}
	} else {
		if !r.ChargedElsewhere() && !r.HasUpdates() {
			step.Plain = after.Copy().Job() // else templates become mutable once the suspension has been noted
		}
		if err := r.Fill(after); err != nil {
			return do(NotResumed(s.Unit, err, s.Now)...), true
		}
	}
	step.After = after.Job()
	return do(append(unkept(s.Job, s.Unit), step)...), true
}

// release lets the job go with as many pods as it was admitted with, or says why it must not go.
func release(r *resumption.Resumption, job *jobs.Edit, checksOff bool) error {
	if checksOff && len(podupdate.Ready(r.Unit.Status.AdmissionChecks)) > 0 {
		// Without the updates its pods are not those that were checked.
		return errors.New("admission checks ask to write into the pods, and the feature gate AdmissionChecks of the " +
			"controller is off")
	}
	if err := job.SetSuspend(false); err != nil {
		return err
	}
	return r.Scale(job)
}

// resetStart makes templates mutable again after an earlier run, once that has been wound up. The change of the job's
// status brings a new plan.
func resetStart(job *jobs.Job) Decision {
	if !settled(job) {
		return Decision{}
	}
	return do(ResetStart{Job: job})
}

// settled: the job's own controller has noted the suspension and no pod is left.
func settled(job *jobs.Job) bool { return job.SuspensionSeen() && job.Active() == 0 }
