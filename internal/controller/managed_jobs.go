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
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// ReadManagedJobs reads the ConfigMap in the namespace of queues; without one the defaults hold.
func ReadManagedJobs(ctx context.Context, reader client.Reader, namespace string) (managedjobs.Jobs, error) {
	cm := &corev1.ConfigMap{}
	err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: managedjobs.ConfigMap}, cm)
	if apierrors.IsNotFound(err) {
		return managedjobs.Default(), nil
	}
	if err != nil {
		return managedjobs.Jobs{}, err
	}
	m, err := managedjobs.From(cm.Data)
	if err != nil {
		return m, fmt.Errorf("ConfigMap %s: %w", klog.KObj(cm), err)
	}
	return m, nil
}

// Installed says of a system whether the API server serves its queues.
func Installed(index *served.Index) func(alias.System) (bool, error) {
	return func(system alias.System) (bool, error) {
		group, resource := system.Objects()
		if resource == "" {
			return false, nil
		}
		var versions []schema.GroupVersionResource
		for _, version := range []string{"v1alpha1", "v1beta1", "v1beta2", "v1"} {
			versions = append(versions, schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
		}
		missing, err := index.Missing(versions...)
		return len(missing) < len(versions), err
	}
}

// ManagedJobsReconciler applies the configuration of managed jobs when it changes, and publishes the hash of the one in
// use. An invalid configuration has no effect, and the last one stays if the ConfigMap is deleted. With a guess the
// controller could suspend jobs that it must leave alone.
type ManagedJobsReconciler struct {
	// Key of the ConfigMap.
	Key      types.NamespacedName
	Client   client.Client
	Recorder event.Recorder
	// Use is given a configuration that is valid and not the one in force.
	Use func(*managedjobs.Predicate)
	// Installed says of which systems aliases are refused.
	Installed func(alias.System) (bool, error)

	// refused are the systems of which that was told.
	refused []alias.System
	// hash of the configuration in force.
	hash string
}

// Reconcile looks at the ConfigMap.
func (r *ManagedJobsReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.NamespacedName != r.Key {
		return ctrl.Result{}, nil
	}
	logger := klog.FromContext(ctx)
	cm := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, r.Key, cm)
	if apierrors.IsNotFound(err) {
		logger.Info("The ConfigMap of managed jobs does not exist; the configuration in force stays")
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	m, err := managedjobs.From(cm.Data)
	if err != nil {
		logger.Error(err, "The configuration of managed jobs is not valid; the one in force stays")
		event.Record(r.Recorder, cm, event.Warning("InvalidManagedJobs", "Read", event.Short(err.Error())))
		return ctrl.Result{}, nil
	}
	m, refused, err := m.WithoutRefused(r.Installed)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(refused) > 0 && !slices.Equal(refused, r.refused) {
		event.Record(r.Recorder, cm, event.Warning("AliasRefused", "Read", fmt.Sprintf(
			"the API server serves queues of %s, which may hold the same jobs; remove the alias or set force", refused[0])))
	}
	r.refused = refused
	if hash := m.Hash(); hash != r.hash {
		predicate, err := managedjobs.NewPredicate(m)
		if err != nil {
			return ctrl.Result{}, err // valid a moment ago
		}
		logger.Info("The configuration of managed jobs changed and takes effect", "before", r.hash, "now", hash)
		r.Use(predicate)
		r.hash = hash
		if err := r.tellClasses(ctx, cm, m.DefaultClasses()); err != nil {
			logger.Error(err, "Priority classes of the configuration of managed jobs cannot be read")
		}
	}
	if cm.Annotations[managedjobs.AnnotationHash] == r.hash {
		return ctrl.Result{}, nil
	}
	after := cm.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[managedjobs.AnnotationHash] = r.hash
	err = r.Client.Patch(ctx, after, optimistic(cm), fieldOwner)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// tellClasses that defaults name and that do not exist. Jobs are queued without such a class.
func (r *ManagedJobsReconciler) tellClasses(ctx context.Context, cm *corev1.ConfigMap, names []string) error {
	for _, name := range names {
		err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &schedulingv1.PriorityClass{})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			event.Record(r.Recorder, cm, event.Warning("UnknownPriorityClass", "Read", fmt.Sprintf(
				"jobDefaults names priorityClassName %q, which does not exist; it sets nothing until it does", name)))
		}
	}
	return nil
}
