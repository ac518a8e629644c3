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

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

var dryRun = []string{metav1.DryRunAll}

// managed is a namespace whose pods and jobs are looked at whether they name a quota or not.
const managed = "tenant-managed"

// attempts are what u is told that tries a pod, a Job and a CronJob with this in their metadata and pods.
func (u tenant) attempts(t *testing.T, namespace, quota string, change func(*metav1.ObjectMeta, *corev1.PodSpec),
) map[string]error {
	t.Helper()
	pod := podWith(quotaOf(quota).labels)
	change(&pod.ObjectMeta, &pod.Spec)
	job := &batchv1.Job{ObjectMeta: quotaOf(quota).meta(), Spec: jobWith(text{})}
	job.GenerateName = "j-"
	change(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec)
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}, Spec: batchv1.CronJobSpec{
		Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: job.ObjectMeta, Spec: job.Spec},
	}}
	cron.Spec.JobTemplate.GenerateName = ""
	options := metav1.CreateOptions{DryRun: dryRun}
	told := map[string]error{}
	_, told["pod"] = u.CoreV1().Pods(namespace).Create(t.Context(), pod, options)
	_, told["job"] = u.BatchV1().Jobs(namespace).Create(t.Context(), job, options)
	_, told["cronjob"] = u.BatchV1().CronJobs(namespace).Create(t.Context(), cron, options)
	return told
}

func allRefused(t *testing.T, told map[string]error, why string) {
	t.Helper()
	for what, err := range told {
		t.Run(what, func(t *testing.T) { refused(t, err, why) })
	}
}

func noneRefused(t *testing.T, told map[string]error) {
	t.Helper()
	for what, err := range told {
		require.NoError(t, err, what)
	}
}

