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

package estimate

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/koordinator-sh/koordinator/apis/config/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/sharedsource"
)

// Waiting names the jobs of a namespace that are not admitted; those of all namespaces for an empty name.
type Waiting func(ctx context.Context, namespace string) ([]reconcile.Request, error)

// Sources wake pending jobs when the requests of their pods may have changed. For example, a job is larger than the max
// of its quota, and somebody corrects the LimitRange. Nothing else would wake that job.
func Sources(informers sharedsource.Informers, profiles *Profiles, jobs Waiting) (sources []source.Source) {
	for _, object := range []client.Object{
		&corev1.LimitRange{}, &nodev1.RuntimeClass{}, &schedulingv1.PriorityClass{},
		&admissionregistrationv1.MutatingWebhookConfiguration{},
	} {
		sources = append(sources, &sharedsource.Source{
			Informers: informers, Object: object, Handle: jobs.wake(false), Updates: changed,
		})
	}
	if profiles != nil {
		sources = append(sources, profileSource{profiles, jobs})
	}
	return sources
}

// profileSource wakes jobs by profiles, once their CRD is there.
type profileSource struct {
	profiles *Profiles
	jobs     Waiting
}

// Start implements source.Source.
func (s profileSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	from := sharedsource.Source{
		Informers: s.profiles.informers, Object: &v1alpha1.ClusterColocationProfile{}, Updates: changed,
	}
	select {
	case <-s.profiles.came:
		from.Handle = s.jobs.wake(false)
		return from.Start(ctx, queue)
	default:
	}
	from.Handle = s.jobs.wake(true) // jobs were read without the first profiles
	go func() {
		select {
		case <-ctx.Done():
		case <-s.profiles.came:
			if err := from.Start(ctx, queue); err != nil {
				klog.FromContext(ctx).Error(err, "Jobs are not woken by ClusterColocationProfiles")
			}
		}
	}()
	return nil
}

// wake enqueues jobs at low priority, behind those with events of their own. Objects that existed before the jobs count
// only if initial.
func (jobs Waiting) wake(initial bool) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(ctx context.Context, o client.Object, q queue) {
		found, err := jobs(ctx, o.GetNamespace())
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot list the jobs whose requests may have changed", "by", klog.KObj(o))
		}
		if behind, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			behind.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, found...)
			return
		}
		for _, job := range found {
			q.Add(job)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if initial || !e.IsInInitialList {
				add(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, e.Object, q) },
	}
}

// changed: what is read of an object differs. A list that is made again brings objects as they were, and the
// certificates of webhooks are renewed.
var changed = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !equality.Semantic.DeepEqual(read(e.ObjectOld), read(e.ObjectNew))
}}

func read(o client.Object) any {
	switch o := o.(type) {
	case *corev1.LimitRange:
		return o.Spec
	case *nodev1.RuntimeClass:
		return o.Overhead
	case *schedulingv1.PriorityClass:
		return []any{o.Value, o.GlobalDefault}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		hooks := slices.Clone(o.Webhooks)
		for i := range hooks {
			hooks[i].ClientConfig = admissionregistrationv1.WebhookClientConfig{}
		}
		return hooks
	case *v1alpha1.ClusterColocationProfile:
		return []any{o.Spec, o.Labels, o.Annotations}
	default:
		return o
	}
}
