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

package controller

import (
	"encoding/json"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/podupdate"
)

// resume lets the job go in one write, with what its pods need to be charged and recognised.
func (p *planner) resume() []Action {
	if p.Kind.Open(p.Job).SuspendedByUs() && p.wasResumed() && !p.FreshUnit {
		// It was resumed for this attempt, and we have suspended it since: the cache of units is behind, and the attempt is
		// over. Two controllers, one of them with such a cache, would resume and suspend it in turns.
		return []Action{ReadUnit{}}
	}
	elsewhere := p.chargedElsewhere()
	mayHavePods := p.Kind.Open(p.Job).SuspendedByUs() || elsewhere && (p.Kind.Open(p.Job).Started() || p.Kind.Open(p.Job).Active() > 0)
	if mayHavePods && !p.settled() {
		// Pods from before the suspension may be left. Resumed now, the job's controller might still take some of them
		// away after they were bound, and the job would run them twice (I3); others might lack the quota label.
		return nil
	}
	after := p.Job.DeepCopy()
	p.Kind.Edit(after).UnmarkSuspended()
	stampResumed(after, p.Unit)
	if err := p.release(after); err != nil {
		return []Action{Tell{Event: cannotResume(p.Unit, err)}}
	}
	event := event.Normal("Admitted", "Resume", p.resumes())
	if p.Kind.Open(p.Job).TemplatesFixed() {
		if elsewhere || p.gangedOtherwise() || p.checkedOtherwise() {
			return p.resetStart()
		}
		return []Action{PatchJob{Before: p.Job, After: after, Event: event}}
	}
	return p.resumeFilled(after, elsewhere, event)
}

// release lets the job go with as many pods as it was admitted with, or says why it must not go.
func (p *planner) release(job *unstructured.Unstructured) error {
	if p.Options.ChecksOff && len(checkUpdates(p.Unit)) > 0 {
		// Without them its pods are not what was checked.
		return errors.New("admission checks ask to write into the pods, and the feature gate AdmissionChecks of the " +
			"controller is off")
	}
	if err := p.Kind.Edit(job).SetSuspend(false); err != nil {
		return err
	}
	return p.scale(job)
}

// resumeFilled writes what its pods need into the templates of the job along with its resumption.
func (p *planner) resumeFilled(after *unstructured.Unstructured, elsewhere bool, event *event.Event) []Action {
	plain := after.DeepCopy()
	if err := p.fill(after); err != nil {
		return []Action{Tell{Event: cannotResume(p.Unit, err)}}
	}
	if elsewhere || len(checkUpdates(p.Unit)) > 0 {
		plain = nil // templates become mutable once the suspension has been noted
	}
	return []Action{PatchJob{Before: p.Job, After: after, Plain: plain, Event: event}}
}

// fill makes the pod templates of a job what its pods need: what their owner wrote, and our additions. Their gang has
// as many pods as were admitted.
func (p *planner) fill(job *unstructured.Unstructured) error {
	p.Kind.Edit(job).RestoreTemplates(p.asked())
	if err := p.scale(job); err != nil {
		return err
	}
	return p.Kind.Edit(job).AddToTemplates(p.additions(job))
}

// additions to each pod template: who the pods belong to, the labels that ElasticQuota charges them by, and the gang
// that Koordinator binds together. The templates of the job bear none of them.
func (p *planner) additions(job *unstructured.Unstructured) map[string]jobs.Addition {
	additions := make(map[string]jobs.Addition, len(p.demand.podSets))
	for i := range p.demand.podSets {
		s := &p.demand.podSets[i]
		additions[s.Name] = jobs.Addition{Labels: p.demand.own.addTo(s.Template), Annotations: map[string]string{
			v1alpha1.AnnotationRelatedQueueUnit: p.Unit.Namespace + "/" + p.Unit.Name,
			v1alpha1.AnnotationRelatedPodSet:    s.Name,
		}}
	}
	for set, update := range checkUpdates(p.Unit) {
		if addition, ok := additions[set]; ok {
			addition.Update = update
			additions[set] = addition
		}
	}
	for _, gang := range jobs.Gangs(p.Kind.Open(job), p.EveryJobIsGang) {
		for _, set := range gang.PodSets {
			if addition, ok := additions[set]; ok { // pod sets that cannot be read are not among them
				maps.Copy(addition.Annotations, gang.Annotations(p.Unit.Name))
				p.addGroup(addition.Annotations, set)
			}
		}
	}
	return additions
}

