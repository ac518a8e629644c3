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
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/standin"
)

// autoscaler installs ProvisioningRequests and starts a stand-in that answers them.
func (c *cluster) autoscaler(t *testing.T) {
	t.Helper()
	root, err := controlplane.RepositoryRoot()
	require.NoError(t, err)
	definition, err := os.ReadFile(filepath.Join(root, "test", "harness", "standin", "autoscaler",
		"autoscaling.x-k8s.io_provisioningrequests.yaml"))
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), definition))
	scheme := runtime.NewScheme()
	require.NoError(t, autoscalingv1.AddToScheme(scheme))
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	ctrl.SetLogger(klog.NewKlogr())
	config := c.RESTConfig(controlplane.Admin)
	live, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return live.List(t.Context(), &autoscalingv1.ProvisioningRequestList{}) == nil
	}, soon, pace)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: klog.NewKlogr(), Metrics: metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0", Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	require.NoError(t, err)
	require.NoError(t, (&standin.Autoscaler{Client: live, Clock: clock.RealClock{}}).SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// provisions has a queue ask for capacity, which the stand-in answers so; again at once, and so often at most.
func (c *cluster) provisions(t *testing.T, queue, answers string, retries int64) {
	t.Helper()
	for resource, object := range map[string]map[string]any{
		"provisioningrequestconfigs": {
			"kind": "ProvisioningRequestConfig", "metadata": map[string]any{"name": queue},
			"spec": map[string]any{
				"provisioningClassName": "standin.example.com", "parameters": map[string]any{"answers": answers},
				"retryStrategy": map[string]any{"backoffLimitCount": retries, "backoffBaseSeconds": int64(3)},
			},
		},
		"admissionchecks": {
			"kind": "AdmissionCheck", "metadata": map[string]any{"name": queue},
			"spec": map[string]any{
				"controllerName": schedulingv1alpha1.ProvisioningController, "parameters": map[string]any{
					"apiGroup": v1beta1.GroupName, "kind": "ProvisioningRequestConfig", "name": queue},
			},
		},
	} {
		object["apiVersion"] = v1beta1.SchemeGroupVersion.String()
		_, err := c.dyn.Resource(v1beta1.SchemeGroupVersion.WithResource(resource)).Create(t.Context(),
			&unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	c.patchQueue(t, queue, fmt.Sprintf(`{"spec":{"admissionChecks":[{"name":%q}]}}`, queue))
}

// requests for capacity in a namespace.
func (c *cluster) requests(t *testing.T, namespace string) (requests []autoscalingv1.ProvisioningRequest) {
	t.Helper()
	list, err := c.dyn.Resource(autoscalingv1.ProvisioningRequestResource).Namespace(namespace).
		List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		r := autoscalingv1.ProvisioningRequest{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &r))
		requests = append(requests, r)
	}
	return requests
}

// active says whether the controller of a check says that it answers it.
func (c *cluster) active(t *testing.T, check string) bool {
	t.Helper()
	u, err := c.dyn.Resource(v1beta1.AdmissionCheckResources[1]).Get(t.Context(), check, metav1.GetOptions{})
	require.NoError(t, err)
	a := &v1beta1.AdmissionCheck{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a))
	return meta.IsStatusConditionTrue(a.Status.Conditions, v1beta1.ConditionActive)
}

