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

package cases

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

var storyStart = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func caseNamed(t *testing.T, name string) *Case {
	t.Helper()
	cases := append(checksCases(), reclaimCases()...)
	for i := range cases {
		if cases[i].name == name {
			return &cases[i]
		}
	}
	require.Fail(t, "no such case", name)
	return nil
}

// The jobs, the queues and the checks of the scenario name each other.
func TestChecksScenarioIsWhole(t *testing.T) {
	queues, known := map[string]*v1alpha1.Queue{}, map[string]bool{}
	for _, text := range strings.Split(string(checksScenario), "\n---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
		switch object.GetKind() {
		case "Queue":
			queue := &v1alpha1.Queue{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), queue))
			queues[queue.Name] = queue
		case "AdmissionCheck":
			controller, _, err := unstructured.NestedString(object.Object, "spec", "controllerName")
			require.NoError(t, err)
			require.Equal(t, checksController, controller)
			known[object.GetName()] = true
		}
	}
	all, err := checks().Jobs()
	require.NoError(t, err)
	names, byCase := map[string]bool{}, map[string]int{}
	for _, s := range all {
		names[s.Object.GetName()] = true
		byCase[s.Of.name]++
		queue := queues[s.Object.GetAnnotations()[v1alpha1.QueueNameKey]]
		require.NotNil(t, queue, s.Of.name)
		asked := 0
		for _, c := range queue.Spec.AdmissionChecks {
			require.True(t, known[c.Name], c.Name)
			if c.LabelSelector.MatchLabels[needsLabel] == s.Object.GetLabels()[needsLabel] {
				asked++
			}
		}
		require.Equal(t, s.Of.needs != "", asked == 1, s.Of.name)
	}
	require.Len(t, names, len(all))
	for _, of := range checksCases() {
		require.Equal(t, of.jobs, byCase[of.name])
	}
}

func TestAnswers(t *testing.T) {
	asked := func(check string, attempts int64) *v1alpha1.QueueUnit {
		u := &v1alpha1.QueueUnit{}
		u.Spec.PodSets = []v1alpha1.PodSet{{Name: "main"}}
		u.Status.Attempts = attempts
		u.Status.AdmissionChecks = []v1alpha1.AdmissionCheckState{{
			Name: check, State: admissioncheck.Pending, LastTransitionTime: metav1.NewTime(storyStart),
		}}
		return u
	}
	for _, tc := range []struct {
		check    string
		attempts int64
		after    time.Duration
		state    v1alpha1.CheckState
		again    time.Duration
	}{
		{"approval", 1, 0, "", 8 * time.Second},
		{"approval", 1, 5 * time.Second, "", 3 * time.Second},
		{"approval", 1, 8 * time.Second, admissioncheck.Ready, 0},
		{"budget", 1, 0, admissioncheck.Retry, retryAfter},
		{"budget", retries, 0, admissioncheck.Retry, retryAfter},
		{"budget", retries + 1, 0, admissioncheck.Ready, 0},
		{"licence", 1, 0, admissioncheck.Rejected, 0},
		{"sign-off", 1, time.Hour, "", 0},
		{"sign-off", 2, 0, admissioncheck.Ready, 0},
		{"other", 1, 0, "", 0},
	} {
		a := answerOf(storyStart.Add(tc.after), asked(tc.check, tc.attempts), tc.check)
		require.Equal(t, tc.state, a.State, "%s, attempt %d, after %s", tc.check, tc.attempts, tc.after)
		require.Equal(t, tc.again, a.RequeueAfter)
		require.NotEmpty(t, a.Message)
		require.Equal(t, tc.check == "budget" && tc.state == admissioncheck.Ready, len(a.PodSetUpdates) == 1)
	}
	answered := asked("approval", 1)
	answered.Status.AdmissionChecks[0].State = admissioncheck.Ready
	require.Equal(t, admissioncheck.Ready, answerOf(storyStart, answered, "approval").State, "it stays so")
}

// told tells the story of one job of a case, a second for each step.
type told struct {
	t       *testing.T
	stories *Stories
	unit    *v1alpha1.QueueUnit
	now     time.Time
}

