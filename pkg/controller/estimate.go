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
	"context"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koordinator-sh/koordinator/apis/config/v1alpha1"

	queuev1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// webhookConfiguration is where koord-manager v1.8.0 registers its webhooks; the name is a constant of its code.
const webhookConfiguration = "koordinator-mutating-webhook-configuration"

// templates are those of the pod sets with the labels that their pods get when the job is resumed.
func (d *demand) templates() []*corev1.PodTemplateSpec {
	templates := make([]*corev1.PodTemplateSpec, len(d.podSets))
	for i := range d.podSets {
		template := *d.podSets[i].Template
		if added := d.own.addTo(&template); len(added) > 0 {
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
func (d *demand) count(templates []*corev1.PodTemplateSpec, creation *jobs.Creation) error {
	sets := slices.Clone(d.podSets)
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
	d.request, d.requests = request, requests
	return nil
}

// without is what the job asks for without these pods.
func (d *demand) without(pods []queuev1alpha1.ReclaimablePod, creation *jobs.Creation) corev1.ResourceList {
	return d.with(creation, func(set *jobs.PodSet) {
		for _, ended := range pods {
			if ended.Name == set.Name {
				set.Count = max(set.Count-ended.Count, 0)
			}
		}
	})
}

// of is what the job asks for with the numbers of pods of these pod sets.
func (d *demand) of(sets []queuev1alpha1.PodSet, creation *jobs.Creation) corev1.ResourceList {
	return d.with(creation, func(set *jobs.PodSet) {
		for i := range sets {
			if sets[i].Name == set.Name {
				set.Count = sets[i].Count
			}
		}
	})
}

// with is what the job asks for with other numbers of pods.
func (d *demand) with(creation *jobs.Creation, change func(*jobs.PodSet)) corev1.ResourceList {
	sets, same := slices.Clone(d.podSets), true
	for i := range sets {
		change(&sets[i])
		same = same && sets[i].Count == d.podSets[i].Count
	}
	if same {
		return d.request
	}
	for i, template := range d.templates() {
		sets[i].Template = template
	}
	request, err := jobs.PodSetsRequest(sets, creation)
	if err != nil {
		return d.request
	}
	return request
}

// checkScheduler finds pods that will go to a scheduler that knows of no queue. Templates of a job cannot be given
// another one later, so it says so before anything is reserved.
func (d *demand) checkScheduler(creation *jobs.Creation, schedules func(string) bool) {
	if d.problem != nil || schedules == nil {
		return
	}
	for i, template := range d.templates() {
		pod, err := creation.Pod(template)
		if err != nil {
			return // the request has the same error
		}
		if name := pod.Spec.SchedulerName; !schedules(name) {
			if name == "" {
				name = corev1.DefaultSchedulerName
			}
			d.problem = &problem{Reason: reasonOtherScheduler, Message: event.Short(fmt.Sprintf(
				"pods of %s go to scheduler %q, which no queue holds back: name koord-scheduler in their template",
				d.podSets[i].Name, name))}
			return
		}
	}
}

// counted says whether it is known what the pods ask for.
func (d *demand) counted() bool { return len(d.requests) == len(d.podSets) }

// followProfiles takes quota, preemptible label and priority from what the pods will have. The error is
// jobs.ErrQuotaMismatch if pods of the job will name different quotas.
func (d *demand) followProfiles(
	templates []*corev1.PodTemplateSpec, creation *jobs.Creation, priorityOfPods bool,
) error {
	plain := *creation
	plain.Webhook = nil
	for i, template := range templates {
		pod, err := creation.Pod(template)
		if err != nil {
			return nil //nolint:nilerr // the request has the same error, and parks the unit with it
		}
		quota, preemptible := pod.Labels[queuev1alpha1.LabelQuotaName], pod.Labels[queuev1alpha1.LabelPreemptible]
		if i == 0 {
			d.quota, d.preemptible = quota, preemptible
			before, err := plain.Pod(template)
			if err == nil && priorityOfPods && before.Spec.PriorityClassName != pod.Spec.PriorityClassName {
				d.priority = jobs.Priority{Value: pod.Spec.Priority, Class: pod.Spec.PriorityClassName}
				d.priorityFromProfile = true
			}
			continue
		}
		if quota != d.quota {
			return fmt.Errorf("%w: profiles put pods of %s under %q, pods of %s under %q", jobs.ErrQuotaMismatch,
				d.podSets[0].Name, d.quota, d.podSets[i].Name, quota)
		}
		if d.preemptible == "" || preemptible == "false" {
			d.preemptible = preemptible
		}
	}
	return nil
}

// podLabels are the labels that the pods of a job will have, where they may differ from those of their templates.
func podLabels(kind *jobs.Kind, job *unstructured.Unstructured, creation *jobs.Creation) []map[string]string {
	if !creation.HasProfiles() {
		return nil
	}
	sets, err := kind.Open(job).PodSets()
	if err != nil {
		return nil // the templates' own labels have to do
	}
	all := make([]map[string]string, 0, len(sets))
	for i := range sets {
		if pod, err := creation.Pod(sets[i].Template); err == nil {
			all = append(all, pod.Labels)
		}
	}
	return all
}

// creation is what the cluster does to new pods of the namespace, from caches.
func (r *JobReconciler) creation(
	ctx context.Context, namespace string, namespaceLabels map[string]string,
) (*jobs.Creation, error) {
	ranges := &corev1.LimitRangeList{}
	if err := r.Client.List(ctx, ranges, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	runtimes := &nodev1.RuntimeClassList{}
	if err := r.Client.List(ctx, runtimes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	priorities := &schedulingv1.PriorityClassList{}
	if err := r.Client.List(ctx, priorities, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	webhook, err := r.webhook(ctx, namespaceLabels)
	return &jobs.Creation{
		Namespace: namespace, LimitRanges: ranges.Items, RuntimeClasses: runtimes.Items, PriorityClasses: priorities.Items,
		Webhook: webhook, Gates: r.Options.Gates,
	}, err
}

// webhook is koord-manager's for new pods; nil when it is not registered or leaves the namespace alone.
func (r *JobReconciler) webhook(ctx context.Context, namespaceLabels map[string]string) (*jobs.Webhook, error) {
	registered := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: webhookConfiguration}, registered); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	for i := range registered.Webhooks {
		hook := &registered.Webhooks[i]
		if !forNewPods(hook) || !selectorOf(hook.NamespaceSelector).Matches(labels.Set(namespaceLabels)) {
			continue
		}
		w := &jobs.Webhook{Objects: selectorOf(hook.ObjectSelector), NamespaceLabels: namespaceLabels}
		if p := r.Shared.Profiles; p == nil || !p.Readable() {
			return w, nil
		}
		list := &v1alpha1.ClusterColocationProfileList{}
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		w.Profiles = list.Items
		return w, nil
	}
	return nil, nil
}

func forNewPods(hook *admissionregistrationv1.MutatingWebhook) bool {
	return slices.ContainsFunc(hook.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return (slices.Contains(r.Operations, admissionregistrationv1.Create) ||
			slices.Contains(r.Operations, admissionregistrationv1.OperationAll)) &&
			(slices.Contains(r.APIGroups, "") || slices.Contains(r.APIGroups, "*")) &&
			(slices.Contains(r.Resources, "pods") || slices.Contains(r.Resources, "*"))
	})
}

// selectorOf: the API server has validated it; an absent one selects everything in a webhook configuration.
func selectorOf(selector *metav1.LabelSelector) labels.Selector {
	if selector == nil {
		return labels.Everything()
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return compiled
}
