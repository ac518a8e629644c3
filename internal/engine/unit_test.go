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

package engine

import (
	"reflect"
	"testing"
	"unique"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects/objectstest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Objects that say all that an object can say fill each field of the unit that the core gets.
func TestResolveLeavesNothingOut(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	r.queue(testQuota).allows(testNamespace, "7").lead()
	r.step()
	// These come from other sources than the object.
	seen := map[string]bool{"KindUnlisted": true, "Unsuspendable": true, "Quarantined": true}
	job := batchv1.SchemeGroupVersion.WithKind("Job")
	says := func(phase unit.Phase, attempts int64, ready metav1.ConditionStatus) *objects.Unit {
		u := &objects.Unit{History: &objects.History{}}
		objectstest.Fill(reflect.ValueOf(u.History).Elem())
		for _, v := range objectstest.Fields(reflect.ValueOf(u).Elem()) {
			if v.IsZero() {
				objectstest.Fill(v)
			}
		}
		u.Path, u.Namespace, u.Name, u.Phase, u.Attempts = testNamespace+"/a", testNamespace, "a", phase, attempts
		u.Quota, u.QuotaKey, u.Updates = testQuota, v1alpha1.LabelQuotaName, nil
		u.ConsumerKind, u.Consumer.Kind = unique.Make(job), jobkind.KindString(job)
		u.Inactive = false
		u.Choice = &v1alpha1.QuotaChoice{Name: u.HeldIn, First: testQuota}
		u.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionPodsReady, Status: ready, Reason: v1alpha1.ReasonPodsLost},
			{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAdopted},
			{Type: v1alpha1.ConditionResizePending, Status: metav1.ConditionTrue, Reason: "x"},
			{Type: v1alpha1.ConditionDeactivationTarget, Status: metav1.ConditionTrue, ObservedGeneration: u.Generation},
		}
		for i := range u.Conditions {
			u.Conditions[i].LastTransitionTime = metav1.NewTime(testStart)
		}
		return u
	}
	for _, u := range []*objects.Unit{
		says(unit.PhaseRunning, 1, metav1.ConditionTrue),
		says(unit.PhaseRunning, 1, metav1.ConditionFalse),
		says(unit.PhaseEnqueued, 0, metav1.ConditionFalse),
	} {
		c := r.engine.facts.resolve(u)
		for i, v := range objectstest.Fields(reflect.ValueOf(&c).Elem()) {
			name := reflect.TypeFor[unit.Unit]().Field(i).Name
			seen[name] = seen[name] || !v.IsZero()
		}
	}
	for i := range reflect.TypeFor[unit.Unit]().NumField() {
		name := reflect.TypeFor[unit.Unit]().Field(i).Name
		require.True(t, seen[name], "resolve leaves %s out", name)
	}
}
