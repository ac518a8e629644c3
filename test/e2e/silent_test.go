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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// An admitted job that does not run says why within a minute: on its unit, in an event and in `kubectl jobqueue why`.
func TestAnAdmittedJobIsNeverSilent(t *testing.T) {
	c := visibilityCluster(t, "silent")
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

	restricted, closed := c.namespace(t, "silent-restricted"), c.namespace(t, "silent-closed")
	_, err = c.kube.CoreV1().Namespaces().Patch(t.Context(), restricted, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	c.refusesPods(t, closed)

	held := func(j *batchv1.Job) { j.Annotations[schedulingv1alpha1.AnnotationHold] = "true" }
	ofClass := func(j *batchv1.Job) { j.Spec.Template.Spec.PriorityClassName = "short-lived" }
	gated := func(j *batchv1.Job) {
		j.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/licence"}}
	}
	runtime := func(j *batchv1.Job) { j.Spec.Template.Spec.RuntimeClassName = ptr.To("no-such-runtime") }
	fpga := func(j *batchv1.Job) {
		one := corev1.ResourceList{"example.com/fpga": resource.MustParse("1")}
		j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	}
	c.create(t,
		newJob(full, "refused", suspended, ofQuota("silent-full")),
		newJob(ns, "classless", suspended, ofQuota("silent"), ofClass, held),
		newJob(ns, "gated", suspended, ofQuota("silent"), gated),
		newJob(ns, "fpga", suspended, ofQuota("silent"), fpga),
		newJob(ns, "runtimeless", suspended, ofQuota("silent"), runtime),
		newJob(restricted, "insecure", suspended, ofQuota("silent-full")),
		newJob(closed, "against-policy", suspended, ofQuota("silent-full")),
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
	c.waitEvent(t, ns, "fpga", "1 of example.com/fpga, and no node")
	c.waitEvent(t, ns, "fpga", `quota "silent" has no max for example.com/fpga`)
	for _, want := range []struct{ namespace, job, reason, words string }{
		{full, "refused", "PodsNotCreated", "exceeded quota: small"},
		{ns, "classless", "PodsNotCreated", "no PriorityClass with name short-lived was found"},
		{ns, "gated", "PodsGated", "example.com/licence"},
		{ns, "giant", "PodsPending", "Insufficient cpu"},
		{ns, "fpga", "PodsPending", "Insufficient example.com/fpga"},
		{ns, "runtimeless", "PodsNotCreated", "RuntimeClass"},
		{restricted, "insecure", "PodsNotCreated", "violates PodSecurity"},
		{closed, "against-policy", "PodsNotCreated", "nobody runs anything here"},
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
			why, err := c.kubectlJobqueue(t, "root", "why", want.job, "-n", want.namespace, "-o", "wide")
			require.NoError(t, err)
			t.Log("\n" + why)
			require.Contains(t, why, "Reason: "+want.reason)
			require.Contains(t, why, want.words)
			require.Regexp(t, `the time-out \w+ takes the quota back at \S+ \(in \S+\)`, why)
		})
	}
}

// refusesPods has a policy of the API server refuse each pod of a namespace. It takes a moment to be in force.
func (c *cluster) refusesPods(t *testing.T, namespace string) {
	t.Helper()
	const name = "silent-closed.example.com"
	policies := c.kube.AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(t.Context(),
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
						RuleWithOperations: admissionregistrationv1.RuleWithOperations{
							Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
							Rule: admissionregistrationv1.Rule{
								APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
							},
						},
					}},
				},
				Validations: []admissionregistrationv1.Validation{{
					Expression: fmt.Sprintf("request.namespace != %q", namespace), Message: "nobody runs anything here",
				}},
			},
		}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(t.Context(),
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        name,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := c.kube.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "try"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "nobody runs anything here")
	}, soon, pace, "the policy refuses nothing")
}