func tell(t *testing.T, of *Case) *told {
	t.Helper()
	s := &told{t: t, stories: checks().Stories(), now: storyStart, unit: &v1alpha1.QueueUnit{}}
	s.stories.Submitted("job", "checks/j", of, storyStart)
	s.unit.UID, s.unit.Namespace, s.unit.Name = "unit", "checks", "j"
	s.unit.Spec.ConsumerRef = &corev1.ObjectReference{UID: "job"}
	return s
}

func (s *told) take(object any) *told {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	change := observer.Change{Object: object}
	e, _, err := change.Event()
	require.NoError(s.t, err)
	s.stories.Take(s.now, e, object)
	return s
}

// phase moves the unit; reason is that of an eviction.
func (s *told) phase(phase v1alpha1.QueueUnitPhase, reason string) *told {
	s.t.Helper()
	s.unit = s.unit.DeepCopy()
	s.unit.Status.Phase, s.unit.Status.Conditions = phase, nil
	if reason != "" {
		s.unit.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionEvicted, Status: metav1.ConditionTrue, Reason: reason, Message: "so it was",
		}}
	}
	if phase == v1alpha1.PhaseReserved {
		s.unit.Status.Attempts++
	}
	return s.take(s.unit)
}

func (s *told) inactive(reason string) *told {
	s.t.Helper()
	s.unit = s.unit.DeepCopy()
	no := false
	s.unit.Spec.Active = &no
	s.unit.Status.Conditions = append(s.unit.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionDeactivationTarget, Status: metav1.ConditionTrue, Reason: reason, Message: "it says why",
	})
	return s.take(s.unit)
}

func (s *told) bound(name string, labels map[string]string) *told {
	s.t.Helper()
	return s.pod(name, corev1.PodRunning, labels)
}

func (s *told) pod(name string, phase corev1.PodPhase, labels map[string]string) *told {
	s.t.Helper()
	pod := &corev1.Pod{}
	pod.UID, pod.Labels, pod.OwnerReferences = types.UID(name), labels, []metav1.OwnerReference{
		{UID: "job", Controller: new(bool)},
	}
	*pod.OwnerReferences[0].Controller = true
	pod.Spec.NodeName, pod.Status.Phase = "node", phase
	return s.take(pod)
}

func (s *told) complete() *told {
	s.t.Helper()
	job := &batchv1.Job{}
	job.UID = "job"
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	return s.phase(v1alpha1.PhaseSucceed, "").take(job)
}

func (s *told) missing() string {
	story := s.stories.of("job")
	return story.of.missing(story)
}

