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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controlplane"
)

// tenant is somebody who may write jobs, pods and units in the namespaces of two teams.
type tenant struct {
	kubernetes.Interface
	dynamic dynamic.Interface
}

func tenantNamed(t *testing.T, user string) tenant {
	t.Helper()
	config := server.RESTConfig(controlplane.Admin)
	config.Impersonate.UserName = user
	typed, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	d, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return tenant{typed, d}
}

func quotaJob(namespace, label, onJob, onPods string) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "j-"},
		Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}},
	}
	if onJob != "" {
		job.Labels = map[string]string{label: onJob}
	}
	if onPods != "" {
		job.Spec.Template.Labels = map[string]string{label: onPods}
	}
	return job
}

func (u tenant) job(t *testing.T, job *batchv1.Job) error {
	t.Helper()
	_, err := u.BatchV1().Jobs(job.Namespace).Create(t.Context(), job, metav1.CreateOptions{})
	return err
}

func (u tenant) pod(t *testing.T, namespace, quota string) error {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "p-",
			Labels: map[string]string{v1alpha1.LabelQuotaName: quota}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	_, err := u.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	return err
}

func (u tenant) unit(t *testing.T, namespace, quota string) error {
	t.Helper()
	unit := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
		"metadata": map[string]any{
			"namespace": namespace, "generateName": "u-", "labels": map[string]any{v1alpha1.LabelQuotaName: quota},
		},
		"spec": map[string]any{"queue": "q", "request": map[string]any{"cpu": "1"}},
	}}
	_, err := u.dynamic.Resource(v1alpha1.QueueUnitResource).Namespace(namespace).
		Create(t.Context(), unit, metav1.CreateOptions{})
	return err
}

// TestQuotaUse: as two tenants. A job is charged to a quota that its namespace or user may use (I11).
func TestQuotaUse(t *testing.T) {
	connect(t)
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	tenants(t, admin)
	install(t, "tenancy")
	alice, bob := tenantNamed(t, "alice"), tenantNamed(t, "bob")
	const own = v1alpha1.LabelQuotaName
	require.Eventually(t, func() bool {
		return apierrors.IsForbidden(alice.job(t, quotaJob("tenant-a", own, "quota-b", "")))
	}, 30*time.Second, 100*time.Millisecond, "the policy takes effect")

	for name, c := range map[string]struct {
		do      func() error
		allowed bool
	}{
		"her own quota": {func() error {
			return alice.job(t, quotaJob("tenant-a", own, "quota-a", "quota-a"))
		}, true},
		"no quota":               {func() error { return alice.job(t, quotaJob("tenant-a", own, "", "")) }, true},
		"another's, on the job":  {func() error { return alice.job(t, quotaJob("tenant-a", own, "quota-b", "")) }, false},
		"another's, on the pods": {func() error { return alice.job(t, quotaJob("tenant-a", own, "", "quota-b")) }, false},
		"another's, by the first other label": {func() error {
			return alice.job(t, quotaJob("tenant-a", v1alpha1.LabelQuotaNameFallback1, "quota-b", ""))
		}, false},
		"another's, by the second other label": {func() error {
			return alice.job(t, quotaJob("tenant-a", v1alpha1.LabelQuotaNameFallback2, "quota-b", ""))
		}, false},
		"her own, in another namespace": {func() error {
			return alice.job(t, quotaJob("tenant-b", own, "quota-a", ""))
		}, false},
		"that of the namespace, by anybody": {func() error {
			return alice.job(t, quotaJob("tenant-b", own, "quota-b", ""))
		}, true},
		"that of the namespace, by its people": {func() error {
			return bob.job(t, quotaJob("tenant-b", own, "quota-b", "quota-b"))
		}, true},
		"her own, but by somebody else": {func() error {
			return bob.job(t, quotaJob("tenant-a", own, "quota-a", ""))
		}, false},
		"a quota that does not exist": {func() error {
			return alice.job(t, quotaJob("tenant-a", own, "quota-c", ""))
		}, false},
		"a pod in another's quota":  {func() error { return alice.pod(t, "tenant-a", "quota-b") }, false},
		"a pod in her own":          {func() error { return alice.pod(t, "tenant-a", "quota-a") }, true},
		"a unit in another's quota": {func() error { return alice.unit(t, "tenant-a", "quota-b") }, false},
		"a unit in her own":         {func() error { return alice.unit(t, "tenant-a", "quota-a") }, true},
		"pods that the job controller makes": {func() error {
			return tenantNamed(t, "system:serviceaccount:kube-system:job-controller").pod(t, "tenant-a", "quota-b")
		}, true},
		"pods that another controller makes": {func() error {
			return tenantNamed(t, replicaSets).pod(t, "tenant-a", "quota-b")
		}, false},
		"the same where the namespace may": {func() error {
			return tenantNamed(t, replicaSets).pod(t, "tenant-b", "quota-b")
		}, true},
		"what the queue's controller writes": {
			func() error { return tenantNamed(t, controlplane.ControllerUser).unit(t, "tenant-a", "quota-b") }, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.do()
			if c.allowed {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, `need the verb "use" on elasticquotas`)
		})
	}
}

