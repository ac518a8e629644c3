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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
)

// TestKeysOfKoordQueue: keys of the stand-alone Koord-Queue have their effect, or their objects say that they have
// none.
func TestKeysOfKoordQueue(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "former-keys")
	c.quota(t, ns, "former-keys", 1, 1)
	c.createQueue(t, &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{
		Namespace: schedulingv1alpha1.DefaultQueueNamespace, Name: "former",
		Annotations: map[string]string{
			schedulingv1alpha1.AnnotationAvailableQuota: "former-keys", schedulingv1alpha1.AnnotationMaxDepth: "1",
			"koord-queue/wait-for-pods-running": "true",
		},
	}})
	ofQueue := func(name string, length time.Duration, opts ...func(*batchv1.Job)) *batchv1.Job {
		job := newJob(ns, name, suspended, ofQuota("former-keys"), inQueue("former"), runs(length))
		for _, opt := range opts {
			opt(job)
		}
		return job
	}
	c.create(t, ofQueue("held", time.Second, func(job *batchv1.Job) {
		job.Annotations[schedulingv1alpha1.AnnotationActive] = "false"
		job.Annotations["koord-queue/job-enqueue-timestamp"] = "2026-01-02 03:04:05 +0000 UTC"
	}))
	c.waitReason(t, ns, "held", "HeldByOwner")
	c.waitEvent(t, ns, "held", formerkey.Reason)
	require.NotEmpty(t, c.unit(t, ns, "held").Spec.Request)
	require.Equal(t, c.unit(t, ns, "held").Spec.Request, c.unit(t, ns, "held").Spec.Resource)

	c.create(t, ofQueue("now", 8*time.Second))
	c.waitPhase(t, ns, "now", schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning)
	c.create(t, ofQueue("first", time.Second))
	c.waitReason(t, ns, "first", "QuotaExceeded")
	c.create(t, ofQueue("second", time.Second))
	c.waitReason(t, ns, "second", "QueueOverflow")

	require.Eventually(t, func() bool {
		object, err := c.dyn.Resource(schedulingv1alpha1.QueueResource).Namespace(schedulingv1alpha1.DefaultQueueNamespace).
			Get(t.Context(), "former", metav1.GetOptions{})
		require.NoError(t, err)
		queue := &schedulingv1alpha1.Queue{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, queue))
		return meta.IsStatusConditionTrue(queue.Status.Conditions, formerkey.Condition) &&
			meta.IsStatusConditionTrue(queue.Status.Conditions, "Active")
	}, soon, pace, "the conditions of both processes")

	patch := []byte(`{"metadata":{"annotations":{"` + schedulingv1alpha1.AnnotationActive + `":null}}}`)
	_, err := c.kube.BatchV1().Jobs(ns).Patch(t.Context(), "held", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	c.waitDone(t, ns, 4, soon)
}
