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
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// answerer answers checks as a test says, by the names of check and unit; until it says anything, not at all.
type answerer struct {
	mu      sync.Mutex
	answers map[string]admissioncheck.Answer
}

func (k *answerer) say(check, job string, a admissioncheck.Answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.answers[check+"/"+job] = a
}

func (k *answerer) check(
	_ context.Context, u *schedulingv1alpha1.QueueUnit, c *v1beta1.AdmissionCheck,
) (admissioncheck.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a, said := k.answers[c.Name+"/"+u.Spec.ConsumerRef.Name]
	if !said {
		return admissioncheck.Answer{Message: "nobody has decided", RequeueAfter: 100 * time.Millisecond}, nil
	}
	return a, nil
}

// checker starts a controller of checks with pkg/admissioncheck, and makes the checks.
func (c *cluster) checker(t *testing.T, names ...string) *answerer {
	t.Helper()
	k := &answerer{answers: map[string]admissioncheck.Answer{}}
	scheme := runtime.NewScheme()
	require.NoError(t, schedulingv1alpha1.AddToScheme(scheme))
	ctrl.SetLogger(klog.NewKlogr())
	mgr, err := ctrl.NewManager(c.RESTConfig(controlplane.Admin), ctrl.Options{
		Scheme: scheme, Logger: klog.NewKlogr(), Metrics: metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	require.NoError(t, err)
	checks := &admissioncheck.Controller{ControllerName: "example.com/" + names[0], Check: k.check}
	require.NoError(t, checks.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	for _, name := range names {
		version := schema.GroupVersion{Group: v1beta1.GroupName, Version: cmp.Or(c.checksVersion, "v1beta1")}
		_, err := c.dyn.Resource(version.WithResource("admissionchecks")).Create(t.Context(), &unstructured.Unstructured{
			Object: map[string]any{
				"apiVersion": version.String(), "kind": "AdmissionCheck",
				"metadata": map[string]any{"name": name, "annotations": map[string]any{
					schedulingv1alpha1.AnnotationPodUpdateKeys: "paid-by,note,checked",
				}},
				"spec": map[string]any{"controllerName": "example.com/" + names[0]},
			}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return k
}

// A job waits with its quota reserved until its checks have answered; what they ask for is in its pods.
func TestAdmissionChecks(t *testing.T) { sharedCluster(t).runsChecks(t) }

// Kueue 0.20 serves AdmissionChecks in no other version.
func TestAdmissionChecksInV1beta2(t *testing.T) {
	c := start(t, "checks-v1beta2", controlplane.Options{})
	c.serveChecksIn(t, "v1beta2")
	c.complete(t)
	c.runsChecks(t)
	c.agrees(t)
}

// serveChecksIn replaces the definition of AdmissionChecks by one that has only this version.
func (c *cluster) serveChecksIn(t *testing.T, version string) {
	t.Helper()
	definitions := c.dyn.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	name := "admissionchecks." + v1beta1.GroupName
	crd, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, definitions.Delete(t.Context(), name, metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, soon, pace)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	i := slices.IndexFunc(versions, func(v any) bool { return v.(map[string]any)["name"] == version })
	versions[i].(map[string]any)["storage"] = true
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions[i:i+1], "spec", "versions"))
	crd.SetResourceVersion("")
	_, err = definitions.Create(t.Context(), crd, metav1.CreateOptions{})
	require.NoError(t, err)
	resource := schema.GroupVersionResource{Group: v1beta1.GroupName, Version: version, Resource: "admissionchecks"}
	require.Eventually(t, func() bool {
		_, err := c.dyn.Resource(resource).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, soon, pace)
	c.checksVersion = version
}

func (c *cluster) runsChecks(t *testing.T) {
	t.Helper()
	ns := c.namespace(t, "checks")
	k := c.checker(t, "e2e-budget", "e2e-data")
	c.quota(t, ns, "checks", 4, 4)
	c.patchQueue(t, "checks", `{"spec":{"admissionChecks":[{"name":"e2e-budget"},`+
		`{"name":"e2e-data","labelSelector":{"matchLabels":{"needs":"data"}}}]}}`)
	c.create(t, newJob(ns, "slow", suspended, ofQuota("checks"), cpu("3"), runs(2*time.Second), func(j *batchv1.Job) {
		j.Labels["needs"] = "data"
	}))
	c.waitPhase(t, ns, "slow", schedulingv1alpha1.PhaseReserved)
	c.create(t, newJob(ns, "next", suspended, ofQuota("checks"), cpu("3"), runs(2*time.Second)))
	require.Contains(t, c.waitReason(t, ns, "next", "QuotaExceeded"), "cpu", "what is reserved is held")
	k.say("e2e-data", "slow", admissioncheck.Answer{State: admissioncheck.Ready})
	require.Eventually(t, func() bool {
		return c.unit(t, ns, "slow").Status.AdmissionChecks[1].State == admissioncheck.Ready
	}, soon, pace)
	require.Equal(t, schedulingv1alpha1.PhaseReserved, c.unit(t, ns, "slow").Status.Phase)
	require.Empty(t, c.podsOf(t, ns, "slow"))
	k.say("e2e-budget", "slow", admissioncheck.Answer{
		State: admissioncheck.Ready, PodSetUpdates: []schedulingv1alpha1.PodSetUpdate{{
			Name: "slow", Labels: map[string]string{"paid-by": "q3"}, Annotations: map[string]string{"note": "hello"},
			Tolerations: []corev1.Toleration{{Key: "expensive", Operator: corev1.TolerationOpExists}},
		}},
	})
	k.say("e2e-budget", "next", admissioncheck.Answer{State: admissioncheck.Ready})
	c.waitPhase(t, ns, "slow", schedulingv1alpha1.PhaseRunning, schedulingv1alpha1.PhaseSucceed)
	pod := c.podsOf(t, ns, "slow")[0]
	require.Equal(t, "q3", pod.Labels["paid-by"])
	require.Equal(t, "hello", pod.Annotations["note"])
	require.Contains(t, pod.Spec.Tolerations, corev1.Toleration{Key: "expensive", Operator: corev1.TolerationOpExists})
	c.waitPhase(t, ns, "next", schedulingv1alpha1.PhaseSucceed)

	// Tried again at its place, and rejected.
	k.say("e2e-budget", "spent", admissioncheck.Answer{
		State: admissioncheck.Retry, Message: "the budget is spent", RequeueAfter: 2 * time.Second,
	})
	c.create(t, newJob(ns, "spent", suspended, ofQuota("checks"), cpu("3"), runs(2*time.Second)))
	c.waitPhase(t, ns, "spent", schedulingv1alpha1.PhaseTimeoutBackoff)
	evicted := meta.FindStatusCondition(c.unit(t, ns, "spent").Status.Conditions, schedulingv1alpha1.ConditionEvicted)
	require.Equal(t, "CheckRetry", evicted.Reason)
	require.Contains(t, evicted.Message, "the budget is spent")
	k.say("e2e-budget", "spent", admissioncheck.Answer{State: admissioncheck.Ready})
	c.waitPhase(t, ns, "spent", schedulingv1alpha1.PhaseSucceed)
	require.EqualValues(t, 2, c.unit(t, ns, "spent").Status.Attempts)
	k.say("e2e-budget", "forbidden", admissioncheck.Answer{State: admissioncheck.Rejected, Message: "never"})
	c.create(t, newJob(ns, "forbidden", suspended, ofQuota("checks"), cpu("3")))
	c.deactivated(t, ns, "forbidden", "CheckRejected")

	c.patchQueue(t, "checks", `{"spec":{"admissionChecks":[{"name":"e2e-missing"}]}}`)
	c.create(t, newJob(ns, "last", suspended, ofQuota("checks"), cpu("3"), runs(time.Second)))
	require.Contains(t, c.waitReason(t, ns, "last", "CheckNotFound"), "e2e-missing")
	c.patchQueue(t, "checks", `{"spec":{"admissionChecks":null}}`)
	c.waitPhase(t, ns, "last", schedulingv1alpha1.PhaseSucceed)
}

// Either process is killed while checks are asked, and while they answer.
func TestAProcessIsKilledAmidChecks(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "killed-amid-checks")
	k := c.checker(t, "e2e-killed")
	c.quota(t, ns, "killed-amid-checks", 2, 2)
	c.patchQueue(t, "killed-amid-checks", `{"spec":{"admissionChecks":[{"name":"e2e-killed"}]}}`)
	for _, component := range []controlplane.Component{controlplane.Scheduler, controlplane.Controller} {
		name := string(component)
		first, second := newJob(ns, name+"-1", suspended, ofQuota("killed-amid-checks"), cpu("2"), runs(2*time.Second)),
			newJob(ns, name+"-2", suspended, ofQuota("killed-amid-checks"), cpu("2"), runs(2*time.Second))
		c.create(t, first)
		c.waitPhase(t, ns, first.Name, schedulingv1alpha1.PhaseReserved)
		c.create(t, second)
		require.NoError(t, c.Kill(component))
		k.say("e2e-killed", first.Name, admissioncheck.Answer{
			State: admissioncheck.Ready, PodSetUpdates: []schedulingv1alpha1.PodSetUpdate{{
				Name: first.Name, Labels: map[string]string{"checked": "yes"}}},
		})
		require.Eventually(t, func() bool {
			return c.unit(t, ns, first.Name).Status.AdmissionChecks[0].State == admissioncheck.Ready
		}, soon, pace)
		require.NoError(t, c.Restart(t.Context(), component))
		c.waitPhase(t, ns, first.Name, schedulingv1alpha1.PhaseSucceed)
		require.Equal(t, "yes", c.podsOf(t, ns, first.Name)[0].Labels["checked"])
		c.waitPhase(t, ns, second.Name, schedulingv1alpha1.PhaseReserved)
		k.say("e2e-killed", second.Name, admissioncheck.Answer{State: admissioncheck.Ready})
		c.waitPhase(t, ns, second.Name, schedulingv1alpha1.PhaseSucceed)
		for _, job := range []string{first.Name, second.Name} {
			require.Len(t, c.podsOf(t, ns, job), 1, "%s ran once (I3)", job)
			require.EqualValues(t, 1, c.unit(t, ns, job).Status.Attempts)
		}
	}
}