func manage(t *testing.T, admin tenant) {
	t.Helper()
	_, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: managed, Labels: map[string]string{v1alpha1.LabelManaged: "true"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// No other scheduler than those of the list asks the queue.
func tenancyOfSchedulers(t *testing.T) {
	alice, controller := tenantNamed(t, "alice"), tenantNamed(t, jobController)
	by := func(name string) func(*metav1.ObjectMeta, *corev1.PodSpec) {
		return func(_ *metav1.ObjectMeta, spec *corev1.PodSpec) { spec.SchedulerName = name }
	}
	const why = "does not ask the queue: name one of koord-scheduler"
	allRefused(t, alice.attempts(t, "tenant-a", "quota-a", by("mine")), "scheduler mine "+why)
	allRefused(t, alice.attempts(t, managed, "", by("mine")), "scheduler mine "+why)
	noneRefused(t, alice.attempts(t, "tenant-a", "quota-a", by("koord-scheduler")))
	noneRefused(t, alice.attempts(t, "tenant-a", "", by("mine")))
	// A template says default-scheduler where nobody has said anything. Its pods may get another one from a profile, so it
	// is they that count.
	told := alice.attempts(t, "tenant-a", "quota-a", by(""))
	refused(t, told["pod"], "scheduler default-scheduler "+why)
	require.NoError(t, told["job"])
	require.NoError(t, told["cronjob"])
	refused(t, controller.attempts(t, "tenant-a", "quota-a", by(""))["pod"], "scheduler default-scheduler "+why)
	refused(t, controller.attempts(t, managed, "", by(""))["pod"], "scheduler default-scheduler "+why)
	require.NoError(t, controller.attempts(t, "tenant-a", "quota-a", by("koord-scheduler"))["pod"])
	tenancyOfALaterLabel(t, alice)
}

// A pod of another scheduler does not come to a quota later.
func tenancyOfALaterLabel(t *testing.T, alice tenant) {
	t.Helper()
	pod := podWith(nil)
	pod.Spec.SchedulerName = ""
	pod, err := alice.create(t, "tenant-a", pod)
	require.NoError(t, err)
	refused(t, alice.update(t, pod, func(p *corev1.Pod) { p.Labels = quotaOf("quota-a").labels }),
		"does not ask the queue")
}

// A pod that is deleted gives its place up before long.
func tenancyOfLeaving(t *testing.T) {
	admin, alice := adminTenant(t), tenantNamed(t, "alice")
	seconds := func(n int64) func(*metav1.ObjectMeta, *corev1.PodSpec) {
		return func(_ *metav1.ObjectMeta, spec *corev1.PodSpec) { spec.TerminationGracePeriodSeconds = &n }
	}
	keeps := func(name string) func(*metav1.ObjectMeta, *corev1.PodSpec) {
		return func(meta *metav1.ObjectMeta, _ *corev1.PodSpec) { meta.Finalizers = []string{name} }
	}
	allRefused(t, alice.attempts(t, "tenant-a", "quota-a", seconds(3601)),
		"terminationGracePeriodSeconds is more than 3600")
	allRefused(t, alice.attempts(t, managed, "", seconds(3601)), "terminationGracePeriodSeconds is more than 3600")
	noneRefused(t, alice.attempts(t, "tenant-a", "quota-a", seconds(3600)))
	noneRefused(t, alice.attempts(t, "tenant-a", "", seconds(3601)))
	told := alice.attempts(t, "tenant-a", "quota-a", keeps("example.com/mine"))
	refused(t, told["pod"], "may not put finalizers on a pod")
	refused(t, told["job"], "pods that name a quota have no finalizers")
	refused(t, told["cronjob"], "pods that name a quota have no finalizers")
	noneRefused(t, alice.attempts(t, "tenant-a", "", keeps("example.com/mine")))
	require.NoError(t, alice.attempts(t, "tenant-a", "quota-a", keeps(batchv1.JobTrackingFinalizer))["pod"])

	labelled, err := admin.create(t, "tenant-a", on("node-a", podWith(quotaOf("quota-a").labels)))
	require.NoError(t, err)
	refused(t, alice.update(t, labelled, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/mine"} }),
		"may not put finalizers on a pod")
	tenancyOfDeletion(t, alice, labelled)
	tenancyOfALaterQuota(t, alice)
}

// A tenant who deletes a pod may also say how long that takes.
func tenancyOfDeletion(t *testing.T, alice tenant, pod *corev1.Pod) {
	t.Helper()
	gone := func(seconds int64) metav1.DeleteOptions {
		return metav1.DeleteOptions{GracePeriodSeconds: ptr.To(seconds), DryRun: dryRun}
	}
	pods := alice.CoreV1().Pods(pod.Namespace)
	refused(t, pods.Delete(t.Context(), pod.Name, gone(3601)), "a pod that is deleted is more than 3600 seconds")
	require.NoError(t, pods.Delete(t.Context(), pod.Name, gone(3600)))
	require.NoError(t, pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{DryRun: dryRun}))
	evict := func(seconds int64) error {
		return pods.EvictV1(t.Context(), &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, DeleteOptions: ptr.To(gone(seconds)),
		})
	}
	refused(t, evict(3601), "a pod that is evicted is more than 3600 seconds")
	require.NoError(t, evict(3600))
}

// A job that is not queued may have what it likes; it is not queued with it then.
func tenancyOfALaterQuota(t *testing.T, alice tenant) {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{GenerateName: "j-"}, Spec: jobWith(text{})}
	job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](100_000)
	jobs := alice.BatchV1().Jobs("tenant-a")
	job, err := jobs.Create(t.Context(), job, metav1.CreateOptions{})
	require.NoError(t, err)
	job.Labels = map[string]string{"a": "b"}
	job, err = jobs.Update(t.Context(), job, metav1.UpdateOptions{})
	require.NoError(t, err)
	job.Labels = quotaOf("quota-a").labels
	_, err = jobs.Update(t.Context(), job, metav1.UpdateOptions{})
	refused(t, err, "terminationGracePeriodSeconds is more than 3600")
}

