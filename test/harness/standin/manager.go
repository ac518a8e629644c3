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

package standin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// NewManager is a manager that plays the kinds after its start. It answers /healthz and /readyz at the address, "0" for
// nowhere. It is ready when it watches and, for LeaderWorkerSet, when its webhook is registered.
func NewManager(to *rest.Config, kinds []string, probes string) (manager.Manager, error) {
	to = rest.CopyConfig(to)
	to.QPS = -1 // as fast as the API server answers
	live, err := client.New(to, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, err
	}
	logger := klog.Background()
	ctrl.SetLogger(logger)
	mgr, err := ctrl.NewManager(to, manager.Options{
		Scheme: scheme.Scheme, Logger: logger, HealthProbeBindAddress: probes,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		// A test may have several in one process.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	err = mgr.AddReadyzCheck("watching", func(r *http.Request) error { return watching(r.Context(), mgr) })
	if err != nil {
		return nil, err
	}
	if slices.Contains(kinds, LeaderWorkerSet) {
		webhook := &PodWebhook{Client: live}
		if err := mgr.Add(webhook); err != nil {
			return nil, err
		}
		if err := mgr.AddReadyzCheck("webhook", webhook.check); err != nil {
			return nil, err
		}
	}
	return mgr, Setup(mgr, kinds, Options{Client: live, Clock: clock.RealClock{}})
}

func watching(ctx context.Context, mgr manager.Manager) error {
	select {
	case <-mgr.Elected():
	default:
		return errors.New("not started")
	}
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.New("not in sync yet")
	}
	return nil
}