// TestQuotaUseOfTwo: a job cannot hide another's quota behind its own.
func TestQuotaUseOfTwo(t *testing.T) {
	connect(t)
	alice := tenantNamed(t, "alice")
	for _, job := range []*batchv1.Job{
		quotaJob("tenant-a", v1alpha1.LabelQuotaName, "quota-a", "quota-b"),
		quotaJob("tenant-a", v1alpha1.LabelQuotaName, "quota-b", "quota-a"),
	} {
		require.ErrorContains(t, alice.job(t, job), "the labels name several quotas: quota-")
	}
}

const replicaSets = "system:serviceaccount:kube-system:replicaset-controller"

// TestQuotaUseOfWhatExists: an object may go on naming what it names, and may not change to another's.
func TestQuotaUseOfWhatExists(t *testing.T) {
	connect(t)
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	job, err := admin.BatchV1().Jobs("tenant-a").
		Create(t.Context(), quotaJob("tenant-a", v1alpha1.LabelQuotaName, "quota-b", ""), metav1.CreateOptions{})
	require.NoError(t, err, "administrators may use every quota")
	alice := tenantNamed(t, "alice")
	job.Annotations = map[string]string{"a": "b"}
	job, err = alice.BatchV1().Jobs("tenant-a").Update(t.Context(), job, metav1.UpdateOptions{})
	require.NoError(t, err)
	job.Labels[v1alpha1.LabelQuotaName] = "quota-c"
	_, err = alice.BatchV1().Jobs("tenant-a").Update(t.Context(), job, metav1.UpdateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// tenants makes two namespaces in which alice, bob and some controllers may write everything. Alice may use quota-a in
// team-a, and everybody in team-b quota-b.
func tenants(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	for _, name := range []string{"tenant-a", "tenant-b"} {
		_, err := admin.CoreV1().Namespaces().
			Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-writes"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"batch", "", "scheduling.x-k8s.io"}, Resources: []string{"jobs", "pods", "queueunits"},
		Verbs: []string{"create", "update", "get"},
	}}}
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	subjects := []rbacv1.Subject{}
	for _, user := range []string{"alice", "bob", replicaSets, "system:serviceaccount:kube-system:job-controller"} {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
	}
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-writes"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test-writes"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	mayUse(t, admin, "tenant-a", "quota-a",
		rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"})
	mayUse(t, admin, "tenant-b", "quota-b",
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: "tenant-b"})
}

func mayUse(t *testing.T, admin kubernetes.Interface, namespace, quota string, who rbacv1.Subject) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "use-" + quota}
	_, err := admin.RbacV1().Roles(namespace).
		Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"scheduling.sigs.k8s.io"}, Resources: []string{"elasticquotas"}, ResourceNames: []string{quota},
			Verbs: []string{"use"},
		}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{who},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}