func TestPromisesOfTheCases(t *testing.T) {
	const (
		enqueued, reserved = v1alpha1.PhaseEnqueued, v1alpha1.PhaseReserved
		dequeued, backoff  = v1alpha1.PhaseDequeued, v1alpha1.PhaseTimeoutBackoff
	)
	paid := map[string]string{paidLabel: paidBy}
	ran := func(s *told) *told { return s.phase(dequeued, "").bound("p", paid).complete() }
	for _, tc := range []struct {
		name, of, missing string
		tell              func(*told)
	}{
		{"ran", "no check", "quota was reserved for it 0 times", func(s *told) { ran(s) }},
		{"waits", "no check", "it is Enqueued: ", func(s *told) { s.phase(enqueued, "") }},
		{"early", "no check", "1 pods were on nodes before it was released", func(s *told) {
			ran(s.phase(enqueued, "").bound("early", nil).phase(reserved, ""))
		}},
		{"bound while reserved", "retried check", "1 pods lack what the check wrote", func(s *told) {
			ran(s.phase(reserved, "").bound("early", nil))
		}},
		{"too fast", "slow check", "its quota was reserved for 1.0s only", func(s *told) { ran(s.phase(reserved, "")) }},
		{"slow", "slow check", "", func(s *told) {
			s.phase(reserved, "")
			s.now = s.now.Add(8 * time.Second)
			ran(s)
		}},
		{"retried", "retried check", "", func(s *told) {
			ran(s.phase(reserved, "").phase(backoff, "CheckRetry").phase(reserved, "").phase(backoff, "CheckRetry").
				phase(enqueued, "").phase(reserved, ""))
		}},
		{"retried once", "retried check", "it lost its quota for CheckRetry, and not for CheckRetry, CheckRetry",
			func(s *told) { ran(s.phase(reserved, "").phase(backoff, "CheckRetry").phase(reserved, "")) }},
		{"rejected", "rejected", "", func(s *told) {
			s.phase(reserved, "").phase(enqueued, "CheckRejected").inactive("CheckRejected")
		}},
		{"rejected and run", "rejected", "1 of its pods were on nodes", func(s *told) {
			s.phase(reserved, "").bound("p", nil).phase(enqueued, "CheckRejected").inactive("CheckRejected")
		}},
		{"not rejected", "rejected", "it is Succeed: ", func(s *told) { s.phase(reserved, "").complete() }},
		{"timed out", "no answer in time", "", func(s *told) {
			ran(s.phase(reserved, "").phase(backoff, "CheckTimeout").phase(reserved, ""))
		}},
		{"given up", "no answer in time", "it did not run: RequeueLimitReached", func(s *told) {
			s.phase(reserved, "").phase(backoff, "CheckTimeout").inactive("RequeueLimitReached")
		}},
		{"not in time", "no node fits", "it lost its quota for nothing, and not for Unschedulable",
			func(s *told) { ran(s.phase(reserved, "")) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := tell(t, caseNamed(t, tc.of))
			tc.tell(s)
			require.Equal(t, tc.missing, s.missing())
		})
	}
}

// A job that is too large runs with exactly as many pods at once as fit.
func TestPromiseOfTheJobThatIsTooLarge(t *testing.T) {
	run := func(granted int64, atOnce int) string {
		s := tell(t, caseNamed(t, "too large"))
		s.unit.Status.Admissions = []v1alpha1.Admission{{Name: "main", Replicas: granted}}
		s.unit.Status.Attempts = 1
		s.phase(v1alpha1.PhaseDequeued, "")
		for i := range largePods {
			s.pod(strconv.Itoa(i), corev1.PodRunning, nil)
			if first := i + 1 - atOnce; first >= 0 {
				s.pod(strconv.Itoa(first), corev1.PodSucceeded, nil)
			}
		}
		return s.complete().missing()
	}
	require.Empty(t, run(smallRoom, smallRoom))
	require.Empty(t, run(smallRoom, 1))
	require.Equal(t, "it was admitted with 6 pods, and had 4 at once", run(largePods, smallRoom))
	require.Equal(t, "it was admitted with 4 pods, and had 5 at once", run(smallRoom, 5))
}

func TestStoriesInTheTables(t *testing.T) {
	s := tell(t, caseNamed(t, "no node fits"))
	require.False(t, s.stories.NowDue())
	s.phase(v1alpha1.PhaseDequeued, "").phase(v1alpha1.PhaseTimeoutBackoff, "Unschedulable")
	require.False(t, s.stories.NowDue(), "the other job of the case has not lost its quota yet")
	all := s.stories.cases
	s.stories.cases = nil // as if it had no other
	require.True(t, s.stories.NowDue())
	require.False(t, s.stories.NowDue(), "once")
	s.stories.cases = all
	require.Zero(t, s.stories.Ended())
	text := strings.Join(Lines(screen.Screen{}, s.stories.Counts()), "\n")
	require.Regexp(t, `no node fits +0 +0 +0 +1 +0  j: so it was`, text)

	s.phase(v1alpha1.PhaseDequeued, "").complete()
	require.Equal(t, 1, s.stories.Ended())
	v := s.stories.Verdict(true)
	require.EqualError(t, v.Err(), "7 of 7 cases without what they promise")
	text = strings.Join(v.Lines(screen.Screen{}), "\n")
	require.Contains(t, text, "Unschedulable 1 times, back-off of up to 1.0s, 1 of 1 ran to their end")
	require.Contains(t, text, "BROKEN: it never runs")
	require.Contains(t, text, "0 jobs of 2 were submitted")
}
