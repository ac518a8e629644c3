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
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/unitcondition"
)

// A job that was admitted and is suspended is resumed, if what was admitted is what it asks for (I3).

// reconsider has the unit give its admission back, where it differs in nothing that the job itself says: what the
// cluster does to its pods has changed since it was estimated. It keeps its place, as a unit that was deleted would not
// (I5).
func reconsider(s *Situation) (Decision, bool) {
	have, want := s.Unit, s.want
	if truthful(s) || !jobunit.CreatedByUs(have) || s.demand.Problem != nil ||
		have.Spec.ConsumerRef.UID != s.Job.Object.GetUID() || !jobunit.SameScheduling(have.Spec.PodSets, want.Spec.PodSets) ||
		sameQuota(s) && equality.Semantic.DeepEqual(have.Spec.Request, want.Spec.Request) {
		return Decision{}, false
	}
	after := jobunit.Parked(s.Unit, &jobunit.Problem{Reason: unitcondition.ReasonEstimateChanged})
	return do(PatchUnit{Before: s.Unit, After: after, Event: event.Warning(unitcondition.ReasonEstimateChanged, "Queue",
		"Koordinator would count the pods of the job differently now; it waits again at its position")}), true
}

// replaceUntrue deletes a unit that was admitted with something else.
func replaceUntrue(s *Situation) (Decision, bool) {
	if truthful(s) {
		return Decision{}, false
	}
	return do(DeleteUnit{Unit: s.Unit, Event: event.Warning("UnitReplaced", "Delete",
		"the job no longer has the admitted request; it waits again")}), true
}

func truthful(s *Situation) bool {
	return s.demand.Problem == nil && s.Unit.Spec.ConsumerRef.UID == s.Job.Object.GetUID() && sameQuota(s) && covered(s)
}

// sameQuota says whether the unit was admitted in the quota that the job names, and drew on as much of it.
func sameQuota(s *Situation) bool {
	have, want := s.Unit.Labels, s.want.Labels
	return have[v1alpha1.LabelQuotaName] == want[v1alpha1.LabelQuotaName] &&
		(have[v1alpha1.LabelPreemptible] == "false") == (want[v1alpha1.LabelPreemptible] == "false")
}

// readAgain: the job was resumed for this attempt, and we have suspended it since: the cache of units is behind, and
// the attempt is over. Two controllers, one of them with such a cache, would resume and suspend it in turns.
func readAgain(s *Situation) (Decision, bool) {
	return look(LookAtUnit), s.Job.SuspendedByUs() && wasResumed(s) && !s.FreshUnit
}

// awaitPods: pods from before the suspension may be left. Resumed now, the job's controller might still take some of
// them away after they were bound, and the job would run them twice (I3); others might lack the quota label.
func awaitPods(s *Situation) (Decision, bool) {
	mayHavePods := s.Job.SuspendedByUs() || suspendedBare(s) ||
		chargedElsewhere(s) && (s.Job.Started() || s.Job.Active() > 0)
	return Decision{}, mayHavePods && !settled(s.Job)
}

// resume lets the job go in one write, with what its pods need to be charged and recognised.
func resume(s *Situation) (Decision, bool) {
	after := s.Job.Edit()
	after.UnmarkSuspended()
	after.Annotate(v1alpha1.AnnotationResumed, resumedStamp(s.Unit))
	if err := release(s, after); err != nil {
		return do(NotResumed(s.Unit, err, s.Now)...), true
	}
	step := PatchJob{Before: s.Job, Event: event.Normal("Admitted", "Resume", resumesWith(s))}
	if s.Job.TemplatesFixed() {
		if chargedElsewhere(s) || gangedOtherwise(s) || protectedOtherwise(s) || checkedOtherwise(s) {
			return resetStart(s), true
		}
		step.After = after.Job()
		return do(append(unkept(s), step)...), true
	}
	if !chargedElsewhere(s) && len(checkUpdates(s.Unit)) == 0 {
		step.Plain = after.Copy().Job() // else templates become mutable once the suspension has been noted
	}
	if err := fill(s, after); err != nil {
		return do(NotResumed(s.Unit, err, s.Now)...), true
	}
	step.After = after.Job()
	return do(append(unkept(s), step)...), true
}

