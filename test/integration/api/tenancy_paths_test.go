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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ancestors"
)

// below are lines that the controller writes: ray is below quota-a, foreign below quota-b. quota-a is the sixth above
// deep, and the seventh above deeper, whose line has only six.
const below = "ray quota-a\nforeign quota-b\ndeep a5 a4 a3 a2 a1 quota-a\ndeeper deep a5 a4 a3 a2 a1\n"

// publishTree publishes the quotas below quota-a and waits until the API server knows them. Its result withdraws them
// and waits again, since the next test would find the right to ray otherwise.
func publishTree(t *testing.T, admin, alice tenant) func() {
	t.Helper()
	knows := func(lines string, known bool) {
		t.Helper()
		publishAs(t, admin, ancestors.Key, lines)
		require.Eventually(t, func() bool { return (alice.job(t, "tenant-a", quotaOf("ray"), text{}) == nil) == known },
			10*time.Second, 100*time.Millisecond, "the API server knows")
	}
	knows(below, true)
	return func() { t.Helper(); knows("", false) }
}

func publishAs(t *testing.T, admin tenant, key, lines string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{key: lines}})
	require.NoError(t, err)
	_, err = admin.CoreV1().ConfigMaps("koord-queue").
		Patch(t.Context(), ancestors.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// The right to use a quota holds for the quotas below it, by name and by path, and for no others.
func tenancyOfPaths(t *testing.T) {
	admin, alice, bob := adminTenant(t), tenantNamed(t, "alice"), tenantNamed(t, "bob")
	refused(t, alice.job(t, "tenant-a", quotaOf("ray"), text{}), "for it or for a quota above it")
	defer publishTree(t, admin, alice)()
	tenancyOfQuotasBelow(t, alice)
	require.NoError(t, bob.job(t, "tenant-b", quotaOf("foreign"), text{}), "the namespace may use the quota above")
	refused(t, bob.job(t, "tenant-b", quotaOf("ray"), text{}), "may use quota ray")

	tenancyOfPlacesOfPaths(t, alice)
	for _, path := range []string{"root.quota-b\nquota-a", "root.quota-a\nroot.quota-b", "root."} {
		require.Error(t, alice.job(t, "tenant-a", tenantText(path), text{}), path)
	}
	tenancyOfPathsAndOtherNames(t, admin, alice)
}

func tenancyOfQuotasBelow(t *testing.T, alice tenant) {
	t.Helper()
	for quota, may := range map[string]bool{
		"ray": true, "quota-a": true, "deep": true, "foreign": false, "quota-b": false, "deeper": false, "unknown": false,
		"x.quota-a": false, "a5": false, "": true,
	} {
		allowed := func(err error) {
			t.Helper()
			if may {
				require.NoError(t, err, quota)
				return
			}
			refused(t, err, "may use quota "+quota)
		}
		allowed(alice.job(t, "tenant-a", quotaOf(quota), text{}))
		allowed(alice.job(t, "tenant-a", text{}, quotaOf(quota)))
		allowed(alice.unit(t, "tenant-a", quota, ""))
		if quota != "" {
			allowed(alice.pod(t, "tenant-a", quota))
		}
	}
}

func tenancyOfPlacesOfPaths(t *testing.T, alice tenant) {
	t.Helper()
	for path, quota := range map[string]string{
		"root.quota-a": "", "root.quota-a.ray": "", "root.a.path.that.leads.nowhere.quota-a": "",
		"root.quota-b.foreign": "foreign", "root.quota-a.foreign": "foreign", "root.quota-b": "quota-b", "quota-b": "quota-b",
		"root.quota-a.new": "new", "root": "root",
	} {
		for _, at := range []text{label(v1alpha1.QueuePathKey, path), {annotations: named(v1alpha1.QueuePathKey, path)}} {
			for where, err := range map[string]error{
				"a job": alice.job(t, "tenant-a", at, text{}), "its pods": alice.job(t, "tenant-a", text{}, at),
				"a CronJob":  alice.cronJob(t, "tenant-a", at, text{}, text{}),
				"its jobs":   alice.cronJob(t, "tenant-a", text{}, at, text{}),
				"their pods": alice.cronJob(t, "tenant-a", text{}, text{}, at),
			} {
				if quota == "" {
					require.NoError(t, err, "%s at %s", path, where)
					continue
				}
				refused(t, err, "may use quota "+quota)
			}
		}
	}
}

// tenantText is a path in an annotation, which may hold anything.
func tenantText(path string) text { return text{annotations: named(v1alpha1.QueuePathKey, path)} }

func tenancyOfPathsAndOtherNames(t *testing.T, admin, alice tenant) {
	t.Helper()
	require.ErrorContains(t, alice.job(t, "tenant-a", tenantText("root.quota-a"), quotaOf("foreign")),
		"the object names several quotas: ")
	require.ErrorContains(t, alice.job(t, "tenant-a", tenantText("root.quota-a"), tenantText("root.quota-b.foreign")),
		"the object names several quotas: ")
	inQueue := func(path, queue string) text {
		return text{annotations: map[string]string{v1alpha1.QueuePathKey: path, v1alpha1.QueueNameKey: queue}}
	}
	require.NoError(t, alice.job(t, "tenant-a", inQueue("root.quota-a.ray", "ray"), text{}), "the queue of the quota")
	refused(t, alice.job(t, "tenant-a", inQueue("root.quota-a.ray", "foreign"), text{}), "may use queue foreign")

	spec := jobWith(text{})
	spec.Template.Spec.SchedulerName = "other"
	_, err := alice.BatchV1().Jobs("tenant-a").Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "j-", Annotations: named(v1alpha1.QueuePathKey, "root.quota-a"),
	}, Spec: spec}, metav1.CreateOptions{})
	refused(t, err, "scheduler other does not ask the queue")

	job, err := admin.BatchV1().Jobs("tenant-a").Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "j-", Labels: named(v1alpha1.QueuePathKey, "root.quota-b"),
	}, Spec: jobWith(text{})}, metav1.CreateOptions{})
	require.NoError(t, err)
	update := func(path string) error {
		changed := job.DeepCopy()
		changed.Labels = map[string]string{v1alpha1.QueuePathKey: path, "a": "b"}
		_, err := alice.BatchV1().Jobs("tenant-a").Update(t.Context(), changed, metav1.UpdateOptions{
			DryRun: []string{metav1.DryRunAll},
		})
		return err
	}
	require.NoError(t, update("root.quota-b"), "what it names already it may go on naming")
	refused(t, update("root.quota-b.foreign"), "may use quota foreign")
	require.NoError(t, update("root.quota-a.ray"))
	_, err = alice.create(t, "tenant-a", podWith(named(v1alpha1.QueuePathKey, "root.quota-b")))
	require.NoError(t, err, "a path gives a pod no quota: nothing charges it by that")
}
