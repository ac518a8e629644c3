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

package tenancyparams

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ancestors"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/outage"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// Setup reads the parameters, and adds the reconciler to the manager. Without the ConfigMap it does nothing.
func Setup(
	ctx context.Context, mgr manager.Manager, namespace string, current func() *managedjobs.Predicate, params *Params,
) error {
	if err := Read(ctx, mgr.GetAPIReader(), namespace, params); err != nil {
		return err
	}
	r := &Reconciler{
		ConfigMap: types.NamespacedName{Namespace: namespace, Name: ancestors.ConfigMap},
		Client:    mgr.GetClient(), Live: mgr.GetAPIReader(), Predicate: current, Params: params,
	}
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return ctrl.NewControllerManagedBy(mgr).
		Named("tenancy-params").
		WatchesMetadata(namespaces, ancestors.Later(r.ConfigMap), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesMetadata(elasticquota.New(), ancestors.Later(r.ConfigMap), builder.WithPredicates(elasticquota.Changed)).
		Complete(outage.Retried(r))
}
