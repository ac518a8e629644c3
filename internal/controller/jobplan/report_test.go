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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/podreport"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
)

// counted are so many ready pods of each pod set.
func counted(all bool, counts ...int64) podreport.Ready {
	return podreport.Ready{Counts: counts, All: all}
}

// told is a job whose pods were counted some time ago.
func (s *scene) told(pods podreport.Ready, ago time.Duration) *scene {
	s.Unit.Status.Conditions = nil
	pods.SayIn(s.Unit, metav1.NewTime(s.Now.Add(-time.Hour)))
	last := metav1.NewTime(s.Now.Add(-ago))
	s.Unit.Status.LastUpdateTime = &last
	return s
}

func TestReports(t *testing.T) {
	for name, tc := range map[string]struct {
		scene  *scene
		want   string
		reason string
		count  int64
	}{
		"all are ready, as was told": {
			running(t).told(counted(true, 2), time.Hour), "", v1alpha1.ReasonPodsRunning, 2},
		"one is not any more": {running(t).ready(1).told(counted(true, 2), ReportInterval), "status Running",
			v1alpha1.ReasonPodsLost, 1},
		"not again so soon": {
			running(t).ready(1).told(counted(true, 2), ReportInterval-time.Second), "later", "", 0},
		"not all yet, as was told": {running(t).ready(1).told(counted(false, 1), time.Hour), "",
			v1alpha1.ReasonPodsStarting, 1},
		"no more at all": {running(t).ready(0).told(counted(false, 1), time.Hour), "report",
			v1alpha1.ReasonPodsStarting, 0},
		"all of them now": {running(t).told(counted(false, 1), time.Hour), "status Running",
			v1alpha1.ReasonPodsRunning, 2},
		"one is ready, one has ended well": {running(t).ready(1).job(int64(1), "status", "succeeded").
			told(counted(true, 2), time.Hour), "report", v1alpha1.ReasonPodsRunning, 1},
		"the clock was ahead": {running(t).ready(1).told(counted(true, 2), -time.Hour), "later", "", 0},
		"pods that it waits for are not missed": {running(t).job(int64(5), "spec", "parallelism").
			job(int64(9), "spec", "completions").unit(func(u *v1alpha1.QueueUnit) { u.Spec.PodSets[0].Count = 5 }).
			told(counted(true, 2), time.Hour).with(asksForMore), "", v1alpha1.ReasonPodsRunning, 2},
		"being suspended": {running(t).ready(0).condition("Suspended").told(counted(true, 2), time.Hour), "",
			v1alpha1.ReasonPodsRunning, 2},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, describe(tc.scene.decide()))
			actions := tc.scene.decide().Do
			if tc.reason == "" {
				return
			}
			u := tc.scene.Unit
			switch a := append(actions, nil)[0].(type) {
			case PatchUnitStatus:
				u = a.After
			case Report:
				u = a.After
			}
			c := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionPodsReady)
			require.Equal(t, tc.reason, c.Reason)
			require.Equal(t, tc.reason == v1alpha1.ReasonPodsRunning, c.Status == metav1.ConditionTrue)
			require.Equal(t, tc.count, u.Status.Admissions[0].Running)
		})
	}
}

// Each admission tells of the pods of its own pod set.
func TestReportsByPodSet(t *testing.T) {
	s := sceneOf(t, "PyTorchJob.v1.kubeflow.org", `
spec:
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
    Worker: {replicas: 3, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
status:
  startTime: "2026-01-01T00:00:00Z"
  replicaStatuses: {Master: {}, Worker: {active: 2}}
`).withUnit(v1alpha1.PhaseRunning)
	s.Unit.Status.Admissions = []v1alpha1.Admission{{Name: "master", Replicas: 1}, {Name: "worker", Replicas: 3}}
	last := metav1.NewTime(s.Now.Add(-ReportInterval))
	s.Unit.Status.LastUpdateTime = &last
	actions := s.decide().Do
	step, ok := actions[0].(PatchUnitStatus)
	require.True(t, ok, describe(s.decide()))
	require.Zero(t, step.After.Status.Admissions[0].Running)
	require.EqualValues(t, 2, step.After.Status.Admissions[1].Running)
	require.False(t, podreport.AllReady(step.After))
}

// asksForMore has the unit ask for what the job asks for.
func asksForMore(o *Situation) {
	d := demanded(o.Job, o.Terms.Creation)
	jobunit.CorrectRequest(o.Unit, d.Request)
}

func TestACountOfTheSchedulerIsKeptUntilAllAreReady(t *testing.T) {
	s := running(t).ready(1).told(counted(false, 1), time.Hour)
	unitstatus.SetCondition(s.Unit, v1alpha1.ConditionPodsReady, metav1.ConditionFalse, "IdleReservation", "no pod", epoch)
	require.Empty(t, s.decide().Do)
	step, ok := s.ready(2).decide().Do[0].(PatchUnitStatus)
	require.True(t, ok)
	require.True(t, podreport.AllReady(step.After))
}

// The time of a job counts from when all of its pods were ready first: that they are lost and ready again changes
// nothing.
func TestTheTimeOfAJobBeginsOnceItsPodsAreReady(t *testing.T) {
	after := func(s *scene) *v1alpha1.QueueUnit {
		step, ok := s.decide().Do[0].(PatchUnitStatus)
		require.True(t, ok)
		return step.After
	}
	s := running(t)
	s.Unit.Status.ExecutionStartTime = nil
	s.told(counted(false, 1), time.Hour)
	require.Nil(t, s.Unit.Status.ExecutionStartTime, "one of two is ready")
	u := after(s)
	began := u.Status.ExecutionStartTime
	require.Equal(t, &s.Now, began)
	require.Equal(t, *began, meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionPodsReady).LastTransitionTime)

	s.Unit, s.Now = u, metav1.NewTime(s.Now.Add(time.Hour))
	u = after(s.ready(1))
	require.False(t, podreport.AllReady(u))
	require.Equal(t, began, u.Status.ExecutionStartTime)
	s.Unit, s.Now = u, metav1.NewTime(s.Now.Add(time.Hour))
	u = after(s.ready(2))
	require.True(t, podreport.AllReady(u))
	require.Equal(t, began, u.Status.ExecutionStartTime)
}

