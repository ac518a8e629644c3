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

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
)

// Jobs whose gangs name each other are admitted together or not at all, each in its own quota, and their pods are bound
// together.
func TestGangGroupIsAdmittedAsOne(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "groups")
	c.quota(t, ns, "groups-a", 4, 4)
	c.quota(t, ns, "groups-b", 4, 4)
	grouped := func(j *batchv1.Job) {
		j.Spec.Template.Annotations["gang.scheduling.koordinator.sh/groups"] = `["` + ns + `/second","` + ns + `/first"]`
	}
	holds := func(name string) bool { return len(c.unit(t, ns, name).Status.Admissions) > 0 }

	c.create(t, newJob(ns, "blocker", suspended, ofQuota("groups-b"), pods(2), runs(time.Hour)))
	c.waitPhase(t, ns, "blocker", schedulingv1alpha1.PhaseRunning)
	c.create(t, newJob(ns, "first", suspended, ofQuota("groups-a"), pods(3), gang("first", 3), grouped,
		runs(2*time.Second)))
	c.waitReason(t, ns, "first", "WaitingForGroup")
	require.False(t, holds("first"), "its quota has room, and nobody waits beside it")

	c.create(t, newJob(ns, "second", suspended, ofQuota("groups-b"), pods(3), gang("second", 3), grouped,
		runs(2*time.Second)))
	require.Contains(t, c.waitReason(t, ns, "first", "QuotaExceeded"), "gang group")
	require.Contains(t, c.waitReason(t, ns, "second", "QuotaExceeded"), "groups-b")
	require.False(t, holds("first") || holds("second"), "there is room for one of them")

	background := metav1.DeletePropagationBackground
	require.NoError(t, c.kube.BatchV1().Jobs(ns).Delete(t.Context(), "blocker",
		metav1.DeleteOptions{PropagationPolicy: &background}))
	c.waitPhase(t, ns, "first", schedulingv1alpha1.PhaseSucceed)
	c.waitPhase(t, ns, "second", schedulingv1alpha1.PhaseSucceed)
	var bound []time.Time
	for _, job := range []string{"first", "second"} {
		of := c.podsOf(t, ns, job)
		for i := range of {
			bound = append(bound, scheduledAt(t, &of[i]))
		}
	}
	require.Len(t, bound, 6)
	for _, at := range bound {
		require.WithinDuration(t, bound[0], at, 5*time.Second, "they are bound together")
	}

	stray := newJob(ns, "stray", suspended, ofQuota("groups-a"), pods(2), gang("stray", 2), func(j *batchv1.Job) {
		j.Spec.Template.Annotations["gang.scheduling.koordinator.sh/groups"] = `["` + ns + `/stray","elsewhere/other"]`
	})
	c.createRefused(t, "template", stray)
	require.Contains(t, c.waitReason(t, ns, "stray", "InvalidRequest"), "another namespace")
}

// Jobs of a gang group are let go together: one that has passed its admission check waits for the other to pass its
// own.
func TestGangGroupPassesItsChecksTogether(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "groups-checked")
	k := c.checker(t, "e2e-groups")
	c.quota(t, ns, "groups-checked", 4, 4)
	c.patchQueue(t, "groups-checked", `{"spec":{"admissionChecks":[{"name":"e2e-groups"}]}}`)
	grouped := func(j *batchv1.Job) {
		j.Spec.Template.Annotations["gang.scheduling.koordinator.sh/groups"] = `["` + ns + `/early","` + ns + `/late"]`
	}
	for _, name := range []string{"early", "late"} {
		c.create(t, newJob(ns, name, suspended, ofQuota("groups-checked"), pods(2), gang(name, 2), grouped,
			runs(2*time.Second)))
	}
	c.waitPhase(t, ns, "early", schedulingv1alpha1.PhaseReserved)
	c.waitPhase(t, ns, "late", schedulingv1alpha1.PhaseReserved)
	k.say("e2e-groups", "early", admissioncheck.Answer{State: admissioncheck.Ready})
	require.Eventually(t, func() bool {
		return c.unit(t, ns, "early").Status.AdmissionChecks[0].State == admissioncheck.Ready
	}, soon, pace)
	stays(t, 2*time.Second, "it waits for the other", func() bool {
		reserved := c.unit(t, ns, "early").Status.Phase == schedulingv1alpha1.PhaseReserved
		return reserved && len(c.podsOf(t, ns, "early")) == 0
	})
	k.say("e2e-groups", "late", admissioncheck.Answer{State: admissioncheck.Ready})
	c.waitPhase(t, ns, "early", schedulingv1alpha1.PhaseSucceed)
	c.waitPhase(t, ns, "late", schedulingv1alpha1.PhaseSucceed)
}

func scheduledAt(t *testing.T, pod *corev1.Pod) time.Time {
	t.Helper()
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	require.Fail(t, "a pod of a gang was not bound", pod.Name)
	return time.Time{}
}
