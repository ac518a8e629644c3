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
	"encoding/json"
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
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const checkUser = "system:serviceaccount:checks:budget"

// TestWhoAnswersChecks answers checks with only the shipped role, and cannot write anything else.
func TestWhoAnswersChecks(t *testing.T) {
	admin := connect(t)
	install(t, "components/admission-checks-crd")
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

	answersOfOthers(t, namespace)
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

// answersOfOthers: the controller of one check answers no other, and writes only the fields of an answer.
func answersOfOthers(t *testing.T, namespace string) {
	t.Helper()
	theirs := tenantNamed(t, checkUser).dynamic.Resource(v1alpha1.QueueUnitResource).Namespace(namespace)
	// answer merges a text into what is said of each of the two checks.
	answer := func(budget, other string) error {
		unit, err := theirs.Get(t.Context(), "undecided", metav1.GetOptions{})
		require.NoError(t, err)
		checks, _, err := unstructured.NestedSlice(unit.Object, "status", "admissionChecks")
		require.NoError(t, err)
		require.Len(t, checks, 2)
		for i, text := range []string{budget, other} {
			require.NoError(t, json.Unmarshal([]byte(text), ptr.To(checks[i].(map[string]any))))
		}
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"admissionChecks": checks}})
		require.NoError(t, err)
		_, err = theirs.Patch(t.Context(), "undecided", types.MergePatchType, patch,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		return err
	}
	const (
		left  = `{}`
		ready = `{"state":"Ready"}`
		why   = `may not answer other: each needs the verb "answer" on admissionchecks.kueue.x-k8s.io`
	)
	require.Eventually(t, func() bool { return answer(left, ready) != nil },
		30*time.Second, 100*time.Millisecond, "the policy takes effect")
	refused(t, answer(left, ready), why)
	refused(t, answer(ready, ready), "may not answer budget, other: each needs")
	require.NoError(t, answer(ready, left))
	refused(t, answer(`{"state":"Retry","requeueAfterSeconds":86401}`, left), "is more than 86400")
	require.NoError(t, answer(`{"state":"Retry","requeueAfterSeconds":86400}`, left))
	updates := func(what, key string) error {
		return answer(`{"state":"Ready","podSetUpdates":[{"name":"main","`+what+`":{"`+key+`":"x"}}]}`, left)
	}
	for _, key := range []string{
		"gang.scheduling.koordinator.sh/groups", "gang.scheduling.koordinator.sh/name", "koord-queue/queue-name",
		"pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name", "scheduling.x-k8s.io/pod-group",
		"kueue.x-k8s.io/pod-group-name", v1alpha1.LabelQuotaName, v1alpha1.LabelQuotaNameFallback1,
		v1alpha1.LabelQuotaNameFallback2, "koordinator.sh/x",
	} {
		for _, what := range []string{"labels", "annotations"} {
			refused(t, updates(what, key), "podSetUpdates have a key of")
		}
	}
	require.NoError(t, updates("nodeSelector", "paid"))
	require.NoError(t, updates("annotations", "autoscaling.x-k8s.io/consume-provisioning-request"))
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

// bindCheckRole makes the namespace and gives the controller of checks its role until the test ends.
func bindCheckRole(t *testing.T, namespace string) {
	t.Helper()
	typed, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, rights := context.WithoutCancel(t.Context()), typed.RbacV1()
		_ = rights.ClusterRoleBindings().Delete(ctx, "budget-checks", metav1.DeleteOptions{})
		_ = rights.ClusterRoleBindings().Delete(ctx, "answers-budget", metav1.DeleteOptions{})
		_ = rights.ClusterRoles().Delete(ctx, "answers-budget", metav1.DeleteOptions{})
	})
	_, err = typed.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = typed.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "budget-checks"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "jobqueue-admission-check"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "checks", Name: "budget"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	mayAnswer(t, typed, "budget", "overdrawn")
}

// mayAnswer gives the right to answer these checks.
func mayAnswer(t *testing.T, typed kubernetes.Interface, checks ...string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "answers-budget"}
	_, err := typed.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1beta1.GroupName}, Resources: []string{"admissionchecks"},
			ResourceNames: checks, Verbs: []string{"answer"}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = typed.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "checks", Name: "budget"}},
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
