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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownerhold"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

// zoneOf is an answer that wants the pods of a job in a zone.
func zoneOf(check, state, zone string) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) {
		u.Status.AdmissionChecks = append(u.Status.AdmissionChecks, v1alpha1.AdmissionCheckState{
			Name: check, State: v1alpha1.CheckState(state), PodSetUpdates: []v1alpha1.PodSetUpdate{{
				Name: u.Spec.PodSets[0].Name, NodeSelector: map[string]string{"zone": zone},
				Annotations: map[string]string{"consumes": check},
				Tolerations: []corev1.Toleration{{Key: check, Operator: "Exists"}},
			}},
		})
	}
}

func answered(state string) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) {
		for i := range u.Status.AdmissionChecks {
			u.Status.AdmissionChecks[i].State = v1alpha1.CheckState(state)
		}
	}
}

func (s *scene) template(t *testing.T) *corev1.PodTemplateSpec {
	sets, err := s.Job.PodSets()
	require.NoError(t, err)
	return sets[0].Template
}

// Templates that cannot be changed yet are waited for, although their pods would be charged right.
func TestUpdatesOfChecksAreWaitedFor(t *testing.T) {
	s := queued(t).job("a", "spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName).
		phase(v1alpha1.PhaseDequeued)
	step, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	require.NotNil(t, step.Plain)
	step, ok = s.unit(zoneOf("gpu", "Ready", "a")).decide().Do[0].(PatchJob)
	require.True(t, ok)
	require.Nil(t, step.Plain)
}

// A reserved job waits, and is suspended again if somebody resumes it.
func TestAReservedJobWaits(t *testing.T) {
	require.Empty(t, describe(queued(t).phase(v1alpha1.PhaseReserved).decide()))
	s := queued(t).resumedByHand().phase(v1alpha1.PhaseReserved)
	s.FreshUnit = true
	require.Equal(t, "job suspend=true [Suspended]", describe(s.decide()))
}

// The next search for nodes is for the pods as they are to be: a job that waits may say that it tolerates other taints.
func TestChangedTolerationsOfAWaitingJobReachItsUnit(t *testing.T) {
	for _, phase := range []v1alpha1.QueueUnitPhase{v1alpha1.PhaseEnqueued, v1alpha1.PhaseTimeoutBackoff} {
		s := queued(t).phase(phase)
		s.job([]any{map[string]any{"key": "gpu", "operator": "Exists"}}, "spec", "template", "spec", "tolerations")
		require.Equal(t, "patch unit", describe(s.decide()), phase)
		s.Unit = s.decide().Do[0].(PatchUnit).After
		pods, err := podtemplate.Scheduled(s.Unit.Spec.PodSets[0].Template.Raw)
		require.NoError(t, err)
		require.Equal(t, []corev1.Toleration{{Key: "gpu", Operator: "Exists"}}, pods.Spec.Tolerations)
		require.Empty(t, describe(s.decide()))
	}
}

// Updates of checks are written into the pods together with the resumption, and removed by the next suspension.
func TestUpdatesOfChecksInPods(t *testing.T) {
	s := queued(t).phase(v1alpha1.PhaseDequeued).unit(zoneOf("gpu", "Ready", "a")).unit(zoneOf("other", "Pending", "b"))
	before := s.Job.Object.DeepCopy()
	step, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	require.Nil(t, step.Plain, "without them its pods are not what was checked")
	s.Job = step.After
	template := s.template(t)
	require.Equal(t, map[string]string{"zone": "a"}, template.Spec.NodeSelector)
	require.Equal(t, "gpu", template.Annotations["consumes"])
	require.Len(t, template.Spec.Tolerations, 1)
	require.Empty(t, describe(s.decide()), "its unit asks for what it did")

	s.job(true, "spec", "suspend").with(marked).phase(v1alpha1.PhaseEnqueued).unit(answered("Retry"))
	step, ok = s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s.Job = step.After
	require.Equal(t, before.Object["spec"], s.Job.Object.Object["spec"])

	// Then the unit may forget it, once the API server itself says so of the job.
	require.Equal(t, look(LookAtJob), s.decide())
	s.FreshJob = true
	status, ok := s.decide().Do[0].(PatchUnitStatus)
	require.True(t, ok)
	require.NotEmpty(t, podupdate.All(s.Unit.Status.AdmissionChecks))
	require.Empty(t, podupdate.All(status.After.Status.AdmissionChecks))
	require.Equal(t, v1alpha1.CheckState("Retry"), status.After.Status.AdmissionChecks[0].State)
	s.Unit = status.After
	require.Empty(t, describe(s.decide()))
}

// A job that was not resumed for its last attempt is stamped first. Another controller with an old cache may be about
// to resume it, with the updates: the API server refuses that then.
func TestAJobIsStampedBeforeItsUnitForgets(t *testing.T) {
	s := queued(t).phase(v1alpha1.PhaseTimeoutBackoff).unit(zoneOf("gpu", "Ready", "a"))
	s.FreshJob = true
	step, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s.Job = step.After
	require.True(t, ownerhold.Resumed(s.Job, s.Unit))
	require.True(t, s.Job.SuspendedByUs(), "nobody takes it for one that its owner suspended")
	require.IsType(t, PatchUnitStatus{}, s.decide().Do[0])
}

// While quota is reserved nothing is forgotten: what is asked for then is to come yet.
func TestAReservedUnitForgetsNothing(t *testing.T) {
	s := queued(t).phase(v1alpha1.PhaseReserved).unit(zoneOf("gpu", "Ready", "a"))
	s.FreshJob = true
	require.Empty(t, describe(s.decide()))
}

// A job that ran has immutable templates. So its start is reset while it waits, and only then does its unit drop the
// answers.
func TestUpdatesOfAJobThatRanAreTakenOutWhileItWaits(t *testing.T) {
	s := queued(t).phase(v1alpha1.PhaseDequeued).unit(zoneOf("gpu", "Ready", "a"))
	step, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s.Job = step.After
	s.job(true, "spec", "suspend").started().condition("Suspended").with(marked).phase(v1alpha1.PhaseTimeoutBackoff)
	s.unit(func(u *v1alpha1.QueueUnit) {
		plain := s.Job.Plain(podupdate.All(u.Status.AdmissionChecks))
		u.Spec = jobunit.Of(s.Job, jobunit.DemandOf(plain, s.Terms.Creation, false), nil).Spec
	}).FreshJob = true
	require.IsType(t, ResetStart{}, s.decide().Do[0])
}

// A unit that goes takes along what its checks asked for. So that is taken out of the job first.
func TestUpdatesOfChecksAreTakenOutBeforeTheirUnitGoes(t *testing.T) {
	for name, gone := range map[string]func(s *scene){
		"replaced":  func(s *scene) { s.job(int64(3), "spec", "parallelism") },
		"unmanaged": func(s *scene) { s.with(unmanage) },
	} {
		t.Run(name, func(t *testing.T) {
			s := queued(t).phase(v1alpha1.PhaseDequeued).unit(zoneOf("gpu", "Ready", "a"))
			step, ok := s.decide().Do[0].(PatchJob)
			require.True(t, ok)
			s.Job = step.After
			s.job(true, "spec", "suspend").started().with(marked)
			gone(s)
			require.Empty(t, s.decide().Do, "its pods are still there")
			s.condition("Suspended")
			require.IsType(t, ResetStart{}, s.decide().Do[0])
			s.job(nil, "status", "startTime")
			step, ok = s.decide().Do[0].(PatchJob)
			require.True(t, ok)
			s.Job = step.After
			require.Empty(t, s.template(t).Spec.NodeSelector)
			s.FreshJob = true
			require.Contains(t, describe(s.decide()), "delete unit")
		})
	}
}

// A job that ran before has templates that cannot be changed, until its start is taken back.
func TestOtherUpdatesOfChecksAfterARun(t *testing.T) {
	s := queued(t).phase(v1alpha1.PhaseDequeued).unit(zoneOf("gpu", "Ready", "a"))
	step, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s.Job = step.After
	s.job(true, "spec", "suspend").started().condition("Suspended").with(marked)
	require.Equal(t, "job suspend=false [Admitted]", describe(s.decide()), "they are what they were")
	s.unit(func(u *v1alpha1.QueueUnit) { u.Status.AdmissionChecks = nil }).unit(zoneOf("gpu", "Ready", "b"))
	require.IsType(t, ResetStart{}, s.decide().Do[0])
}

// The template wins over a check: the job is not resumed, and its events say why.
func TestAnUpdateThatTheTemplateContradicts(t *testing.T) {
	s := queued(t).job(map[string]any{"zone": "b"}, "spec", "template", "spec", "nodeSelector").
		phase(v1alpha1.PhaseDequeued)
	s.unit(func(u *v1alpha1.QueueUnit) {
		u.Spec = jobunit.Of(s.Job, demanded(s.Job, s.Terms.Creation), nil).Spec
	}).unit(zoneOf("gpu", "Ready", "a"))
	actions := s.decide().Do
	require.Contains(t, actions[0].(Tell).Event.Note, `nodeSelector "zone"`)
	status, ok := actions[1].(PatchUnitStatus)
	require.True(t, ok)
	require.NoError(t, status.Lawful())
	ready := meta.FindStatusCondition(status.After.Status.Conditions, v1alpha1.ConditionPodsReady)
	require.Equal(t, unitcondition.ReasonJobNotResumed, ready.Reason)
	require.Contains(t, ready.Message, "nodeSelector")
	s.Unit = status.After
	require.Equal(t, "tell [CannotResume]", describe(s.decide()), "the unit says so already")

	// Events are kept for an hour: each admission is told of, once.
	said := event.Said{}
	require.NotNil(t, said.Once(actions[0].(Tell).Event))
	require.Nil(t, said.Once(s.decide().Do[0].(Tell).Event))
	s.unit(func(u *v1alpha1.QueueUnit) { u.Status.Attempts++ })
	require.NotNil(t, said.Once(s.decide().Do[0].(Tell).Event))
}

// The feature gate is off. A job whose pods would lack updates of its checks does not run, and others do. Earlier
// updates are removed.
func TestUpdatesOfChecksWithTheGateOff(t *testing.T) {
	s := queued(t).phase(v1alpha1.PhaseDequeued).unit(zoneOf("gpu", "Ready", "a"))
	resumed, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s.Options.ChecksOff = true
	actions := s.decide().Do
	require.Contains(t, actions[0].(Tell).Event.Note, "feature gate AdmissionChecks")

	s.Job = resumed.After
	require.Empty(t, describe(s.decide()), "what runs is left alone")
	s.job(true, "spec", "suspend").phase(v1alpha1.PhaseReserved).unit(answered("Pending"))
	step, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s.Job = step.After
	require.Empty(t, s.template(t).Spec.NodeSelector)

	s = queued(t).phase(v1alpha1.PhaseDequeued)
	s.Options.ChecksOff = true
	require.Equal(t, "job suspend=false [Admitted]", describe(s.decide()))
}

// Somebody resumes the job before the controller, without the updates of a check. The job is suspended again while no
// pod of it is on a node, and then resumed with all updates.
func TestAJobResumedWithoutItsUpdatesIsSuspendedAgain(t *testing.T) {
	without := func() *scene {
		return queued(t).job("a", "spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName).
			resumedByHand().started().waiting(2).phase(v1alpha1.PhaseDequeued).unit(zoneOf("gpu", "Ready", "a"))
	}
	require.Equal(t, "look at pods", describe(without().decide()))
	require.Equal(t, "job suspend=true [Suspended]", describe(without().with(podsAre(BoundNone)).decide()))
	require.Empty(t, describe(without().with(podsAre(BoundSome)).decide()), "pods that run are left alone")
	pending := without().unit(answered("Pending")).with(podsAre(BoundNone))
	require.Empty(t, describe(pending.decide()), "it was not asked for")

	admitted := queued(t).phase(v1alpha1.PhaseDequeued).unit(zoneOf("gpu", "Ready", "a"))
	resumed, ok := admitted.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s := without().with(podsAre(BoundNone))
	template, _, err := unstructured.NestedMap(resumed.After.Object.Object, "spec", "template")
	require.NoError(t, err)
	s.job(template, "spec", "template").Job.Object.SetAnnotations(resumed.After.Object.GetAnnotations())
	require.Empty(t, describe(s.decide()), "it has what it needs")
	s.job("b", "spec", "template", "spec", "nodeSelector", "zone")
	require.NotEmpty(t, describe(s.decide()), "another zone is not what was checked")
}
