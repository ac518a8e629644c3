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

package jobunit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Problem is why a job cannot wait in a queue as it is.
type Problem struct{ Reason, Message string }

// Demand is the request of a job, read from the job and from the changes that the cluster makes to its pods.
type Demand struct {
	// Own are the labels that the job names itself; its pods get them where their templates lack them.
	Own OwnLabels
	// quota and preemptible are those labels as its pods will have them: a ClusterColocationProfile may set others.
	Quota, preemptible string
	Queue              string
	// quotas in which it may be admitted, its own first; nil if the job lists none.
	quotas   []string
	Priority jobs.Priority
	// priorityFromProfile: a ClusterColocationProfile gives the priority, not the job.
	priorityFromProfile bool
	// maximumTime is for how many seconds the job may run; nil if it does not say.
	maximumTime *int32
	PodSets     []jobs.PodSet
	// unitSets are the pod sets as the unit has them.
	UnitSets []v1alpha1.PodSet
	// request is that of the whole job, requests of each pod set.
	Request  corev1.ResourceList
	requests []corev1.ResourceList
	// gangs are those that are admitted with those of the job; nil if it is admitted without others.
	Gangs   *jobs.GangGroup
	Problem *Problem
}

type OwnLabels struct{ quota, preemptible string }

// AddTo are the labels that pods of a template get when the job is resumed.
func (o OwnLabels) AddTo(template *corev1.PodTemplateSpec) map[string]string {
	added := map[string]string{}
	if o.quota != "" && template.Labels[v1alpha1.LabelQuotaName] == "" {
		added[v1alpha1.LabelQuotaName] = o.quota
	}
	if o.preemptible != "" && template.Labels[v1alpha1.LabelPreemptible] == "" {
		added[v1alpha1.LabelPreemptible] = o.preemptible
	}
	return added
}

// DemandOf reads a job in the form that its owner wrote. The problem names unreadable parts, which are left out.
func DemandOf(plain *jobs.Job, creation *podrequest.Creation, wholeTemplates bool) Demand {
	d := Demand{Queue: plain.Queue(), Own: OwnLabels{preemptible: plain.Preemptible()}}
	var errQuota, errPriority, errSets, errReduced, errRequest, errTime error
	if d.Own.quota, errQuota = plain.Quota(); errQuota == nil {
		errQuota = d.list(plain, creation.Quota)
	}
	d.Quota, d.preemptible = d.Own.quota, d.Own.preemptible
	d.Priority, errPriority = plain.Priority()
	d.maximumTime, errTime = maximumTimeOf(plain)
	d.PodSets, errSets = plain.PodSets()
	d.UnitSets, errReduced = podSetsOf(d.PodSets, wholeTemplates)
	templates := d.Templates()
	if errSets == nil {
		errRequest = d.count(templates, creation)
	}
	if errQuota == nil && errSets == nil && creation.HasProfiles() {
		errQuota = d.followProfiles(templates, creation)
	}
	if errQuota == nil {
		errQuota = d.fixList(plain, templates, creation)
	}
	switch err := errors.Join(errQuota, errSets, errReduced, errRequest, errPriority, errTime); {
	case plain.Invalid() != "":
		d.Problem = &Problem{Reason: unitcondition.ReasonUnsupportedJob, Message: plain.Invalid()}
	case err == nil:
	case errQuota != nil:
		d.Problem = &Problem{Reason: unitcondition.ReasonQuotaMismatch, Message: event.Short(err.Error())}
	default:
		d.Problem = &Problem{Reason: string(unit.ReasonInvalidRequest), Message: event.Short(err.Error())}
	}
	return d
}

// maximumTimeOf reads for how many seconds a job may run.
func maximumTimeOf(job *jobs.Job) (*int32, error) {
	text, said := job.Object.GetAnnotations()[v1alpha1.AnnotationMaxExecutionTime]
	if !said {
		text = job.Further.MaximumTime
	}
	if !said && text == "" {
		return nil, nil // nothing is said, and nothing is wrong
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("max-exec-time-seconds: %q is not a whole number of seconds, at least 1", event.Short(text))
	}
	seconds := int32(n)
	return &seconds, nil
}

// JoinGangs reads with which jobs this one is admitted.
func (d *Demand) JoinGangs(plain *jobs.Job, everyJob bool) {
	if !jobs.NamesGangGroup(plain) {
		return
	}
	var err error
	if d.Gangs, err = jobs.GangGroupOf(plain, everyJob, plain.UnitName()); err != nil && d.Problem == nil {
		d.Problem = &Problem{Reason: string(unit.ReasonInvalidRequest), Message: event.Short(err.Error())}
	}
}

// OnlyWhole has a job be admitted whole or not at all.
func (d *Demand) OnlyWhole() {
	for i := range d.UnitSets {
		d.UnitSets[i].MinCount = nil
	}
}

