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
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/notice"
)

// reclaimed is a world in which the quota of a running job was taken back. The job asks for more than the minute that
// its queue gives. Pods a and b run, c waits, and d is leaving.
func reclaimed(t *testing.T) *world {
	w := newWorld(t,
		newJob(func(job *batchv1.Job) { job.Annotations = map[string]string{v1alpha1.AnnotationGrace: "600"} }),
		&v1alpha1.Queue{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultQueueNamespace, Name: "a"},
			Spec:       v1alpha1.QueueSpec{Preemption: &v1alpha1.QueuePreemption{MaxGraceSeconds: ptr.To[int32](60)}},
		},
	)
	w.settle()
	w.admit()
	w.settle()
	w.jobStatus(runs(2))
	w.settle()
	for _, name := range []string{"a", "b", "c", "d"} {
		pod := podOf(w.job(), "node")
		if pod.Name, pod.Status.Phase = name, corev1.PodRunning; name == "c" {
			pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
		}
		pod.Finalizers, pod.Annotations = []string{"example.com/stays"}, map[string]string{"example.com/own": "kept"}
		require.NoError(t, w.base.Create(context.Background(), pod))
		if name == "d" {
			require.NoError(t, w.base.Delete(context.Background(), pod))
		}
	}
	w.told()
	u := w.unit()
	u.UID = "unit-1"
	w.update(u)
	w.takeBack()
	u = w.unit()
	setCondition(u, v1alpha1.ConditionEvicted, metav1.ConditionTrue, "Reclaimed", "", epoch)
	w.updateStatus(u)
	w.clock.SetTime(epoch.Time)
	return w
}

// pass reconciles once, and returns what was written.
func (w *world) pass() []string {
	w.t.Helper()
	w.writes = nil
	require.NotZero(w.t, w.reconcile().RequeueAfter)
	return w.writes
}

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	require.NoError(w.t, w.base.Get(context.Background(), client.ObjectKey{Namespace: "team", Name: name}, pod))
	return pod
}

// checkpoints plays the program in a pod.
func (w *world) checkpoints(name string) {
	pod := w.pod(name)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1alpha1.AnnotationCheckpointed, w.clock.Now().Format(time.RFC3339))
	w.update(pod)
}

func TestAJobIsSuspendedWhenItsPodsHaveAcknowledged(t *testing.T) {
	w := reclaimed(t)
	require.Equal(t, []string{"patch Pod/a", "patch Pod/b"}, w.pass())
	require.Contains(t, w.told(), "WillSuspend")
	require.Equal(t, "2026-01-02T03:05:05Z", w.pod("a").Annotations[v1alpha1.AnnotationSuspendAt])
	require.Contains(t, w.pod("a").Annotations[extension.AnnotationSoftEviction], `"reason":"Reclaimed"`)
	require.Len(t, w.pod("c").Annotations, 1, "it does not run")
	w.checkpoints("a")
	w.restart()
	require.Empty(t, w.pass(), "nothing is remembered, and nobody is told twice")
	require.False(t, *w.job().Spec.Suspend)
	w.checkpoints("b")
	w.settle()
	require.True(t, *w.job().Spec.Suspend)
	require.Less(t, w.clock.Now().Sub(epoch.Time), time.Minute)
}

// No answer, and no right to write pods: the job is suspended at the end of the grace.
func TestAJobIsSuspendedAtTheEndOfItsGrace(t *testing.T) {
	for name, refusal := range map[string]error{
		"told":     nil,
		"not told": apierrors.NewForbidden(corev1.Resource("pods"), "a", nil),
		"changed":  apierrors.NewConflict(corev1.Resource("pods"), "a", nil),
	} {
		t.Run(name, func(t *testing.T) {
			w := reclaimed(t)
			suspended := time.Duration(0)
			w.refuse = func(_ string, o client.Object) error {
				switch o.GetObjectKind().GroupVersionKind().Kind {
				case "Pod":
					return refusal
				case "Job":
					suspended = w.clock.Now().Sub(epoch.Time)
				}
				return nil
			}
			w.settle()
			require.True(t, *w.job().Spec.Suspend)
			require.Equal(t, time.Minute, suspended)
		})
	}
}