// release lets the job go with as many pods as it was admitted with, or says why it must not go.
func release(s *Situation, job *jobs.Edit) error {
	if s.Options.ChecksOff && len(podupdate.Ready(s.Unit.Status.AdmissionChecks)) > 0 {
		// Without them its pods are not what was checked.
		return errors.New("admission checks ask to write into the pods, and the feature gate AdmissionChecks of the " +
			"controller is off")
	}
	if err := job.SetSuspend(false); err != nil {
		return err
	}
	return scale(s, job)
}

// fill makes the pod templates of a job what its pods need: what their owner wrote, and our additions. Their gang has
// as many pods as were admitted.
func fill(s *Situation, job *jobs.Edit) error {
	job.RestoreTemplates(asked(s))
	if err := scale(s, job); err != nil {
		return err
	}
	return job.AddToTemplates(additions(s, job.Job()))
}

// additions to each pod template: who the pods belong to, the labels that ElasticQuota charges them by, the label that
// keeps other preemption away, and the gang that Koordinator binds together. The job's templates bear none of them.
func additions(s *Situation, job *jobs.Job) map[string]jobs.Addition {
	additions := make(map[string]jobs.Addition, len(s.demand.PodSets))
	for i := range s.demand.PodSets {
		set := &s.demand.PodSets[i]
		additions[set.Name] = jobs.Addition{Labels: labelsFor(s, set.Template), Annotations: map[string]string{
			v1alpha1.AnnotationRelatedQueueUnit: s.Unit.Namespace + "/" + s.Unit.Name,
			v1alpha1.AnnotationRelatedPodSet:    set.Name,
		}}
	}
	for set, update := range checkUpdates(s.Unit) {
		if addition, ok := additions[set]; ok {
			addition.Update = update
			additions[set] = addition
		}
	}
	job.Defaults = s.read.Defaults
	for _, gang := range jobs.Gangs(job, s.EveryJobIsGang) {
		for _, set := range gang.PodSets {
			if addition, ok := additions[set]; ok { // pod sets that cannot be read are not among them
				maps.Copy(addition.Annotations, gang.Annotations(s.Unit.Name))
				addGroup(s, addition.Annotations, set)
			}
		}
	}
	return additions
}

// labelsFor the pods of a template. Pods of a unit that was admitted in another quota of its list than the first are
// charged there. Where the queue preempts jobs by priority, Koordinator's preemption by Coscheduling
// must not delete single pods of them. A value of the owner stays.
func labelsFor(s *Situation, template *corev1.PodTemplateSpec) map[string]string {
	labels := s.demand.Own.AddTo(template)
	if c := s.Unit.Status.QuotaChoice; c != nil && c.Name != c.First {
		labels[v1alpha1.LabelQuotaName] = c.Name
	}
	if _, own := template.Labels[extension.LabelDisablePreemptible]; s.QueuePreempts && !own {
		labels[extension.LabelDisablePreemptible] = "true"
	}
	return labels
}

// addGroup has pods of a gang that is made for them name its group, where only their job does.
func addGroup(s *Situation, annotations map[string]string, name string) {
	for i := range s.demand.PodSets {
		set := &s.demand.PodSets[i]
		if set.Name == name && s.demand.Gangs != nil && set.Template.Annotations[extension.AnnotationGangGroups] == "" {
			annotations[extension.AnnotationGangGroups] = s.demand.Gangs.Annotation(s.Job.Object.GetNamespace())
		}
	}
}

