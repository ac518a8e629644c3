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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

var elasticQuotas = schema.GroupVersionResource{
	Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "elasticquotas",
}

const rootQuota = "koordinator-root-quota"

// quotaOption changes an ElasticQuota before it is created.
type quotaOption func(*unstructured.Unstructured)

func under(parent string) quotaOption {
	return func(q *unstructured.Unstructured) { setLabel(q, schedulingv1alpha1.LabelQuotaParent, parent) }
}

func isParent() quotaOption {
	return func(q *unstructured.Unstructured) { setLabel(q, "quota.scheduling.koordinator.sh/is-parent", "true") }
}

func withPolicy(policy schedulingv1alpha1.QueuePolicy) quotaOption {
	return func(q *unstructured.Unstructured) { setLabel(q, schedulingv1alpha1.LabelQueuePolicy, string(policy)) }
}

func setLabel(o *unstructured.Unstructured, key, value string) {
	labels := o.GetLabels()
	labels[key] = value
	o.SetLabels(labels)
}

// quota creates an ElasticQuota of so many cores; memory is no constraint.
func (c *cluster) quota(t *testing.T, namespace, name string, minCPU, maxCPU int, opts ...quotaOption) {
	t.Helper()
	amounts := func(cpu int) map[string]any {
		return map[string]any{"cpu": fmt.Sprint(cpu), "memory": fmt.Sprintf("%dGi", 4*cpu)}
	}
	q := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": map[string]any{
			schedulingv1alpha1.LabelQuotaParent:         rootQuota,
			"quota.scheduling.koordinator.sh/is-parent": "false",
		}},
		"spec": map[string]any{"min": amounts(minCPU), "max": amounts(maxCPU)},
	}}
	for _, o := range opts {
		o(q)
	}
	_, err := c.dyn.Resource(elasticQuotas).Namespace(namespace).Create(t.Context(), q, metav1.CreateOptions{})
	require.NoError(t, err)
}

