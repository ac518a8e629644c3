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

package ancestors

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/outage"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
)

const (
	// ConfigMap, in the namespace of the queues, is the parameter of the policies of tenancy.
	ConfigMap = "jobqueue-tenancy"
	// Key of the ConfigMap that has the lines.
	Key = "ancestors"

	fieldOwner = client.FieldOwner(v1alpha1.CreatedByController)
)

const (
	// collect is for how long changes of the tree are collected, so that a tree that is made quota by quota is written
	// seldom.
	collect = time.Second
	// checkAgain is when the ConfigMap is looked at again: somebody may have created or replaced it.
	checkAgain = time.Minute
)

// Setup adds the reconciler to the manager. Without the ConfigMap it does nothing.
func Setup(mgr manager.Manager, namespace string) error {
	r := &Reconciler{ConfigMap: types.NamespacedName{Namespace: namespace, Name: ConfigMap},
		Client: mgr.GetClient(), Live: mgr.GetAPIReader()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("quota-ancestors").
		WatchesMetadata(elasticquota.New(), Later(r.ConfigMap), builder.WithPredicates(moved)).
		Complete(outage.Retried(r))
}

// moved: what is used of a quota is written into it all the time, and is nothing to us.
var moved = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return elasticquota.ParentOf(e.ObjectOld) != elasticquota.ParentOf(e.ObjectNew)
}}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Later has the ConfigMap be looked at when changes have been collected for a moment.
func Later(configMap types.NamespacedName) handler.EventHandler {
	add := func(q queue) { q.AddAfter(reconcile.Request{NamespacedName: configMap}, collect) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { add(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { add(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { add(q) },
	}
}

// Reconciler keeps the lines in the ConfigMap in step with the tree.
type Reconciler struct {
	ConfigMap types.NamespacedName
	// Client reads quotas from the cache. Live reads from the API server.
	Client client.Client
	Live   client.Reader
}

// Reconcile writes the lines if they differ.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	quotas, err := elasticquota.List(ctx, r.Client, &client.ListOptions{})
	if err != nil {
		return ctrl.Result{}, err
	}
	tree := quotapath.Tree{}
	for i := range quotas {
		name := quotas[i].Name
		tree[name] = append(tree[name], elasticquota.ParentOf(&quotas[i]))
	}
	text, left := Lines(tree)
	if left > 0 {
		klog.FromContext(ctx).Info("The tree is too large: rights on quotas above do not count for some quotas",
			"quotas", left)
	}
	have := &corev1.ConfigMap{}
	err = r.Live.Get(ctx, r.ConfigMap, have)
	switch {
	case apierrors.IsNotFound(err), err == nil && have.Data[Key] == text:
		return ctrl.Result{RequeueAfter: checkAgain}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	want := have.DeepCopy()
	if want.Data == nil {
		want.Data = map[string]string{}
	}
	want.Data[Key] = text
	err = r.Client.Patch(ctx, want, client.MergeFrom(have), fieldOwner)
	return ctrl.Result{RequeueAfter: checkAgain}, client.IgnoreNotFound(err)
}
