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
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// otherJob controls a job, as far as the job says.
var otherJob = metav1.OwnerReference{
	APIVersion: "batch/v1", Kind: "Job", Name: "other", UID: "other-1", Controller: ptr.To(true),
}

// owned writes an owner into the job, as its owner may at any time.
func (w *world) owned() {
	w.t.Helper()
	job := w.job()
	job.OwnerReferences = []metav1.OwnerReference{otherJob}
	w.update(job)
}

// A tenant names a controlling owner in a running job and puts the job on hold: the unit was deleted as that of a part,
// and the pods ran on (S4).
func TestAnOwnerThatComesLaterTakesNoJobOutOfTheQueue(t *testing.T) {
	hold := func(w *world) {
		job := w.job()
		job.Annotations[v1alpha1.AnnotationHold] = "true"
		w.update(job)
		w.settle()
	}
	t.Run("a running job on hold", func(t *testing.T) {
		w := newWorld(t, newJob())
		w.settle()
		w.admit()
		w.settle()
		w.jobStatus(runs(2))
		w.owned()
		hold(w)
		w.lose("HeldByOwner")
		w.settle()
		require.True(t, *w.job().Spec.Suspend)
		require.NotNil(t, w.unit())
		w.jobStatus(noted)
		w.settle()
		require.True(t, *w.job().Spec.Suspend, "it waits at its position")
	})
	t.Run("a pending job", func(t *testing.T) {
		w := newWorld(t, newJob())
		w.settle()
		w.owned()
		w.settle()
		require.True(t, *w.job().Spec.Suspend)
		require.NotNil(t, w.unit())
	})
	t.Run("one that was a part from the beginning", func(t *testing.T) {
		w := newWorld(t, newJob(unsuspended, func(j *batchv1.Job) {
			j.OwnerReferences = []metav1.OwnerReference{otherJob}
		}))
		require.Empty(t, w.settle())
		require.Nil(t, w.unit())
	})
}