// Somebody who deletes the unit during the grace, or makes another one that says that the job was adopted, keeps no
// quota.
func TestADeletedUnitEndsTheGrace(t *testing.T) {
	for name, forged := range map[string]bool{"deleted": false, "made again": true} {
		t.Run(name, func(t *testing.T) {
			w := reclaimed(t)
			w.pass()
			u := w.unit()
			require.NoError(t, w.base.Delete(context.Background(), u))
			if forged {
				again := &v1alpha1.QueueUnit{
					ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j", UID: "forged"}, Spec: u.Spec,
				}
				again.Annotations = map[string]string{v1alpha1.AnnotationAdopted: "true"}
				require.NoError(t, w.base.Create(context.Background(), again))
			}
			require.Equal(t, "patch Job/j", w.settle()[0])
			require.True(t, *w.job().Spec.Suspend)
			require.NotEqual(t, v1alpha1.PhaseRunning, w.unit().Status.Phase)
		})
	}
}

// All notices have one pace. A job that removes notices from its pods gets at most two for each running pod.
func TestNoticesAreBounded(t *testing.T) {
	w := reclaimed(t)
	w.r.Shared.Notices = flowcontrol.NewFakeNeverRateLimiter()
	require.Empty(t, w.pass())
	w.r.Shared.Notices = nil
	for _, want := range []int{2, 2, 0} {
		require.Len(t, w.pass(), want)
		for _, name := range []string{"a", "b"} {
			pod := w.pod(name)
			pod.Annotations = nil
			w.update(pod)
		}
	}
	require.True(t, (&remembered{evicted: epoch.Time, notified: 4}).mayNotify(jobplan.Notify{
		Notice: &notice.Notice{Evicted: epoch.Add(time.Hour)}, Most: 1,
	}), "the next eviction")
}

// spared is a world in which the job was admitted again after its pods got the notice.
func spared(t *testing.T) *world {
	w := reclaimed(t)
	w.pass()
	w.admit()
	u := w.unit()
	setCondition(u, v1alpha1.ConditionEvicted, metav1.ConditionFalse, "Admitted", "", epoch)
	w.updateStatus(u)
	return w
}

// A job that is admitted again before it is suspended runs on, and its pods have no notice any more.
func TestANoticeIsWithdrawn(t *testing.T) {
	w := spared(t)
	require.Subset(t, w.settle(), []string{"patch Pod/a", "patch Pod/b", "patch Job/j"})
	require.False(t, *w.job().Spec.Suspend)
	require.Equal(t, map[string]string{"example.com/own": "kept"}, w.pod("a").Annotations)
	require.Contains(t, w.job().Annotations[v1alpha1.AnnotationResumed], "/2")
}

// The stamp of the attempt says that no pod has a notice. So a pod that could not be written is written before it. A
// pod that nobody may write, and one that always changes, keeps its notice.
func TestANoticeIsWithdrawnBeforeTheStamp(t *testing.T) {
	times := func(n int, err error) func() error {
		return func() error {
			if n--; n < 0 {
				return nil
			}
			return err
		}
	}
	const always = 1000
	pods := corev1.Resource("pods")
	for name, c := range map[string]struct {
		refuse func() error
		kept   bool
	}{
		"lost":       {refuse: times(20, apierrors.NewTimeoutError("lost", 0))},
		"changed":    {refuse: times(1, apierrors.NewConflict(pods, "a", nil))},
		"changes on": {refuse: times(always, apierrors.NewConflict(pods, "a", nil)), kept: true},
		"forbidden":  {refuse: times(always, apierrors.NewForbidden(pods, "a", nil)), kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := spared(t)
			w.refuse = func(_ string, o client.Object) error {
				if o.GetName() != "a" {
					return nil
				}
				return c.refuse()
			}
			stamped := func() bool { return w.job().Annotations[v1alpha1.AnnotationResumed] == string(w.unit().UID)+"/2" }
			for range 30 {
				_, _ = w.r.Reconcile(quiet(), request("team", "j"))
				if stamped() && !c.kept {
					require.Empty(t, w.pod("a").Annotations[v1alpha1.AnnotationSuspendAt])
				}
				w.clock.SetTime(w.clock.Now().Add(time.Second))
			}
			require.True(t, stamped())
			require.Equal(t, c.kept, w.pod("a").Annotations[v1alpha1.AnnotationSuspendAt] != "")
			require.Empty(t, w.pod("b").Annotations[v1alpha1.AnnotationSuspendAt])
		})
	}
}

// A pace that is exhausted keeps notices for later, and with them the stamp.
func TestAWithdrawalWaitsForThePace(t *testing.T) {
	w := spared(t)
	w.r.Shared.Notices = flowcontrol.NewFakeNeverRateLimiter()
	require.Empty(t, w.pass())
	w.r.Shared.Notices = nil
	require.Equal(t, []string{"patch Pod/a", "patch Pod/b", "patch Job/j"}, w.settle()[:3])
}
