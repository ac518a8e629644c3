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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/notice"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownerhold"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// taken is a job that runs, and whose unit lost its quota at the epoch. It asks for a grace of a minute.
func taken(t testing.TB) *scene {
	return queued(t).resumedByHand().started().ready(2).with(jobSays(v1alpha1.AnnotationGrace, "60")).
		with(evictedFor("Reclaimed")).with(mostGrace(time.Hour))
}

func evictedFor(reason string) func(*Situation) {
	return func(s *Situation) {
		unitstatus.SetCondition(s.Unit, v1alpha1.ConditionEvicted, metav1.ConditionTrue, reason,
			"quota \"b\" takes it back", epoch)
	}
}

func jobSays(key, value string) func(*Situation) {
	return func(s *Situation) { jobs.EditOf(s.Kind, s.Job.Object).Annotate(key, value) }
}

func mostGrace(d time.Duration) func(*Situation) { return func(s *Situation) { s.MostGrace = d } }

func later(d time.Duration) func(*Situation) {
	return func(s *Situation) { s.Now = metav1.NewTime(epoch.Add(d)) }
}

// pods that run: told when they are suspended, and saved, each in seconds from the epoch; none is never.
func podsRun(pods ...[2]time.Duration) func(*Situation) {
	return func(s *Situation) {
		s.Running = []notice.Pod{}
		for i, at := range pods {
			pod := notice.Pod{Name: string(rune('a' + i)), ResourceVersion: "1"}
			if at[0] != none {
				pod.SuspendAt = epoch.Add(at[0])
			}
			if at[1] != none {
				pod.Checkpointed = epoch.Add(at[1])
			}
			s.Running = append(s.Running, pod)
		}
	}
}

const none = time.Duration(-1 << 62)

func TestNotice(t *testing.T) {
	const suspended, runsOn = "job suspend=true [Evicted]", "tell [WillSuspend]; later"
	minute, hour := time.Minute, time.Hour
	told, untold := [2]time.Duration{minute, none}, [2]time.Duration{none, none}
	saved := [2]time.Duration{minute, 0}
	for name, tc := range map[string]struct {
		scene *scene
		want  string
	}{
		"no look at pods without a grace": {taken(t).with(jobSays(v1alpha1.AnnotationGrace, "")), suspended},
		"a queue without a grace":         {taken(t).with(mostGrace(0)), suspended},
		"a grace that is no number":       {taken(t).with(jobSays(v1alpha1.AnnotationGrace, "1m")), suspended},
		"a grace below zero":              {taken(t).with(jobSays(v1alpha1.AnnotationGrace, "-60")), suspended},
		"a grace beyond all numbers":      {taken(t).with(jobSays(v1alpha1.AnnotationGrace, "99999999999")), suspended},
		"the unit is read before":         {taken(t).with(func(s *Situation) { s.FreshUnit = false }), "read unit"},
		"pods are looked at":              {taken(t), "look at running pods"},
		"nothing runs":                    {taken(t).with(podsRun()), suspended},
		"a pod is told":                   {taken(t).with(podsRun(told, untold)), "tell [WillSuspend]; notify b; later"},
		"all are told":                    {taken(t).with(podsRun(told, told)), runsOn},
		"one has acknowledged":            {taken(t).with(podsRun(told, saved)), runsOn},
		"all have acknowledged":           {taken(t).with(podsRun(saved, saved)), suspended},
		"one that was not told":           {taken(t).with(podsRun(saved, [2]time.Duration{none, 0})), suspended},
		"a checkpoint from before": {taken(t).with(podsRun([2]time.Duration{minute, -time.Second})),
			runsOn},
		"a checkpoint in the future": {taken(t).with(podsRun([2]time.Duration{minute, hour})), suspended},
		"the job acknowledges": {taken(t).with(jobSays(v1alpha1.AnnotationCheckpointed, "2026-01-02T03:04:05Z")),
			suspended},
		"the job did before": {taken(t).with(jobSays(v1alpha1.AnnotationCheckpointed, "2026-01-02T03:04:04Z")).
			with(podsRun(told)), runsOn},
		"just before the end": {taken(t).with(podsRun(told)).with(later(minute - time.Second)), runsOn},
		"at the end":          {taken(t).with(podsRun(told)).with(later(minute)), suspended},
		"the queue bounds it": {taken(t).with(mostGrace(minute / 2)).with(later(minute / 2)), suspended},
		"the annotation is raised later": {taken(t).with(jobSays(v1alpha1.AnnotationGrace, "3600")).
			with(mostGrace(minute)).with(later(minute)), suspended},
		"raised within the bound: told again": {taken(t).with(jobSays(v1alpha1.AnnotationGrace, "90")).
			with(podsRun(told)), "tell [WillSuspend]; notify a; later"},
		"of higher priority in the queue": {taken(t).with(evictedFor("PreemptedInQueue")).with(podsRun(told)), runsOn},
		"a drain":                         {taken(t).with(evictedFor("QueueDrained")).with(podsRun(told)), runsOn},
		"a time-out":                      {taken(t).with(evictedFor("PodsReadyTimeout")), suspended},
		"resumed by hand since":           {taken(t).with(marked), suspended},
		"labels that no queue manages":    {taken(t).with(unmanagedNow).with(podsRun(told)), runsOn},
		"without a label after the end":   {taken(t).with(unmanagedNow).with(later(minute)), suspended},
		"without a label, suspended": {taken(t).with(unmanagedNow).job(true, "spec", "suspend").with(marked),
			"job suspend=false [Released]; delete unit"},
		"without a label, on hold": {taken(t).with(unmanagedNow).with(evictedFor("HeldByOwner")), suspended},
		"without a label, after its time": {taken(t).with(unmanagedNow).with(evictedFor("ExecutionTimeExceeded")),
			suspended},
		"without a label, not evicted":       {queued(t).resumedByHand().with(unmanagedNow), "delete unit"},
		"the unit was deleted":               {taken(t).with(lostUnit), "job suspend=true [Suspended]"},
		"without a label, and the unit too":  {taken(t).with(unmanagedNow).with(lostUnit), "job suspend=true [Suspended]"},
		"of a kind that cannot be suspended": {deployment(t).with(lostUnit), "look at pods"},
		"the job ends": {
			taken(t).with(podsRun(told)).condition("Complete"), "status Succeed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, describe(tc.scene.decide()))
		})
	}
}

