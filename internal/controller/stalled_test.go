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
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// releasedJob is a job that was admitted and resumed at this moment, and has no pod yet.
func releasedJob(t *testing.T) *world {
	w := newWorld(t, newJob())
	w.settle()
	w.admit()
	w.settle()
	u := w.unit()
	at := metav1.NewTime(w.clock.Now())
	u.Status.LastAllocateTime = &at
	w.updateStatus(u)
	w.told()
	return w
}

// step reconciles for so long, at the times that are asked for.
func (w *world) step(d time.Duration) {
	w.t.Helper()
	for end := w.clock.Now().Add(d); ; {
		again := w.reconcile().RequeueAfter
		if again == 0 || w.clock.Now().Add(again).After(end) {
			w.clock.SetTime(end)
			return
		}
		w.clock.SetTime(w.clock.Now().Add(again))
	}
}

func (w *world) podsReady() metav1.Condition {
	c := meta.FindStatusCondition(w.unit().Status.Conditions, v1alpha1.ConditionPodsReady)
	require.NotNil(w.t, c, "nothing is said of the pods")
	return *c
}

func TestARefusedPodIsToldWithinAMinute(t *testing.T) {
	w := releasedJob(t)
	job := corev1.ObjectReference{Kind: "Job", Name: "j", UID: w.job().UID}
	w.create(eventOf("old", job, "FailedCreate", "of an earlier run", -time.Hour))
	w.create(eventOf("new", job, "FailedCreate", "no PriorityClass with name high was found", time.Second))
	w.step(time.Minute)
	require.Equal(t, "PodsNotCreated", w.podsReady().Reason)
	require.Contains(t, w.podsReady().Message, `"no PriorityClass with name high was found"`)
	told := w.told()
	require.Len(t, told, 1)
	require.Contains(t, told[0], "PodsNotCreated")
	w.step(10 * time.Minute)
	require.Empty(t, w.told(), "it is told once")
}

func TestAnEventOfAnEarlierRunIsNotTold(t *testing.T) {
	w := releasedJob(t)
	job := corev1.ObjectReference{Kind: "Job", Name: "j", UID: w.job().UID}
	w.create(eventOf("old", job, "FailedCreate", "of an earlier run", -time.Hour))
	w.step(time.Minute)
	require.Equal(t, "the job has no pod, and no event of the job says why", w.podsReady().Message)
}

// podsOfAPage is how many pods are read at once.
const podsOfAPage = 50

func TestPodsOfTheJobAloneAreTold(t *testing.T) {
	w := releasedJob(t)
	forged := podOf(w.job(), "")
	forged.Name, forged.OwnerReferences = "a-forged", nil
	forged.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "forged"}}
	w.create(forged)
	for i := range podsOfAPage + 10 {
		pod := podOf(w.job(), "")
		pod.Name, pod.Status.Phase = fmt.Sprintf("j-%03d", i), corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: "Unschedulable", Message: "0/1 nodes are available: 1 Insufficient cpu."}}
		w.create(pod)
	}
	w.step(time.Minute)
	require.Equal(t, "PodsPending", w.podsReady().Reason)
	require.Contains(t, w.podsReady().Message, fmt.Sprintf("(%d)", podsOfAPage+10))
	require.Contains(t, w.podsReady().Message, "1 Insufficient cpu.")
}

func TestLooksHaveAPace(t *testing.T) {
	w := releasedJob(t)
	w.r.Shared.Stalls = flowcontrol.NewFakeNeverRateLimiter()
	w.step(time.Minute)
	require.Nil(t, meta.FindStatusCondition(w.unit().Status.Conditions, v1alpha1.ConditionPodsReady))
	w.r.Shared.Stalls = flowcontrol.NewFakeAlwaysRateLimiter()
	w.step(stallDelay)
	require.Equal(t, "PodsNotCreated", w.podsReady().Reason)
}
