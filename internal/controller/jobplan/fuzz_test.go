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

package jobplan

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobask"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/notice"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/stall"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// observed makes a Situation of the fuzzer's text; false for text that no API server would send.
func observed(kind, job, unit string, bound byte, managed bool) (Situation, bool) {
	o := Situation{Now: epoch, Managed: managed, Terms: jobask.Terms{Creation: &podrequest.Creation{}},
		Bound: Bound(bound % 3), FreshJob: bound >= 3, MostGrace: noticePause}
	found, ok := jobkind.Find(kind)
	if !ok || len(job)+len(unit) > 1<<14 {
		return o, false
	}
	if o.Kind = found; bound >= 6 {
		o.Terms.Defaults = &someDefaults
	}
	if job != "" {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(job)); err != nil || object.IsList() ||
			object.GetName() == "" || object.GetUID() == "" {
			return o, false
		}
		o.Job = jobs.Open(found, object)
	}
	if unit != "" {
		o.Unit = &v1alpha1.QueueUnit{}
		if err := json.Unmarshal([]byte(unit), o.Unit); err != nil {
			return o, false
		}
	}
	return o, true
}

// FuzzPlan: any job and unit give a plan, without a panic and without a change of objects of the informers. The plan is
// the same twice (I13) and changes phases only legally (I9). Once it is carried out, a few more plans finish all work
// (I12).
func FuzzPlan(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind, job, unit string, bound byte, managed bool) {
		o, ok := observed(kind, job, unit, bound, managed)
		if !ok {
			t.Skip()
		}
		before := fingerprint(t, o)
		d := Decide(o)
		require.Equal(t, before, fingerprint(t, o), "the objects belong to the informers")
		require.Equal(t, texts(t, d), texts(t, Decide(o)))
		for _, action := range d.Do {
			legal(t, o, action)
		}
		if o.Job != nil {
			cached := o
			expanded, err := compact.Expand(compact.Job(o.Kind, o.Job.Object.DeepCopy(), o.Options.WholeTemplates))
			if err == nil {
				cached.Job = jobs.Open(o.Kind, expanded)
				for _, action := range Decide(cached).Do {
					legal(t, cached, action)
				}
			}
		}
		const plans = 8
		for range plans {
			if !carryOut(&o, Decide(o)) {
				return
			}
		}
		require.Empty(t, texts(t, Decide(o)), "no fixpoint after %d plans", plans)
	})
}

func fingerprint(t *testing.T, value any) string {
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	return string(raw)
}

func texts(t *testing.T, d Decision) (list []string) {
	if d.Look != LookNowhere || d.After > 0 {
		list = append(list, fmt.Sprint(d.Look, d.After))
	}
	for _, a := range d.Do {
		list = append(list, fmt.Sprintf("%T %s", a, fingerprint(t, a)))
	}
	return list
}

func legal(t *testing.T, o Situation, action Action) {
	switch a := action.(type) {
	case CreateUnit:
		require.NotNil(t, o.Job)
		require.Empty(t, a.Unit.Status.Phase, "only the scheduler admits")
		require.Equal(t, o.Job.Object.GetUID(), a.Unit.Spec.ConsumerRef.UID)
		require.Equal(t, o.Job.Object.GetNamespace(), a.Unit.Namespace)
	case DeleteUnit:
		require.Equal(t, o.Unit.UID, a.Unit.UID)
	case PatchUnitStatus:
		from, to := unit.Phase(a.Before.Status.Phase), unit.Phase(a.After.Status.Phase)
		known := from.Waits() || from.Holds() || from.Terminal()
		require.True(t, from == to || !known || from.CanBecome(to, unit.WriterController), "%q to %q", from, to)
		require.NoError(t, unitcondition.Unlawful(a.Before.Status.Conditions, a.After.Status.Conditions,
			unit.WriterController))
		require.GreaterOrEqual(t, a.After.Status.Attempts, a.Before.Status.Attempts)
	case PatchJob:
		released := o.Unit != nil && stageOf(o.Unit.Status.Phase) == released
		if a.Before.Suspended() && !a.After.Suspended() && o.Managed {
			require.True(t, released && o.Unit.Spec.ConsumerRef != nil && o.Unit.Spec.ConsumerRef.UID == o.Job.Object.GetUID(),
				"a job runs only with an admitted unit of its own UID (I3)")
		}
	}
}

// carryOut does what a plan says; false when there was nothing to do.
func carryOut(o *Situation, d Decision) bool {
	switch d.Look {
	case LookAtPods:
		o.Bound = BoundNone
	case LookAtUnit:
		o.FreshUnit = true
	case LookAtJob:
		o.FreshJob = true
	case LookAtRunning:
		o.Running = []notice.Pod{}
	case LookAtStall:
		o.Stall = &stall.Finding{Reason: unitcondition.ReasonPodsPending, Message: "no node"}
	default:
	}
	did := d.Look != LookNowhere
	if d.After > 0 && (o.Stall == nil || len(d.Do) > 0) { // a job that does not run is looked at again for as long
		now, since := metav1.NewTime(o.Now.Add(d.After)), o.Now
		if o.RunningSince != nil {
			since = *o.RunningSince
		}
		o.Now, o.RunningSince, did = now, &since, true
	}
	for _, action := range d.Do {
		switch a := action.(type) {
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
			edit := o.Job.Edit()
			edit.ClearStart()
			o.Job, did = edit.Job(), true
		}
	}
	return did
}
