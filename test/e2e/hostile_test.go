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
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Attacks by which a tenant could harm others with jobs in its own namespace. docs/design/security.md has the list.

// Once a forged record of template additions made the controller write another team's quota label, and the pods ran on
// that quota.
func TestAForgedRecordRunsOnNobodysQuota(t *testing.T) {
	c := sharedCluster(t)
	victim, thief := c.namespace(t, "record-victim"), c.namespace(t, "record-thief")
	c.quota(t, victim, "robbed", 4, 4)
	c.quota(t, thief, "thieves", 4, 4)
	forged := func(j *batchv1.Job) {
		j.Annotations[schedulingv1alpha1.QueueNameKey] = "robbed"
		j.Annotations[schedulingv1alpha1.AnnotationTemplateAdditions] =
			`{"` + j.Name + `":{"labels":{"` + schedulingv1alpha1.LabelQuotaName + `":"robbed"}}}`
		j.Spec.Template.Labels["app"] = "any"
	}
	c.create(t, newJob(thief, "unnamed", suspended, forged),
		newJob(thief, "named", suspended, jobOfQuota("thieves"), forged))
	c.waitReason(t, thief, "unnamed", "QuotaNotNamed")
	c.waitReason(t, thief, "named", "QuotaNotInQueue") // the queue of a quota is for that quota

	jobs := c.kube.BatchV1().Jobs(thief)
	_, err := jobs.Patch(t.Context(), "named", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+schedulingv1alpha1.QueueNameKey+`":null}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	c.waitPhase(t, thief, "named", schedulingv1alpha1.PhaseSucceed)
	ran := c.podsOf(t, thief, "named")
	require.NotEmpty(t, ran)
	for _, pod := range ran {
		require.Equal(t, "thieves", pod.Labels[schedulingv1alpha1.LabelQuotaName])
	}
	for _, name := range []string{"unnamed", "named"} {
		job, err := jobs.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.NotEqual(t, "robbed", job.Spec.Template.Labels[schedulingv1alpha1.LabelQuotaName])
	}
}

// A job that can never run is deleted, and a finalizer keeps it: nothing is held for it.
func TestADeletedJobHoldsNothing(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "deleted")
	c.quota(t, ns, "deleted", 2, 2)
	c.createRefused(t, "job", newJob(ns, "kept", suspended, ofQuota("deleted"), cpu("2"), func(j *batchv1.Job) {
		j.Finalizers = []string{"example.com/kept"}
		j.Spec.Template.Spec.NodeSelector = map[string]string{"no": "node"}
	}))
	c.waitPhase(t, ns, "kept", schedulingv1alpha1.PhaseDequeued)
	c.create(t, newJob(ns, "next", suspended, ofQuota("deleted"), cpu("2")))
	jobs := c.kube.BatchV1().Jobs(ns)
	background := metav1.DeletePropagationBackground
	require.NoError(t, jobs.Delete(t.Context(), "kept", metav1.DeleteOptions{PropagationPolicy: &background}))
	c.waitPhase(t, ns, "next", schedulingv1alpha1.PhaseSucceed)
	require.Equal(t, schedulingv1alpha1.PhaseEnqueued, c.unit(t, ns, "kept").Status.Phase)
	_, err := jobs.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
}

// bound counts the pods of a job that are on a node.
func (c *cluster) bound(t *testing.T, namespace, job string) (n int) {
	t.Helper()
	for _, pod := range c.podsOf(t, namespace, job) {
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

func (c *cluster) patchJob(t *testing.T, namespace, name, patch string) {
	t.Helper()
	_, err := c.kube.BatchV1().Jobs(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	require.NoError(t, err)
}

// Once a job that was admitted with one pod and then asked for six ran them on reserved quota of others. The growth
// waits in line until there is room.
func TestAJobThatGrowsWaitsForTheRest(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "grows")
	c.quota(t, ns, "grows", 4, 4)
	watch := observe(t, c, map[string]int{ns: 4})
	c.create(t, newJob(ns, "grower", suspended, ofQuota("grows"), runs(time.Hour), func(j *batchv1.Job) {
		j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](1), ptr.To[int32](6)
	}))
	c.waitPhase(t, ns, "grower", schedulingv1alpha1.PhaseRunning)
	c.create(t, newJob(ns, "other", suspended, ofQuota("grows"), pods(3), runs(20*time.Second)))
	c.waitPhase(t, ns, "other", schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning)
	c.patchJob(t, ns, "grower", `{"spec":{"parallelism":4}}`)
	require.Eventually(t, func() bool { return len(c.podsOf(t, ns, "grower")) == 4 }, soon, pace)
	condition := func() metav1.Condition {
		for _, cond := range c.unit(t, ns, "grower").Status.Conditions {
			if cond.Type == schedulingv1alpha1.ConditionResizePending {
				return cond
			}
		}
		return metav1.Condition{}
	}
	require.Eventually(t, func() bool { return condition().Status == metav1.ConditionTrue }, soon, pace)
	require.Equal(t, "QuotaExceeded", condition().Reason)
	require.Equal(t, 1, c.bound(t, ns, "grower"))
	c.waitEvent(t, ns, "grower", "Grows")

	require.Eventually(t, func() bool { return c.bound(t, ns, "grower") == 4 }, time.Minute, pace, "when the other ends")
	require.Equal(t, metav1.ConditionFalse, condition().Status)
	require.Equal(t, "4", c.unit(t, ns, "grower").Status.Admissions[0].Resources.Cpu().String())

	// Others get the quota that it gives back.
	c.create(t, newJob(ns, "next", suspended, ofQuota("grows"), pods(3)))
	c.patchJob(t, ns, "grower", `{"spec":{"parallelism":1}}`)
	c.waitPhase(t, ns, "next", schedulingv1alpha1.PhaseSucceed)
	require.Equal(t, "1", c.unit(t, ns, "grower").Status.Admissions[0].Resources.Cpu().String())
	watch.clean(t, map[string]int{ns + "/other": 3, ns + "/next": 3})
}

// Once a job that ran before anybody queued it held its whole request, whether or not that fits or exists. With a
// parallelism of two billion it stopped the cluster. It holds the request of its bound pods.
func TestAJobThatRanHoldsWhatIsBound(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "ran")
	c.quota(t, ns, "ran", 4, 4)
	c.create(t, newJob(ns, "greedy", runs(time.Hour), func(j *batchv1.Job) {
		j.Spec.Parallelism = ptr.To[int32](1)
		j.Spec.Template.Labels["app"] = "greedy"
	}))
	require.Eventually(t, func() bool { return c.bound(t, ns, "greedy") == 1 }, soon, pace, "nobody queues it")
	const most = 40 // as many pods as a test can make; what it asks for is ten times its quota
	c.patchJob(t, ns, "greedy", fmt.Sprintf(`{"metadata":{"labels":{%q:"ran"}},"spec":{"parallelism":%d}}`,
		schedulingv1alpha1.LabelQuotaName, most))
	c.waitPhase(t, ns, "greedy", schedulingv1alpha1.PhaseRunning)
	c.create(t, newJob(ns, "victim", suspended, ofQuota("ran"), pods(3)))
	c.waitPhase(t, ns, "victim", schedulingv1alpha1.PhaseSucceed)
	require.Equal(t, 1, c.bound(t, ns, "greedy"))
}
