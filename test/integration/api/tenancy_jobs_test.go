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
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const tooMuch = "annotations of an object that names a quota have more than 128 KiB"

func jobOf(quota string, edits ...func(*metav1.ObjectMeta)) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: quotaOf(quota).meta(), Spec: jobWith(text{})}
	job.GenerateName = "j-"
	for _, edit := range edits {
		edit(&job.ObjectMeta)
	}
	return job
}

func (u tenant) tries(t *testing.T, namespace string, job *batchv1.Job) error {
	t.Helper()
	_, err := u.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{DryRun: dryRun})
	return err
}

// A job whose quota is taken back can be suspended, and goes when it is deleted (S1, S2).
func tenancyOfWhatKeepsAJob(t *testing.T) {
	admin, alice := adminTenant(t), tenantNamed(t, "alice")
	keeps := func(names ...string) func(*metav1.ObjectMeta) {
		return func(meta *metav1.ObjectMeta) { meta.Finalizers = names }
	}
	notes := func(words string) func(*metav1.ObjectMeta) {
		return func(meta *metav1.ObjectMeta) { meta.Annotations = map[string]string{"n": words} }
	}
	const why = "a job that names a quota has no finalizer example.com/mine"
	refused(t, alice.tries(t, "tenant-a", jobOf("quota-a", keeps("example.com/mine"))), why)
	refused(t, alice.tries(t, "tenant-a", jobOf("quota-a", keeps("orphan", "example.com/mine"))), why)
	refused(t, alice.tries(t, managed, jobOf("", keeps("example.com/mine"))), why)
	require.NoError(t, alice.tries(t, "tenant-a", jobOf("quota-a", keeps("orphan"))))
	require.NoError(t, alice.tries(t, "tenant-a", jobOf("quota-a", keeps("foregroundDeletion"))))
	require.NoError(t, alice.tries(t, "tenant-a", jobOf("", keeps("example.com/mine"))))
	// Kubernetes has it on pods. On a job nobody would take it off.
	refused(t, alice.tries(t, "tenant-a", jobOf("quota-a", keeps(batchv1.JobTrackingFinalizer))), "has no finalizer")

	const most = 128<<10 - len("n")
	refused(t, alice.tries(t, "tenant-a", jobOf("quota-a", notes(strings.Repeat("x", most+1)))), tooMuch)
	refused(t, alice.tries(t, "tenant-a", jobOf("quota-a", notes(strings.Repeat("é", most/2+1)))), tooMuch)
	require.NoError(t, alice.tries(t, "tenant-a", jobOf("quota-a", notes(strings.Repeat("x", most)))))
	require.NoError(t, alice.tries(t, "tenant-a", jobOf("", notes(strings.Repeat("x", most+1)))))

	// The quota may come later.
	job, err := admin.BatchV1().Jobs("tenant-a").Create(t.Context(),
		jobOf("", keeps("example.com/mine"), notes(strings.Repeat("x", most+1))), metav1.CreateOptions{})
	require.NoError(t, err)
	job.Labels = quotaOf("quota-a").labels
	_, err = alice.BatchV1().Jobs("tenant-a").Update(t.Context(), job, metav1.UpdateOptions{DryRun: dryRun})
	refused(t, err, why)
	job.Finalizers = nil
	_, err = alice.BatchV1().Jobs("tenant-a").Update(t.Context(), job, metav1.UpdateOptions{DryRun: dryRun})
	refused(t, err, tooMuch)

	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}, Spec: batchv1.CronJobSpec{
		Schedule:    "0 0 1 1 *",
		JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: quotaOf("quota-a").meta(), Spec: jobWith(text{})},
	}}
	notes(strings.Repeat("x", most+1))(&cron.Spec.JobTemplate.ObjectMeta)
	_, err = alice.BatchV1().CronJobs("tenant-a").Create(t.Context(), cron, metav1.CreateOptions{DryRun: dryRun})
	refused(t, err, tooMuch)
}

// Our own accounts may write only the keys that they need into objects of others.
func tenancyOfOurAccounts(t *testing.T) {
	admin := adminTenant(t)
	patch := func(metadata, spec map[string]any) []byte {
		object := map[string]any{}
		if metadata != nil {
			object["metadata"] = metadata
		}
		if spec != nil {
			object["spec"] = spec
		}
		raw, err := json.Marshal(object)
		require.NoError(t, err)
		return raw
	}
	annotate := func(key string) []byte { return patch(map[string]any{"annotations": map[string]any{key: "x"}}, nil) }
	dry := metav1.PatchOptions{DryRun: dryRun}

	pod, err := admin.CoreV1().Pods("tenant-a").Create(t.Context(), podWith(nil), metav1.CreateOptions{})
	require.NoError(t, err)
	controller := tenantNamed(t, controlplane.ControllerUser)
	ofPod := func(raw []byte) error {
		_, err := controller.CoreV1().Pods("tenant-a").Patch(t.Context(), pod.Name, types.MergePatchType, raw, dry)
		return err
	}
	require.NoError(t, ofPod(annotate(v1alpha1.AnnotationSuspendAt)))
	refused(t, ofPod(annotate("a")), "jobqueue-controller writes the annotations")
	refused(t, ofPod(patch(map[string]any{"labels": map[string]any{"a": "b"}}, nil)), "jobqueue-controller writes")
	refused(t, ofPod(patch(map[string]any{"finalizers": []string{"a.b/c"}}, nil)), "jobqueue-controller writes")
	require.NoError(t, ofPod(patch(nil, map[string]any{"activeDeadlineSeconds": 1})))
	for _, change := range []string{
		`[{"op": "replace", "path": "/spec/containers/0/image", "value": "mine"}]`,
		`[{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists", "key": "any"}}]`,
	} {
		_, err := controller.CoreV1().Pods("tenant-a").Patch(t.Context(), pod.Name, types.JSONPatchType, []byte(change), dry)
		refused(t, err, "jobqueue-controller writes")
	}

	node, err := admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "keys-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	scheduler := tenantNamed(t, controlplane.SchedulerUser)
	ofNode := func(raw []byte) error {
		_, err := scheduler.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, raw, dry)
		return err
	}
	require.NoError(t, ofNode(annotate("node.koordinator.sh/device-allocations")))
	refused(t, ofNode(annotate("example.com/a")), "koord-scheduler writes annotations of Koordinator")
	refused(t, ofNode(annotate("notkoordinator.sh/a")), "koord-scheduler writes annotations of Koordinator")
	refused(t, ofNode(patch(nil, map[string]any{"unschedulable": true})), "koord-scheduler writes")
	refused(t, ofNode(patch(map[string]any{"labels": map[string]any{"a": "b"}}, nil)), "koord-scheduler writes")
}
