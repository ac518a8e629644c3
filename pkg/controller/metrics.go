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
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/features"
)

// kindUnavailable is 1 for each managed kind whose jobs are not managed, with the reason.
var kindUnavailable = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "jobqueue_controller_job_kind_unavailable",
	Help: "1 while jobs of a managed kind are not managed: NotInstalled, or Unsupported.",
}, []string{"kind", "reason"})

// featureEnabled is as Kubernetes' components have it.
var featureEnabled = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "kubernetes_feature_enabled",
	Help: "1 for each feature gate that is on, 0 for each that is off, with its stage.",
}, []string{"name", "stage"})

func init() { metrics.Registry.MustRegister(kindUnavailable, featureEnabled) }

// RecordFeatures says in a metric which features are enabled.
func RecordFeatures(gates features.Gates) {
	for _, d := range features.Definitions() {
		value := 0.0
		if gates.Enabled(d.Name) {
			value = 1
		}
		featureEnabled.WithLabelValues(string(d.Name), strings.ToUpper(d.Stage())).Set(value)
	}
}

func setKindAvailability(kind string, a served.Availability) {
	kindUnavailable.DeletePartialMatch(prometheus.Labels{"kind": kind})
	if a != served.Available {
		kindUnavailable.WithLabelValues(kind, string(a)).Set(1)
	}
}
