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

package parts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/jobobjects"
)

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job")

func jobOf(namespace, name string, owner types.UID) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if owner != "" {
		job.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow", Name: "flow", UID: owner, Controller: ptr.To(true),
		}}
	}
	return job
}

// Parts are looked at again when the unit of their maker ends, goes, or stands for another job, and not otherwise.
func TestPartsAreLookedAtWhenNoUnitStandsForTheirMaker(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, batchv1.AddToScheme(scheme))
	jobs := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&batchv1.Job{}, Index, OwnerOf).WithObjects(
		jobOf("team", "a", "flow-1"), jobOf("team", "b", "flow-1"), jobOf("team", "c", "flow-2"), jobOf("team", "d", ""),
		jobOf("other", "e", "flow-1"),
	).Build()
	handler := Waker{Kind: jobKind, Jobs: jobs}.Handler()
	unit := func(uid types.UID, phase v1alpha1.QueueUnitPhase) *v1alpha1.QueueUnit {
		u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "flow"}}
		u.Spec.ConsumerRef = &corev1.ObjectReference{UID: uid}
		u.Status.Phase = phase
		return u
	}
	bare := unit("", "Running")
	bare.Spec.ConsumerRef = nil
	for name, tc := range map[string]struct {
		before, after *v1alpha1.QueueUnit
		want          []string
	}{
		"it is admitted":         {unit("flow-1", "Enqueued"), unit("flow-1", "Dequeued"), nil},
		"it ends":                {unit("flow-1", "Running"), unit("flow-1", "Succeed"), []string{"a", "b"}},
		"it had ended":           {unit("flow-1", "Succeed"), unit("flow-1", "Succeed"), nil},
		"it goes":                {unit("flow-1", "Running"), nil, []string{"a", "b"}},
		"it goes after its end":  {unit("flow-1", "Failed"), nil, nil},
		"it is of another job":   {unit("flow-2", "Running"), unit("flow-1", "Running"), []string{"c"}},
		"it has no job":          {bare, nil, nil},
		"nobody is part of that": {unit("flow-3", "Running"), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			if tc.after != nil {
				handler.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, queue)
			} else {
				handler.Delete(t.Context(), event.DeleteEvent{Object: tc.before}, queue)
			}
			var woken []string
			for queue.Len() > 0 {
				request, _ := queue.Get()
				require.Equal(t, "team", request.Namespace)
				woken = append(woken, request.Name)
			}
			require.Equal(t, tc.want, woken)
		})
	}
}

// A job that is too large for the cache is found there without its owners.
func TestOwnersOfJobsInTheCache(t *testing.T) {
	kind := jobobjects.BatchJob(t)
	kept := func(edit func(*batchv1.Job)) client.Object {
		job := jobOf("team", "a", "flow-1")
		edit(job)
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
		require.NoError(t, err)
		return compact.Job(kind, &unstructured.Unstructured{Object: object}, false)
	}
	require.Equal(t, []string{"flow-1"}, OwnerOf(kept(func(*batchv1.Job) {})))
	require.Empty(t, OwnerOf(kept(func(j *batchv1.Job) { j.OwnerReferences = nil })))
	require.Equal(t, []string{notKept}, OwnerOf(kept(func(j *batchv1.Job) {
		j.Labels = map[string]string{"a": strings.Repeat("x", 4<<10)}
	})))
}
