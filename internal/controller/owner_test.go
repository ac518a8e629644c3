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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// owned writes an owner into the job, as its owner may at any time.
func (w *world) owned() {
	w.t.Helper()
	job := w.job()
	madeBy("jobset.x-k8s.io/v1alpha2", "JobSet")(job)
	w.update(job)
}

// A tenant names a controlling owner in a running job and puts the job on hold. Once the unit was deleted as that of a
// part, while the pods ran on (S4).
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
		w := newWorld(t, newJob(unsuspended, madeBy("jobset.x-k8s.io/v1alpha2", "JobSet")))
		require.Empty(t, w.settle())
		require.Nil(t, w.unit())
	})
}

func madeBy(apiVersion, kind string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: "maker", UID: "maker-1", Controller: ptr.To(true)},
		}
	}
}

// Once a suspended job that its owner does not resume had no unit, no event, and never ran. It waits by itself, unless
// a unit stands for its owner. If the owner resumes it without a queue, the job gets an event.
func TestAJobThatItsOwnerDoesNotResumeWaitsByItself(t *testing.T) {
	const workflow = "argoproj.io/v1alpha1"
	unitOf := func(uid types.UID, phase v1alpha1.QueueUnitPhase) *v1alpha1.QueueUnit {
		u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "maker"}}
		u.Spec.ConsumerRef = &corev1.ObjectReference{APIVersion: workflow, Kind: "Workflow", Name: "maker", UID: uid}
		u.Status.Phase = phase
		return u
	}
	ofFlow, queued := madeBy(workflow, "Workflow"), []string{"Queued"}
	for name, tc := range map[string]struct {
		job    func(*batchv1.Job)
		maker  *v1alpha1.QueueUnit
		queued bool
		told   []string
	}{
		"of a Job":                        {madeBy("batch/v1", "Job"), nil, true, queued},
		"of a Workflow without a unit":    {ofFlow, nil, true, queued},
		"of one whose unit stands":        {ofFlow, unitOf("maker-1", "Running"), false, nil},
		"of one whose unit waits":         {ofFlow, unitOf("maker-1", "Enqueued"), false, nil},
		"of one whose unit is over":       {ofFlow, unitOf("maker-1", "Succeed"), true, queued},
		"of another of its name":          {ofFlow, unitOf("maker-0", "Running"), true, queued},
		"of what resumes it, not managed": {madeBy("kubeflow.org/v2beta1", "MPIJob"), nil, false, []string{"Unmanaged"}},
		"of what resumes it, managed":     {madeBy("jobset.x-k8s.io/v1alpha2", "JobSet"), nil, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(tc.job, func(j *batchv1.Job) { j.CreationTimestamp = epoch }))
			var err error
			w.r.Options.Predicate, err = managedjobs.NewPredicate(managedjobs.Jobs{Kinds: managedjobs.KindsNamed(
				"Job.v1.batch", "Workflow.v1alpha1.argoproj.io", "JobSet.v1alpha2.jobset.x-k8s.io")})
			require.NoError(t, err)
			if tc.maker != nil {
				require.NoError(t, w.base.Create(t.Context(), tc.maker))
			}
			w.settle()
			require.Equal(t, tc.queued, w.unit() != nil)
			require.Equal(t, tc.told, w.told())
			if !tc.queued || tc.maker != nil {
				return
			}
			require.NoError(t, w.base.Create(t.Context(), unitOf("maker-1", "Running")))
			require.Empty(t, w.settle(), "a unit that comes later takes it out of no queue")
			w.admit()
			w.settle()
			require.False(t, *w.job().Spec.Suspend)
		})
	}
}
