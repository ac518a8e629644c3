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

	componentmetrics "k8s.io/component-base/metrics"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/features"
)

// counted are the metrics of the controller, among those that controller-runtime serves.
var counted = metrics.New(metrics.Controller)

func init() {
	counted.MustRegister(func(all ...componentmetrics.Registerable) {
		for _, metric := range all {
			if metric.Create(nil) {
				runtimemetrics.Registry.MustRegister(metric)
			}
		}
	})
}

// RecordFeatures says in a metric which features are enabled.
func RecordFeatures(gates features.Gates) {
	for _, d := range features.Definitions() {
		value := 0.0
		if gates.Enabled(d.Name) {
			value = 1
		}
		counted.Set(metrics.FeatureEnabled, value, string(d.Name), strings.ToUpper(d.Stage()))
	}
}

func setKindAvailability(kind string, a served.Availability) {
	for _, reason := range []served.Availability{served.NotInstalled, served.Unsupported} {
		if a == reason {
			counted.Set(metrics.ControllerKindUnavailable, 1, kind, string(reason))
		} else {
			counted.Forget(metrics.ControllerKindUnavailable, kind, string(reason))
		}
	}
}