// Gangs of a group share their lot, so all of them are of one namespace.
func tenancyOfGangs(t *testing.T) {
	admin, alice := adminTenant(t), tenantNamed(t, "alice")
	group := func(value string) func(*metav1.ObjectMeta, *corev1.PodSpec) {
		return func(meta *metav1.ObjectMeta, _ *corev1.PodSpec) {
			meta.Annotations = map[string]string{extension.AnnotationGangGroups: value}
		}
	}
	const why = "names gangs that are not of this namespace"
	podGroups := alice.dynamic.Resource(gvr("scheduling.sigs.k8s.io", "v1alpha1", "podgroups")).Namespace("tenant-a")
	podGroup := func(value string) error {
		_, err := podGroups.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{
				"generateName": "g-", "annotations": map[string]any{extension.AnnotationGangGroups: value}},
			"spec": map[string]any{"minMember": int64(1)},
		}}, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	for _, value := range []string{
		`["tenant-b/g"]`, `["tenant-a/g","tenant-b/g"]`, `["tenant-b/g","tenant-a/g"]`, `["tenant-\u0062/g"]`,
		`["xtenant-a/g"]`, "[\"tenant-a/g\",\n\"tenant-b/g\"]", `{}`,
	} {
		for _, quota := range []string{"", "quota-a"} {
			allRefused(t, alice.attempts(t, "tenant-a", quota, group(value)), why)
		}
		refused(t, podGroup(value), why)
	}
	for _, value := range []string{`["tenant-a/g"]`, "[ \"tenant-a/g\",\n\"tenant-a/h.0\" ]", `[]`} {
		for _, quota := range []string{"", "quota-a"} {
			noneRefused(t, alice.attempts(t, "tenant-a", quota, group(value)))
		}
		require.NoError(t, podGroup(value))
	}
	bare, err := admin.create(t, "tenant-a", podWith(nil))
	require.NoError(t, err)
	refused(t, alice.update(t, bare, func(p *corev1.Pod) { group(`["tenant-b/g"]`)(&p.ObjectMeta, nil) }), why)
}

// A class of the system needs the right to prioritize, and a bound of a namespace on numbers also bounds classes.
func tenancyOfClasses(t *testing.T) {
	admin, alice := adminTenant(t), tenantNamed(t, "alice")
	of := func(class string) func(*metav1.ObjectMeta, *corev1.PodSpec) {
		return func(_ *metav1.ObjectMeta, spec *corev1.PodSpec) { spec.PriorityClassName = class }
	}
	unitOf := func(namespace, class string) error {
		unit := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
			"metadata": map[string]any{"generateName": "u-"},
			"spec":     map[string]any{"request": map[string]any{"cpu": "1"}, "priorityClassName": class},
		}}
		_, err := alice.dynamic.Resource(v1alpha1.QueueUnitResource).Namespace(namespace).
			Create(t.Context(), unit, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	for _, class := range []string{"system-node-critical", "system-cluster-critical"} {
		allRefused(t, alice.attempts(t, "tenant-a", "quota-a", of(class)),
			`the priority class `+class+`: that needs the verb "prioritize"`)
		noneRefused(t, admin.attempts(t, "tenant-a", "quota-a", of(class)))
		refused(t, unitOf("tenant-a", class), `the priority class `+class+`: that needs the verb "prioritize"`)
	}
	_, err := admin.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "tenancy-high"}, Value: 1000}, metav1.CreateOptions{})
	require.NoError(t, err)
	namespace, err := admin.CoreV1().Namespaces().Get(t.Context(), managed, metav1.GetOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) { // the API server reads classes from a cache
		assert.NoError(c, alice.attempts(t, managed, "", of("tenancy-high"))["pod"], "nobody bounds it")
	}, 30*time.Second, 100*time.Millisecond)
	require.NoError(t, unitOf(managed, "tenancy-high"))
	for bound, allowed := range map[string]bool{"999": false, "1000": true} {
		namespace.Annotations = map[string]string{v1alpha1.AnnotationMaxPriority: bound}
		namespace, err = admin.CoreV1().Namespaces().Update(t.Context(), namespace, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			return (alice.attempts(t, managed, "", of("tenancy-high"))["pod"] == nil) == allowed
		}, 30*time.Second, 100*time.Millisecond, bound)
	}
	refused(t, unitOf(managed, "tenancy-high"), `the priority class tenancy-high: that needs the verb "prioritize"`)
	require.NoError(t, unitOf(managed, ""))
}
