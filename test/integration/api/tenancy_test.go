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
	"strings"
	"testing"

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
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
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

func named(key, value string) map[string]string {
	if value == "" {
		return nil
	}
	return map[string]string{key: value}
}

// text is where an object may name a quota or a queue.
type text struct{ labels, annotations map[string]string }

func label(key, value string) text { return text{labels: named(key, value)} }

func quotaOf(name string) text { return label(v1alpha1.LabelQuotaName, name) }

func (x text) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: x.labels, Annotations: x.annotations}
}

func jobWith(onPods text) batchv1.JobSpec {
	return batchv1.JobSpec{Suspend: ptr.To(true), Template: corev1.PodTemplateSpec{
		ObjectMeta: onPods.meta(), Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}}
}

func (u tenant) job(t *testing.T, namespace string, onJob, onPods text) error {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: onJob.meta(), Spec: jobWith(onPods)}
	job.GenerateName = "j-"
	_, err := u.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{})
	return err
}

func (u tenant) cronJob(t *testing.T, namespace string, onCron, onJob, onPods text) error {
	t.Helper()
	cron := &batchv1.CronJob{ObjectMeta: onCron.meta(), Spec: batchv1.CronJobSpec{
		Schedule: "0 0 1 1 *", Suspend: ptr.To(true),
		JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: onJob.meta(), Spec: jobWith(onPods)},
	}}
	cron.GenerateName = "c-"
	_, err := u.BatchV1().CronJobs(namespace).Create(t.Context(), cron, metav1.CreateOptions{})
	return err
}

func (u tenant) pod(t *testing.T, namespace, quota string) error {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "p-",
			Labels: map[string]string{v1alpha1.LabelQuotaName: quota}},
		Spec: corev1.PodSpec{
			SchedulerName: "koord-scheduler", Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	_, err := u.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	return err
}

func (u tenant) unit(t *testing.T, namespace, quota, queue string) error {
	t.Helper()
	unit := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
		"metadata": map[string]any{"namespace": namespace, "generateName": "u-"},
		"spec":     map[string]any{"request": map[string]any{"cpu": "1"}},
	}}
	unit.SetLabels(named(v1alpha1.LabelQuotaName, quota))
	if queue != "" {
		require.NoError(t, unstructured.SetNestedField(unit.Object, queue, "spec", "queue"))
	}
	_, err := u.dynamic.Resource(v1alpha1.QueueUnitResource).Namespace(namespace).
		Create(t.Context(), unit, metav1.CreateOptions{})
	return err
}

