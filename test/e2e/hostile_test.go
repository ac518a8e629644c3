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

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// What a tenant may do to others by writing jobs in its own namespace. docs/security.md has the list.

// A forged record of what resuming wrote into a template once had the controller put another team's quota label there:
// the pods ran on that quota.
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
	c.create(t, newJob(ns, "kept", suspended, ofQuota("deleted"), cpu("2"), func(j *batchv1.Job) {
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