// noRequests are left in a namespace, nor anything that was made for them.
func (c *cluster) noRequests(t *testing.T, namespace string) {
	t.Helper()
	require.Eventually(t, func() bool {
		templates, err := c.kube.CoreV1().PodTemplates(namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return len(c.requests(t, namespace)) == 0 && len(templates.Items) == 0
	}, soon, pace, "requests and templates are left")
}

// Jobs wait until a cluster autoscaler has the nodes, are tried again when it has none, and give way when they are
// gone.
func TestProvisioningRequests(t *testing.T) {
	c := sharedCluster(t)
	c.autoscaler(t)
	job := func(t *testing.T, name, answers string, retries int64, runsFor time.Duration) (ns string) {
		ns = c.namespace(t, "prov-"+name)
		c.quota(t, ns, "prov-"+name, 4, 4)
		c.provisions(t, "prov-"+name, answers, retries)
		c.create(t, newJob(ns, name, suspended, ofQuota("prov-"+name), cpu("1"), pods(2), runs(runsFor)))
		return ns
	}
	const brief = 2 * time.Second

	t.Run("provisioned", func(t *testing.T) {
		ns := job(t, "provisioned", "Accepted", 0, brief)
		c.waitPhase(t, ns, "provisioned", schedulingv1alpha1.PhaseReserved)
		require.Eventually(t, func() bool {
			states := c.unit(t, ns, "provisioned").Status.AdmissionChecks
			return len(states) == 1 && states[0].Message == "the stand-in says Accepted"
		}, soon, pace)
		require.Empty(t, c.podsOf(t, ns, "provisioned"))
		request := c.requests(t, ns)[0]
		require.EqualValues(t, 2, request.Spec.PodSets[0].Count)
		template, err := c.kube.CoreV1().PodTemplates(ns).Get(t.Context(), request.Spec.PodSets[0].PodTemplateRef.Name,
			metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "1", template.Template.Spec.Containers[0].Resources.Requests.Cpu().String())
		require.Empty(t, template.Template.Spec.Containers[0].Command)

		// The controller is not there when the answer comes.
		require.NoError(t, c.Kill(controlplane.Controller))
		_, err = c.dyn.Resource(autoscalingv1.ProvisioningRequestResource).Namespace(ns).Patch(t.Context(), request.Name,
			"application/merge-patch+json", []byte(`{"status":{"conditions":[{"type":"Provisioned","status":"True",`+
				`"reason":"There","message":"there","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`),
			metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		require.NoError(t, c.Restart(t.Context(), controlplane.Controller))
		c.waitPhase(t, ns, "provisioned", schedulingv1alpha1.PhaseSucceed)
		all := c.podsOf(t, ns, "provisioned")
		require.Len(t, all, 2)
		for i := range all {
			require.Equal(t, request.Name, all[i].Annotations[autoscalingv1.AnnotationConsume])
			require.Equal(t, "standin.example.com", all[i].Annotations[autoscalingv1.AnnotationClass])
		}
		require.EqualValues(t, 1, c.unit(t, ns, "provisioned").Status.Attempts)
		c.noRequests(t, ns)
	})

	t.Run("failed", func(t *testing.T) {
		ns := job(t, "failed", "Accepted,Failed;Failed;Accepted,Provisioned", 2, brief)
		c.waitPhase(t, ns, "failed", schedulingv1alpha1.PhaseTimeoutBackoff)
		c.noRequests(t, ns)
		c.waitPhase(t, ns, "failed", schedulingv1alpha1.PhaseSucceed)
		require.EqualValues(t, 3, c.unit(t, ns, "failed").Status.Attempts)
		require.Len(t, c.podsOf(t, ns, "failed"), 2, "it ran once")
		c.noRequests(t, ns)
	})

	t.Run("failed-for-good", func(t *testing.T) {
		ns := job(t, "failed-for-good", "Failed", 1, brief)
		c.deactivated(t, ns, "failed-for-good", "CheckRejected")
		u := c.unit(t, ns, "failed-for-good")
		require.EqualValues(t, 2, u.Status.Attempts)
		target := meta.FindStatusCondition(u.Status.Conditions, schedulingv1alpha1.ConditionDeactivationTarget)
		require.Contains(t, target.Message, "capacity was asked for 2 times")
		c.noRequests(t, ns)
	})

	t.Run("expired", func(t *testing.T) {
		ns := job(t, "expired", "Provisioned+BookingExpired;Provisioned,used,12s,BookingExpired", 3, 25*time.Second)
		c.waitPhase(t, ns, "expired", schedulingv1alpha1.PhaseTimeoutBackoff)
		evicted := meta.FindStatusCondition(c.unit(t, ns, "expired").Status.Conditions,
			schedulingv1alpha1.ConditionEvicted)
		require.Contains(t, evicted.Message, "BookingExpired")
		require.Eventually(t, func() bool {
			requests := c.requests(t, ns)
			return len(requests) == 1 &&
				meta.IsStatusConditionTrue(requests[0].Status.Conditions, autoscalingv1.BookingExpired) &&
				len(c.podsOf(t, ns, "expired")) == 2
		}, soon, pace)
		c.waitPhase(t, ns, "expired", schedulingv1alpha1.PhaseSucceed)
		require.EqualValues(t, 2, c.unit(t, ns, "expired").Status.Attempts, "it runs on when a booking expires that it uses")
		require.Len(t, c.podsOf(t, ns, "expired"), 2)
	})

	t.Run("revoked", func(t *testing.T) {
		ns := job(t, "revoked", "Provisioned,used,3s,CapacityRevoked;Provisioned", 3, 15*time.Second)
		c.waitPhase(t, ns, "revoked", schedulingv1alpha1.PhaseRunning)
		c.waitPhase(t, ns, "revoked", schedulingv1alpha1.PhaseTimeoutBackoff)
		u := c.unit(t, ns, "revoked")
		evicted := meta.FindStatusCondition(u.Status.Conditions, schedulingv1alpha1.ConditionEvicted)
		require.Equal(t, "CheckRetry", evicted.Reason)
		require.Contains(t, evicted.Message, "CapacityRevoked")
		require.Equal(t, admissioncheck.Retry, u.Status.AdmissionChecks[0].State)
		c.waitPhase(t, ns, "revoked", schedulingv1alpha1.PhaseSucceed)
		u = c.unit(t, ns, "revoked")
		require.EqualValues(t, 2, u.Status.Attempts)
		for _, pod := range c.podsOf(t, ns, "revoked") {
			require.Contains(t, pod.Annotations[autoscalingv1.AnnotationConsume], "-2", "of the present reservation")
		}
		c.noRequests(t, ns)
	})

	t.Run("sample", func(t *testing.T) {
		root, err := controlplane.RepositoryRoot()
		require.NoError(t, err)
		sample, err := os.ReadFile(filepath.Join(root, "examples", "provisioning-request", "check.yaml"))
		require.NoError(t, err)
		require.NoError(t, c.Apply(t.Context(), sample))
		require.Eventually(t, func() bool { return c.active(t, "gpus") }, soon, pace)
	})

	t.Run("parameters", func(t *testing.T) {
		ns := job(t, "parameters", "Provisioned", 3, brief)
		c.waitPhase(t, ns, "parameters", schedulingv1alpha1.PhaseSucceed)
		configs := c.dyn.Resource(v1beta1.SchemeGroupVersion.WithResource("provisioningrequestconfigs"))
		require.NoError(t, configs.Delete(t.Context(), "prov-parameters", metav1.DeleteOptions{}))
		require.Eventually(t, func() bool { return !c.active(t, "prov-parameters") }, soon, pace)
		c.create(t, newJob(ns, "waits", suspended, ofQuota("prov-parameters"), cpu("1"), runs(brief)))
		require.Contains(t, c.waitReason(t, ns, "waits", "CheckInactive"),
			`ProvisioningRequestConfig "prov-parameters" does not exist`)
	})
}