// TestTenancy: as two tenants. A job is charged to a quota, and waits in a queue, that its namespace or user may use
// (I11).
func TestTenancy(t *testing.T) {
	connect(t)
	require.NoError(t, server.ApplyKoordinatorCRDs(t.Context()))
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	tenants(t, admin)
	t.Run("warns", tenancyWarns)
	install(t, "overlays/enforced")
	alice, bob := tenantNamed(t, "alice"), tenantNamed(t, "bob")

	const (
		quotas = `need the verb "use" on elasticquotas`
		queues = `need the verb "use" on queues`
	)
	inQueue := func(name string) text { return label(v1alpha1.QueueNameKey, name) }
	annotated := func(name string) text { return text{annotations: named(v1alpha1.QueueNameKey, name)} }
	for name, c := range map[string]struct {
		do      func() error
		refused string
	}{
		"her own quota": {func() error { return alice.job(t, "tenant-a", quotaOf("quota-a"), quotaOf("quota-a")) }, ""},
		"no quota":      {func() error { return alice.job(t, "tenant-a", text{}, text{}) }, ""},
		"another's, on the job": {
			func() error { return alice.job(t, "tenant-a", quotaOf("quota-b"), text{}) }, quotas},
		"another's, on the pods": {
			func() error { return alice.job(t, "tenant-a", text{}, quotaOf("quota-b")) }, quotas},
		"another's, by the first other label": {func() error {
			return alice.job(t, "tenant-a", label(v1alpha1.LabelQuotaNameFallback1, "quota-b"), text{})
		}, quotas},
		"another's, by the second other label": {func() error {
			return alice.job(t, "tenant-a", label(v1alpha1.LabelQuotaNameFallback2, "quota-b"), text{})
		}, quotas},
		"her own, in another namespace": {
			func() error { return alice.job(t, "tenant-b", quotaOf("quota-a"), text{}) }, quotas},
		"that of the namespace, by anybody": {
			func() error { return alice.job(t, "tenant-b", quotaOf("quota-b"), text{}) }, ""},
		"that of the namespace, by its people": {
			func() error { return bob.job(t, "tenant-b", quotaOf("quota-b"), quotaOf("quota-b")) }, ""},
		"her own, but by somebody else": {
			func() error { return bob.job(t, "tenant-a", quotaOf("quota-a"), text{}) }, quotas},
		"a quota that does not exist": {
			func() error { return alice.job(t, "tenant-a", quotaOf("quota-c"), text{}) }, quotas},
		"a pod in another's quota":  {func() error { return alice.pod(t, "tenant-a", "quota-b") }, quotas},
		"a pod in her own":          {func() error { return alice.pod(t, "tenant-a", "quota-a") }, ""},
		"a unit in another's quota": {func() error { return alice.unit(t, "tenant-a", "quota-b", "") }, quotas},
		"a unit in her own":         {func() error { return alice.unit(t, "tenant-a", "quota-a", "") }, ""},
		"a CronJob of another's, on itself": {func() error {
			return alice.cronJob(t, "tenant-a", quotaOf("quota-b"), text{}, text{})
		}, quotas},
		"a CronJob of another's, on its jobs": {func() error {
			return alice.cronJob(t, "tenant-a", text{}, quotaOf("quota-b"), text{})
		}, quotas},
		"a CronJob of another's, on their pods": {func() error {
			return alice.cronJob(t, "tenant-a", text{}, text{}, quotaOf("quota-b"))
		}, quotas},
		"a CronJob of her own": {func() error {
			return alice.cronJob(t, "tenant-a", text{}, quotaOf("quota-a"), quotaOf("quota-a"))
		}, ""},

		"her queue":                {func() error { return alice.job(t, "tenant-a", inQueue("queue-a"), text{}) }, ""},
		"another's, by a label":    {func() error { return alice.job(t, "tenant-a", inQueue("queue-b"), text{}) }, queues},
		"another's, by annotation": {func() error { return alice.job(t, "tenant-a", annotated("queue-b"), text{}) }, queues},
		"another's, on pods": {
			func() error { return alice.job(t, "tenant-a", text{}, annotated("queue-b")) }, queues},
		"that of her quota": {func() error {
			return alice.job(t, "tenant-a", text{
				labels: named(v1alpha1.LabelQuotaName, "quota-a"), annotations: named(v1alpha1.QueueNameKey, "quota-a"),
			}, text{})
		}, ""},
		"that of a quota which she does not name": {
			func() error { return alice.job(t, "tenant-a", annotated("quota-b"), text{}) }, queues},
		"a queue of the namespace": {func() error { return bob.job(t, "tenant-b", annotated("queue-b"), text{}) }, ""},
		"a unit in another's queue, without a quota": {
			func() error { return alice.unit(t, "tenant-a", "", "queue-b") }, queues},
		"a unit in her queue": {func() error { return alice.unit(t, "tenant-a", "", "queue-a") }, ""},
		"a CronJob whose jobs go to another's": {func() error {
			return alice.cronJob(t, "tenant-a", text{}, annotated("queue-b"), text{})
		}, queues},

		"pods that the job controller makes": {func() error {
			return tenantNamed(t, jobController).pod(t, "tenant-a", "quota-b")
		}, ""},
		"but not jobs": {func() error {
			return tenantNamed(t, jobController).job(t, "tenant-a", quotaOf("quota-b"), text{})
		}, quotas},
		"jobs that the CronJob controller makes": {func() error {
			return tenantNamed(t, cronJobController).job(t, "tenant-a", quotaOf("quota-b"), annotated("queue-b"))
		}, ""},
		"pods that another controller makes": {func() error {
			return tenantNamed(t, replicaSets).pod(t, "tenant-a", "quota-b")
		}, quotas},
		"pods that any controller may have made": {func() error {
			return tenantNamed(t, allControllers).pod(t, "tenant-a", "quota-b")
		}, quotas},
		"the same where the namespace may": {func() error {
			return tenantNamed(t, replicaSets).pod(t, "tenant-b", "quota-b")
		}, ""},
		"what the queue's controller writes": {func() error {
			return tenantNamed(t, controlplane.ControllerUser).unit(t, "tenant-a", "quota-b", "queue-b")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.do()
			if c.refused == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, c.refused)
		})
	}
	t.Run("two quotas", tenancyOfTwo)
	t.Run("priorities of units", tenancyOfPriorities)
	t.Run("what exists", tenancyOfWhatExists)
	t.Run("paths", tenancyOfPaths)
	t.Run("lists", tenancyOfLists)
	t.Run("nodes", tenancyOfNodes)
	t.Run("pods that exist", tenancyOfPodsThatExist)
	manage(t, adminTenant(t))
	t.Run("schedulers", tenancyOfSchedulers)
	t.Run("leaving", tenancyOfLeaving)
	t.Run("jobs that stay", tenancyOfWhatKeepsAJob)
	t.Run("namespaces without the label", tenancyOfNamespacesWithoutTheLabel)
	t.Run("our accounts", tenancyOfOurAccounts)
	t.Run("gangs", tenancyOfGangs)
	t.Run("classes", tenancyOfClasses)
	t.Run("without the ConfigMap", tenancyWithoutConfigMap)
}

