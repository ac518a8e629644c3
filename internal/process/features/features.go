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

// Package features has the feature gates of scheduler and controller. Each process reads them once, at its start, from
// the field featureGates of its configuration.
package features

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	featuremetrics "k8s.io/component-base/metrics/prometheus/feature"
)

// The gates. A gate is here from the release on in which it switches something.
const (
	AdmissionChecks  featuregate.Feature = "AdmissionChecks"
	PartialAdmission featuregate.Feature = "PartialAdmission"
	Placement        featuregate.Feature = "Placement"
	Reservations     featuregate.Feature = "Reservations"
)

// Definition of a gate.
type Definition struct {
	Name featuregate.Feature
	Spec featuregate.FeatureSpec
	// On and Off say in words what it means in each process.
	On, Off string
}

// Stage of the gate, in words.
func (d *Definition) Stage() string {
	switch d.Spec.PreRelease {
	case featuregate.GA:
		return "GA"
	case featuregate.Beta:
		return "Beta"
	case featuregate.Deprecated:
		return "Deprecated"
	default:
		return "Alpha"
	}
}

// Definitions of all gates, by name.
func Definitions() []Definition {
	beta := featuregate.FeatureSpec{Default: true, PreRelease: featuregate.Beta}
	return []Definition{
		{
			Name: AdmissionChecks, Spec: beta,
			On: "units pass the admission checks that their queue names between the reservation of quota and their release",
			Off: "scheduler: queues that name checks reserve nothing new (`CheckInactive`), AdmissionChecks are not watched, " +
				"and what holds quota keeps it; controller: jobs into whose pods a check asks to write are not resumed " +
				"(`CannotResume`)",
		},
		{
			Name: PartialAdmission, Spec: beta,
			On: "jobs that say so may be admitted with fewer pods than they ask for",
			Off: "scheduler: they are admitted as a whole or not at all; controller: their units do not say with how few pods " +
				"they can do",
		},
		{
			Name: Placement, Spec: beta,
			On: "the scheduler answers AdmissionChecks with the controllerName `koord-queue/placement`: a job is released " +
				"when all its pods find a node",
			Off: "such checks are not answered, and queues that name them reserve nothing new (`CheckInactive`)",
		},
		{
			Name: Reservations, Spec: beta,
			On: "the controller answers AdmissionChecks with the controllerName `koord-queue/reservation`: a job is released " +
				"when koord-scheduler has found a node for the Reservation of each pod",
			Off: "such checks are not answered, and queues that name them reserve nothing new (`CheckInactive`)",
		},
	}
}

// Gates say which features are enabled.
type Gates = featuregate.FeatureGate

// New makes the gates of a process. An absent gate has its default, and an unknown one is an error.
func New(values map[string]bool) (Gates, error) {
	if err := Validate(values, field.NewPath("featureGates")).ToAggregate(); err != nil {
		return nil, err
	}
	specs := map[featuregate.Feature]featuregate.FeatureSpec{}
	for _, d := range Definitions() {
		specs[d.Name] = d.Spec
	}
	gates := featuregate.NewFeatureGate()
	if err := gates.Add(specs); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	if err := gates.SetFromMap(values); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	return gates, nil
}

// Validate names every gate that is not known, and those that are.
func Validate(values map[string]bool, path *field.Path) field.ErrorList {
	var known []string
	for _, d := range Definitions() {
		known = append(known, string(d.Name))
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			errs = append(errs, field.NotSupported(path, name, known))
		}
	}
	return errs
}

// Record says in the metric kubernetes_feature_enabled, among those of Kubernetes' components, what is enabled.
func Record(ctx context.Context, gates Gates) {
	for _, d := range Definitions() {
		featuremetrics.RecordFeatureInfo(ctx, string(d.Name), strings.ToUpper(d.Stage()), gates.Enabled(d.Name))
	}
}
