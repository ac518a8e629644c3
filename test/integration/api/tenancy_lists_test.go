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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func listOf(names string) text { return text{annotations: named(v1alpha1.AnnotationQuotaNames, names)} }

// each is the refusal for a user who may not use each quota of a list.
const each = "may use each of the quotas "

// A user without the right to a quota does not get it by a list, at any place of the list (I11).
func tenancyOfLists(t *testing.T) {
	admin, alice, bob := adminTenant(t), tenantNamed(t, "alice"), tenantNamed(t, "bob")
	refused(t, alice.job(t, "tenant-a", listOf("quota-a,ray"), text{}), each)
	defer publishTree(t, admin, alice)()

	const several = "is too long, or has a name with a blank"
	for names, why := range map[string]string{
		"quota-a": "", "quota-a,ray": "", " ray , quota-a,": "", "quota-a,ray,deep": "", "": "", ",": "",
		"quota-b": each, "quota-a,quota-b": each,
		"quota-b,quota-a": each, "quota-a,ray,deep,foreign": each,
		"quota-a,deeper": each, "quota-a,unknown": each,
		"quota-a,a5": each, "quota-a quota-b": several, "quota-a\nquota-b": several,
		"a,b,c,d,e,f,g,deep":            "with those above them, are more than 12",
		strings.Repeat("quota-a,", 600): several, strings.Repeat("quota-a,", 9): "",
	} {
		for where, err := range map[string]error{
			"a job":     alice.job(t, "tenant-a", listOf(names), text{}),
			"a CronJob": alice.cronJob(t, "tenant-a", text{}, listOf(names), text{}),
		} {
			if why == "" {
				require.NoError(t, err, "%q at %s", names, where)
				continue
			}
			require.ErrorContains(t, err, why, "%q at %s", names, where)
		}
	}
	require.NoError(t, bob.job(t, "tenant-b", listOf("foreign,quota-b"), text{}), "the namespace may use them")
	refused(t, bob.job(t, "tenant-b", listOf("foreign,quota-b,ray"), text{}), each)

	unit := func(names ...any) error {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
			"metadata": map[string]any{"namespace": "tenant-a", "generateName": "u-"},
			"spec":     map[string]any{"request": map[string]any{"cpu": "1"}, "quotas": names},
		}}
		_, err := alice.dynamic.Resource(v1alpha1.QueueUnitResource).Namespace("tenant-a").
			Create(t.Context(), u, metav1.CreateOptions{})
		return err
	}
	require.NoError(t, unit("quota-a", "ray"))
	refused(t, unit("quota-a", "quota-b"), each)
	refused(t, unit("quota-b"), each)
	require.Error(t, unit("quota-a", "quota-a"), "the schema")
	tenancyOfChangedLists(t, admin, alice)
}

// A job may keep its list, in any order. A quota that it adds needs the right.
func tenancyOfChangedLists(t *testing.T, admin, alice tenant) {
	t.Helper()
	job := jobOf("quota-a")
	job.Annotations = named(v1alpha1.AnnotationQuotaNames, "quota-a,quota-b")
	job, err := admin.BatchV1().Jobs("tenant-a").Create(t.Context(), job, metav1.CreateOptions{})
	require.NoError(t, err)
	update := func(names string) error {
		after := job.DeepCopy()
		after.Annotations = named(v1alpha1.AnnotationQuotaNames, names)
		_, err := alice.BatchV1().Jobs("tenant-a").Update(t.Context(), after, metav1.UpdateOptions{DryRun: dryRun})
		return err
	}
	require.NoError(t, update("quota-a,quota-b,ray"))
	require.NoError(t, update("quota-b"))
	require.NoError(t, update(""))
	refused(t, update("quota-a,quota-b,foreign"), each)
}
