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
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koordinator-sh/koordinator/apis/config/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
)

// webhookConfiguration is where koord-manager v1.8.0 registers its webhooks; the name is a constant of its code.
const webhookConfiguration = "koordinator-mutating-webhook-configuration"

// podLabels are the labels that the pods of a job will have, where they may differ from those of their templates.
func podLabels(job *jobs.Job, creation *podrequest.Creation) []map[string]string {
	if !creation.HasProfiles() {
		return nil
	}
	sets, err := job.PodSets()
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
func (o *observer) creation(
	ctx context.Context, namespace string, namespaceLabels map[string]string,
) (*podrequest.Creation, error) {
	ranges := &corev1.LimitRangeList{}
	if err := o.cache.List(ctx, ranges, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	runtimes := &nodev1.RuntimeClassList{}
	if err := o.cache.List(ctx, runtimes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	priorities := &schedulingv1.PriorityClassList{}
	if err := o.cache.List(ctx, priorities, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	webhook, err := o.webhook(ctx, namespaceLabels)
	return &podrequest.Creation{
		Namespace: namespace, LimitRanges: ranges.Items, RuntimeClasses: runtimes.Items, PriorityClasses: priorities.Items,
		Webhook: webhook, Gates: o.options.Gates,
	}, err
}

// webhook is koord-manager's for new pods; nil when it is not registered or leaves the namespace alone.
func (o *observer) webhook(ctx context.Context, namespaceLabels map[string]string) (*podrequest.Webhook, error) {
	registered := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := o.cache.Get(ctx, types.NamespacedName{Name: webhookConfiguration}, registered); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	for i := range registered.Webhooks {
		hook := &registered.Webhooks[i]
		if !forNewPods(hook) || !selectorOf(hook.NamespaceSelector).Matches(labels.Set(namespaceLabels)) {
			continue
		}
		w := &podrequest.Webhook{Objects: selectorOf(hook.ObjectSelector), NamespaceLabels: namespaceLabels}
		if p := o.shared.Profiles; p == nil || !p.Readable() {
			return w, nil
		}
		list := &v1alpha1.ClusterColocationProfileList{}
		if err := o.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
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
