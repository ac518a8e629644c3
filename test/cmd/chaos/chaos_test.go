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

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

func TestTheSameSeedGivesTheSamePlan(t *testing.T) {
	const length = 10 * time.Minute
	require.Equal(t, faultPlan(7, length), faultPlan(7, length))
	require.NotEqual(t, faultPlan(7, length), faultPlan(8, length))
	require.Equal(t, stream(7, length, time.Second), stream(7, length, time.Second))
}

func TestAPlanOfTenMinutesHasEveryFault(t *testing.T) {
	const length, lease = 10 * time.Minute, 20 * time.Second
	seen, long := map[string]bool{}, 0
	until := map[controlplane.Component]time.Duration{}
	for _, f := range faultPlan(1, length) {
		require.Less(t, f.At, length)
		require.LessOrEqual(t, f.At+f.Hold, length, "all faults are over at the end")
		require.GreaterOrEqual(t, f.At, until[f.Component], "one fault of a process at a time")
		until[f.Component] = f.At + f.Hold
		seen[string(f.Kind)+" "+string(f.Component)] = true
		if f.Kind == pause && f.Hold > lease {
			long++
		}
	}
	for _, c := range targets {
		require.True(t, seen["kill "+string(c)], c)
		require.True(t, seen["pause "+string(c)], c)
	}
	require.NotZero(t, long, "pauses that are longer than a lease")
}

func TestAStreamHasAllKindsOfWork(t *testing.T) {
	var gangs, running, deleted, plain int
	quotas := map[string]bool{}
	for _, a := range stream(1, 5*time.Minute, time.Second) {
		if a.pod != nil {
			plain++
			require.NotZero(t, a.deleteAfter, "nothing else ends it")
			continue
		}
		quotas[a.job.Spec.Template.Labels[v1alpha1.LabelQuotaName]] = true
		if a.job.Spec.Template.Annotations["gang.scheduling.koordinator.sh/name"] != "" {
			gangs++
		}
		if !*a.job.Spec.Suspend {
			running++
		}
		if a.deleteAfter > 0 {
			deleted++
		}
	}
	for what, n := range map[string]int{
		"gangs": gangs, "jobs that are not suspended": running, "deleted jobs": deleted, "plain pods": plain,
	} {
		require.NotZero(t, n, what)
	}
	require.Len(t, quotas, len(groups))
}

func TestOrderIsJudgedOnlyAwayFromFaults(t *testing.T) {
	at := func(seconds int) time.Time {
		return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
	}
	scheduler := []outage{{schedulerA, at(100), at(110)}}
	server := []outage{{controlplane.APIServer, at(100), at(110)}}
	for _, test := range []struct {
		outages []outage
		at      int
		want    bool
	}{
		{nil, 100, false},
		{scheduler, 96, false},
		{scheduler, 98, true},
		{scheduler, 105, true},
		{scheduler, 114, true},
		{scheduler, 116, false},
		{server, 116, true},
		{server, 129, true},
		{server, 131, false},
	} {
		require.Equal(t, test.want, disturbed(test.outages, at(test.at)), "%v at %d", test.outages, test.at)
	}
}

func TestPodsWhoseCreationMayHaveGoneUnanswered(t *testing.T) {
	begin := time.Unix(1000, 0)
	from, to := begin.Add(12*time.Second), begin.Add(13*time.Second)
	for after, want := range map[time.Duration]bool{
		0: false, 10 * time.Second: true, 17 * time.Second: true, time.Minute: false,
	} {
		created := begin.Add(after)
		require.Equal(t, want, unanswered([]outage{{controlplane.Etcd, from, to}}, created), after)
		require.False(t, unanswered([]outage{{schedulerA, from, to}}, created), "nothing was created through it")
	}
}

func TestPodsThatWaitForTheirKubelet(t *testing.T) {
	h := newHistory()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID: "p", OwnerReferences: []metav1.OwnerReference{{UID: "j", Controller: ptr.To(true)}},
	}}
	note := func(edit func()) {
		edit()
		require.NoError(t, h.note(observer.Change{Object: pod}))
	}
	note(func() {})
	require.False(t, h.stuck(0), "it has no node yet")
	note(func() { pod.Spec.NodeName = "n" })
	require.True(t, h.stuck(0))
	require.False(t, h.stuck(time.Minute))
	note(func() { pod.Status.Phase = corev1.PodSucceeded })
	require.False(t, h.stuck(0))
	note(func() { pod.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
	require.True(t, h.stuck(0))
	require.NoError(t, h.note(observer.Change{Object: pod, Deleted: true}))
	require.False(t, h.stuck(0))
}