// setQuotaMax changes spec.max (and min, when that would be above it).
func (c *cluster) setQuotaMax(t *testing.T, namespace, name string, maxCPU int) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"max":{"cpu":"%d","memory":"%dGi"}}}`, maxCPU, 4*maxCPU)
	_, err := c.dyn.Resource(elasticQuotas).Namespace(namespace).Patch(t.Context(), name,
		"application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

func (c *cluster) namespace(t *testing.T, name string) string {
	t.Helper()
	_, err := c.kube.CoreV1().Namespaces().
		Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{schedulingv1alpha1.AnnotationMaxPriority: "1000"},
		}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	return name
}

// jobOption changes a Job before it is created.
type jobOption func(*batchv1.Job)

func suspended(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }

func pods(n int32) jobOption {
	return func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To(n), ptr.To(n) }
}

// paused asks for no pods; with completions of zero as well the job controller would end the job at once.
func paused(j *batchv1.Job) {
	j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](0), ptr.To[int32](1)
}

func cpu(amount string) jobOption {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(amount),
		}
	}
}

func runs(d time.Duration) jobOption {
	return func(j *batchv1.Job) { j.Spec.Template.Annotations[controlplane.RunTimeAnnotation] = d.String() }
}

// nonPreemptible puts the label on the pod template, where ElasticQuota reads it.
func nonPreemptible(j *batchv1.Job) {
	j.Spec.Template.Labels[schedulingv1alpha1.LabelPreemptible] = "false"
}

func priority(p int) jobOption {
	return func(j *batchv1.Job) { j.Annotations[schedulingv1alpha1.AnnotationPriority] = fmt.Sprint(p) }
}

// ofQuota puts the label on the pod template, where users of ElasticQuota have it.
func ofQuota(name string) jobOption {
	return func(j *batchv1.Job) { j.Spec.Template.Labels[schedulingv1alpha1.LabelQuotaName] = name }
}

// jobOfQuota puts the label on the job only.
func jobOfQuota(name string) jobOption {
	return func(j *batchv1.Job) { j.Labels[schedulingv1alpha1.LabelQuotaName] = name }
}

func inQueue(name string) jobOption {
	return func(j *batchv1.Job) { j.Annotations[schedulingv1alpha1.QueueNameKey] = name }
}

func gang(name string, minAvailable int) jobOption {
	return func(j *batchv1.Job) {
		j.Spec.Template.Annotations["gang.scheduling.koordinator.sh/name"] = name
		j.Spec.Template.Annotations["gang.scheduling.koordinator.sh/min-available"] = fmt.Sprint(minAvailable)
	}
}

// newJob is a Job of one pod of one core that runs for a second under koord-scheduler.
func newJob(namespace, name string, opts ...jobOption) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{},
			Annotations: map[string]string{}},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}},
				Spec: corev1.PodSpec{
					SchedulerName: "koord-scheduler",
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: "none"}},
				},
			},
		},
	}
	for _, o := range append([]jobOption{cpu("1"), runs(second)}, opts...) {
		o(j)
	}
	return j
}

// createRefused creates a job that a policy of tenancy refuses. The policy warns for that time, as it does with
// tenancy.mode=warn, so that a test sees what the processes do.
func (c *cluster) createRefused(t *testing.T, policy string, job *batchv1.Job) {
	t.Helper()
	act := func(actions string) {
		_, err := c.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Patch(context.Background(),
			"jobqueue-tenancy-"+policy, types.MergePatchType, []byte(`{"spec":{"validationActions":[`+actions+`]}}`),
			metav1.PatchOptions{})
		require.NoError(t, err)
	}
	act(`"Warn"`)
	t.Cleanup(func() { act(`"Deny"`) })
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		_, err := c.kube.BatchV1().Jobs(job.Namespace).Create(context.Background(), job, metav1.CreateOptions{})
		require.NoError(t, err)
	}, soon, pace)
}

func (c *cluster) create(t *testing.T, jobs ...*batchv1.Job) {
	t.Helper()
	for _, j := range jobs {
		_, err := c.kube.BatchV1().Jobs(j.Namespace).Create(t.Context(), j, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

func (c *cluster) job(t *testing.T, namespace, name string) *batchv1.Job {
	t.Helper()
	j, err := c.kube.BatchV1().Jobs(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return j
}

// unit returns the QueueUnit, nil if there is none.
func (c *cluster) unit(t *testing.T, namespace, name string) *schedulingv1alpha1.QueueUnit {
	t.Helper()
	o, err := c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(namespace).
		Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return decodeUnit(t, o)
}

func decodeUnit(t require.TestingT, o *unstructured.Unstructured) *schedulingv1alpha1.QueueUnit {
	u := &schedulingv1alpha1.QueueUnit{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, u))
	return u
}

func (c *cluster) createUnit(t *testing.T, u *schedulingv1alpha1.QueueUnit) {
	t.Helper()
	u.TypeMeta = metav1.TypeMeta{APIVersion: schedulingv1alpha1.SchemeGroupVersion.String(), Kind: "QueueUnit"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(u)
	require.NoError(t, err)
	delete(content, "status")
	_, err = c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(u.Namespace).
		Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// waitPhase waits until the unit has one of the phases.
func (c *cluster) waitPhase(t *testing.T, namespace, name string, phases ...schedulingv1alpha1.QueueUnitPhase) {
	t.Helper()
	var last string
	require.Eventually(t, func() bool {
		u := c.unit(t, namespace, name)
		if u == nil {
			last = "no unit"
			return false
		}
		last = fmt.Sprintf("phase %q, message %q, conditions %v", u.Status.Phase, u.Status.Message, u.Status.Conditions)
		for _, p := range phases {
			if u.Status.Phase == p {
				return true
			}
		}
		return false
	}, soon, pace, "%s/%s never reached %v: %s", namespace, name, phases, lazy(&last))
}

// waitReason waits until the QuotaReserved condition of the unit is False for this reason and returns the message.
func (c *cluster) waitReason(t *testing.T, namespace, name, reason string) string {
	t.Helper()
	var last, message string
	require.Eventually(t, func() bool {
		u := c.unit(t, namespace, name)
		if u == nil {
			last = "no unit"
			return false
		}
		last = fmt.Sprintf("phase %q, conditions %v", u.Status.Phase, u.Status.Conditions)
		for _, cond := range u.Status.Conditions {
			if cond.Type == schedulingv1alpha1.ConditionQuotaReserved && cond.Status == metav1.ConditionFalse &&
				cond.Reason == reason {
				message = cond.Message
				return true
			}
		}
		return false
	}, soon, pace, "%s/%s never had reason %s: %s", namespace, name, reason, lazy(&last))
	return message
}

// waitEvent waits for an event on the job with this reason.
func (c *cluster) waitEvent(t *testing.T, namespace, job, reason string) {
	t.Helper()
	var seen []string
	require.Eventually(t, func() bool {
		list, err := c.kube.CoreV1().Events(namespace).
			List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + job + ",involvedObject.kind=Job"})
		require.NoError(t, err)
		seen = nil
		for _, e := range list.Items {
			seen = append(seen, e.Reason+": "+e.Message)
			if e.Reason == reason || strings.Contains(e.Message, reason) {
				return true
			}
		}
		return false
	}, soon, pace, "no event %s on job %s/%s: %v", reason, namespace, job, &seen)
}

// waitDone waits until all jobs of the namespace that the selector selects are complete.
func (c *cluster) waitDone(t *testing.T, namespace string, n int, within time.Duration) {
	t.Helper()
	var last string
	require.Eventually(t, func() bool {
		list, err := c.kube.BatchV1().Jobs(namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			last = err.Error()
			return false
		}
		done := 0
		var open []string
		for i := range list.Items {
			if jobDone(&list.Items[i]) {
				done++
			} else if len(open) < 3 {
				open = append(open, list.Items[i].Name)
			}
		}
		last = fmt.Sprintf("%d of %d done, open: %v", done, n, open)
		return done >= n
	}, within, 5*pace, "%s", lazy(&last))
}

func jobDone(j *batchv1.Job) bool {
	for _, cond := range j.Status.Conditions {
		if cond.Type == batchv1.JobComplete && cond.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// podsOf lists the pods of a job.
func (c *cluster) podsOf(t *testing.T, namespace, job string) []corev1.Pod {
	t.Helper()
	list, err := c.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=" + job})
	require.NoError(t, err)
	return list.Items
}

// lazy formats a value when the message is printed, not when the wait starts.
type lazyString struct{ s *string }

func lazy(s *string) fmt.Stringer { return lazyString{s} }

func (l lazyString) String() string { return *l.s }

// stays checks that a condition holds for a while.
func stays(t *testing.T, d time.Duration, what string, holds func() bool) {
	t.Helper()
	require.Never(t, func() bool { return !holds() }, d, pace, what)
}

// unstructuredUnit is a unit without consumer that asks for one core.
func unstructuredUnit(namespace, name, quota string, priority int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": schedulingv1alpha1.SchemeGroupVersion.String(), "kind": "QueueUnit",
		"metadata": map[string]any{"namespace": namespace, "name": name,
			"labels": map[string]any{schedulingv1alpha1.LabelQuotaName: quota}},
		"spec": map[string]any{"priority": int64(priority), "request": map[string]any{"cpu": "1"}},
	}}
}
