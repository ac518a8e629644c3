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
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// A job that somebody resumes by hand while it waits is not scheduled and is suspended again.
func TestHandResumedJobStaysGated(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "by-hand")
	c.quota(t, ns, "by-hand", 1, 1)
	watch := observe(t, c, map[string]int{ns: 1})
	c.create(t, newJob(ns, "holder", suspended, ofQuota("by-hand"), runs(10*time.Second)))
	c.waitPhase(t, ns, "holder", schedulingv1alpha1.PhaseRunning)
	c.create(t, newJob(ns, "pushy", suspended, ofQuota("by-hand")))
	require.Eventually(t, func() bool { return c.unit(t, ns, "pushy") != nil }, soon, pace)

	_, err := c.kube.BatchV1().Jobs(ns).Patch(t.Context(), "pushy", types.MergePatchType,
		[]byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return *c.job(t, ns, "pushy").Spec.Suspend }, soon, pace, "it is suspended again")
	stays(t, 2*time.Second, "no pod of the job is bound", func() bool {
		for _, p := range c.podsOf(t, ns, "pushy") {
			if p.Spec.NodeName != "" {
				return false
			}
		}
		return true
	})
	c.waitDone(t, ns, 2, soon)
	watch.clean(t, map[string]int{ns + "/holder": 1})
}

// Jobs that are created unsuspended, all at once, never have a pod bound before they are admitted.
func TestUnsuspendedJobsAreGated(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "unsuspended")
	c.quota(t, ns, "unsuspended", 20, 20)
	watch := observe(t, c, map[string]int{ns: 20})
	const n = 100
	for i := range n {
		c.create(t, newJob(ns, fmt.Sprintf("job-%03d", i), ofQuota("unsuspended")))
	}
	c.waitDone(t, ns, n, 3*time.Minute)
	for i := range n {
		c.boundAfterAdmission(t, ns, fmt.Sprintf("job-%03d", i))
	}
	watch.clean(t, nil)
}

// With the controller down, unseen pods of a managed job are not scheduled. A job without a queue runs normally.
func TestControllerDownPodsStayGated(t *testing.T) {
	c := sharedCluster(t)
	ns, other := c.namespace(t, "unknown-jobs"), c.namespace(t, "not-queued")
	c.quota(t, ns, "unknown-jobs", 2, 2)
	require.Eventually(t, func() bool { return c.queue(t, "unknown-jobs") != nil }, soon, pace)
	require.NoError(t, c.StopComponent(controlplane.Controller))
	c.create(t, newJob(ns, "unseen", ofQuota("unknown-jobs")), newJob(other, "plain"))
	c.waitDone(t, other, 1, soon)
	require.Nil(t, c.job(t, other, "plain").Annotations, "an unmanaged job is left alone")
	require.Len(t, c.podsOf(t, ns, "unseen"), 1)
	stays(t, 2*time.Second, "the pod of the managed job is not bound", func() bool {
		return c.podsOf(t, ns, "unseen")[0].Spec.NodeName == ""
	})
	require.NoError(t, c.Restart(t.Context(), controlplane.Controller))
	c.waitDone(t, ns, 1, soon)
	c.boundAfterAdmission(t, ns, "unseen")
}

// With unmanagedJobs: Gate only a label lets a job run in the namespaces of the queues. Otherwise a job without one
// would pass the pending ones.
func TestAJobWithoutLabelsWaitsWhereJobsRunByAQueue(t *testing.T) {
	c := start(t, "unmanaged", controlplane.Options{})
	ns, other := c.namespace(t, "tenant"), c.namespace(t, "not-queued")
	require.NoError(t, c.Apply(t.Context(), []byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: koord-jobqueue-managed-jobs, namespace: koord-queue}
data:
  managedJobs: |
    namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [tenant]}]}
    unmanagedJobs: Gate
`)))
	c.complete(t)
	c.quota(t, ns, "tenant", 2, 2)
	c.create(t, newJob(ns, "past-the-queue"), newJob(other, "plain"))
	c.waitDone(t, other, 1, soon)
	c.waitEvent(t, ns, "past-the-queue", "Unmanaged")
	require.Eventually(t, func() bool { return len(c.podsOf(t, ns, "past-the-queue")) == 1 }, soon, pace)
	stays(t, 2*time.Second, "its pod is not bound", func() bool {
		return c.podsOf(t, ns, "past-the-queue")[0].Spec.NodeName == ""
	})
	_, err := c.kube.BatchV1().Jobs(ns).Patch(t.Context(), "past-the-queue", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+schedulingv1alpha1.LabelQuotaName+`":"tenant"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	c.waitDone(t, ns, 1, soon)
	c.boundAfterAdmission(t, ns, "past-the-queue")
}

// A unit without consumer belongs to something outside; it is queued and admitted like any other.
func TestUnitWithoutConsumer(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "outside")
	c.quota(t, ns, "outside", 2, 2)
	u := handMadeUnit(ns, "outside", "outside", "1")
	c.createUnit(t, u)
	c.waitPhase(t, ns, "outside", schedulingv1alpha1.PhaseDequeued)
	got := c.unit(t, ns, "outside")
	require.Len(t, got.Status.Admissions, 1)
	require.Equal(t, schedulingv1alpha1.DefaultRequirementPodSet, got.Status.Admissions[0].Name)
	require.EqualValues(t, 1, attempts(got))
}

func attempts(u *schedulingv1alpha1.QueueUnit) int64 { return u.Status.Attempts }

// A job without quota and queue is queued if a quota takes its namespace, and the administrator permits that by a label
// of the namespace.
func TestJobsOfMappedNamespacesAreQueued(t *testing.T) {
	c := sharedCluster(t)
	ns, taken := c.namespace(t, "mapped"), c.namespace(t, "mapped-too")
	c.quota(t, ns, ns, 1, 1)
	c.create(t, newJob(ns, "before"))
	c.waitDone(t, ns, 1, soon)
	require.Nil(t, c.unit(t, ns, "before"), "nobody said that jobs here are queued")

	for _, namespace := range []string{ns, taken} {
		_, err := c.kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"`+schedulingv1alpha1.LabelManaged+`":"true"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	watch := observe(t, c, map[string]int{ns: 1})
	c.create(t, newJob(ns, "first", runs(2*time.Second)), newJob(ns, "second"))
	c.waitDone(t, ns, 3, soon)
	for _, name := range []string{"first", "second"} {
		require.Empty(t, c.unit(t, ns, name).Labels[schedulingv1alpha1.LabelQuotaName], "its pods have no label either")
		c.boundAfterAdmission(t, ns, name)
	}
	watch.clean(t, nil)

	// The other namespace becomes its by an annotation, and the job there is queued that no node takes.
	c.create(t, newJob(taken, "unplaced", func(j *batchv1.Job) {
		j.Spec.Template.Spec.NodeSelector = map[string]string{"nowhere": "true"}
	}))
	require.Eventually(t, func() bool { return len(c.podsOf(t, taken, "unplaced")) == 1 }, soon, pace)
	require.Nil(t, c.unit(t, taken, "unplaced"))
	_, err := c.dyn.Resource(elasticQuotas).Namespace(ns).Patch(t.Context(), ns, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"quota.scheduling.koordinator.sh/namespaces":"[\"`+taken+`\"]"}}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return c.unit(t, taken, "unplaced") != nil }, soon, pace)
}
