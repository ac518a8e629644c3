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
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownerhold"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// resumedAs is a job that was resumed for an attempt of its unit, which is admitted with the present one.
func (s *scene) resumedAs(attempt, present int64) *scene {
	was := s.Unit.Status.Attempts
	s.Unit.Status.Attempts = attempt
	jobs.EditOf(s.Kind, s.Job.Object).Annotate(v1alpha1.AnnotationResumed, ownerhold.Stamp(s.Unit))
	s.Unit.Status.Attempts = max(present, was)
	return s.reopened()
}

func requeues(o *Situation) { o.RequeuesSuspended = true }

func holdIs(value string) func(*Situation) {
	return func(o *Situation) {
		annotations := o.Job.Object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.AnnotationHold] = value
		o.Job.Object.SetAnnotations(annotations)
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
			unit(parkedFor("SuspendedByOwner")), ""},
		"has given it back": {queued(t).resumedAs(1, 1).unit(parkedFor("SuspendedByOwner")).
			with(copied), "status Enqueued"},
		"lost its admission meanwhile": {queued(t).resumedAs(1, 1).phase(v1alpha1.PhaseTimeoutBackoff), "patch unit"},
		"goes on: not suspended": {queued(t).resumedAs(1, 1).resumedByHand().unit(parkedFor("SuspendedByOwner")),
			"job suspend=true [Suspended]"},
		"goes on: suspended by us": {queued(t).resumedAs(1, 1).with(marked).unit(parkedFor("SuspendedByOwner")),
			"patch unit"},
		"goes on: annotated": {queued(t).resumedAs(1, 1).with(holdIs("false")).
			unit(parkedFor("SuspendedByOwner")), "job suspend=true [LetGo]"},
		"annotated before it gave its quota back": {runs().resumedAs(1, 1).with(holdIs("false")),
			"job suspend=true [LetGo]"},
		"annotated, and not suspended": {running(t).with(holdIs("false")), "job suspend=false"},
		"its queue wants it to wait":   {runs().resumedAs(1, 1).with(requeues), "patch unit [Requeued]"},
		"its queue wants it to wait, quota still held": {runs().resumedAs(1, 1).with(requeues).
			unit(parkedFor("SuspendedByOwner")), ""},
		"its queue wants it to wait, and it does": {queued(t).resumedAs(1, 1).with(requeues).
			unit(parkedFor("SuspendedByOwner")), "patch unit"},
		"adopted, never resumed by us": {adopted(1), "patch unit [Held]"},
		"adopted, admitted since":      {adopted(2).waiting(0).condition("Suspended"), "reset start"},
		"held by its annotation as well": {runs().resumedAs(1, 1).with(holdIs("true")),
			"patch unit [Held]"},
		"has ended": {runs().resumedAs(1, 1).condition("Complete"), "status Succeed"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, describe(tc.scene.decide()))
		})
	}
}

// copied has the unit say what its job says, as the controller writes it.
func copied(o *Situation) {
	demand := demanded(o.Job, o.Terms.Creation)
	if demand.Problem == nil {
		demand.Problem = ownerhold.Problem(o.Job, o.Unit, o.RequeuesSuspended)
	}
	if u := jobunit.Corrected(o.Unit, jobunit.Of(o.Job, demand, nil)); u != nil {
		o.Unit = u
	}
}

// The annotation of the stand-alone Koord-Queue holds a job that lacks our own.
func TestAJobIsHeldByTheFormerAnnotation(t *testing.T) {
	inactive := func(s *scene) *scene { return s.job("false", "metadata", "annotations", v1alpha1.AnnotationActive) }
	require.Equal(t, "patch unit [Held]", describe(inactive(running(t)).decide()))
	d := inactive(running(t)).decide()
	after := d.Do[0].(PatchUnit).After
	require.False(t, *after.Spec.Active)
	require.Equal(t, "false", after.Annotations[v1alpha1.AnnotationActive])
	require.NotContains(t, after.Annotations, v1alpha1.AnnotationHold)
	unit := func(u *v1alpha1.QueueUnit) {
		jobunit.Park(u, &jobunit.Problem{Reason: "HeldByOwner"})
		jobunit.Annotate(u, v1alpha1.AnnotationActive, "false")
	}
	require.Equal(t, "", describe(inactive(running(t)).unit(unit).decide()), "it has its quota still")
	require.Equal(t, "status Enqueued", describe(inactive(queued(t)).unit(unit).decide()), "it is held, and says so")
	require.Equal(t, "patch unit", describe(queued(t).unit(unit).decide()), "the annotation is gone")
}
