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

// Package unitevents records events on units that people made by hand: why such a unit waits, and that it is admitted.
// A unit of a job gets no events here, because package event writes them to the job.
package unitevents

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/memory"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/outage"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Options of Setup.
type Options struct {
	// Units are read from it whole.
	Units    client.Reader
	Recorder event.Recorder
	Clock    clock.PassiveClock
	// Slots are the pace of these events and of those of jobs.
	Slots *event.Slots
}

// Setup adds the controller to the manager.
func Setup(mgr manager.Manager, o Options) error {
	byHand := predicate.NewPredicateFuncs(func(object client.Object) bool {
		u, ok := object.(*v1alpha1.QueueUnit)
		return ok && u.Labels[v1alpha1.LabelCreatedBy] != v1alpha1.CreatedByController
	})
	return ctrl.NewControllerManagedBy(mgr).Named("unit-events").
		For(&v1alpha1.QueueUnit{}, builder.WithPredicates(byHand)).Complete(outage.Retried(newReconciler(o)))
}

type reconciler struct {
	options Options
	begun   event.Begun
	said    memory.Memory[event.Said]
}

func newReconciler(o Options) *reconciler {
	return &reconciler{options: o, begun: event.BegunAt(o.Clock.Now())}
}

// Reconcile one unit.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	u := &v1alpha1.QueueUnit{}
	if err := r.options.Units.Get(ctx, req.NamespacedName, u); err != nil {
		r.said.Forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	said := r.said.Of(u)
	waits, again := said.Waits(u, r.begun, r.options.Slots, r.options.Clock.Now())
	event.Record(r.options.Recorder, u, waits)
	if unit.Phase(u.Status.Phase).Releases() && !r.begun.After(u) {
		admitted := event.Normal("Admitted", "Admit", "its quota is reserved")
		admitted.Of = fmt.Sprint(u.Status.Attempts)
		event.Record(r.options.Recorder, u, said.Once(admitted))
	}
	return ctrl.Result{RequeueAfter: again}, nil
}
