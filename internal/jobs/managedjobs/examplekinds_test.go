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

package managedjobs

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

const wrapper = `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: sample, namespace: team, uid: u}
spec:
  suspend: true
  components:
  - template: {apiVersion: v1, kind: Service, metadata: {name: front}}
  - podSets:
    - path: template.spec.headGroupSpec.template
    - {replicas: 4, path: "template.spec.workerGroupSpecs[1].template"}
    template:
      apiVersion: ray.io/v1
      kind: RayCluster
      spec:
        headGroupSpec: {template: {metadata: {labels: {quota.scheduling.koordinator.sh/name: a}}, spec: {containers: [
          {name: c, resources: {requests: {cpu: 1}}}]}}}
        workerGroupSpecs:
        - {}
        - template: {metadata: {labels: {quota.scheduling.koordinator.sh/name: a}}, spec: {containers: [
            {name: c, resources: {requests: {cpu: 2}}}]}}
  - podSets: [{path: template}]
    template: {apiVersion: v1, kind: Pod, metadata: {labels: {quota.scheduling.koordinator.sh/name: a}}, spec: {
      containers: [{name: c, resources: {requests: {cpu: 3}}}]}}
status: {phase: Suspended}
`

// exampleKind is the kind that a file in examples/kinds describes.
func exampleKind(t testing.TB, file, kind string) *jobkind.Kind {
	t.Helper()
	text, err := os.ReadFile("../../../examples/kinds/" + file)
	require.NoError(t, err)
	managed, err := Parse(string(text))
	require.NoError(t, err)
	kinds, err := managed.compiled()
	require.NoError(t, err)
	for i := range kinds {
		if kinds[i].GVK.Kind == kind {
			return &kinds[i]
		}
	}
	t.Fatal("the example describes no " + kind)
	return nil
}

func wrapperOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	return object
}

// An AppWrapper says in texts where its pod templates are. They cannot be changed, so that resuming writes none.
func TestAppWrapper(t *testing.T) {
	kind := exampleKind(t, "appwrapper.yaml", "AppWrapper")
	kept, err := compact.Expand(compact.Job(kind, wrapperOf(t, wrapper), false))
	require.NoError(t, err)
	for _, object := range []*unstructured.Unstructured{wrapperOf(t, wrapper), kept} {
		job := jobs.Open(kind, object)
		require.Empty(t, job.Invalid())
		sets, err := job.PodSets()
		require.NoError(t, err)
		var have []string
		for i := range sets {
			cpu := sets[i].Template.Spec.Containers[0].Resources.Requests.Cpu()
			have = append(have, sets[i].Name+": "+strings.Repeat("*", int(sets[i].Count))+cpu.String())
		}
		require.Equal(t, []string{"1-0: *1", "1-1: ****2", "2-0: *3"}, have)
		require.NoError(t, job.Chargeable("a", "default"))
		require.Empty(t, jobs.Gangs(job, true), "templates cannot be told of a gang")

		before := object.DeepCopy()
		edit := jobs.EditOf(kind, object)
		require.NoError(t, edit.AddToTemplates(map[string]jobs.Addition{
			"1-1": {Labels: map[string]string{v1alpha1.LabelQuotaName: "b"}},
		}))
		require.Equal(t, before, object)
	}
}

func TestAppWrapperWithoutLabels(t *testing.T) {
	text := strings.ReplaceAll(wrapper, v1alpha1.LabelQuotaName, "other")
	job := jobs.Open(exampleKind(t, "appwrapper.yaml", "AppWrapper"), wrapperOf(t, text))
	require.ErrorIs(t, job.Chargeable("a", "default"), jobs.ErrQuotaMismatch)
}

// The author of an AppWrapper writes the paths of its templates.
func TestAppWrapperThatLeadsNowhere(t *testing.T) {
	kind := exampleKind(t, "appwrapper.yaml", "AppWrapper")
	const path = "template.spec.workerGroupSpecs[1].template"
	for _, to := range []string{
		"", ".", "template.spec.workerGroupSpecs[1]", "template.spec.workerGroupSpecs[2].template",
		"template.spec.workerGroupSpecs[-1].template", "template.spec.workerGroupSpecs[99999].template",
		"template.spec.workerGroupSpecs[1.template", "template.spec.workerGroupSpecs.1.template", "template.spec.none",
		"template.kind", "template.kind[0].template", "template..spec", "[0].template", strings.Repeat("a.", 1000) + "a",
	} {
		_, err := jobs.Open(kind, wrapperOf(t, strings.Replace(wrapper, path, to, 1))).PodSets()
		require.ErrorContains(t, err, "leads to no pod template", to)
		require.Less(t, len(err.Error()), 300, to)
	}
	for from, to := range map[string]string{
		"podSets: [{path: template}]": "none: []",
		"podSets":                     "none",
	} {
		require.NotEmpty(t, jobs.Open(kind, wrapperOf(t, strings.ReplaceAll(wrapper, from, to))).Invalid(), from)
	}
}

// The operator gives labels of a DaskJob to its pods, so the quota label of the job charges them.
func TestDaskJob(t *testing.T) {
	kind := exampleKind(t, "daskjob.yaml", "DaskJob")
	text, err := os.ReadFile("../../../pkg/submit/testdata/jobs/daskjob.yaml")
	require.NoError(t, err)
	object := wrapperOf(t, string(text))
	require.ErrorIs(t, jobs.Open(kind, object).Chargeable("a", "default"), jobs.ErrQuotaMismatch)
	object.SetLabels(map[string]string{v1alpha1.LabelQuotaName: "a"})
	job := jobs.Open(kind, object)
	require.NoError(t, job.Chargeable("a", "default"))
	require.False(t, jobs.CanBeSuspended(job))
	sets, err := job.PodSets()
	require.NoError(t, err)
	counts := map[string]int64{}
	for i := range sets {
		counts[sets[i].Name] = int64(sets[i].Count)
	}
	require.Equal(t, map[string]int64{"job": 1, "scheduler": 1, "worker": 2}, counts)
	for status, ends := range map[string]bool{"Running": false, "Successful": true, "Failed": true} {
		require.NoError(t, unstructured.SetNestedField(object.Object, status, "status", "jobStatus"))
		_, ended := jobs.Open(kind, object).Ended()
		require.Equal(t, ends, ended, status)
	}
}
