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

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// setMode gives the namespace of the job the label; an empty mode takes it away.
func (w *world) setMode(mode managedjobs.Mode) {
	w.t.Helper()
	namespace := &corev1.Namespace{}
	require.NoError(w.t, w.base.Get(context.Background(), types.NamespacedName{Name: "team"}, namespace))
	namespace.Labels = map[string]string{v1alpha1.LabelMode: string(mode)}
	w.update(namespace)
}

// The controller writes the unit of an observed job from its creation to its end, and neither the job nor an event.
func TestAnObservedJobIsLeftAlone(t *testing.T) {
	w := newWorld(t, newJob(unsuspended))
	w.setMode(managedjobs.ModeObserve)
	before := w.job()
	require.Equal(t, []string{"create QueueUnit/j"}, w.settle())
	u := w.unit()
	require.True(t, u.Observed())
	require.Empty(t, u.Annotations[v1alpha1.AnnotationAdopted])

	// The scheduler says that it would wait. Its pods run all the same.
	setCondition(u, v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, "QuotaExceeded", "would wait: no", epoch)
	w.updateStatus(u)
	w.jobStatus(runs(2))
	pod := podOf(before, "n")
	require.NoError(t, w.base.Create(context.Background(), pod))
	require.Empty(t, w.settle())

	w.admit()
	require.Equal(t, []string{"status QueueUnit/j"}, w.settle())
	require.Equal(t, v1alpha1.PhaseRunning, w.unit().Status.Phase)

	w.jobStatus(completes)
	require.Equal(t, []string{"status QueueUnit/j"}, w.settle())
	require.Equal(t, v1alpha1.PhaseSucceed, w.unit().Status.Phase)
	require.True(t, meta.IsStatusConditionTrue(w.unit().Status.Conditions, v1alpha1.ConditionAdmitted),
		"it says what would have been")
	require.Equal(t, before.Spec, w.job().Spec)
	require.Equal(t, before.Annotations, w.job().Annotations)
	require.Empty(t, w.told())
	w.restart()
	require.Empty(t, w.settle(), "I8")
}

// A job that its owner suspends stays so, and a job that would have lost its admission runs on.
func TestAnObservedJobIsNeitherSuspendedNorResumed(t *testing.T) {
	for name, job := range map[string]*batchv1.Job{"suspended": newJob(), "not suspended": newJob(unsuspended)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, job)
			w.setMode(managedjobs.ModeObserve)
			w.settle()
			w.admit()
			require.Empty(t, w.settle())
			u := w.unit()
			u.Status.Phase = v1alpha1.PhaseEnqueued
			for _, c := range []string{v1alpha1.ConditionEvicted, v1alpha1.ConditionDeactivationTarget} {
				setCondition(u, c, metav1.ConditionTrue, "Reclaimed", "", epoch)
			}
			w.updateStatus(u)
			require.Empty(t, w.settle())
			require.Equal(t, *job.Spec.Suspend, *w.job().Spec.Suspend)
		})
	}
}

// The mode of a namespace changes. A running job is adopted, as at the installation of the queue. A job that was
// suspended until its turn is resumed if nobody queues it any more.
func TestTheModeOfANamespaceChanges(t *testing.T) {
	w := newWorld(t, newJob(unsuspended))
	w.setMode(managedjobs.ModeObserve)
	w.settle()
	w.jobStatus(runs(2))
	require.NoError(t, w.base.Create(context.Background(), podOf(w.job(), "n")))
	w.setMode(managedjobs.ModeManage)
	require.Equal(t, []string{"delete QueueUnit/j", "create QueueUnit/j", "status QueueUnit/j"}, w.settle())
	require.False(t, w.unit().Observed())
	require.Equal(t, v1alpha1.PhaseRunning, w.unit().Status.Phase)
	require.True(t, meta.IsStatusConditionTrue(w.unit().Status.Conditions, v1alpha1.ConditionAdmitted))
	require.False(t, *w.job().Spec.Suspend)

	w = newWorld(t, newJob(unsuspended))
	w.settle()
	require.True(t, *w.job().Spec.Suspend)
	w.setMode(managedjobs.ModeObserve)
	require.Equal(t, []string{"patch Job/j", "delete QueueUnit/j", "create QueueUnit/j"}, w.settle())
	require.False(t, *w.job().Spec.Suspend)
	require.True(t, w.unit().Observed())
}
