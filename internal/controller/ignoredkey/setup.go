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

// Package ignoredkey reports keys of the stand-alone Koord-Queue that have no effect. A Queue gets a condition, an
// ElasticQuota and a namespace get an event. Package jobplan reports such keys of jobs.
package ignoredkey

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/outage"
)

// perSecond and burst bound the writes and events for each kind of object.
const perSecond, burst = 5, 10

// Setup watches, in the leader, Queues, ElasticQuotas and namespaces in the caches that the manager has of them.
func Setup(mgr manager.Manager, clock clock.PassiveClock) error {
	queues := &Queues{Client: mgr.GetClient(), Clock: clock, Pace: pace()}
	err := ctrl.NewControllerManagedBy(mgr).Named("ignored-key-queue").
		For(&v1alpha1.Queue{}, builder.WithPredicates(predicate.NewPredicateFuncs(untold))).
		Complete(outage.Retried(queues))
	if err != nil {
		return err
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	for name, o := range map[string]*Others{
		"ignored-key-quota":     {Of: formerkey.Quota, New: elasticquota.New},
		"ignored-key-namespace": {Of: formerkey.Namespace, New: namespace.DeepCopy},
	} {
		o.Client, o.Pace = mgr.GetClient(), pace()
		o.Recorder = mgr.GetEventRecorder(v1alpha1.CreatedByController)
		err := ctrl.NewControllerManagedBy(mgr).Named(name).
			For(o.New(), builder.OnlyMetadata, builder.WithPredicates(o.changes())).
			Complete(outage.Retried(o))
		if err != nil {
			return err
		}
	}
	return nil
}

func pace() func(context.Context) error {
	return flowcontrol.NewTokenBucketRateLimiter(perSecond, burst).Wait
}

// changes lets through what has ignored keys, and not each of the many writes of the use of a quota.
func (r *Others) changes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return r.ignored(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool {
			now := r.ignored(e.ObjectNew)
			return now != "" && now != r.ignored(e.ObjectOld)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func (r *Others) ignored(o client.Object) string {
	return formerkey.Ignored(r.Of, o.GetLabels(), o.GetAnnotations())
}
