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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/pathfinder"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// waker says which jobs of a kind have to be looked at when something else changes.
type waker struct {
	kind *jobkind.Kind
	jobs client.Reader
	// units are the cached ones, with the index of pathfinder.
	units client.Reader
}

// jobsOfUnit are the job that the unit names and the job that would have a unit of this name.
func (w waker) jobsOfUnit(_ context.Context, object client.Object) []reconcile.Request {
	u, ok := object.(*v1alpha1.QueueUnit)
	if !ok {
		return nil
	}
	name := w.kind.JobName(u.Name)
	requests := []reconcile.Request{request(u.Namespace, name)}
	if ref := u.Spec.ConsumerRef; ref != nil && jobunit.RefersTo(w.kind, ref) && ref.Name != name && ref.Name != "" {
		requests = append(requests, request(u.Namespace, ref.Name))
	}
	return requests
}

// jobsOfNamespace are all jobs of a namespace whose labels changed: the selector may read otherwise now.
func (w waker) jobsOfNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	requests, err := w.jobsIn(ctx, object.GetName())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the jobs of a namespace whose labels changed",
			"namespace", object.GetName())
	}
	return requests
}

func (w waker) jobsIn(ctx context.Context, namespace string) ([]reconcile.Request, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(w.kind.GVK.GroupVersion().WithKind(w.kind.GVK.Kind + "List"))
	if err := w.jobs.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, request(list.Items[i].GetNamespace(), list.Items[i].GetName()))
	}
	return requests, nil
}

// waitingJobs are those of a namespace that are not admitted; of all namespaces for an empty name.
func (w waker) waitingJobs(ctx context.Context, namespace string) ([]reconcile.Request, error) {
	requests, err := w.jobsIn(ctx, namespace)
	if err != nil || len(requests) == 0 {
		return nil, err
	}
	units := &v1alpha1.QueueUnitList{}
	if err := w.units.List(ctx, units, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	others := sets.New[types.NamespacedName]()
	for i := range units.Items {
		if phase := unit.Phase(units.Items[i].Status.Phase); phase.Releases() || phase.Terminal() {
			others.Insert(client.ObjectKeyFromObject(&units.Items[i]))
		}
	}
	return slices.DeleteFunc(requests, func(r reconcile.Request) bool {
		return others.Has(types.NamespacedName{Namespace: r.Namespace, Name: w.kind.UnitName(r.Name)})
	}), nil
}

// jobOfChild is the job that controls its child.
func (w waker) jobOfChild(_ context.Context, object client.Object) []reconcile.Request {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != w.kind.GVK.Kind {
		return nil
	}
	return []reconcile.Request{request(object.GetNamespace(), owner.Name)}
}

// jobsOfQuota are those of the namespaces that it takes, and those whose path leads through it. The quota of before and
// that of after are asked about.
func (w waker) jobsOfQuota(ctx context.Context, object client.Object) (requests []reconcile.Request) {
	for _, name := range elasticquota.MappedNamespaces(object) {
		found, err := w.jobsIn(ctx, name)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the jobs of a namespace that a quota takes", "namespace", name)
		}
		requests = append(requests, found...)
	}
	units := &v1alpha1.QueueUnitList{}
	onPath := client.MatchingFields{pathfinder.Index: object.GetName()}
	err := w.units.List(ctx, units, onPath, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the units whose path leads through a quota",
			"quota", object.GetName())
	}
	for i := range units.Items {
		requests = append(requests, w.jobsOfUnit(ctx, &units.Items[i])...)
	}
	return requests
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}
