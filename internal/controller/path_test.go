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

package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
)

// quotasNamed is the index by names.
func (w *world) quotasNamed(
	ctx context.Context, list *metav1.PartialObjectMetadataList, opts ...client.ListOption,
) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(opts)
	name, byName := asked.FieldSelector.RequiresExactMatch(elasticquota.NameIndex)
	if !byName {
		return w.base.List(ctx, list, opts...)
	}
	for _, parent := range w.quotas[name] {
		q := elasticquota.New()
		q.Namespace, q.Name, q.Labels = "quotas", name, map[string]string{v1alpha1.LabelQuotaParent: parent}
		list.Items = append(list.Items, *q)
	}
	return nil
}

// wakes are the jobs that are looked at when a quota changes.
func (w *world) wakes(name string) []ctrl.Request {
	q := elasticquota.New()
	q.Namespace, q.Name = "quotas", name
	return waker{kind: &w.r.Kind, jobs: w.base, units: w.base}.jobsOfQuota(w.t.Context(), q)
}

const rayOfOne = "root.organization1.ray"

func atPath(j *batchv1.Job) { j.Labels = map[string]string{v1alpha1.QueuePathKey: rayOfOne} }

// The quota of another organization is not reached, and the job waits for its own to be there.
func TestAJobNamesItsQuotaByAPath(t *testing.T) {
	w := newWorld(t, newJob(atPath))
	w.quotas = map[string][]string{"organization1": {""}, "organization2": {""}, "ray": {"organization2"}}
	w.settle()
	unit := w.unit()
	require.Empty(t, unit.Labels[v1alpha1.LabelQuotaName])
	require.Equal(t, "UnknownQuota", unit.Annotations[v1alpha1.AnnotationParkedReason])
	require.Equal(t, rayOfOne, unit.Annotations[v1alpha1.QueuePathKey])
	require.Contains(t, unit.Status.Message, `"root.organization1.ray" has no quota "ray" below "organization1"`)
	require.False(t, *unit.Spec.Active)
	job := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.job())}
	require.Equal(t, []ctrl.Request{job}, w.wakes("ray"))
	require.Equal(t, []ctrl.Request{job}, w.wakes("organization1"))
	require.Empty(t, w.wakes("organization2"))

	w.quotas["ray"] = []string{"organization1"}
	w.settle()
	unit = w.unit()
	require.Nil(t, unit.Spec.Active)
	require.Empty(t, unit.Annotations[v1alpha1.AnnotationParkedReason])
	require.Equal(t, "ray", unit.Labels[v1alpha1.LabelQuotaName])
	require.Equal(t, "ray", unit.Spec.Queue)
	w.admit()
	w.settle()
	require.False(t, *w.job().Spec.Suspend)
	require.Equal(t, "ray", w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName], "Koordinator charges its pods")
	require.Empty(t, w.settle(), "our own label on the templates is no second quota")

	w.jobStatus(runs(2))
	w.settle()
	w.quotas["ray"] = []string{"organization2"}
	w.settle()
	require.False(t, *w.job().Spec.Suspend, "a job that runs keeps its quota")
	require.Equal(t, "ray", w.unit().Labels[v1alpha1.LabelQuotaName])
}

// The library for platforms writes the path that the queue reads. A job with root.organization1.ray of the RFC is
// charged to ray. A job of an organization without such a quota waits.
func TestTheLibraryNamesAPath(t *testing.T) {
	driver, err := submit.New(submit.Options{Driver: "koord"})
	require.NoError(t, err)
	config := submit.Config{Driver: driver, Queue: "root.{{.Organization}}.{{.Type}}"}
	for organization, reason := range map[string]string{"organization1": "", "organization2": "UnknownQuota"} {
		task, err := config.Job(&submit.Submitter{Organization: organization, Type: "ray"})
		require.NoError(t, err)
		plain := newJob(func(j *batchv1.Job) { j.Labels = nil })
		plain.APIVersion, plain.Kind = "batch/v1", "Job"
		object, err := submit.ObjectOf(plain)
		require.NoError(t, err)
		labelled, _, err := driver.Label(task, object)
		require.NoError(t, err)
		job := &batchv1.Job{}
		require.NoError(t, submit.Into(labelled, job))

		w := newWorld(t, job)
		w.quotas = map[string][]string{"organization1": {""}, "organization2": {""}, "ray": {"organization1"}}
		w.settle()
		require.Equal(t, reason, w.unit().Annotations[v1alpha1.AnnotationParkedReason], organization)
		require.Equal(t, "root."+organization+".ray", w.unit().Annotations[v1alpha1.QueuePathKey])
		if reason != "" {
			continue
		}
		require.Equal(t, "ray", w.unit().Labels[v1alpha1.LabelQuotaName])
		w.admit()
		w.settle()
		require.False(t, *w.job().Spec.Suspend)
		require.Equal(t, "ray", w.job().Spec.Template.Labels[v1alpha1.LabelQuotaName])
	}
}

