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
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobdefaults"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
)

var someDefaults = jobdefaults.Settings{
	Gang: &jobdefaults.Gang{WaitTime: "5m", Mode: "NonStrict"}, Preemptible: ptr.To(false), PriorityClassName: "batch",
	MaxExecutionTime: "1h", Grace: "1m",
}

// byDefault gives the kind these defaults, in a cluster that has the class batch.
func byDefault(defaults *jobdefaults.Settings) func(*Situation) {
	return func(s *Situation) {
		s.Terms.Defaults = defaults
		s.Terms.Creation = &podrequest.Creation{PriorityClasses: []schedulingv1.PriorityClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Value: 7}, {ObjectMeta: metav1.ObjectMeta{Name: "own"}, Value: 9},
		}}
	}
}

// created is the job with the unit that it gets, which then waits.
func created(t *testing.T, s *scene) *scene {
	t.Helper()
	step, ok := s.decide().Do[0].(CreateUnit)
	require.True(t, ok)
	s.Unit = step.Unit
	s.Unit.UID, s.Unit.ResourceVersion, s.Unit.Status.Phase, s.FreshUnit = "unit-1", "10", v1alpha1.PhaseEnqueued, true
	require.Empty(t, describe(s.decide()), "there is nothing else to do")
	return s
}

// patched is what the only step makes of the job.
func patched(t *testing.T, s *scene) *scene {
	t.Helper()
	do := s.decide().Do
	require.Len(t, do, 1)
	step, ok := do[0].(PatchJob)
	require.True(t, ok, describe(s.decide()))
	s.Job = step.After
	return s.reopened()
}

func templateOf(t *testing.T, s *scene) *corev1.PodTemplateSpec {
	t.Helper()
	sets, err := s.Job.PodSets()
	require.NoError(t, err)
	return sets[0].Template
}

func TestDefaultsOfAUnit(t *testing.T) {
	for name, tc := range map[string]struct {
		job                func(*Situation)
		preemptible, class string
		priority, seconds  int32
	}{
		"it says nothing": {func(*Situation) {}, "false", "batch", 7, 3600},
		"its time":        {jobSays(v1alpha1.AnnotationMaxExecutionTime, "60"), "false", "batch", 7, 60},
		"its number, up to the class": {jobSays(v1alpha1.AnnotationPriority, "8"),
			"false", "batch", 7, 3600},
		"its number below the class": {jobSays(v1alpha1.AnnotationPriority, "5"),
			"false", "batch", 5, 3600},
		"a forged record": {jobSays(v1alpha1.AnnotationJobDefaults, `{"priorityClassName":"own"}`),
			"false", "batch", 7, 3600},
	} {
		t.Run(name, func(t *testing.T) {
			s := created(t, unqueued(t).with(byDefault(&someDefaults)).with(tc.job))
			u := s.Unit
			require.Equal(t, tc.preemptible, u.Labels[v1alpha1.LabelPreemptible])
			require.Equal(t, tc.class, u.Spec.PriorityClassName)
			require.Equal(t, &tc.priority, u.Spec.Priority)
			require.Equal(t, &tc.seconds, u.Spec.MaximumExecutionTimeSeconds)
			require.Equal(t, someDefaults.Text(), u.Annotations[v1alpha1.AnnotationJobDefaults])
		})
	}
	unknown := someDefaults
	unknown.PriorityClassName = "gone"
	s := created(t, unqueued(t).with(byDefault(&unknown)))
	require.Empty(t, s.Unit.Spec.PriorityClassName, "a class that is not there is none")
	require.EqualValues(t, 3600, *s.Unit.Spec.MaximumExecutionTimeSeconds)
}