// warnings that the API server gave.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// In the default installation the policy refuses nothing, and warns the client.
func tenancyWarns(t *testing.T) {
	install(t, "components/tenancy")
	config := server.RESTConfig(controlplane.Admin)
	config.Impersonate.UserName = "alice"
	told := &warnings{}
	config.WarningHandler = told
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	alice := tenant{Interface: client}
	require.NoError(t, alice.job(t, "tenant-a", quotaOf("quota-b"), text{}))
	require.Len(t, told.texts, 1)
	require.Contains(t, told.texts[0], `neither alice nor namespace tenant-a may use quota quota-b`)
	told.texts = nil
	require.NoError(t, alice.job(t, "tenant-a", quotaOf("quota-a"), text{}))
	require.Empty(t, told.texts)
}

// A job cannot hide another's quota behind its own.
func tenancyOfTwo(t *testing.T) {
	alice := tenantNamed(t, "alice")
	require.ErrorContains(t, alice.job(t, "tenant-a", quotaOf("quota-a"), quotaOf("quota-b")),
		"the object names several quotas: quota-")
	require.ErrorContains(t, alice.job(t, "tenant-a", quotaOf("quota-b"), quotaOf("quota-a")),
		"the object names several quotas: quota-")
	require.ErrorContains(t, alice.job(t, "tenant-a", text{
		labels: named(v1alpha1.QueueNameKey, "queue-a"), annotations: named(v1alpha1.QueueNameKey, "queue-b"),
	}, text{}), "several queues are named: queue-")
}

