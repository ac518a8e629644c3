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
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// observed makes an observation of what a fuzzer wrote; false for what no API server would send.
func observed(kind, job, key string, bound byte, managed bool) (Observation, bool) {
	o := Observation{Now: epoch, Managed: managed, Creation: &jobs.Creation{}, Bound: Bound(bound % 3), Fresh: bound >= 3}
	found, ok := jobs.Find(kind)
	if !ok || len(job)+len(key) > 1<<14 {
		return o, false
	}
	o.Kind = found
	if job != "" {
		o.Job = &unstructured.Unstructured{}
		if err := o.Job.UnmarshalJSON([]byte(job)); err != nil || o.Job.IsList() ||
			o.Job.GetName() == "" || o.Job.GetUID() == "" {
			return o, false
		}
	}
	if key != "" {
		o.Unit = &v1alpha1.QueueUnit{}
		if err := json.Unmarshal([]byte(key), o.Unit); err != nil {
			return o, false
		}
	}
	return o, true
}

// FuzzPlan: whatever a job and its unit say, a plan is made without a panic, without changing what belongs to the
// informers, twice the same (I13), and with legal changes of phase only (I9). Once it is carried out, what is left to
// do comes to an end within a few plans (I12).
func FuzzPlan(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind, job, key string, bound byte, managed bool) {
		o, ok := observed(kind, job, key, bound, managed)
		if !ok {
			t.Skip()
		}
		before := fingerprint(t, o)
		actions := Plan(o)
		require.Equal(t, before, fingerprint(t, o), "the objects belong to the informers")
		require.Equal(t, texts(t, actions), texts(t, Plan(o)))
		for _, action := range actions {
			legal(t, o, action)
		}
		if o.Job != nil {
			cached := o
			var err error
			if cached.Job, err = jobs.Expand(o.Kind.Compact(o.Job.DeepCopy(), o.Options.WholeTemplates)); err == nil {
				for _, action := range Plan(cached) {
					legal(t, cached, action)
				}
			}
		}
		const plans = 8
		for range plans {
			if actions = Plan(o); !carryOut(&o, actions) {
				return
			}
		}
		require.Empty(t, texts(t, Plan(o)), "no fixpoint after %d plans", plans)
	})
}

func fingerprint(t *testing.T, value any) string {
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	return string(raw)
}

func texts(t *testing.T, actions []Action) (list []string) {
	for _, a := range actions {
		list = append(list, fmt.Sprintf("%T %s", a, fingerprint(t, a)))
	}
	return list
}

func legal(t *testing.T, o Observation, action Action) {
	switch a := action.(type) {
	case CreateUnit:
		require.NotNil(t, o.Job)
		require.Empty(t, a.Unit.Status.Phase, "only the scheduler admits")
		require.Equal(t, o.Job.GetUID(), a.Unit.Spec.ConsumerRef.UID)
		require.Equal(t, o.Job.GetNamespace(), a.Unit.Namespace)
	case DeleteUnit:
		require.Equal(t, o.Unit.UID, a.Unit.UID)
	case PatchUnitStatus:
		from, to := unit.Phase(a.Before.Status.Phase), unit.Phase(a.After.Status.Phase)
		known := from.Waits() || from.Holds() || from.Terminal()
		require.True(t, from == to || !known || from.CanBecome(to, unit.WriterController), "%q to %q", from, to)
		require.GreaterOrEqual(t, a.After.Status.Attempts, a.Before.Status.Attempts)
	case PatchJob:
		released := o.Unit != nil && stageOf(o.Unit.Status.Phase) == released
		if o.Kind.Open(a.Before).Suspended() && !o.Kind.Open(a.After).Suspended() && o.Managed {
			require.True(t, released && o.Unit.Spec.ConsumerRef != nil && o.Unit.Spec.ConsumerRef.UID == o.Job.GetUID(),
				"a job runs only with an admitted unit of its own UID (I3)")
		}
	}
}

// carryOut does what a plan says; false when there was nothing to do.
func carryOut(o *Observation, actions []Action) bool {
	did := false
	for _, action := range actions {
		switch a := action.(type) {
		case PlanLater:
			now, since := metav1.NewTime(o.Now.Add(a.After)), o.Now
			if o.RunningSince != nil {
				since = *o.RunningSince
			}
			o.Now, o.RunningSince, did = now, &since, true
		case LookAtPods:
			o.Bound, did = BoundNone, true
		case ReadUnit:
			o.FreshUnit, did = true, true
		case ReadJob:
			o.Fresh, did = true, true
		case CreateUnit:
			o.Unit, did = a.Unit.DeepCopy(), true
			o.Unit.UID = "fuzzed"
		case PatchUnit:
			o.Unit, did = a.After, true
		case PatchUnitStatus:
			o.Unit, did = a.After, true
		case DeleteUnit:
			o.Unit, did = nil, true
		case PatchJob:
			o.Job, did = a.After, true
		case ResetStart:
			o.Job = o.Job.DeepCopy()
			unstructured.RemoveNestedField(o.Job.Object, "status", "startTime")
			did = true
		}
	}
	return did
}
