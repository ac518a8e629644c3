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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// admitInPart plays the scheduler: it has room for so many pods of 500m.
func (w *world) admitInPart(pods int64) {
	w.t.Helper()
	w.admit()
	u := w.unit()
	u.Status.Admissions[0].Replicas = pods
	u.Status.Admissions[0].Resources = corev1.ResourceList{"cpu": *resource.NewMilliQuantity(500*pods, resource.DecimalSI)}
	w.updateStatus(u)
}

func (w *world) evict() {
	w.t.Helper()
	u := w.unit()
	u.Status.Phase, u.Status.Admissions = v1alpha1.PhaseEnqueued, nil
	setCondition(u, v1alpha1.ConditionEvicted, metav1.ConditionTrue, "PodsReadyTimeout", "too late", epoch)
	setCondition(u, v1alpha1.ConditionAdmitted, metav1.ConditionFalse, "PodsReadyTimeout", "too late", epoch)
	w.updateStatus(u)
}

// isOf checks how many pods the job is to have, how many completions, and what its unit says.
func (w *world) isOf(parallelism, completions, count int32, least *int32) {
	w.t.Helper()
	job, u := w.job(), w.unit()
	require.Equal(w.t, parallelism, *job.Spec.Parallelism, "parallelism")
	require.Equal(w.t, completions, *job.Spec.Completions, "completions")
	require.Equal(w.t, count, u.Spec.PodSets[0].Count, "count")
	require.Equal(w.t, least, u.Spec.PodSets[0].MinCount, "minCount")
	asked := u.Spec.Request["cpu"]
	require.EqualValues(w.t, 500*count, asked.MilliValue())
}

// TestAJobAdmittedInPart runs with as many pods as were admitted, and has its own number again when it waits.
func TestAJobAdmittedInPart(t *testing.T) {
	for name, tc := range map[string]struct {
		mode              batchv1.CompletionMode
		completions, part int32 // part is how many completions it has while it runs in part
	}{
		"Indexed":                       {batchv1.IndexedCompletion, 5, 3},
		"Indexed, with more indexes":    {batchv1.IndexedCompletion, 8, 8},
		"as many completions as pods":   {batchv1.NonIndexedCompletion, 5, 5},
		"more completions than it runs": {batchv1.NonIndexedCompletion, 8, 8},
	} {
		t.Run(name, func(t *testing.T) {
			two := ptr.To(int32(2))
			w := newWorld(t, newJob(elastic(tc.mode, tc.completions)))
			w.settle()
			w.isOf(5, tc.completions, 5, two)
			uid := w.unit().UID

			w.admitInPart(3)
			w.told()
			w.settle()
			require.False(t, *w.job().Spec.Suspend)
			w.isOf(3, tc.part, 5, two)
			w.jobStatus(runs(3))
			w.settle()
			w.restart()
			require.Empty(t, w.settle())
			w.isOf(3, tc.part, 5, two)
			require.Equal(t, v1alpha1.PhaseRunning, w.unit().Status.Phase)
			require.True(t, meta.IsStatusConditionTrue(w.unit().Status.Conditions, v1alpha1.ConditionPodsReady),
				"all pods that were admitted are ready")
			require.EqualValues(t, 3, w.unit().Status.Admissions[0].Running)

			w.evict()
			w.settle()
			require.True(t, *w.job().Spec.Suspend)
			w.jobStatus(noted)
			w.settle()
			w.isOf(5, tc.completions, 5, two)
			require.NotContains(t, w.job().Annotations, v1alpha1.AnnotationWholeCounts)

			w.admit()
			w.settle()
			require.False(t, *w.job().Spec.Suspend)
			w.isOf(5, tc.completions, 5, two)
			require.NotContains(t, w.job().Annotations, v1alpha1.AnnotationWholeCounts)
			require.Equal(t, uid, w.unit().UID, "it kept its place")
		})
	}
}

