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
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// resumedAs is a job that was resumed for an attempt of its unit, which is admitted with the present one.
func (s *scene) resumedAs(attempt, present int64) *scene {
	was := s.Unit.Status.Attempts
	s.Unit.Status.Attempts = attempt
	stampResumed(s.Job, s.Unit)
	s.Unit.Status.Attempts = max(present, was)
	return s
}

func requeues(o *Observation) { o.RequeuesSuspended = true }

func holdIs(value string) func(*Observation) {
	return func(o *Observation) {
		annotations := o.Job.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.AnnotationHold] = value
		o.Job.SetAnnotations(annotations)
	}
}

func TestSuspensionByTheOwner(t *testing.T) {
	admitted := func() *scene { return queued(t).phase(v1alpha1.PhaseDequeued) }
	runs := func() *scene { return queued(t).started().ready(2).phase(v1alpha1.PhaseRunning) }
	adopted := func(attempts int64) *scene {
		return runs().unit(func(u *v1alpha1.QueueUnit) {
			u.Annotations = map[string]string{v1alpha1.AnnotationAdopted: "true"}
			u.Status.Attempts = attempts
		})
	}
	for name, tc := range map[string]struct {
		scene *scene
		want  string
	}{
		"born suspended":                 {admitted(), "job suspend=false [Admitted]"},
		"suspended since it was resumed": {runs().resumedAs(1, 1), "patch unit [Held]"},
		"before it ran":                  {admitted().resumedAs(1, 1), "patch unit [Held]"},
		"resumed for an earlier attempt": {admitted().resumedAs(1, 2), "job suspend=false [Admitted]"},
		"resumed for another unit": {admitted().resumedAs(1, 1).
			unit(func(u *v1alpha1.QueueUnit) { u.UID = "unit-2" }), "job suspend=false [Admitted]"},
		"suspended by us": {admitted().resumedAs(1, 1).with(marked).condition("Suspended"), "job suspend=false [Admitted]"},
		"has its quota still": {runs().resumedAs(1, 1).
			unit(parkedFor(reasonSuspendedByOwner)), ""},
		"has given it back": {queued(t).resumedAs(1, 1).unit(parkedFor(reasonSuspendedByOwner)).
			with(copied), "status Enqueued"},
		"lost its admission meanwhile": {queued(t).resumedAs(1, 1).phase(v1alpha1.PhaseTimeoutBackoff), "patch unit"},
		"goes on: not suspended": {queued(t).resumedAs(1, 1).resumedByHand().unit(parkedFor(reasonSuspendedByOwner)),
			"job suspend=true [Suspended]"},
		"goes on: suspended by us": {queued(t).resumedAs(1, 1).with(marked).unit(parkedFor(reasonSuspendedByOwner)),
			"patch unit"},
		"goes on: annotated": {queued(t).resumedAs(1, 1).with(holdIs("false")).
			unit(parkedFor(reasonSuspendedByOwner)), "job suspend=true [LetGo]"},
		"annotated before it gave its quota back": {runs().resumedAs(1, 1).with(holdIs("false")),
			"job suspend=true [LetGo]"},
		"annotated, and not suspended": {running(t).with(holdIs("false")), "job suspend=false"},
		"its queue wants it to wait":   {runs().resumedAs(1, 1).with(requeues), "patch unit [Requeued]"},
		"its queue wants it to wait, quota still held": {runs().resumedAs(1, 1).with(requeues).
			unit(parkedFor(reasonSuspendedByOwner)), ""},
		"its queue wants it to wait, and it does": {queued(t).resumedAs(1, 1).with(requeues).
			unit(parkedFor(reasonSuspendedByOwner)), "patch unit"},
		"adopted, never resumed by us": {adopted(1), "patch unit [Held]"},
		"adopted, admitted since":      {adopted(2).waiting(0).condition("Suspended"), "reset start"},
		"held by its annotation as well": {runs().resumedAs(1, 1).with(holdIs("true")),
			"patch unit [Held]"},
		"has ended": {runs().resumedAs(1, 1).condition("Complete"), "status Succeed [Finished]"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, describe(Plan(tc.scene.Observation)))
		})
	}
}

// copied has the unit say what its job says, as the controller writes it.
func copied(o *Observation) {
	p := planner{Observation: *o, rel: own}
	p.demand = demandOf(o.Kind, o.Job, o.Creation, nil, false)
	p.checkHeld()
	if u := corrected(o.Unit, unitOf(o.Kind, o.Job, p.demand, nil)); u != nil {
		o.Unit = u
	}
}

// The whole way: admitted, suspended by its owner, let go by him, admitted again.
func TestTheOwnerSuspendsAndGoesOn(t *testing.T) {
	for _, how := range []string{"field", "annotation"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, newJob())
			w.settle()
			w.admit()
			w.settle()
			w.jobStatus(runs(2))
			require.Contains(t, w.job().Annotations[v1alpha1.AnnotationResumed], "/1")
			w.suspendByHand(true)
			require.Equal(t, []string{"patch QueueUnit/j"}, w.settle())
			require.False(t, *w.unit().Spec.Active)
			w.takeBack()
			w.settle()
			c := quotaReserved(w.unit())
			require.Equal(t, reasonSuspendedByOwner, c.Reason)
			require.True(t, *w.job().Spec.Suspend)
			w.restart()
			require.Empty(t, w.settle(), "it stays so (I12)")
			if how == "field" {
				w.suspendByHand(false)
			} else {
				w.annotateJob(v1alpha1.AnnotationHold, "false")
			}
			w.settle()
			require.True(t, *w.job().Spec.Suspend, "it waits")
			require.NotContains(t, w.job().Annotations, v1alpha1.AnnotationHold)
			require.Nil(t, w.unit().Spec.Active)
			w.admit()
			w.jobStatus(noted)
			w.settle()
			require.False(t, *w.job().Spec.Suspend)
			require.Contains(t, w.job().Annotations[v1alpha1.AnnotationResumed], "/2")
		})
	}
}

// takeBack plays the scheduler: what is inactive loses its admission.
func (w *world) takeBack() {
	w.t.Helper()
	u := w.unit()
	u.Status.Phase, u.Status.Admissions = v1alpha1.PhaseEnqueued, nil
	for _, c := range []string{v1alpha1.ConditionQuotaReserved, v1alpha1.ConditionAdmitted} {
		setCondition(u, c, metav1.ConditionFalse, "Inactive", "", epoch)
	}
	setCondition(u, v1alpha1.ConditionEvicted, metav1.ConditionTrue, "Inactive", "", epoch)
	w.updateStatus(u)
}

// suspendByHand plays the owner.
func (w *world) suspendByHand(suspend bool) {
	job := w.job()
	job.Spec.Suspend = &suspend
	w.update(job)
}

func (w *world) annotateJob(key, value string) {
	job := w.job()
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, key, value)
	w.update(job)
}

func quotaReserved(u *v1alpha1.QueueUnit) *metav1.Condition {
	return meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionQuotaReserved)
}
