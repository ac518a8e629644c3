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

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// unitEvents tells units that people made by hand what a job is told of its unit: what it waits for, and that it is
// admitted. It writes nothing else.
type unitEvents struct {
	units    UnitReader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	slots    *Slots
	told     *told
}

func setupUnitEvents(mgr manager.Manager, o Options, slots *Slots) error {
	r := &unitEvents{
		units: UnitReader{Reader: mgr.GetClient(), Live: mgr.GetAPIReader()}, clock: o.Clock, slots: slots,
		recorder: mgr.GetEventRecorder(recorderName), told: newTold(o.Clock.Now()),
	}
	byHand := predicate.NewPredicateFuncs(func(object client.Object) bool {
		u, ok := object.(*v1alpha1.QueueUnit)
		return ok && !createdByUs(u)
	})
	return ctrl.NewControllerManagedBy(mgr).Named("unit-events").
		For(&v1alpha1.QueueUnit{}, builder.WithPredicates(byHand)).Complete(r)
}

// Reconcile one unit.
func (r *unitEvents) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	u := &v1alpha1.QueueUnit{}
	if err := r.units.Get(ctx, req.NamespacedName, u); err != nil {
		r.told.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	event, again := r.told.waits(u, u, r.slots, r.clock.Now())
	record(r.recorder, u, event)
	if stageOf(u.Status.Phase) == released && !r.told.older(u) {
		admitted := normal("Admitted", "Admit", "its quota is reserved")
		admitted.Of = fmt.Sprint(u.Status.Attempts)
		record(r.recorder, u, r.told.once(u, admitted))
	}
	return ctrl.Result{RequeueAfter: again}, nil
}