// TestPodsOfAJobInPartEnd: what they held is given back; waiting, the job asks for its own number less those.
func TestPodsOfAJobInPartEnd(t *testing.T) {
	w := newWorld(t, newJob(elastic(batchv1.NonIndexedCompletion, 8)))
	w.settle()
	w.admitInPart(3)
	w.settle()
	w.jobStatus(func(s *batchv1.JobStatus) { runs(3)(s); s.Succeeded = 5 })
	w.settle()
	w.isOf(3, 8, 5, ptr.To(int32(2))) // three are left to run, as many as run
	w.jobStatus(func(s *batchv1.JobStatus) { runs(2)(s); s.Succeeded = 6 })
	w.settle()
	w.isOf(3, 8, 2, nil)
	w.evict()
	w.settle()
	w.jobStatus(func(s *batchv1.JobStatus) { noted(s); s.Succeeded = 6 })
	w.settle()
	w.isOf(5, 8, 2, nil)
}

// TestAnIndexedJobInPartThatHasCompletions cannot give up indexes a second time.
func TestAnIndexedJobInPartThatHasCompletions(t *testing.T) {
	w := newWorld(t, newJob(elastic(batchv1.IndexedCompletion, 5)))
	w.settle()
	w.admitInPart(3)
	w.settle()
	w.jobStatus(func(s *batchv1.JobStatus) { runs(2)(s); s.Succeeded = 1 })
	w.settle()
	w.isOf(3, 3, 2, nil)
	w.evict()
	w.settle()
	w.jobStatus(func(s *batchv1.JobStatus) { noted(s); s.Succeeded = 1 })
	w.settle()
	w.isOf(5, 5, 4, nil)
}

// TestTheOwnerOfAJobInPartChangesItsNumber: that is growth like any other, and the number is his own from then on.
func TestTheOwnerOfAJobInPartChangesItsNumber(t *testing.T) {
	w := newWorld(t, newJob(elastic(batchv1.NonIndexedCompletion, 8)))
	w.settle()
	w.admitInPart(3)
	w.settle()
	w.jobStatus(runs(3))
	w.settle()
	job := w.job()
	job.Spec.Parallelism = ptr.To(int32(4))
	w.update(job)
	w.settle()
	w.isOf(4, 8, 4, nil)
	w.evict()
	w.settle()
	w.jobStatus(noted)
	w.settle()
	w.isOf(4, 8, 4, ptr.To(int32(2)))
}

// TestAdmittedWithFewerPodsThanAJobCanDoWith: such a unit does not stand for the job.
func TestAdmittedWithFewerPodsThanAJobCanDoWith(t *testing.T) {
	for name, edit := range map[string]func(w *world){
		"less than the least": func(w *world) { w.admitInPart(1) },
		"none may be missing": func(w *world) {
			w.admitInPart(3)
			job := w.job()
			job.Annotations = nil
			w.update(job)
		},
		"it holds less than they ask for": func(w *world) {
			w.admitInPart(3)
			u := w.unit()
			u.Status.Admissions[0].Resources = corev1.ResourceList{"cpu": resource.MustParse("1")}
			w.updateStatus(u)
		},
		"not said by pod set": func(w *world) {
			w.admitInPart(3)
			u := w.unit()
			u.Status.Admissions[0].Name = "other"
			w.updateStatus(u)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(elastic(batchv1.NonIndexedCompletion, 8)))
			w.settle()
			edit(w)
			w.settle()
			require.True(t, *w.job().Spec.Suspend)
			require.EqualValues(t, 5, *w.job().Spec.Parallelism)
			require.Contains(t, w.told(), "UnitReplaced")
		})
	}
}

// TestWithoutPartialAdmission no unit says with how few pods its job can do.
func TestWithoutPartialAdmission(t *testing.T) {
	w := newWorld(t, newJob(elastic(batchv1.NonIndexedCompletion, 8)))
	w.r.Options.Plan.PartialAdmission = false
	w.settle()
	w.isOf(5, 8, 5, nil)
}

// elastic is a job of five pods that can do with two.
func elastic(mode batchv1.CompletionMode, completions int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Annotations = map[string]string{v1alpha1.AnnotationMinParallelism: "2"}
		job.Spec.CompletionMode = &mode
		job.Spec.Parallelism, job.Spec.Completions = ptr.To(int32(5)), &completions
	}
}