func lostUnit(s *Situation) { s.Unit, s.LostUnit = nil, true }

func unmanagedNow(s *Situation) { s.Managed, s.FreshJob = false, true }

func TestWhatPodsAreTold(t *testing.T) {
	d := taken(t).with(podsRun([2]time.Duration{none, none}, [2]time.Duration{none, none})).decide()
	require.Equal(t, `the job will be suspended at 2026-01-02T03:05:05Z unless it acknowledges before by the annotation `+
		`koord-queue/checkpointed: quota "b" takes it back`, d.Do[0].(Tell).Event.Note)
	step := d.Do[1].(Notify)
	require.Len(t, step.Pods, 2)
	require.Equal(t, 4, step.Most)
	patch, err := step.Notice.Patch(step.Pods[0])
	require.NoError(t, err)
	pod := metav1.PartialObjectMetadata{}
	require.NoError(t, json.Unmarshal(patch, &pod))
	annotations := pod.Annotations
	require.Equal(t, "1", pod.ResourceVersion)
	require.Equal(t, "2026-01-02T03:05:05Z", annotations[v1alpha1.AnnotationSuspendAt])
	soft, err := extension.GetSoftEvictionSpec(annotations)
	require.NoError(t, err)
	require.True(t, soft.Timestamp.Equal(&epoch))
	soft.Timestamp = nil
	require.Equal(t, &extension.SoftEvictionSpec{Initiator: "jobqueue-controller", Reason: "Reclaimed"}, soft)
}

// The next look comes later for more pods, and not after the end of the grace.
func TestPaceOfNotices(t *testing.T) {
	one, many := [][2]time.Duration{{time.Minute, none}}, make([][2]time.Duration, 10_000)
	require.Equal(t, noticePause+noticePausePerPod, taken(t).with(podsRun(one...)).decide().After)
	require.Equal(t, time.Second, taken(t).with(podsRun(one...)).with(later(59*time.Second)).decide().After)
	for i := range many {
		many[i] = one[0]
	}
	require.Equal(t, 10*time.Second, taken(t).with(podsRun(many...)).decide().After)
}

// A job that was admitted again while it ran on: its pods are those that have a notice.
func TestANoticeIsWithdrawn(t *testing.T) {
	again := func() *scene {
		return taken(t).phase(v1alpha1.PhaseDequeued).resumedAs(1, 2).with(podsRun([2]time.Duration{time.Minute, none},
			[2]time.Duration{none, none}))
	}
	require.Equal(t, "look at running pods", describe(again().with(func(s *Situation) { s.Running = nil }).decide()))
	require.Equal(t, "read unit", describe(again().with(func(s *Situation) { s.FreshUnit = false }).decide()))
	s := again()
	d := s.decide()
	require.Equal(t, "withdraw a; job suspend=false", describe(d))
	s.Job = d.Do[1].(PatchJob).After
	require.True(t, ownerhold.Resumed(s.Job, s.Unit))
	require.NotContains(t, describe(s.decide()), "look", "this is done once")
	require.Equal(t, "job suspend=false", describe(again().with(podsRun()).decide()))
	require.NotContains(t, describe(again().resumedAs(2, 2).decide()), "withdraw", "its pods are new")
	adopted := func(attempts int64) *scene {
		return again().with(jobSays(v1alpha1.AnnotationResumed, "")).with(func(s *Situation) {
			s.Unit.Status.Attempts = attempts
		})
	}
	require.Contains(t, describe(adopted(2).decide()), "withdraw", "it was adopted, evicted, and admitted again")
	require.NotContains(t, describe(adopted(1).decide()), "withdraw", "it was never evicted")
}
