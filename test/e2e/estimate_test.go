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
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/podwebhook"
)

// A LimitRange has pods ask for more than their template: the quota's memory lets one job run at a time, and the queue
// knows it.
func TestLimitRangeCounts(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "limited")
	c.quota(t, ns, "limited", 2, 2) // 8Gi
	watch := observe(t, c, map[string]int{ns: 2})
	_, err := c.kube.CoreV1().LimitRanges(ns).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"memory": resource.MustParse("5Gi")},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.create(t, newJob(ns, "first", suspended, ofQuota("limited"), cpu("100m"), runs(4*time.Second)))
	c.waitPhase(t, ns, "first", schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning)
	require.Equal(t, "5Gi", ptr.To(c.unit(t, ns, "first").Spec.Request["memory"]).String())
	c.create(t, newJob(ns, "second", suspended, ofQuota("limited"), cpu("100m")))
	c.waitDone(t, ns, 2, soon)
	first, second := c.job(t, ns, "first"), c.unit(t, ns, "second")
	require.False(t, second.Status.LastAllocateTime.Before(first.Status.CompletionTime), "it waited for the memory")
	watch.clean(t, nil)
}

// An unknown webhook makes pods ask for less than the estimate. The difference is free for others while they run.
func TestPodsThatAskForLessThanWasEstimated(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "lean")
	c.quota(t, ns, "lean", 4, 4)
	c.leanPods(t, ns)
	c.create(t, newJob(ns, "first", suspended, ofQuota("lean"), pods(2), cpu("2"), runs(20*time.Second)))
	c.waitPhase(t, ns, "first", schedulingv1alpha1.PhaseRunning)
	first := c.unit(t, ns, "first")
	require.Equal(t, "4", ptr.To(first.Status.Admissions[0].Resources["cpu"]).String(),
		"it was admitted with all of the quota")
	c.create(t, newJob(ns, "second", suspended, ofQuota("lean"), cpu("3")))
	c.waitPhase(t, ns, "second", schedulingv1alpha1.PhaseSucceed)
	require.Equal(t, schedulingv1alpha1.PhaseRunning, c.unit(t, ns, "first").Status.Phase)
	c.waitDone(t, ns, 2, soon)
}

// leanPods registers a webhook that has pods of the namespace ask for a tenth of a core.
func (c *cluster) leanPods(t *testing.T, namespace string) {
	t.Helper()
	handler := admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
		pod := &corev1.Pod{}
		if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("100m")
		lean, err := json.Marshal(pod)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(req.Object.Raw, lean)
	})
	hooks := c.kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	registration := podwebhook.Serve(t, namespace,
		"lean.example.com", map[string]string{corev1.LabelMetadataName: namespace}, handler)
	_, err := hooks.Create(t.Context(), registration, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = hooks.Delete(context.Background(), namespace, metav1.DeleteOptions{}) })
	require.Eventually(t, func() bool {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "p-"}}
		pod.Spec = newJob(namespace, "template", cpu("1")).Spec.Template.Spec
		got, err := c.kube.CoreV1().Pods(namespace).Create(t.Context(), pod,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && got.Spec.Containers[0].Resources.Requests.Cpu().String() == "100m"
	}, soon, pace)
}
