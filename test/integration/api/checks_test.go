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

package api_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const checkUser = "system:serviceaccount:checks:budget"

// TestWhoAnswersChecks answers checks with the shipped role and nothing else, and finds that it can write no more.
func TestWhoAnswersChecks(t *testing.T) {
	admin := connect(t)
	install(t, "admission-checks-crd")
	waitEstablished(t, admin, "admissionchecks.kueue.x-k8s.io")
	const namespace = "answers"
	bindCheckRole(t, namespace)
	startChecks(t, func(
		_ context.Context, u *v1alpha1.QueueUnit, c *v1beta1.AdmissionCheck,
	) (admissioncheck.Answer, error) {
		switch u.Name {
		case "poor":
			return admissioncheck.Answer{State: admissioncheck.Retry, Message: c.Spec.Parameters.Name + " is spent",
				RequeueAfter: time.Minute}, nil
		case "rich":
			return admissioncheck.Answer{State: admissioncheck.Ready, PodSetUpdates: []v1alpha1.PodSetUpdate{
				{Name: "main", NodeSelector: map[string]string{"paid": "true"}}}}, nil
		default:
			return admissioncheck.Answer{Message: "nobody has decided"}, nil
		}
	})
	checks := admin.Resource(v1beta1.AdmissionCheckResources[1])
	create := func(name, controller, budget string) {
		_, err := checks.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "AdmissionCheck", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"controllerName": controller, "parameters": map[string]any{
				"apiGroup": "example.com", "kind": "Budget", "name": budget}},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	create("budget", "example.com/budget", "q3")
	create("overdrawn", "example.com/budget", "")
	create("other", "example.com/other", "q3")
	active := func(name string) (status string) {
		u, err := checks.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		check := &v1beta1.AdmissionCheck{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, check))
		if c := meta.FindStatusCondition(check.Status.Conditions, v1beta1.ConditionActive); c != nil {
			return string(c.Status)
		}
		return ""
	}
	require.Eventually(t, func() bool { return active("budget") == "True" && active("overdrawn") == "False" },
		30*time.Second, 50*time.Millisecond)
	require.Empty(t, active("other"), "it is somebody else's")

	units := admin.Resource(v1alpha1.QueueUnitResource).Namespace(namespace)
	for _, name := range []string{"poor", "rich", "undecided"} {
		reserve(t, units, name)
	}
	answer := func(name string) v1alpha1.AdmissionCheckState {
		u, err := units.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		unit := &v1alpha1.QueueUnit{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, unit))
		require.Len(t, unit.Status.AdmissionChecks, 2)
		require.Equal(t, admissioncheck.Pending, unit.Status.AdmissionChecks[1].State, "somebody else answers it")
		return unit.Status.AdmissionChecks[0]
	}
	require.Eventually(t, func() bool {
		return answer("poor").State == admissioncheck.Retry && answer("rich").State == admissioncheck.Ready &&
			answer("undecided").Message == "nobody has decided"
	}, 30*time.Second, 50*time.Millisecond)
	require.Equal(t, "q3 is spent", answer("poor").Message)
	require.EqualValues(t, 60, *answer("poor").RequeueAfterSeconds)
	require.EqualValues(t, 1, *answer("poor").RetryCount)
	require.Equal(t, map[string]string{"paid": "true"}, answer("rich").PodSetUpdates[0].NodeSelector)
	rich := answer("rich")
	require.False(t, rich.LastTransitionTime.IsZero())

	theirs := tenantNamed(t, checkUser).dynamic.Resource(v1alpha1.QueueUnitResource).Namespace(namespace)
	require.Eventually(t, func() bool {
		_, err := theirs.Patch(t.Context(), "undecided", types.MergePatchType, []byte(`{"status":{"attempts":7}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		return apierrors.IsForbidden(err)
	}, 30*time.Second, 100*time.Millisecond, "the policy takes effect")
	for what, patch := range map[string]string{
		"phase":              `{"status":{"phase":"Dequeued"}}`,
		"conditions":         `{"status":{"conditions":[]}}`,
		"requeueState":       `{"status":{"requeueState":{"count":0}}}`,
		"attempts":           `{"status":{"attempts":7}}`,
		"a check is dropped": `{"status":{"admissionChecks":[{"name":"budget","state":"Ready"}]}}`,
		"a check is added": `{"status":{"admissionChecks":[{"name":"budget","state":"Ready"},` +
			`{"name":"other","state":"Pending"},{"name":"more","state":"Ready"}]}}`,
	} {
		_, err := theirs.Patch(t.Context(), "undecided", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		require.True(t, apierrors.IsForbidden(err) || apierrors.IsInvalid(err), "%s: %v", what, err)
		require.ErrorContains(t, err, "jobqueue-unit-status", what)
	}
	_, err := theirs.Patch(t.Context(), "undecided", types.MergePatchType, []byte(`{"spec":{"active":false}}`),
		metav1.PatchOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// reserve makes a unit for which quota is reserved, as the scheduler would.
func reserve(t *testing.T, units dynamic.ResourceInterface, name string) {
	t.Helper()
	_, err := units.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"request": map[string]any{"cpu": "1"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = units.Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":{"phase":"Reserved","attempts":1,`+
		`"admissionChecks":[{"name":"budget","state":"Pending"},{"name":"other","state":"Pending"}]}}`),
		metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// bindCheckRole makes the namespace and gives the controller of checks its role.
func bindCheckRole(t *testing.T, namespace string) {
	t.Helper()
	typed, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	_, err = typed.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = typed.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "budget-checks"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "jobqueue-admission-check"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "checks", Name: "budget"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// startChecks runs a controller of checks under its own account until the test ends.
func startChecks(t *testing.T, check admissioncheck.Func) {
	t.Helper()
	ctrl.SetLogger(klog.NewKlogr())
	config := server.RESTConfig(controlplane.Admin)
	config.Impersonate.UserName = checkUser
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: klog.NewKlogr(), Metrics: metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	require.NoError(t, err)
	c := &admissioncheck.Controller{
		ControllerName: "example.com/budget", Check: check,
		Validate: func(_ context.Context, c *v1beta1.AdmissionCheck) error {
			if c.Spec.Parameters == nil || c.Spec.Parameters.Name == "" {
				return errors.New("parameters name no budget")
			}
			return nil
		},
	}
	require.NoError(t, c.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}
