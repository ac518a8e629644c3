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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/memory"
)

// ElasticQuotaKind is Koordinator's quota. Only its metadata is read here.
var ElasticQuotaKind = schema.GroupVersionKind{
	Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Kind: "ElasticQuota",
}

// quotaNameIndex finds ElasticQuotas by name in all namespaces.
const quotaNameIndex = "metadata.name"

// QueueReconciler keeps one default Queue for each ElasticQuota. Requests bear the name of both and no namespace.
type QueueReconciler struct {
	Namespace string
	// Client reads from caches. Live reads from the API server.
	Client   client.Client
	Live     client.Reader
	Recorder event.Recorder

	said memory.Memory[event.Said]
}

// NewQueueReconciler for Queues in one namespace.
func NewQueueReconciler(
	namespace string, c client.Client, live client.Reader, recorder event.Recorder,
) *QueueReconciler {
	return &QueueReconciler{Namespace: namespace, Client: c, Live: live, Recorder: recorder}
}

// Reconcile brings the default Queue of one name in step with the quotas of that name.
func (r *QueueReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o, err := r.observe(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := PlanQueue(o)
	if plan.writes() {
		if o.Quotas, err = r.quotasNow(ctx, o); err != nil {
			return ctrl.Result{}, err
		}
		plan = PlanQueue(o)
	}
	err = r.do(ctx, o, plan)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func (r *QueueReconciler) observe(ctx context.Context, name string) (QueueObservation, error) {
	o := QueueObservation{Namespace: r.Namespace, Name: name}
	var err error
	if o.Quotas, err = listQuotas(ctx, r.Client, client.MatchingFields{quotaNameIndex: name}); err != nil {
		return o, err
	}
	queue := &v1alpha1.Queue{}
	err = r.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: name}, queue)
	if err == nil {
		o.Queue = queue
	}
	return o, client.IgnoreNotFound(err)
}

// quotasNow are the observed quotas as the API server has them, or all of the name where none was observed. Without
// that two controllers at once, of which one has not seen that a quota came, went or has another policy, take turns in
// writing its Queue (I12). Reading each by its namespace spares the server a walk over all quotas where a cluster with
// very many of them gets its first Queues.
func (r *QueueReconciler) quotasNow(ctx context.Context, o QueueObservation) ([]metav1.PartialObjectMetadata, error) {
	if len(o.Quotas) == 0 {
		return listQuotas(ctx, r.Live,
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(quotaNameIndex, o.Name)})
	}
	var quotas []metav1.PartialObjectMetadata
	for i := range o.Quotas {
		quota := metav1.PartialObjectMetadata{}
		quota.SetGroupVersionKind(ElasticQuotaKind)
		switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(&o.Quotas[i]), &quota); {
		case err == nil:
			quotas = append(quotas, quota)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return quotas, nil
}

func listQuotas(
	ctx context.Context, from client.Reader, which client.ListOption,
) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(ElasticQuotaKind.GroupVersion().WithKind(ElasticQuotaKind.Kind + "List"))
	err := from.List(ctx, list, which)
	return list.Items, err
}

func (r *QueueReconciler) do(ctx context.Context, o QueueObservation, plan QueuePlan) error {
	if plan.Quota != nil {
		event.Record(r.Recorder, plan.Quota, r.said.Of(plan.Quota).Once(refusedPolicy(plan.Refused)))
	}
	logger := klog.FromContext(ctx).WithValues("queue", o.Name)
	switch {
	case plan.Create != nil:
		logger.Info("Creating the default queue of a quota", "policy", plan.Create.Spec.QueuePolicy)
		return r.Client.Create(ctx, plan.Create, fieldOwner)
	case plan.Patch != nil:
		logger.Info("Changing the policy of a queue", "policy", plan.Patch.Spec.QueuePolicy)
		return r.Client.Patch(ctx, plan.Patch, optimistic(o.Queue), fieldOwner)
	case plan.Delete != nil:
		logger.Info("Deleting the default queue of a quota that is gone")
		uid := plan.Delete.UID
		return r.Client.Delete(ctx, plan.Delete, client.Preconditions{UID: &uid})
	}
	return nil
}