// asked is what admission checks, and the quota of an admission, ask or have asked to write into the pods of the job,
// by pod set. The scheduler keeps it when it asks the checks again.
func asked(s *Situation) map[string][]podupdate.Update {
	if s.rel != jobunit.Own {
		return nil
	}
	return podupdate.All(podupdate.Of(s.Unit))
}

// checkUpdates are what the admission checks that the unit has passed, and the quota that it was admitted in, ask to
// write into its pods.
func checkUpdates(u *v1alpha1.QueueUnit) map[string]podupdate.Update {
	return podupdate.Ready(podupdate.Of(u))
}

// chargedElsewhere says whether pods of the templates as they are now would be charged otherwise than the unit was
// asked for: their quota label is missing, or the record of what was added, which the owner of the job may forge, has
// it taken for ours (C0).
func chargedElsewhere(s *Situation) bool {
	return filledOtherwise(s, func(template *corev1.PodTemplateSpec) [2]string {
		return [2]string{template.Labels[v1alpha1.LabelQuotaName], template.Labels[v1alpha1.LabelPreemptible]}
	})
}

// gangedOtherwise says whether they would be in another gang or group than the job is now, or in one that needs more
// pods than it has, or with other settings.
func gangedOtherwise(s *Situation) bool {
	return filledOtherwise(s, func(template *corev1.PodTemplateSpec) [2]string {
		of := func(key string) string { return template.Annotations[extension.AnnotationGangPrefix+key] }
		return [2]string{of("/name"), of("/min-available") + of("/groups") + of("/mode") + of("/waiting-time")}
	})
}

// protectedOtherwise says whether they have the label against other preemption and must not have it, or the reverse.
func protectedOtherwise(s *Situation) bool {
	return filledOtherwise(s, func(template *corev1.PodTemplateSpec) [2]string {
		return [2]string{template.Labels[extension.LabelDisablePreemptible]}
	})
}

// checkedOtherwise says whether they lack what admission checks ask for, or have what checks asked for before.
func checkedOtherwise(s *Situation) bool {
	if !s.Job.HasUpdates() && len(checkUpdates(s.Unit)) == 0 {
		return filledOtherwise(s, func(*corev1.PodTemplateSpec) [2]string { return [2]string{} })
	}
	return filledOtherwise(s, func(template *corev1.PodTemplateSpec) [2]string {
		metadata, errMetadata := json.Marshal([]any{template.Labels, template.Annotations})
		spec, errSpec := json.Marshal([]any{template.Spec.NodeSelector, template.Spec.Tolerations})
		if errMetadata != nil || errSpec != nil {
			return [2]string{}
		}
		return [2]string{string(metadata), string(spec)}
	})
}

// filling is pod sets as they are, with what an earlier resume added, and as resuming would make them.
type filling struct {
	now, want []jobs.PodSet
	// fails: one of them cannot be read, or made.
	fails bool
}

// filledOtherwise compares them.
func filledOtherwise(s *Situation, of func(*corev1.PodTemplateSpec) [2]string) bool {
	if s.filled == nil {
		s.filled = filledOf(s)
	}
	f := s.filled
	same := func(a, b jobs.PodSet) bool { return of(a.Template) == of(b.Template) }
	return f.fails || !slices.EqualFunc(f.now, f.want, same)
}

func filledOf(s *Situation) *filling {
	filled := s.Job.Edit()
	if fill(s, filled) != nil {
		return &filling{fails: true}
	}
	now, err := s.Job.PodSets()
	want, errWant := filled.Job().PodSets()
	return &filling{now: now, want: want, fails: err != nil || errWant != nil}
}

// resetStart makes templates mutable again after an earlier run, once that has been wound up: the change of the
// job's status that says so brings a new plan.
func resetStart(s *Situation) Decision {
	if !settled(s.Job) {
		return Decision{}
	}
	return do(ResetStart{Job: s.Job})
}

// settled: the job's own controller has noted the suspension and no pod is left.
func settled(job *jobs.Job) bool { return job.SuspensionSeen() && job.Active() == 0 }
