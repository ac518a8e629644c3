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

package runner

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	history "github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

func TestLeast(t *testing.T) {
	old, young, large := victim{2, 200}, victim{2, 20}, victim{6, 6}
	for name, tc := range map[string]struct {
		short       int
		jobs        []victim
		pods        int
		coreSeconds float64
	}{
		"nothing is short":                        {0, []victim{old, young}, 0, 0},
		"less than nothing":                       {-3, []victim{old, young}, 0, 0},
		"nobody borrows":                          {3, nil, 0, 0},
		"equal jobs are killed whole":             {1, []victim{old, young}, 2, 20},
		"the youngest first":                      {2, []victim{old, young, old}, 2, 20},
		"as many as are needed":                   {3, []victim{old, young, old}, 4, 220},
		"more than there is":                      {9, []victim{old, young}, 4, 220},
		"of others what is short, the least work": {7, []victim{old, large, young}, 7, 6 + 10},
		"a part of one":                           {3, []victim{old, large}, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			pods, coreSeconds := least(tc.short, tc.jobs)
			require.Equal(t, tc.pods, pods)
			require.InDelta(t, tc.coreSeconds, coreSeconds, 1e-9)
		})
	}
}

func TestMinsOfReclaim(t *testing.T) {
	o := ReclaimOptions{Borrowers: 4, Jobs: 200, Pods: 2, Owners: 4, OwnerJobs: 60, OwnerPods: 5}
	borrower, owner, err := o.mins()
	require.NoError(t, err)
	require.Equal(t, []int{400, 25, 75}, []int{o.cores(), borrower, owner})
	o.OwnerJobs++
	_, _, err = o.mins()
	require.ErrorContains(t, err, "jobs of 80 pods are submitted to an owner whose min is 75 cores")
	o.Mixed = true
	require.Equal(t, []int{1, 2, 3, 1}, []int{o.podsOf(0), o.podsOf(1), o.podsOf(2), o.podsOf(3)})
	require.Equal(t, 399, o.cores())
}

func TestLedger(t *testing.T) {
	l := newLedger()
	at := time.Now()
	take := func(second int, object any, deleted bool) {
		t.Helper()
		now := at.Add(time.Duration(second) * time.Second)
		require.NoError(t, l.takeAt(now, history.Change{Object: object, Deleted: deleted}))
	}
	pod := func(job, uid, node string, phase corev1.PodPhase) *corev1.Pod {
		p := podOf(job, uid, node, phase)
		p.Labels[v1alpha1.LabelQuotaName] = job[:len(job)-2]
		controls := true
		p.OwnerReferences = []metav1.OwnerReference{{UID: "uid-of-" + p.UID, Controller: &controls}}
		return p
	}
	unit := func(phase v1alpha1.QueueUnitPhase) *v1alpha1.QueueUnit {
		u := &v1alpha1.QueueUnit{}
		u.UID, u.Labels = "unit", map[string]string{v1alpha1.LabelQuotaName: "borrower-0"}
		u.Spec.ConsumerRef = &corev1.ObjectReference{UID: "job"}
		u.Status.Phase, u.Status.Attempts = phase, 1
		return u
	}
	take(0, unit(v1alpha1.PhaseRunning), false)
	take(0, pod("borrower-0-0", "a", "", corev1.PodPending), false)
	require.Empty(t, l.changed)
	take(1, pod("borrower-0-0", "a", "node", corev1.PodPending), false)
	take(2, pod("borrower-0-0", "a", "node", corev1.PodRunning), false)
	take(3, pod("borrower-0-0", "b", "node", corev1.PodRunning), false)
	take(3, pod("owner-0-0", "c", "node", corev1.PodRunning), false)
	require.Len(t, l.changed, 1)
	own, all, borrowers := l.running(at.Add(5*time.Second), "owner-0-0")
	require.Equal(t, []int{1, 3}, []int{own, all})
	require.Equal(t, []victim{{2, 4 + 2}}, borrowers)

	take(6, unit(v1alpha1.PhaseEnqueued), false)
	take(6, unit(v1alpha1.PhaseEnqueued), false)
	take(11, pod("borrower-0-0", "a", "node", corev1.PodRunning), true)
	take(12, pod("borrower-0-0", "b", "node", corev1.PodSucceeded), false)
	take(13, pod("borrower-0-0", "b", "node", corev1.PodSucceeded), true)
	take(13, pod("owner-0-0", "c", "node", corev1.PodRunning), true)
	require.Equal(t, 1, l.suspended)
	require.Equal(t, 1, l.killed.Pods, "neither one that ended well nor one of an owner")
	require.InDelta(t, 10.0/3600, l.killed.CoreHours, 1e-9)
	require.ErrorContains(t, l.broken(), "NotAdmitted", "pods of no unit were bound")
}

func TestReclaimTable(t *testing.T) {
	x := &ReclaimReport{Killed: Taken{12, 0.5}, Least: Taken{10, 0.25}, Suspended: 6}
	var table bytes.Buffer
	x.Print(&table)
	require.Regexp(t, `pods +12 +10 +1\.20`, table.String())
	require.Regexp(t, `core-hours +0\.500 +0\.250 +2\.00`, table.String())
	require.Contains(t, table.String(), "the least is exact")
	x.Mixed, x.Least = true, Taken{}
	table.Reset()
	x.Print(&table)
	require.Regexp(t, `pods +12 +0 +0\.00`, table.String())
	require.Contains(t, table.String(), "the least is a lower bound")
}
