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
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/stall"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
)

var gatedPods = stall.Finding{Reason: unitcondition.ReasonPodsGated, Message: "gated"}

// releasedFor is a job that was admitted so long ago and has no pod.
func releasedFor(t testing.TB, ago time.Duration) *scene {
	s := queued(t).resumedByHand().started().waiting(2).phase(v1alpha1.PhaseDequeued)
	at := metav1.NewTime(s.Now.Add(-ago))
	s.Unit.Status.LastAllocateTime, s.Bound = &at, BoundSome // its pods are charged where they should be
	return s
}

func (s *scene) found(f stall.Finding) *scene {
	s.Stall = &f
	return s
}

func (s *scene) looked(ago time.Duration) *scene {
	s.StallSeen = s.Now.Add(-ago)
	return s
}

func (s *scene) says(reason, message string) *scene {
	unitstatus.SetCondition(s.Unit, v1alpha1.ConditionPodsReady, metav1.ConditionFalse, reason, message, epoch)
	return s
}

// An admitted job that does not run says why within a minute.
func TestAStalledJobSaysWhy(t *testing.T) {
	const minute = time.Minute
	lost := "pods of the job were ready and are not any more: 1 are"
	for name, tc := range map[string]struct {
		scene   *scene
		want    string
		reason  string
		message string
	}{
		"just admitted":     {releasedFor(t, stall.Patience-1), "later", "", ""},
		"nobody has looked": {releasedFor(t, stall.Patience), "look at stall", "", ""},
		"found": {releasedFor(t, stall.Patience).found(gatedPods), "status Dequeued [PodsGated]",
			"PodsGated", "gated"},
		"nothing is found":    {releasedFor(t, minute).found(stall.Finding{}), "later", "", ""},
		"looked a moment ago": {releasedFor(t, 2*minute).looked(minute - 1), "later", "PodsGated", ""},
		"looked a minute ago": {releasedFor(t, 2*minute).looked(minute), "look at stall", "", ""},
		"looked at in an earlier run": {
			releasedFor(t, minute).looked(minute), "look at stall", "", ""},
		"it says so": {releasedFor(t, minute).says("PodsGated", "gated").found(gatedPods), "later", "PodsGated", "gated"},
		"other words": {releasedFor(t, minute).says("PodsGated", "of two").found(gatedPods), "status Dequeued",
			"PodsGated", "gated"},
		"an eviction said something": {releasedFor(t, minute).says("IdleReservation", "no pod").found(gatedPods),
			"status Dequeued [PodsGated]", "PodsGated", "gated"},
		"over": {releasedFor(t, minute).says("PodsGated", "gated").found(stall.Finding{}), "status Dequeued",
			"PodsStarting", stall.SomeReady},
		"pods were ready": {releasedFor(t, minute).says("PodsLost", lost).found(gatedPods), "status Dequeued [PodsGated]",
			"PodsLost", lost + "; PodsGated: gated"},
		"pods were ready, told": {releasedFor(t, minute).says("PodsLost", lost+"; PodsGated: gated").found(gatedPods),
			"later", "PodsLost", lost + "; PodsGated: gated"},
		"half of it runs": {releasedFor(t, minute).ready(1).phase(v1alpha1.PhaseRunning).
			says("PodsStarting", stall.SomeReady).
			unit(func(u *v1alpha1.QueueUnit) { u.Status.Admissions[0].Running = 1 }).found(gatedPods),
			"status Running [PodsGated]", "PodsGated", "gated"},
	} {
		t.Run(name, func(t *testing.T) {
			d := tc.scene.decide()
			require.Equal(t, tc.want, describe(d))
			if len(d.Do) == 0 {
				return
			}
			step, ok := d.Do[0].(PatchUnitStatus)
			require.True(t, ok)
			require.NoError(t, step.Lawful())
			c := meta.FindStatusCondition(step.After.Status.Conditions, v1alpha1.ConditionPodsReady)
			require.Equal(t, []string{tc.reason, tc.message}, []string{c.Reason, c.Message})
			require.Equal(t, metav1.ConditionFalse, c.Status)
		})
	}
}

// A job is looked at within a minute of its admission, and ever more rarely.
func TestLooksBecomeRarer(t *testing.T) {
	s := releasedFor(t, 0)
	admitted, looks := s.Now.Time, 0
	for ; s.Now.Sub(admitted) < 24*time.Hour; looks++ {
		s.Now = metav1.NewTime(stall.Due(admitted, s.StallSeen))
		require.Equal(t, "look at stall", describe(s.decide()))
		if looks == 0 {
			require.LessOrEqual(t, s.Now.Sub(admitted), time.Minute)
		} else {
			require.GreaterOrEqual(t, s.Now.Sub(s.StallSeen), stall.LeastInterval)
		}
		s.StallSeen = s.Now.Time
	}
	require.Less(t, looks, 160, "a day has 144 times ten minutes")
}

// The time of the condition is that of the pods, also where the job did not run for a while.
func TestAStallIsNoStart(t *testing.T) {
	s := releasedFor(t, time.Hour).says("PodsPending", "no node").ready(1).runsFor(RunningDelay)
	step, ok := s.decide().Do[0].(PatchUnitStatus)
	require.True(t, ok)
	c := meta.FindStatusCondition(step.After.Status.Conditions, v1alpha1.ConditionPodsReady)
	require.Equal(t, v1alpha1.ReasonPodsStarting, c.Reason)
	require.Equal(t, s.RunningSince.Time, c.LastTransitionTime.Time)
}

// A refusal that has other words each time is written once in a while: each write has the job looked at again, and
// resumed again.
func TestARefusalOfManyWordsIsWrittenOnceInAWhile(t *testing.T) {
	s := queued(t).phase(v1alpha1.PhaseDequeued)
	status, ok := NotResumed(s.Unit, errors.New("from port 1"), s.Now)[1].(PatchUnitStatus)
	require.True(t, ok)
	later := metav1.NewTime(s.Now.Add(stall.LeastInterval - time.Second))
	require.Len(t, NotResumed(status.After, errors.New("from port 2"), later), 1, "the event alone")
	later = metav1.NewTime(s.Now.Add(stall.LeastInterval))
	require.Len(t, NotResumed(status.After, errors.New("from port 3"), later), 2)
}
