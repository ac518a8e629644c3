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

package reservation

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	koordinatorv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
)

// Options of Setup.
type Options struct {
	// Units is where units are read.
	Units client.Reader
	Clock clock.PassiveClock
	// Served says what the API server serves.
	Served *served.Index
	// Kinds of jobs that are managed.
	Kinds []jobkind.Kind
}

// Setup answers checks that name v1alpha1.ReservationController, from when Reservations and AdmissionChecks are
// installed and may be listed. Until then nothing is done and nothing fails: such checks are not active.
func Setup(mgr manager.Manager, o Options) error { return mgr.Add(&starter{mgr: mgr, options: o}) }

// starter is run by the leader.
type starter struct {
	mgr     manager.Manager
	options Options
	// controller is nil until what it needs is indexed.
	controller *admissioncheck.Controller
}

// Start waits until Reservations can be created, and sets up the controller that creates them. After an error it tries
// again.
func (s *starter) Start(ctx context.Context) error {
	needed := []schema.GroupVersion{koordinatorv1alpha1.SchemeGroupVersion, {Group: v1beta1.GroupName}}
	if s.options.Served.Wait(ctx, s.try, needed...) == nil {
		klog.FromContext(ctx).Info("Looking for nodes with Reservations", "check", v1alpha1.ReservationController)
	}
	return nil
}

// try sets up what can be listed.
func (s *starter) try(ctx context.Context) error {
	err := served.Listable(ctx, s.mgr, koordinatorv1alpha1.SchemeGroupVersion.WithKind("Reservation").GroupKind(),
		koordinatorv1alpha1.SchemeGroupVersion.Version)
	if err == nil {
		err = served.Listable(ctx, s.mgr, schema.GroupKind{Group: v1beta1.GroupName, Kind: "AdmissionCheck"})
	}
	if err != nil {
		return err
	}
	if err = s.setup(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "No Reservations are created yet; it is tried again")
	}
	return err
}

// setup may be called again after an error.
func (s *starter) setup(ctx context.Context) error {
	if s.controller == nil {
		err := s.mgr.GetFieldIndexer().IndexField(ctx, &koordinatorv1alpha1.Reservation{}, byUnit, indexUnit)
		if err != nil {
			return err
		}
		c := &checker{client: s.mgr.GetClient(), kinds: s.options.Kinds, clock: s.options.Clock}
		s.controller = &admissioncheck.Controller{
			ControllerName: v1alpha1.ReservationController, Check: c.check, Idle: c.idle, Gone: c.gone, Withdraws: true,
			Watches: []admissioncheck.Watched{{Object: &koordinatorv1alpha1.Reservation{}, Units: requestsOf}},
			Reader:  s.options.Units, Clock: s.options.Clock,
		}
	}
	return s.controller.SetupWithManager(s.mgr)
}
