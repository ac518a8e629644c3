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
	"k8s.io/client-go/kubernetes"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

func specOn(node string) batchv1.JobSpec {
	spec := jobWith(text{})
	spec.Template.Spec.NodeName = node
	return spec
}

func (u tenant) podOn(t *testing.T, node string) error {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	_, err := u.CoreV1().Pods("tenant-a").Create(t.Context(), pod, metav1.CreateOptions{})
	return err
}

func (u tenant) jobOn(t *testing.T, node string) error {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{GenerateName: "j-"}, Spec: specOn(node)}
	_, err := u.BatchV1().Jobs("tenant-a").Create(t.Context(), job, metav1.CreateOptions{})
	return err
}

func (u tenant) cronJobOn(t *testing.T, node string) error {
	t.Helper()
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}, Spec: batchv1.CronJobSpec{
		Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: specOn(node)},
	}}
	_, err := u.BatchV1().CronJobs("tenant-a").Create(t.Context(), cron, metav1.CreateOptions{})
	return err
}

// Only who may bind pods makes pods that are bound: nobody else gets past queue and quota by naming a node.
func tenancyOfNodes(t *testing.T) {
	const node = "node-a"
	typed, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	admin := tenant{Interface: typed}
	alice, controller := tenantNamed(t, "alice"), tenantNamed(t, jobController)
	for name, err := range map[string]error{
		"a pod": alice.podOn(t, node), "a job": alice.jobOn(t, node), "a CronJob": alice.cronJobOn(t, node),
		"a job of the job controller": controller.jobOn(t, node),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
		require.ErrorContains(t, err, `may not name node node-a: that needs the verb "create" on pods/binding`)
	}
	for name, err := range map[string]error{
		"no node": alice.podOn(t, ""), "a pod that the job controller makes": controller.podOn(t, node),
		"a pod of an administrator": admin.podOn(t, node), "a job of an administrator": admin.jobOn(t, node),
		"a CronJob of an administrator": admin.cronJobOn(t, node),
	} {
		require.NoError(t, err, name)
	}
	tenancyOfAJobOnItsNode(t, admin, alice)
	mayBind(t, admin, "bob")
	require.Eventually(t, func() bool { return tenantNamed(t, "bob").podOn(t, node) == nil },
		30*time.Second, 100*time.Millisecond, "whoever may bind pods")
}

// A job may go on naming its node, and may not change it.
func tenancyOfAJobOnItsNode(t *testing.T, admin, alice tenant) {
	t.Helper()
	job, err := admin.BatchV1().Jobs("tenant-a").Create(t.Context(),
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{GenerateName: "j-"}, Spec: specOn("node-a")}, metav1.CreateOptions{})
	require.NoError(t, err)
	job.Labels = map[string]string{"a": "b"}
	_, err = alice.BatchV1().Jobs("tenant-a").Update(t.Context(), job, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func mayBind(t *testing.T, admin tenant, user string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "tenant-a", Name: "binds"}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/binding"}, Verbs: []string{"create"}}}
	_, err := admin.RbacV1().Roles("tenant-a").
		Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().RoleBindings("tenant-a").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}
