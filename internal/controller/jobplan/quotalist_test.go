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
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
)

// listing has a job list quotas, as its owner may: it names quota a.
func listing(t *testing.T, names string) *scene {
	s := queued(t).job(names, "metadata", "annotations", v1alpha1.AnnotationQuotaNames)
	return s.unit(func(u *v1alpha1.QueueUnit) {
		of := jobunit.Of(s.Job, demanded(s.Job, s.Terms.Creation), nil)
		u.Spec, u.Annotations = of.Spec, of.Annotations
	})
}

// admittedIn is what the scheduler writes of the quota of an admission.
func admittedIn(name, first string, selector map[string]string) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) {
		u.Status.QuotaChoice = &v1alpha1.QuotaChoice{Name: name, First: first, NodeSelector: selector}
	}
}

// Pods of a job that was admitted in another quota of its list than the first bear its label, and are kept to its
// nodes. Both go with the next suspension.
func TestTheQuotaOfAnAdmissionInPods(t *testing.T) {
	h800 := map[string]string{"card": "h800"}
	s := listing(t, "a,h800")
	require.Equal(t, []string{"a", "h800"}, s.Unit.Spec.Quotas)
	require.Equal(t, "a", s.Unit.Labels[v1alpha1.LabelQuotaName])
	s.phase(v1alpha1.PhaseDequeued).unit(admittedIn("h800", "a", h800))
	before := s.Job.Object.DeepCopy()
	step, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	require.Nil(t, step.Plain)
	s.Job = step.After
	require.Equal(t, h800, s.template(t).Spec.NodeSelector)
	require.Equal(t, "h800", s.template(t).Labels[v1alpha1.LabelQuotaName])
	require.Empty(t, describe(s.decide()), "its unit asks for what it did")

	s.job(true, "spec", "suspend").with(marked).phase(v1alpha1.PhaseEnqueued)
	step, ok = s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s.Job = step.After
	require.Equal(t, before.Object["spec"], s.Job.Object.Object["spec"])
	require.Equal(t, look(LookAtJob), s.decide())
	s.FreshJob = true
	status, ok := s.decide().Do[0].(PatchUnitStatus)
	require.True(t, ok)
	require.Nil(t, status.After.Status.QuotaChoice)
	s.Unit = status.After
	require.Empty(t, describe(s.decide()))
}

// The first quota may have nodes of its own, also for jobs that list none. With the gate of checks off these are
// written all the same.
func TestNodesOfTheFirstQuotaInPods(t *testing.T) {
	s := queued(t).phase(v1alpha1.PhaseDequeued).unit(admittedIn("a", "a", map[string]string{"card": "a100"}))
	s.Options.ChecksOff = true
	step, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s.Job = step.After
	require.Equal(t, map[string]string{"card": "a100"}, s.template(t).Spec.NodeSelector)
	require.Equal(t, "a", s.template(t).Labels[v1alpha1.LabelQuotaName])
}

// Without nodes of its own a quota is a label alone, and that goes as well.
func TestAQuotaWithoutNodesInPods(t *testing.T) {
	s := listing(t, "a,h800").phase(v1alpha1.PhaseDequeued).unit(admittedIn("h800", "a", nil))
	step, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s.Job = step.After
	require.Equal(t, "h800", s.template(t).Labels[v1alpha1.LabelQuotaName])
	s.job(true, "spec", "suspend").with(marked).phase(v1alpha1.PhaseEnqueued).
		unit(func(u *v1alpha1.QueueUnit) { u.Status.QuotaChoice = nil })
	step, ok = s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	s.Job = step.After
	require.Empty(t, s.template(t).Labels[v1alpha1.LabelQuotaName])
}

// A list has to begin with the quota of the job, and its pods have to be free to get the label of the others.
func TestListsThatCannotBe(t *testing.T) {
	for names, why := range map[string]string{
		"b,a": "begins with", "a,b,a": "twice", "a,b c": "no name", "a,b,c,d,e,f,g,h,i": "at most 8",
	} {
		s := queued(t).job(names, "metadata", "annotations", v1alpha1.AnnotationQuotaNames)
		d := demanded(s.Job, s.Terms.Creation)
		require.NotNil(t, d.Problem, names)
		require.Equal(t, unitcondition.ReasonQuotaMismatch, d.Problem.Reason)
		require.Contains(t, d.Problem.Message, why, names)
	}
	s := queued(t).job("a", "spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName).
		job("a,b", "metadata", "annotations", v1alpha1.AnnotationQuotaNames)
	require.Contains(t, demanded(s.Job, s.Terms.Creation).Problem.Message, "a pod template names a quota")
	s.job("a", "metadata", "annotations", v1alpha1.AnnotationQuotaNames)
	require.Nil(t, demanded(s.Job, s.Terms.Creation).Problem)
}