// queueName is the queue that the job names, else the default queue of the quota that it names. It is written down so
// that a person sees it; where the namespace decides about the quota, only the scheduler knows.
func (d Demand) queueName() string {
	if d.Queue != "" {
		return d.Queue
	}
	return d.Quota
}

// Templates are those of the pod sets with the labels that their pods get when the job is resumed.
func (d *Demand) Templates() []*corev1.PodTemplateSpec {
	templates := make([]*corev1.PodTemplateSpec, len(d.PodSets))
	for i := range d.PodSets {
		template := *d.PodSets[i].Template
		if added := d.Own.AddTo(&template); len(added) > 0 {
			added := maps.Clone(added)
			maps.Copy(added, template.Labels)
			maps.DeleteFunc(added, func(_, value string) bool { return value == "" })
			template.Labels = added
		}
		templates[i] = &template
	}
	return templates
}

// count what the pods of the templates ask for.
func (d *Demand) count(templates []*corev1.PodTemplateSpec, creation *podrequest.Creation) error {
	sets := slices.Clone(d.PodSets)
	requests := make([]corev1.ResourceList, 0, len(sets))
	for i := range sets {
		sets[i].Template = templates[i]
		request, err := jobs.PodSetsRequest(sets[i:i+1], creation)
		if err != nil {
			return err
		}
		requests = append(requests, request)
	}
	request, err := jobs.PodSetsRequest(sets, creation)
	if err != nil {
		return err
	}
	d.Request, d.requests = request, requests
	return nil
}

// Without is what the job asks for without these pods.
func (d *Demand) Without(pods []v1alpha1.ReclaimablePod, creation *podrequest.Creation) corev1.ResourceList {
	return d.With(creation, func(set *jobs.PodSet) {
		for _, ended := range pods {
			if ended.Name == set.Name {
				set.Count = max(set.Count-ended.Count, 0)
			}
		}
	})
}

// Of is what the job asks for with the numbers of pods of these pod sets.
func (d *Demand) Of(sets []v1alpha1.PodSet, creation *podrequest.Creation) corev1.ResourceList {
	return d.With(creation, func(set *jobs.PodSet) {
		for i := range sets {
			if sets[i].Name == set.Name {
				set.Count = sets[i].Count
			}
		}
	})
}

// With is what the job asks for with other numbers of pods.
func (d *Demand) With(creation *podrequest.Creation, change func(*jobs.PodSet)) corev1.ResourceList {
	sets, same := slices.Clone(d.PodSets), true
	for i := range sets {
		change(&sets[i])
		same = same && sets[i].Count == d.PodSets[i].Count
	}
	if same {
		return d.Request
	}
	for i, template := range d.Templates() {
		sets[i].Template = template
	}
	request, err := jobs.PodSetsRequest(sets, creation)
	if err != nil {
		return d.Request
	}
	return request
}

// CheckPath finds a job that names no quota by its path.
func (d *Demand) CheckPath(err error) {
	if d.Problem != nil || err == nil {
		return
	}
	reason := string(unit.ReasonUnknownQuota)
	if errors.Is(err, jobs.ErrQuotaMismatch) {
		reason = unitcondition.ReasonQuotaMismatch
	}
	d.Problem = &Problem{Reason: reason, Message: event.Short(err.Error())}
}

// Counted says whether it is known what the pods ask for.
func (d *Demand) Counted() bool { return len(d.requests) == len(d.PodSets) }

// followProfiles takes quota, preemptible label and priority from what the pods will have. The error is
// jobs.ErrQuotaMismatch if pods of the job will name different quotas.
func (d *Demand) followProfiles(templates []*corev1.PodTemplateSpec, creation *podrequest.Creation) error {
	plain := *creation
	plain.Webhook = nil
	for i, template := range templates {
		pod, err := creation.Pod(template)
		if err != nil {
			return nil //nolint:nilerr // the request has the same error, and parks the unit with it
		}
		quota, preemptible := pod.Labels[v1alpha1.LabelQuotaName], pod.Labels[v1alpha1.LabelPreemptible]
		if i == 0 {
			d.Quota, d.preemptible = quota, preemptible
			before, err := plain.Pod(template)
			if err == nil && d.Priority.OfPods && before.Spec.PriorityClassName != pod.Spec.PriorityClassName {
				d.Priority = jobs.Priority{Value: pod.Spec.Priority, Class: pod.Spec.PriorityClassName}
				d.priorityFromProfile = true
			}
			continue
		}
		if quota != d.Quota {
			return fmt.Errorf("%w: profiles put pods of %s under %q, pods of %s under %q", jobs.ErrQuotaMismatch,
				d.PodSets[0].Name, d.Quota, d.PodSets[i].Name, quota)
		}
		if d.preemptible == "" || preemptible == "false" {
			d.preemptible = preemptible
		}
	}
	return nil
}
