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

package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/inspection"
)

// The rules for when the hostile tenant is gone.
const (
	// leftBehind: something is still held, or waits, for what does not exist any more.
	leftBehind checker.Rule = "LeftBehind"
	// unclean: an audit of the scheduler found its state to differ from the API objects, or failed.
	unclean checker.Rule = "Unclean"
)

var elasticQuotas = schema.GroupVersionResource{
	Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "elasticquotas",
}

// settled polls until nothing is left, and returns what still is after the patience.
func (r *round) settled(ctx context.Context, patience time.Duration) (found []checker.Violation, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		now, err := r.left(ctx)
		if err == nil && len(now) == 0 {
			return nil, nil
		}
		if err == nil {
			found = now
		}
		if !sleep(ctx, time.Second) {
			// What was found last, if the last look was cut short.
			if len(found) > 0 {
				err = nil
			}
			return found, err
		}
	}
}

// left asks the scheduler's metrics and Koordinator's quotas.
func (r *round) left(ctx context.Context) (found []checker.Violation, err error) {
	report := func(subject, format string, args ...any) {
		found = append(found, checker.Violation{Rule: leftBehind, Subject: subject, Message: fmt.Sprintf(format, args...)})
	}
	err = inspection.Metrics(ctx, r.cp.URL(controlplane.Scheduler), func(name, labels string, value float64) {
		if slices.Contains(inspection.AtRest, name) && value != 0 {
			report("metric "+name, "%s is %g", labels, value)
		}
	})
	if err != nil {
		return nil, err
	}
	quotas, err := r.dyn.Resource(elasticQuotas).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, quota := range quotas.Items {
		used, _, _ := unstructured.NestedStringMap(quota.Object, "status", "used")
		for name, amount := range used {
			if q, err := resource.ParseQuantity(amount); err != nil || !q.IsZero() {
				report("quota "+quota.GetName(), "%s used: %s", name, amount)
			}
		}
	}
	return found, nil
}

// audited has the scheduler compare its state once more, and returns a violation if that or an earlier audit found any
// difference.
func (r *round) audited(ctx context.Context, patience time.Duration) ([]checker.Violation, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	url := r.cp.URL(controlplane.Scheduler)
	clean, other, err := inspection.Audits(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := r.cp.Signal(controlplane.Scheduler, syscall.SIGUSR1); err != nil {
		return nil, err
	}
	for before := clean; clean == before && other == 0; {
		if !sleep(ctx, time.Second) {
			return nil, fmt.Errorf("the scheduler has not audited its state within %s", patience)
		}
		if clean, other, err = inspection.Audits(ctx, url); err != nil {
			return nil, err
		}
	}
	if other > 0 {
		return []checker.Violation{{Rule: unclean, Subject: "ledger", Message: fmt.Sprintf(
			"%g audits found differences or failed; see the scheduler's log", other)}}, nil
	}
	return nil, nil
}
