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
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// An admitted job that does not run says why within a minute: on its unit, in an event and in `kubectl jobqueue why`.
func TestAnAdmittedJobIsNeverSilent(t *testing.T) {
	c, _ := visibilityCluster(t, "silent")
	ns, full := c.namespace(t, "silent"), c.namespace(t, "silent-full")
	c.quota(t, ns, "silent", 12, 16)
	c.quota(t, full, "silent-full", 2, 16)
	c.bind(t, "root", "cluster-admin", "")
	// Nothing in this control plane writes the status of a ResourceQuota, which is what the API server goes by.
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	small, err := c.kube.CoreV1().ResourceQuotas(full).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	small.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	_, err = c.kube.CoreV1().ResourceQuotas(full).UpdateStatus(t.Context(), small, metav1.UpdateOptions{})
	require.NoError(t, err)
	classes := c.kube.SchedulingV1().PriorityClasses()
	_, err = classes.Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}, Value: 7,
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	held := func(j *batchv1.Job) { j.Annotations[schedulingv1alpha1.AnnotationHold] = "true" }
	ofClass := func(j *batchv1.Job) { j.Spec.Template.Spec.PriorityClassName = "short-lived" }
	gated := func(j *batchv1.Job) {
		j.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/licence"}}
	}
	c.create(t,
		newJob(full, "refused", suspended, ofQuota("silent-full")),
		newJob(ns, "classless", suspended, ofQuota("silent"), ofClass, held),
		newJob(ns, "gated", suspended, ofQuota("silent"), gated),
	)
	c.waitReason(t, ns, "classless", "HeldByOwner")
	c.create(t, newJob(ns, "giant", suspended, ofQuota("silent"), cpu("9")))
	require.NoError(t, classes.Delete(t.Context(), "short-lived", metav1.DeleteOptions{}))
	_, err = c.kube.BatchV1().Jobs(ns).Patch(t.Context(), "classless", types.MergePatchType,
		[]byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, schedulingv1alpha1.AnnotationHold)),
		metav1.PatchOptions{})
	require.NoError(t, err)

	// The job is told before it is released as well.
	c.waitEvent(t, ns, "giant", "Doubtful")
	for _, want := range []struct{ namespace, job, reason, words string }{
		{full, "refused", "PodsNotCreated", "exceeded quota: small"},
		{ns, "classless", "PodsNotCreated", "no PriorityClass with name short-lived was found"},
		{ns, "gated", "PodsGated", "example.com/licence"},
		{ns, "giant", "PodsPending", "Insufficient cpu"},
	} {
		t.Run(want.job, func(t *testing.T) {
			var last string
			require.Eventually(t, func() bool {
				u := c.unit(t, want.namespace, want.job)
				if u == nil {
					return false
				}
				last = fmt.Sprintf("phase %q, conditions %v", u.Status.Phase, u.Status.Conditions)
				ready := meta.FindStatusCondition(u.Status.Conditions, schedulingv1alpha1.ConditionPodsReady)
				return ready != nil && ready.Reason == want.reason
			}, 2*time.Minute, pace, "it never said %s: %s", want.reason, lazy(&last))
			u := c.unit(t, want.namespace, want.job)
			require.Contains(t, meta.FindStatusCondition(u.Status.Conditions,
				schedulingv1alpha1.ConditionPodsReady).Message, want.words)
			require.WithinDuration(t, u.Status.LastAllocateTime.Time, u.Status.LastUpdateTime.Time, time.Minute+5*time.Second)
			c.waitEvent(t, want.namespace, want.job, want.reason)
			why, err := c.kubectlJobqueue(t, "root", "why", want.job, "-n", want.namespace)
			require.NoError(t, err)
			t.Log("\n" + why)
			require.Contains(t, why, "Reason: "+want.reason)
			require.Contains(t, why, want.words)
			require.Regexp(t, `the time-out \w+ takes the quota back at \S+ \(in \S+\)`, why)
		})
	}
}
