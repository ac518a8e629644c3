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

package defaultqueue

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/memory"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/outage"
)

const fieldOwner = client.FieldOwner(v1alpha1.CreatedByController)

// conflictDelay is the time after a conflict until the reconciler decides again by the new state.
const conflictDelay = 500 * time.Millisecond

// Setup adds the reconciler of the Queues of this namespace to the manager. Queues that it creates reclaim as given.
func Setup(mgr manager.Manager, namespace string, reclaim v1alpha1.PreemptionPolicy) error {
	quota := elasticquota.New()
	r := NewReconciler(namespace, mgr.GetClient(), mgr.GetAPIReader(),
		mgr.GetEventRecorder(v1alpha1.CreatedByController))
	r.Reclaim = reclaim
	byName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetName()}}}
	})
	warm := true
	return ctrl.NewControllerManagedBy(mgr).
		Named("default-queue").
		// ElasticQuotas have no status subresource: their use is written into them all the time, and is nothing to us.
		WatchesMetadata(quota, byName, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Watches(&v1alpha1.Queue{}, byName, builder.WithPredicates(
			predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WithOptions(controller.Options{EnableWarmup: &warm}).
		Complete(outage.Retried(r))
}

// Reconciler keeps one default Queue for each ElasticQuota. Requests bear the name of both and no namespace.
type Reconciler struct {
	Namespace string
	// Reclaim is spec.preemption.reclaim of Queues that are created; empty is Never.
	Reclaim v1alpha1.PreemptionPolicy
	// Client reads from caches. Live reads from the API server.
	Client   client.Client
	Live     client.Reader
	Recorder event.Recorder

	said memory.Memory[event.Said]
}

// NewReconciler for Queues in one namespace.
func NewReconciler(
	namespace string, c client.Client, live client.Reader, recorder event.Recorder,
) *Reconciler {
	return &Reconciler{Namespace: namespace, Client: c, Live: live, Recorder: recorder}
}

// Reconcile brings the default Queue of one name in step with the quotas of that name.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o, err := r.observe(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := planFor(o)
	if p.writes() {
		if o.Quotas, err = r.quotasNow(ctx, o); err != nil {
			return ctrl.Result{}, err
		}
		p = planFor(o)
	}
	err = r.do(ctx, o, p)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func (r *Reconciler) observe(ctx context.Context, name string) (observation, error) {
	o := observation{Namespace: r.Namespace, Name: name, Reclaim: r.Reclaim}
	var err error
	if o.Quotas, err = elasticquota.List(ctx, r.Client, client.MatchingFields{elasticquota.NameIndex: name}); err != nil {
		return o, err
	}
	queue := &v1alpha1.Queue{}
	err = r.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: name}, queue)
	if err == nil {
		o.Queue = queue
	}
	return o, client.IgnoreNotFound(err)
}

// quotasNow reads the observed quotas from the API server, or all quotas of the name if none was observed. Otherwise
// two controllers, of which one has not seen a change of a quota, would take turns in writing its Queue (I12). Reading
// each quota by its namespace spares the server a walk over all quotas while a very large cluster gets its first
// Queues.
func (r *Reconciler) quotasNow(ctx context.Context, o observation) ([]metav1.PartialObjectMetadata, error) {
	if len(o.Quotas) == 0 {
		return elasticquota.List(ctx, r.Live,
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(elasticquota.NameIndex, o.Name)})
	}
	var quotas []metav1.PartialObjectMetadata
	for i := range o.Quotas {
		quota := elasticquota.New()
		switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(&o.Quotas[i]), quota); {
		case err == nil:
			quotas = append(quotas, *quota)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return quotas, nil
}

func (r *Reconciler) do(ctx context.Context, o observation, p plan) error {
	if p.Quota != nil {
		event.Record(r.Recorder, p.Quota, r.said.Of(p.Quota).Once(refusedPolicy(p.Refused)))
	}
	logger := klog.FromContext(ctx).WithValues("queue", o.Name)
	switch {
	case p.Create != nil:
		logger.Info("Creating the default queue of a quota", "policy", p.Create.Spec.QueuePolicy)
		return r.Client.Create(ctx, p.Create, fieldOwner)
	case p.Patch != nil:
		logger.Info("Changing the policy of a queue", "policy", p.Patch.Spec.QueuePolicy)
		return r.Client.Patch(ctx, p.Patch,
			client.MergeFromWithOptions(o.Queue, client.MergeFromWithOptimisticLock{}), fieldOwner)
	case p.Delete != nil:
		logger.Info("Deleting the default queue of a quota that is gone")
		uid := p.Delete.UID
		return r.Client.Delete(ctx, p.Delete, client.Preconditions{UID: &uid})
	}
	return nil
}
