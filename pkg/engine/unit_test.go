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
	"time"
	"unique"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/jobkind"
)

// A field that is set keeps a history from being dropped, a field of tomorrow too.
func TestNoFieldOfAHistoryIsDropped(t *testing.T) {
	for i := range reflect.TypeFor[unitHistory]().NumField() {
		h := &unitHistory{}
		fill(reflect.ValueOf(h).Elem().Field(i))
		u := &unitObject{unitHistory: h}
		u.share()
		require.Same(t, h, u.unitHistory, reflect.TypeFor[unitHistory]().Field(i).Name)
	}
}

// Objects that say all that an object can say fill each field of the unit that the core gets.
func TestResolveLeavesNothingOut(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	r.queue(testQuota).lead()
	// These come from other sources than the object.
	seen := map[string]bool{"KindUnlisted": true, "Unsuspendable": true, "Quarantined": true}
	job := batchv1.SchemeGroupVersion.WithKind("Job")
	says := func(phase unit.Phase, attempts int64, ready metav1.ConditionStatus) *unitObject {
		u := &unitObject{unitHistory: &unitHistory{}}
		fill(reflect.ValueOf(u.unitHistory).Elem())
		for _, v := range fields(reflect.ValueOf(u).Elem()) {
			if v.IsZero() {
				fill(v)
			}
		}
		u.path, u.Namespace, u.Name, u.phase, u.attempts = testNamespace+"/a", testNamespace, "a", phase, attempts
		u.quota, u.quotaKey, u.updates = testQuota, v1alpha1.LabelQuotaName, nil
		u.consumerKind, u.consumer.Kind = unique.Make(job), jobkind.KindString(job)
		u.inactive = false
		u.conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionPodsReady, Status: ready, Reason: v1alpha1.ReasonPodsLost},
			{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAdopted},
			{Type: v1alpha1.ConditionResizePending, Status: metav1.ConditionTrue, Reason: "x"},
			{Type: v1alpha1.ConditionDeactivationTarget, Status: metav1.ConditionTrue, ObservedGeneration: u.Generation},
		}
		for i := range u.conditions {
			u.conditions[i].LastTransitionTime = metav1.NewTime(testStart)
		}
		return u
	}
	for _, u := range []*unitObject{
		says(unit.PhaseRunning, 1, metav1.ConditionTrue),
		says(unit.PhaseRunning, 1, metav1.ConditionFalse),
		says(unit.PhaseEnqueued, 0, metav1.ConditionFalse),
	} {
		c := r.engine.resolve(u)
		for i, v := range fields(reflect.ValueOf(&c).Elem()) {
			name := reflect.TypeFor[unit.Unit]().Field(i).Name
			seen[name] = seen[name] || !v.IsZero()
		}
	}
	for i := range reflect.TypeFor[unit.Unit]().NumField() {
		name := reflect.TypeFor[unit.Unit]().Field(i).Name
		require.True(t, seen[name], "resolve leaves %s out", name)
	}
}

// fields of a struct that can be set, exported or not.
func fields(of reflect.Value) (list []reflect.Value) {
	for i := range of.NumField() {
		f := of.Field(i)
		list = append(list, reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem())
	}
	return list
}

// fill sets a value to another one than zero, and all that is in it.
func fill(v reflect.Value) {
	v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(testStart))
			return
		}
		for _, f := range fields(v) {
			fill(f)
		}
	default:
		panic("a field of kind " + v.Kind().String() + ": teach fill to set it")
	}
}
