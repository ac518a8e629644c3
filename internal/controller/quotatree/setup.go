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

package quotatree

import (
	"context"
	"errors"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/outage"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
)

// Options of Setup.
type Options struct {
	// Namespace of the trees and of the ElasticQuotas that are made of them.
	Namespace string
	Clock     clock.PassiveClock
	// Served says what the API server serves.
	Served *served.Index
}

// Setup adds the reconciler of trees to the manager. Trees are optional: until their CRD is installed and the right to
// read them is given, nothing is done and nothing fails.
func Setup(mgr manager.Manager, o Options) error { return mgr.Add(&starter{mgr: mgr, options: o}) }

// starter is run by the leader.
type starter struct {
	mgr     manager.Manager
	options Options
}

// Start waits until trees can be read and reconciles them until the context ends. Trees must never end the process. If
// their caches do not fill, because a right or a definition was removed, Start waits again.
func (s *starter) Start(ctx context.Context) error {
	for s.options.Served.Wait(ctx, s.readable, v1beta1.ElasticQuotaTreeKind.GroupVersion(),
		elasticQuotaKind.GroupVersion()) == nil {
		klog.FromContext(ctx).Info("Expanding ElasticQuotaTrees", "namespace", s.options.Namespace)
		if err := s.run(ctx); ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "ElasticQuotaTrees are not expanded any more; it is tried again")
		}
	}
	return nil
}

// run reconciles trees until the context ends or their caches do not fill.
func (s *starter) run(ctx context.Context) error {
	trees, quotas := newTree(), newElasticQuota()
	store, err := cache.New(s.mgr.GetConfig(), cache.Options{
		HTTPClient: s.mgr.GetHTTPClient(), Scheme: s.mgr.GetScheme(), Mapper: s.mgr.GetRESTMapper(),
		DefaultTransform: strip,
		ByObject: map[client.Object]cache.ByObject{
			trees: {Namespaces: map[string]cache.Config{s.options.Namespace: {}}},
		},
	})
	if err != nil {
		return err
	}
	r := &Reconciler{Reader: store, Client: s.mgr.GetClient(),
		Recorder: s.mgr.GetEventRecorder(v1alpha1.CreatedByController), Clock: s.options.Clock}
	c, err := controller.NewUnmanaged("elastic-quota-tree", controller.Options{
		Reconciler: outage.Retried(r), Logger: s.mgr.GetLogger(),
		// Trees come and go with managers in one process only in tests.
		SkipNameValidation: ptr.To(true),
	})
	if err != nil {
		return err
	}
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
	if err := c.Watch(source.Kind[client.Object](store, trees, &handler.EnqueueRequestForObject{}, changed)); err != nil {
		return err
	}
	concerned := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request {
		return r.treesOf(ctx)
	})
	if err := c.Watch(source.Kind[client.Object](store, quotas, concerned, quotaChanged())); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stored := make(chan error, 1)
	go func() { stored <- store.Start(ctx) }()
	err = c.Start(ctx)
	cancel()
	return errors.Join(err, <-stored)
}

// readable says whether trees and ElasticQuotas can be listed.
func (s *starter) readable(ctx context.Context) error {
	return errors.Join(
		s.list(ctx, v1beta1.ElasticQuotaTreeKind, client.InNamespace(s.options.Namespace)),
		s.list(ctx, elasticQuotaKind),
	)
}

func (s *starter) list(ctx context.Context, kind schema.GroupVersionKind, opts ...client.ListOption) error {
	return s.mgr.GetAPIReader().List(ctx, newList(kind), append(opts, client.Limit(1))...)
}

func newList(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

func newTree() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1beta1.ElasticQuotaTreeKind)
	return u
}

func newElasticQuota() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(elasticQuotaKind)
	return u
}

// quotaChanged leaves out what Koordinator writes into an ElasticQuota all the time.
func quotaChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*unstructured.Unstructured)
		after, ok2 := e.ObjectNew.(*unstructured.Unstructured)
		if !ok || !ok2 {
			return true
		}
		return !apiequality.Semantic.DeepEqual(watched(before), watched(after))
	}}
}

func watched(u *unstructured.Unstructured) []any {
	return []any{u.GetUID(), u.GetDeletionTimestamp(), u.GetLabels(), u.GetAnnotations(),
		u.GetOwnerReferences(), u.Object["spec"]}
}