// A number that is a priority is for those who may give one; the priority of others comes from a class.
func tenancyOfPriorities(t *testing.T) {
	alice := tenantNamed(t, "alice").dynamic.Resource(v1alpha1.QueueUnitResource).Namespace("tenant-a")
	unit := func(priority any) *unstructured.Unstructured {
		spec := map[string]any{"request": map[string]any{"cpu": "1"}, "priorityClassName": "high"}
		if priority != nil {
			spec["priority"] = priority
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
			"metadata": map[string]any{"generateName": "u-"}, "spec": spec,
		}}
	}
	const refused = `have the verb "prioritize"`
	_, err := alice.Create(t.Context(), unit(int64(1)), metav1.CreateOptions{})
	require.ErrorContains(t, err, refused)
	for _, priority := range []any{nil, int64(0), int64(-1)} {
		_, err = alice.Create(t.Context(), unit(priority), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	admin, err := dynamic.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	made, err := admin.Resource(v1alpha1.QueueUnitResource).Namespace("tenant-a").
		Create(t.Context(), unit(int64(7)), metav1.CreateOptions{})
	require.NoError(t, err)
	made.SetLabels(map[string]string{"a": "b"})
	made, err = alice.Update(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err, "what it has it may keep")
	raised := made.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(raised.Object, int64(8), "spec", "priority"))
	_, err = alice.Update(t.Context(), raised, metav1.UpdateOptions{})
	require.ErrorContains(t, err, refused)

	// Nor does she write an override of an operator, or take one away.
	for _, annotations := range []map[string]string{
		{v1alpha1.AnnotationOverridePriority: "8"}, {v1alpha1.AnnotationOverrideQueue: "queue-a"},
	} {
		overridden := made.DeepCopy()
		overridden.SetAnnotations(annotations)
		_, err = alice.Update(t.Context(), overridden, metav1.UpdateOptions{})
		require.ErrorContains(t, err, "may not override what a job says")
	}
	operators := admin.Resource(v1alpha1.QueueUnitResource).Namespace("tenant-a")
	made.SetAnnotations(map[string]string{v1alpha1.AnnotationOverridePriority: "many"})
	_, err = operators.Update(t.Context(), made, metav1.UpdateOptions{})
	require.ErrorContains(t, err, "not a whole number")
	made.SetAnnotations(map[string]string{v1alpha1.AnnotationOverridePriority: "-1"})
	made, err = operators.Update(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	made.SetAnnotations(nil)
	_, err = alice.Update(t.Context(), made, metav1.UpdateOptions{})
	require.ErrorContains(t, err, "may not override what a job says")
}

const (
	jobController     = "system:serviceaccount:kube-system:job-controller"
	cronJobController = "system:serviceaccount:kube-system:cronjob-controller"
	replicaSets       = "system:serviceaccount:kube-system:replicaset-controller"
	// allControllers is that of a kube-controller-manager whose controllers have no accounts of their own.
	allControllers = "system:kube-controller-manager"
)

// An object may go on naming what it names, and may not change to another's.
func tenancyOfWhatExists(t *testing.T) {
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	job := &batchv1.Job{
		ObjectMeta: text{named(v1alpha1.LabelQuotaName, "quota-b"), named(v1alpha1.QueueNameKey, "queue-b")}.meta(),
		Spec:       jobWith(text{}),
	}
	job.GenerateName = "j-"
	job, err = admin.BatchV1().Jobs("tenant-a").Create(t.Context(), job, metav1.CreateOptions{})
	require.NoError(t, err, "administrators may use every quota and queue")
	alice := tenantNamed(t, "alice")
	update := func(change func(*batchv1.Job)) error {
		changed := job.DeepCopy()
		change(changed)
		changed, err := alice.BatchV1().Jobs("tenant-a").Update(t.Context(), changed, metav1.UpdateOptions{})
		if err == nil {
			job = changed
		}
		return err
	}
	require.NoError(t, update(func(j *batchv1.Job) { j.Annotations["a"] = "b" }))
	err = update(func(j *batchv1.Job) { j.Labels[v1alpha1.LabelQuotaName] = "quota-c" })
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	err = update(func(j *batchv1.Job) { j.Annotations[v1alpha1.QueueNameKey] = "queue-c" })
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.NoError(t, update(func(j *batchv1.Job) { j.Annotations[v1alpha1.QueueNameKey] = "queue-a" }))
}

// tenants makes two namespaces in which alice, bob and some controllers may write everything. Alice may use quota-a and
// queue-a in team-a, and everybody in team-b quota-b and queue-b.
func tenants(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	for _, name := range []string{"tenant-a", "tenant-b"} {
		_, err := admin.CoreV1().Namespaces().
			Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-writes"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"batch", "", "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"},
		Resources: []string{"jobs", "cronjobs", "pods", "pods/resize", "pods/eviction", "queueunits", "podgroups"},
		Verbs:     []string{"create", "update", "get", "delete"},
	}}}
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	subjects := []rbacv1.Subject{}
	for _, user := range []string{"alice", "bob", replicaSets, jobController, cronJobController, allControllers} {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
	}
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-writes"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "test-writes"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	mayUse(t, admin, "tenant-a", "a",
		rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"})
	mayUse(t, admin, "tenant-b", "b",
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: "tenant-b"})
}

// mayUse gives the right to the quota and the queue of a team.
func mayUse(t *testing.T, admin kubernetes.Interface, namespace, team string, who rbacv1.Subject) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "use-" + team}
	use := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{resource + "s"}, Verbs: []string{"use"},
			ResourceNames: []string{strings.TrimPrefix(resource, "elastic") + "-" + team},
		}
	}
	rules := []rbacv1.PolicyRule{use("scheduling.sigs.k8s.io", "elasticquota"), use("scheduling.x-k8s.io", "queue")}
	_, err := admin.RbacV1().Roles(namespace).
		Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{who},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}