// addGroup has pods of a gang that is made for them name its group, where only their job does.
func (p *planner) addGroup(annotations map[string]string, set string) {
	for i := range p.demand.podSets {
		s := &p.demand.podSets[i]
		if s.Name == set && p.demand.gangs != nil && s.Template.Annotations[extension.AnnotationGangGroups] == "" {
			annotations[extension.AnnotationGangGroups] = p.demand.gangs.Annotation(p.Job.GetNamespace())
		}
	}
}

// chargedElsewhere says whether pods of the templates as they are now would be charged otherwise than the unit was
// asked for: their quota label is missing, or the record of what was added, which the owner of the job may forge, has
// it taken for ours (C0).
func (p *planner) chargedElsewhere() bool {
	return p.filledOtherwise(func(template *corev1.PodTemplateSpec) [2]string {
		return [2]string{template.Labels[v1alpha1.LabelQuotaName], template.Labels[v1alpha1.LabelPreemptible]}
	})
}

// gangedOtherwise says whether they would be in another gang or group than the job is now, or in one that needs more
// pods than it has.
func (p *planner) gangedOtherwise() bool {
	return p.filledOtherwise(func(template *corev1.PodTemplateSpec) [2]string {
		return [2]string{template.Annotations[extension.AnnotationGangName],
			template.Annotations[extension.AnnotationGangMinNum] + template.Annotations[extension.AnnotationGangGroups]}
	})
}

// checkedOtherwise says whether they lack what admission checks ask for, or have what checks asked for before.
func (p *planner) checkedOtherwise() bool {
	return p.filledOtherwise(func(template *corev1.PodTemplateSpec) [2]string {
		metadata, errMetadata := json.Marshal([]any{template.Labels, template.Annotations})
		spec, errSpec := json.Marshal([]any{template.Spec.NodeSelector, template.Spec.Tolerations})
		if errMetadata != nil || errSpec != nil || !p.Kind.Open(p.Job).HasUpdates() && len(checkUpdates(p.Unit)) == 0 {
			return [2]string{}
		}
		return [2]string{string(metadata), string(spec)}
	})
}

// asked is what admission checks ask or have asked to write into the pods of the job, by pod set. The scheduler keeps
// it when it asks them anew.
func (p *planner) asked() map[string][]podupdate.Update {
	if p.rel != own {
		return nil
	}
	return askedBy(p.Unit)
}

func askedBy(u *v1alpha1.QueueUnit) map[string][]podupdate.Update {
	if u == nil {
		return nil
	}
	return podupdate.All(u.Status.AdmissionChecks)
}

// checkUpdates are what the admission checks that the unit has passed ask to write into its pods.
func checkUpdates(u *v1alpha1.QueueUnit) map[string]podupdate.Update {
	if u == nil {
		return nil
	}
	return podupdate.Ready(u.Status.AdmissionChecks)
}

// filledOtherwise compares the templates as they are, with what an earlier resume added, with what resuming would make
// of them.
func (p *planner) filledOtherwise(of func(*corev1.PodTemplateSpec) [2]string) bool {
	filled := p.Job.DeepCopy()
	if p.fill(filled) != nil {
		return true
	}
	now, err := p.Kind.Open(p.Job).PodSets()
	want, errWant := p.Kind.Open(filled).PodSets()
	if err != nil || errWant != nil || len(now) != len(want) {
		return true
	}
	for i := range now {
		if of(now[i].Template) != of(want[i].Template) {
			return true
		}
	}
	return false
}

// resetStart makes templates mutable again after an earlier run, once that has been wound up: the change of the
// job's status that says so brings a new plan.
func (p *planner) resetStart() []Action {
	if !p.settled() {
		return nil
	}
	return []Action{ResetStart{Job: p.Job}}
}

// settled: the job's own controller has noted the suspension and no pod is left.
func (p *planner) settled() bool {
	return p.Kind.Open(p.Job).SuspensionSeen() && p.Kind.Open(p.Job).Active() == 0
}
