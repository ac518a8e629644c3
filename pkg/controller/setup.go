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
	"strings"

	koordinatorv1alpha1 "github.com/koordinator-sh/koordinator/apis/config/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// recorderName is the reporting controller of events.
const recorderName = v1alpha1.CreatedByController

// Scheme has the types that the controller uses.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, v1alpha1.AddToScheme, koordinatorv1alpha1.AddToScheme)
	return scheme, builder.AddToScheme(scheme)
}

// CacheOptions hold no more in memory than the reconcilers read. Jobs of these kinds are kept in compact form, and of a
// unit that is too large nothing but its name.
func CacheOptions(queueNamespace string, kinds []jobs.Kind, wholeTemplates bool) cache.Options {
	byObject := map[client.Object]cache.ByObject{
		&admissionregistrationv1.MutatingWebhookConfiguration{}: {
			Field: fields.OneTermEqualSelector("metadata.name", webhookConfiguration),
		},
		&v1alpha1.QueueUnit{}: {Transform: compactUnits()},
		&v1alpha1.Queue{}:     {Namespaces: map[string]cache.Config{queueNamespace: {}}},
		&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{queueNamespace: {
			FieldSelector: fields.OneTermEqualSelector("metadata.name", jobs.ManagedJobsConfigMap),
		}}},
	}
	for i := range kinds {
		job := &unstructured.Unstructured{}
		job.SetGroupVersionKind(kinds[i].GVK)
		byObject[job] = cache.ByObject{Transform: compactJobs(&kinds[i], wholeTemplates)}
	}
	return cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: byObject}
}

// compactJobs is what the cache of a kind does with each object that comes.
func compactJobs(kind *jobs.Kind, wholeTemplates bool) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if job, ok := object.(*unstructured.Unstructured); ok {
			return kind.Compact(job, wholeTemplates), nil
		}
		return object, nil // the last known state of a deleted job
	}
}

// ClientOptions make reads of jobs, whose kinds have no Go type here, come from the cache too.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{Unstructured: true}}
}

// Options of Setup.
type Options struct {
	QueueNamespace string
	Predicate      *jobs.Predicate
	// Concurrency is the number of jobs of one kind that are reconciled at once.
	Concurrency int
	Clock       clock.PassiveClock
	// Gates are feature gates of Koordinator that change what pods are counted with.
	Gates jobs.Gates
	// WholeTemplates: units hold pod templates whole.
	WholeTemplates bool
	// Changed is called when the configuration of managed jobs is no longer the one that Predicate was made from.
	Changed func(error)
}

// Setup adds all reconcilers to the manager.
func Setup(ctx context.Context, mgr manager.Manager, o Options) error {
	profiles := &Profiles{Informers: mgr.GetCache(), Clock: o.Clock}
	if err := mgr.Add(profiles); err != nil {
		return err
	}
	for _, kind := range o.Predicate.Kinds() {
		if err := setupJobs(mgr, kind, profiles, o); err != nil {
			return err
		}
	}
	if err := setupQueues(ctx, mgr, o); err != nil {
		return err
	}
	return setupManagedJobs(mgr, o)
}

func setupJobs(mgr manager.Manager, kind jobs.Kind, profiles *Profiles, o Options) error {
	r := NewJobReconciler(kind, o.Predicate, mgr.GetClient(), mgr.GetAPIReader(),
		mgr.GetEventRecorder(recorderName), o.Clock)
	r.Profiles, r.Gates, r.WholeTemplates = profiles, o.Gates, o.WholeTemplates
	warm := true
	return ctrl.NewControllerManagedBy(mgr).
		Named(strings.ToLower(strings.TrimSuffix(strings.ReplaceAll(kind.String(), ".", "-"), "-"))).
		For(r.newJob()).
		Watches(&v1alpha1.QueueUnit{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfUnit)).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfNamespace),
			builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency, EnableWarmup: &warm}).
		Complete(r)
}

// jobsOfUnit are the job that the unit names and the job that would have a unit of this name.
func (r *JobReconciler) jobsOfUnit(_ context.Context, object client.Object) []reconcile.Request {
	unit, ok := object.(*v1alpha1.QueueUnit)
	if !ok {
		return nil
	}
	name := unit.Name
	if r.Kind.UnitSuffix != "" {
		name = strings.TrimSuffix(name, "-"+r.Kind.UnitSuffix)
	}
	requests := []reconcile.Request{request(unit.Namespace, name)}
	if ref := unit.Spec.ConsumerRef; ref != nil && refersTo(&r.Kind, ref) && ref.Name != name && ref.Name != "" {
		requests = append(requests, request(unit.Namespace, ref.Name))
	}
	return requests
}

// jobsOfNamespace are all jobs of a namespace whose labels changed: the selector may read otherwise now.
func (r *JobReconciler) jobsOfNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(r.Kind.GVK.GroupVersion().WithKind(r.Kind.GVK.Kind + "List"))
	if err := r.Client.List(ctx, list, client.InNamespace(object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the jobs of a namespace whose labels changed",
			"namespace", object.GetName())
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, request(list.Items[i].GetNamespace(), list.Items[i].GetName()))
	}
	return requests
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func setupQueues(ctx context.Context, mgr manager.Manager, o Options) error {
	quota := &metav1.PartialObjectMetadata{}
	quota.SetGroupVersionKind(ElasticQuotaKind)
	err := mgr.GetFieldIndexer().IndexField(ctx, quota, quotaNameIndex, func(object client.Object) []string {
		return []string{object.GetName()}
	})
	if err != nil {
		return err
	}
	r := NewQueueReconciler(o.QueueNamespace, mgr.GetClient(), mgr.GetAPIReader(),
		mgr.GetEventRecorder(recorderName), o.Clock)
	byName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{request("", object.GetName())}
	})
	warm := true
	return ctrl.NewControllerManagedBy(mgr).
		Named("default-queue").
		// ElasticQuotas have no status subresource: their use is written into them all the time, and is nothing to us.
		WatchesMetadata(quota, byName, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Watches(&v1alpha1.Queue{}, byName, builder.WithPredicates(
			predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WithOptions(controller.Options{EnableWarmup: &warm}).
		Complete(r)
}

func setupManagedJobs(mgr manager.Manager, o Options) error {
	r := &ManagedJobsReconciler{
		Key:    types.NamespacedName{Namespace: o.QueueNamespace, Name: jobs.ManagedJobsConfigMap},
		Hash:   o.Predicate.Hash(),
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(recorderName),
		Changed: o.Changed,
	}
	always := false // a standby must work with the same configuration by the time it leads
	return ctrl.NewControllerManagedBy(mgr).
		Named("managed-jobs").
		For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{NeedLeaderElection: &always}).
		Complete(r)
}
