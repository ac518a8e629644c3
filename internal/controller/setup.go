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
	"errors"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	koordinatorv1alpha1 "github.com/koordinator-sh/koordinator/apis/config/v1alpha1"
	koordinatorschedulingv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ancestors"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/defaultqueue"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/estimate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/outage"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/pathfinder"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/survey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/tenancyparams"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/turns"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitcache"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitevents"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
)

// recorderName is the reporting controller of events.
const recorderName = v1alpha1.CreatedByController

// Scheme has the types that the controller uses.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, v1alpha1.AddToScheme, koordinatorv1alpha1.AddToScheme,
		koordinatorschedulingv1alpha1.AddToScheme, autoscalingv1.AddToScheme)
	return scheme, builder.AddToScheme(scheme)
}

// CacheOptions hold in memory only what the reconcilers read. Of a unit that is too large, that is its name and the
// reference to its job.
func CacheOptions(queueNamespace string) cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&admissionregistrationv1.MutatingWebhookConfiguration{}: {
				Field: fields.OneTermEqualSelector("metadata.name", webhookConfiguration),
			},
			&v1alpha1.QueueUnit{}: {Transform: unitcache.Transform()},
			&v1alpha1.Queue{}:     {Namespaces: map[string]cache.Config{queueNamespace: {}}},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{queueNamespace: {
				FieldSelector: fields.OneTermEqualSelector("metadata.name", managedjobs.ConfigMap),
			}}},
		},
	}
}

// compactJobs is what the cache of a kind does with each object that comes.
func compactJobs(kind *jobkind.Kind, wholeTemplates bool) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if job, ok := object.(*unstructured.Unstructured); ok {
			return compact.Job(kind, job, wholeTemplates), nil
		}
		return object, nil // the last known state of a deleted job
	}
}

// Options of Setup.
type Options struct {
	QueueNamespace string
	// DefaultReclaim is spec.preemption.reclaim of default Queues that are created.
	DefaultReclaim v1alpha1.PreemptionPolicy
	Predicate      *managedjobs.Predicate
	// Concurrency is the number of jobs of one kind that are reconciled at once.
	Concurrency int
	Clock       clock.PassiveClock
	// Served says what the API server serves.
	Served *served.Index
	// Gates are feature gates of Koordinator that change what pods are counted with.
	Gates podrequest.Gates
	// Plan is what decisions on jobs depend on.
	Plan jobplan.Options
	// ReportsPerSecond is how many units are written in a second to tell how many pods of their jobs are ready.
	ReportsPerSecond int
	// EventsPerSecond is how many jobs are told in a second what they wait for.
	EventsPerSecond int
	// Turns is the pace at which jobs are resumed; nil resumes them at once.
	Turns *turns.Pace
}

// Setup adds all reconcilers to the manager.
func Setup(ctx context.Context, mgr manager.Manager, o Options) error {
	profiles := estimate.NewProfiles(mgr.GetCache(), o.Clock, o.Served)
	if err := mgr.Add(profiles); err != nil {
		return err
	}
	shared := Shared{
		Profiles: profiles,
		Reports:  flowcontrol.NewTokenBucketPassiveRateLimiter(float32(o.ReportsPerSecond), o.ReportsPerSecond),
		Events:   event.NewSlots(o.EventsPerSecond),
		Notices:  flowcontrol.NewTokenBucketPassiveRateLimiter(noticesPerSecond, noticesAtOnce),
		Stalls:   flowcontrol.NewTokenBucketPassiveRateLimiter(stallsPerSecond, stallsAtOnce),
		Survey:   survey.New(mgr.GetAPIReader(), o.Clock),
		Turns:    o.Turns,
		Tenancy:  &tenancyparams.Params{},
	}
	kinds := &KindSet{mgr: mgr, options: o, shared: shared, predicate: o.Predicate, changed: make(chan struct{}, 1)}
	if err := mgr.Add(kinds); err != nil {
		return err
	}
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := defaultqueue.Setup(mgr, o.QueueNamespace, o.DefaultReclaim); err != nil {
		return err
	}
	if err := ancestors.Setup(mgr, o.QueueNamespace); err != nil {
		return err
	}
	err := tenancyparams.Setup(ctx, mgr, o.QueueNamespace, kinds.current, shared.Tenancy)
	if err != nil {
		return err
	}
	err = unitevents.Setup(mgr, unitevents.Options{
		Units: unitcache.Reader{Cache: mgr.GetClient(), Live: mgr.GetAPIReader()}, Clock: o.Clock, Slots: shared.Events,
		Recorder: mgr.GetEventRecorder(recorderName),
	})
	if err != nil {
		return err
	}
	return setupManagedJobs(mgr, o, kinds)
}

// addIndexes to the caches that all reconcilers share.
func addIndexes(ctx context.Context, to client.FieldIndexer) error {
	quota := elasticquota.New()
	return errors.Join(
		to.IndexField(ctx, quota, elasticquota.MappedIndex, elasticquota.MappedNamespaces),
		to.IndexField(ctx, quota, elasticquota.NameIndex, elasticquota.IndexByName),
		to.IndexField(ctx, &v1alpha1.QueueUnit{}, pathfinder.Index, pathfinder.QuotasOnPath),
	)
}

func newObject(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

func newNamespace() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

func setupManagedJobs(mgr manager.Manager, o Options, kinds *KindSet) error {
	r := &ManagedJobsReconciler{
		Key:    types.NamespacedName{Namespace: o.QueueNamespace, Name: managedjobs.ConfigMap},
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(recorderName),
		Use: kinds.Use, Installed: Installed(o.Served), hash: o.Predicate.Hash(),
	}
	always := false // a standby must work with the same configuration by the time it leads
	return ctrl.NewControllerManagedBy(mgr).
		Named("managed-jobs").
		For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{NeedLeaderElection: &always}).
		Complete(outage.Retried(r))
}
