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

package provisioning

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
)

// Options of Setup.
type Options struct {
	// Units is where units are read.
	Units client.Reader
	Clock clock.PassiveClock
	// Served says what the API server serves.
	Served *served.Index
}

// Setup answers checks that name v1alpha1.ProvisioningController, from when ProvisioningRequests, AdmissionChecks and
// ProvisioningRequestConfigs are installed and may be read. Until then nothing is done and nothing fails: such checks
// are not active.
func Setup(mgr manager.Manager, o Options) error { return mgr.Add(&starter{mgr: mgr, options: o}) }

// starter is run by the leader.
type starter struct {
	mgr     manager.Manager
	options Options
	// controller is nil until what it needs is indexed.
	controller *admissioncheck.Controller
}

// Start waits until requests can be made, and sets up the controller that makes them. After an error it tries again.
func (s *starter) Start(ctx context.Context) error {
	needed := []schema.GroupVersion{
		autoscalingv1.SchemeGroupVersion, {Group: v1beta1.GroupName}, {Group: configKind.Group},
	}
	if s.options.Served.Wait(ctx, s.try, needed...) == nil {
		klog.FromContext(ctx).Info("Asking for capacity with ProvisioningRequests",
			"check", v1alpha1.ProvisioningController)
	}
	return nil
}

// try sets up what can be listed.
func (s *starter) try(ctx context.Context) error {
	err := served.Listable(ctx, s.mgr, schema.GroupKind{Group: autoscalingv1.GroupName, Kind: "ProvisioningRequest"},
		autoscalingv1.SchemeGroupVersion.Version)
	for _, kind := range []schema.GroupKind{{Group: v1beta1.GroupName, Kind: "AdmissionCheck"}, configKind} {
		if err == nil {
			err = served.Listable(ctx, s.mgr, kind)
		}
	}
	if err != nil {
		return err
	}
	if err = s.setup(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "No ProvisioningRequests are made yet; it is tried again")
	}
	return err
}

// setup may be called again after an error.
func (s *starter) setup(ctx context.Context) error {
	if s.controller == nil {
		config, err := s.mgr.GetRESTMapper().RESTMapping(configKind)
		if err != nil {
			return err
		}
		err = s.mgr.GetFieldIndexer().IndexField(ctx, &autoscalingv1.ProvisioningRequest{}, byController, controllerOf)
		if err != nil {
			return err
		}
		c := &checker{client: s.mgr.GetClient(), live: s.mgr.GetAPIReader(), config: config.GroupVersionKind}
		parameters := &unstructured.Unstructured{}
		parameters.SetGroupVersionKind(c.config)
		s.controller = &admissioncheck.Controller{
			ControllerName: v1alpha1.ProvisioningController, Check: c.check, Validate: c.validate, Idle: c.idle,
			Withdraws: true, Owns: []client.Object{&autoscalingv1.ProvisioningRequest{}}, Parameters: parameters,
			Reader: s.options.Units, Clock: s.options.Clock,
		}
	}
	return s.controller.SetupWithManager(s.mgr)
}