// A changed default is that of jobs that wait. A job that holds quota keeps those that it was admitted with.
func TestDefaultsChange(t *testing.T) {
	waiting := created(t, unqueued(t).with(byDefault(&someDefaults)))
	step, ok := waiting.with(byDefault(nil)).decide().Do[0].(PatchUnit)
	require.True(t, ok)
	require.Nil(t, step.After.Spec.MaximumExecutionTimeSeconds)
	require.Empty(t, step.After.Spec.PriorityClassName)
	require.NotContains(t, step.After.Labels, v1alpha1.LabelPreemptible)
	require.NotContains(t, step.After.Annotations, v1alpha1.AnnotationJobDefaults)

	for name, now := range map[string]*jobdefaults.Settings{
		"none": nil, "others": {Preemptible: ptr.To(true), MaxExecutionTime: "2h", PriorityClassName: "own"},
	} {
		t.Run(name, func(t *testing.T) {
			s := created(t, unqueued(t).with(byDefault(&someDefaults))).with(byDefault(now))
			s = patched(t, s.phase(v1alpha1.PhaseDequeued))
			require.False(t, s.Job.Suspended())
			template := templateOf(t, s)
			require.Equal(t, "false", template.Labels[v1alpha1.LabelPreemptible])
			require.Equal(t, "NonStrict", template.Annotations[extension.AnnotationGangMode])
			require.Equal(t, "5m", template.Annotations[extension.AnnotationGangWaitTime])
			require.Equal(t, "2", template.Annotations[extension.AnnotationGangMinNum])
			require.Empty(t, template.Spec.PriorityClassName, "the API server would refuse it")

			require.Empty(t, describe(s.started().waiting(2).with(podsAre(BoundNone)).decide()), "its pods are charged right")
			require.Empty(t, describe(s.ready(2).phase(v1alpha1.PhaseRunning).decide()), "it runs on")
			s.phase(v1alpha1.PhaseEnqueued).with(evictedFor("Reclaimed")).with(mostGrace(time.Hour)).
				with(podsRun([2]time.Duration{none, none}))
			require.Contains(t, describe(s.decide()), "notify a", "it has the grace of its admission")
		})
	}
}

// Defaults that resuming added are removed with the rest, and other defaults replace them.
func TestDefaultsAreTakenBack(t *testing.T) {
	s := created(t, unqueued(t).with(byDefault(&someDefaults)))
	before := s.Job.Object.DeepCopy()
	s = patched(t, s.phase(v1alpha1.PhaseDequeued))
	s = s.job(true, "spec", "suspend").with(marked).condition("Suspended").phase(v1alpha1.PhaseEnqueued)
	s.with(byDefault(&jobdefaults.Settings{Gang: &jobdefaults.Gang{}}))
	require.IsType(t, PatchUnit{}, s.decide().Do[0])
	s.Unit = s.decide().Do[0].(PatchUnit).After
	s = patched(t, s)
	require.Equal(t, before.Object["spec"], s.Job.Object.Object["spec"], "it waits as its owner wrote it")
	s = patched(t, s.phase(v1alpha1.PhaseDequeued))
	require.Contains(t, templateOf(t, s).Annotations, extension.AnnotationGangName)
	require.NotContains(t, templateOf(t, s).Annotations, extension.AnnotationGangMode)
	require.NotContains(t, templateOf(t, s).Labels, v1alpha1.LabelPreemptible)
}

// Pods of a job that is adopted were made without defaults.
func TestDefaultsOfAnAdoptedJob(t *testing.T) {
	adopted := func(s *scene) *v1alpha1.QueueUnit {
		s.resumedByHand().started().with(podsAre(BoundSome)).with(byDefault(&someDefaults))
		step, ok := s.decide().Do[0].(CreateUnit)
		require.True(t, ok)
		return step.Unit
	}
	u := adopted(unqueued(t))
	require.Nil(t, u.Spec.MaximumExecutionTimeSeconds)
	require.Nil(t, u.Spec.Priority)
	require.NotContains(t, u.Annotations, v1alpha1.AnnotationJobDefaults)
	require.NotContains(t, u.Labels, v1alpha1.LabelPreemptible)

	resumed := patched(t, created(t, unqueued(t).with(byDefault(&someDefaults))).phase(v1alpha1.PhaseDequeued))
	resumed.Unit = nil
	u = adopted(resumed)
	require.Equal(t, "false", u.Labels[v1alpha1.LabelPreemptible], "somebody deleted its unit")
}

// The controller writes nothing into the templates of a job that it cannot suspend, so its unit must not ask for it.
func TestNoDefaultsForAJobThatIsNeverWritten(t *testing.T) {
	u := created(t, guestRayJob(t, "K8sJobMode").with(byDefault(&someDefaults)).with(podsAre(BoundNone))).Unit
	require.Equal(t, "true", u.Annotations[v1alpha1.AnnotationUnsuspendable])
	require.NotContains(t, u.Labels, v1alpha1.LabelPreemptible)
	require.NotContains(t, u.Annotations, v1alpha1.AnnotationJobDefaults)
}