// A unit that says only that its pods are ready is not written for that, and keeps the time when they are lost.
func TestTheTimeOfAJobThatRanBeforeGoesOn(t *testing.T) {
	s := running(t).told(counted(true, 2), time.Hour)
	ready := meta.FindStatusCondition(s.Unit.Status.Conditions, v1alpha1.ConditionPodsReady).LastTransitionTime
	s.Unit.Status.ExecutionStartTime = nil
	require.Empty(t, s.decide().Do)
	step, ok := s.ready(1).decide().Do[0].(PatchUnitStatus)
	require.True(t, ok)
	require.Equal(t, &ready, step.After.Status.ExecutionStartTime)
}

func TestTheCountOfTimeoutsBeginsAnewOnceAllPodsAreReady(t *testing.T) {
	two := int32(2)
	s := queued(t).resumedByHand().started().ready(1).phase(v1alpha1.PhaseDequeued).runsFor(RunningDelay)
	s.Unit.Status.RequeueState = &v1alpha1.RequeueState{Count: &two}
	step, ok := s.decide().Do[0].(PatchUnitStatus)
	require.True(t, ok)
	require.NotNil(t, step.After.Status.RequeueState, "some of its pods run: it may yet time out")
	step, ok = s.ready(2).decide().Do[0].(PatchUnitStatus)
	require.True(t, ok)
	require.Nil(t, step.After.Status.RequeueState)
}

// jobSet has two replicas of two pods, of which so many have ended well.
func jobSet(t testing.TB, suspended bool, succeeded int64) *scene {
	s := sceneOf(t, "JobSet.v1alpha2.jobset.x-k8s.io", `
spec:
  replicatedJobs:
  - name: node
    replicas: 2
    template:
      spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: c,
	resources: {requests: {cpu: 500m}}}]}}}
`).job(suspended, "spec", "suspend")
	active := max(2-succeeded, 0)
	if suspended {
		active = 0
	}
	return s.job([]any{map[string]any{
		"name": "node", "ready": active, "active": active, "succeeded": succeeded, "failed": int64(0),
		"suspended": int64(0),
	}}, "status", "replicatedJobsStatus")
}

// admittedFor is a unit that holds so much.
func admittedFor(pods int64, cpu string) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) {
		u.Status.Admissions = []v1alpha1.Admission{{
			Name: "node", Replicas: pods, Resources: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
		}}
	}
}

func reclaimable(n int32) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) {
		u.Status.ReclaimablePods = []v1alpha1.ReclaimablePod{{Name: "node", Count: n}}
	}
}

// Quota of pods that succeeded for good is given back, and requested again if the job starts again.
func TestReclaimablePods(t *testing.T) {
	ranFor := func(s *scene, ago time.Duration) *scene {
		last := metav1.NewTime(s.Now.Add(-ago))
		s.Unit.Status.LastUpdateTime = &last
		return s
	}
	on := v1alpha1.PhaseRunning
	for name, tc := range map[string]struct {
		scene *scene
		want  string
		count int32
	}{
		"a replica has ended well": {ranFor(jobSet(t, false, 1).withUnit(on), reclaimInterval), "status Running", 2},
		"not so soon":              {ranFor(jobSet(t, false, 1).withUnit(on), reclaimInterval-time.Second), "later", 0},
		"it starts anew": {ranFor(jobSet(t, false, 0).withUnit(on).unit(reclaimable(2)), reclaimInterval),
			"status Running", 0},
		"more than there are":   {ranFor(jobSet(t, false, 7).withUnit(on), reclaimInterval), "status Running", 4},
		"it waits":              {jobSet(t, true, 1).withUnit(v1alpha1.PhaseEnqueued), "status Enqueued", 2},
		"it waits, and says so": {jobSet(t, true, 1).withUnit(v1alpha1.PhaseEnqueued).unit(reclaimable(2)), "", 2},
		"admitted for the rest": {jobSet(t, true, 1).withUnit(v1alpha1.PhaseDequeued).
			unit(reclaimable(2)).unit(admittedFor(2, "1")).condition("Suspended"), "job suspend=false [Admitted]", 2},
		"admitted for less": {jobSet(t, true, 1).withUnit(v1alpha1.PhaseDequeued).
			unit(reclaimable(2)).unit(admittedFor(1, "500m")), "delete unit [UnitReplaced]", 2},
		"admitted before it started anew": {jobSet(t, true, 0).withUnit(v1alpha1.PhaseDequeued).
			unit(reclaimable(2)).unit(admittedFor(2, "1")), "status Dequeued", 0},
		"a Job says so by its count": {running(t).ready(1).job(int64(1), "status", "succeeded").
			told(counted(true, 2), time.Hour), "report", 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.scene.FreshJob, tc.scene.FreshUnit = true, true
			require.Equal(t, tc.want, describe(tc.scene.decide()))
			actions := tc.scene.decide().Do
			u := tc.scene.Unit
			if step, ok := append(actions, nil)[0].(PatchUnitStatus); ok {
				u = step.After
			}
			if tc.count == 0 {
				require.Empty(t, u.Status.ReclaimablePods)
				return
			}
			require.Equal(t, []v1alpha1.ReclaimablePod{{Name: "node", Count: tc.count}}, u.Status.ReclaimablePods)
		})
	}
}