func TestWhatBecomesOfPaths(t *testing.T) {
	for name, tc := range map[string]struct {
		edit          func(*batchv1.Job)
		quota, reason string
	}{
		"an annotation": {func(j *batchv1.Job) {
			j.Labels, j.Annotations = nil, map[string]string{v1alpha1.QueuePathKey: rayOfOne}
		}, "ray", ""},
		"a label of the template": {func(j *batchv1.Job) {
			j.Labels, j.Spec.Template.Labels = nil, map[string]string{v1alpha1.QueuePathKey: rayOfOne}
		}, "ray", ""},
		"the quota as well": {func(j *batchv1.Job) { j.Labels[v1alpha1.LabelQuotaName] = "ray" }, "ray", ""},
		"another quota":     {func(j *batchv1.Job) { j.Labels[v1alpha1.LabelQuotaName] = "b" }, "b", "QuotaMismatch"},
		"what is no path":   {func(j *batchv1.Job) { j.Labels[v1alpha1.QueuePathKey] = "ray" }, "", "UnknownQuota"},
		"another queue":     {func(j *batchv1.Job) { j.Labels[v1alpha1.QueueNameKey] = "fast" }, "ray", ""},
		"by way of nothing": {func(j *batchv1.Job) { j.Labels[v1alpha1.QueuePathKey] = "root.ray" }, "", "UnknownQuota"},
		"two paths": {func(j *batchv1.Job) {
			j.Annotations = map[string]string{v1alpha1.QueuePathKey: "root.organization1"}
		}, "", "QuotaMismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(atPath, tc.edit))
			w.quotas = map[string][]string{"organization1": {""}, "ray": {"organization1"}}
			w.settle()
			require.Equal(t, tc.quota, w.unit().Labels[v1alpha1.LabelQuotaName])
			require.Equal(t, tc.reason, w.unit().Annotations[v1alpha1.AnnotationParkedReason])
		})
	}
}

// placing has jobs placed by the labels of their namespace, and YuniKorn's paths understood.
func placing(t *testing.T, w *world, labels map[string]string) {
	t.Helper()
	m, err := managedjobs.Parse(`
aliases:
- {system: YuniKorn, namespaceSelector: {matchLabels: {aliases: "on"}}, paths: [root.organization1]}
placement:
- {namespaceSelector: {matchLabels: {placed: by-name}}, path: "root.{namespace}"}
- {namespaceSelector: {matchExpressions: [{key: org, operator: Exists}]}, path: "root.{label:org}.ray"}
`)
	require.NoError(t, err)
	w.r.Options.Predicate, err = managedjobs.NewPredicate(m)
	require.NoError(t, err)
	namespace := &corev1.Namespace{}
	require.NoError(t, w.base.Get(t.Context(), types.NamespacedName{Name: "team"}, namespace))
	namespace.Labels = labels
	require.NoError(t, w.base.Update(t.Context(), namespace))
}

func TestAJobIsPlacedByItsNamespace(t *testing.T) {
	plain := func(j *batchv1.Job) { j.Labels = nil }
	label := func(key, value string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Labels = map[string]string{key: value} }
	}
	understood := map[string]string{"aliases": "on", "placed": "by-name"}
	byName, byOrg := map[string]string{"placed": "by-name"}, map[string]string{"org": "organization1"}
	for name, tc := range map[string]struct {
		job           func(*batchv1.Job)
		namespace     map[string]string
		quota, reason string
	}{
		"by name":                   {plain, byName, "team", ""},
		"by a label":                {plain, byOrg, "ray", ""},
		"by a label that is a path": {plain, map[string]string{"org": "organization1.sub"}, "", "UnknownQuota"},
		"in another organization":   {plain, map[string]string{"org": "organization2"}, "", "UnknownQuota"},
		"it names a quota":          {label(v1alpha1.LabelQuotaName, "b"), byName, "b", ""},
		"it names a queue":          {label(v1alpha1.QueueNameKey, "fast"), byName, "team", ""},
		"it names a path":           {atPath, byName, "ray", ""},
		"by YuniKorn":               {label(yunikornQueue, rayOfOne), understood, "ray", ""},
		"by YuniKorn, beyond": {
			label(yunikornQueue, "root.organization2"), understood, "team", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newJob(tc.job))
			placing(t, w, tc.namespace)
			w.quotas = map[string][]string{
				"team": {""}, "organization1": {""}, "organization2": {""}, "ray": {"organization1"},
			}
			w.settle()
			unit := w.unit()
			require.NotNil(t, unit)
			require.Equal(t, tc.quota, unit.Labels[v1alpha1.LabelQuotaName])
			require.Equal(t, tc.reason, unit.Annotations[v1alpha1.AnnotationParkedReason])
		})
	}
	w := newWorld(t, newJob(plain))
	placing(t, w, nil)
	require.Empty(t, w.settle(), "no rule places it")
}
