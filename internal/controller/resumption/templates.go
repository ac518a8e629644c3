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

package resumption

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// Fill writes the pod templates of a job for its admission: the owner's templates, and our additions. The gang has as
// many pods as were admitted.
func (r *Resumption) Fill(job *jobs.Edit) error {
	job.RestoreTemplates(podupdate.AllOf(r.Unit))
	if err := r.Scale(job); err != nil {
		return err
	}
	return job.AddToTemplates(r.additions(job.Job()))
}

// additions to each pod template: the unit, the labels by which ElasticQuota charges the pods, the label against other
// preemption, and the gang. The templates of the job have none of them.
func (r *Resumption) additions(job *jobs.Job) map[string]jobs.Addition {
	additions := make(map[string]jobs.Addition, len(r.Ask.Demand.PodSets))
	for i := range r.Ask.Demand.PodSets {
		set := &r.Ask.Demand.PodSets[i]
		additions[set.Name] = jobs.Addition{Labels: r.labels(set.Template), Annotations: map[string]string{
			v1alpha1.AnnotationRelatedQueueUnit: r.Unit.Namespace + "/" + r.Unit.Name,
			v1alpha1.AnnotationRelatedPodSet:    set.Name,
		}}
	}
	for set, update := range r.updates() {
		if addition, ok := additions[set]; ok {
			addition.Update = update
			additions[set] = addition
		}
	}
	job.Defaults = r.Ask.Job.Defaults
	for _, gang := range jobs.Gangs(job, r.Terms.EveryJobIsGang) {
		for _, set := range gang.PodSets {
			if addition, ok := additions[set]; ok { // pod sets that cannot be read are not among them
				maps.Copy(addition.Annotations, gang.Annotations(r.Unit.Name))
				r.addGroup(addition.Annotations, set)
			}
		}
	}
	return additions
}

// labels for the pods of a template. Pods of a unit that was admitted in another quota of its list than the first are
// charged there. Where the queue preempts jobs by priority, Koordinator's preemption by Coscheduling must not delete
// single pods of them. A value of the owner stays.
func (r *Resumption) labels(template *corev1.PodTemplateSpec) map[string]string {
	labels := r.Ask.Demand.Own.AddTo(template)
	if c := r.Unit.Status.QuotaChoice; c != nil && c.Name != c.First {
		labels[v1alpha1.LabelQuotaName] = c.Name
	}
	if _, own := template.Labels[extension.LabelDisablePreemptible]; r.QueuePreempts && !own {
		labels[extension.LabelDisablePreemptible] = "true"
	}
	return labels
}

// addGroup has pods of a gang that is made for them name its group, where only their job does.
func (r *Resumption) addGroup(annotations map[string]string, name string) {
	for i := range r.Ask.Demand.PodSets {
		set := &r.Ask.Demand.PodSets[i]
		if set.Name == name && r.Ask.Demand.Gangs != nil && set.Template.Annotations[extension.AnnotationGangGroups] == "" {
			annotations[extension.AnnotationGangGroups] = r.Ask.Demand.Gangs.Annotation(r.Job.Object.GetNamespace())
		}
	}
}

// HasUpdates says that admission checks, or the quota of the admission, ask to write into its pods.
func (r *Resumption) HasUpdates() bool { return len(r.updates()) > 0 }

// LacksUpdates says whether the present pod templates of the job lack one of these updates. Then somebody else resumed
// the job, and its pods differ from the pods that were checked.
func (r *Resumption) LacksUpdates() bool {
	updates := r.updates()
	if len(updates) == 0 {
		return false
	}
	sets, err := r.Job.PodSets()
	return err == nil && slices.ContainsFunc(sets, func(set jobs.PodSet) bool {
		update, ok := updates[set.Name]
		return ok && update.Lacking(set.Template.Labels, set.Template.Annotations, &set.Template.Spec) != ""
	})
}

// updates are what the admission checks that the unit has passed, and the quota that it was admitted in, ask to write
// into its pods.
func (r *Resumption) updates() map[string]podupdate.Update {
	return podupdate.Ready(podupdate.Of(r.Unit))
}

// FilledOtherwise says whether pods of the templates as they are now would differ in anything that a resumption writes.
func (r *Resumption) FilledOtherwise() bool {
	return r.ChargedElsewhere() || r.gangedOtherwise() || r.protectedOtherwise() || r.checkedOtherwise()
}

// ChargedElsewhere says whether pods of the present templates would be charged to another quota than that of the unit.
// Their quota label is missing, or a record of additions, which the owner of the job can forge, claims it as ours (C0).
func (r *Resumption) ChargedElsewhere() bool {
	return r.differs(func(template *corev1.PodTemplateSpec) [2]string {
		return [2]string{template.Labels[v1alpha1.LabelQuotaName], template.Labels[v1alpha1.LabelPreemptible]}
	})
}

// gangedOtherwise says whether the gang in the templates differs from that of the job, in name, group, number of pods
// or settings.
func (r *Resumption) gangedOtherwise() bool {
	return r.differs(func(template *corev1.PodTemplateSpec) [2]string {
		of := func(key string) string { return template.Annotations[extension.AnnotationGangPrefix+key] }
		return [2]string{of("/name"), of("/min-available") + of("/groups") + of("/mode") + of("/waiting-time")}
	})
}

// protectedOtherwise says whether they have the label against other preemption and must not have it, or the reverse.
func (r *Resumption) protectedOtherwise() bool {
	return r.differs(func(template *corev1.PodTemplateSpec) [2]string {
		return [2]string{template.Labels[extension.LabelDisablePreemptible]}
	})
}

// checkedOtherwise says whether the templates lack updates of admission checks, or have former ones.
func (r *Resumption) checkedOtherwise() bool {
	if !r.Job.HasUpdates() && !r.HasUpdates() {
		return r.differs(func(*corev1.PodTemplateSpec) [2]string { return [2]string{} })
	}
	return r.differs(func(template *corev1.PodTemplateSpec) [2]string {
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

// differs compares them.
func (r *Resumption) differs(of func(*corev1.PodTemplateSpec) [2]string) bool {
	if r.filled == nil {
		r.filled = r.fillNow()
	}
	f := r.filled
	same := func(a, b jobs.PodSet) bool { return of(a.Template) == of(b.Template) }
	return f.fails || !slices.EqualFunc(f.now, f.want, same)
}

func (r *Resumption) fillNow() *filling {
	filled := r.Job.Edit()
	if r.Fill(filled) != nil {
		return &filling{fails: true}
	}
	now, err := r.Job.PodSets()
	want, errWant := filled.Job().PodSets()
	return &filling{now: now, want: want, fails: err != nil || errWant != nil}
}
