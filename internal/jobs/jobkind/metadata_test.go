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

package jobkind

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// This list of places in each kind is written by hand.
func TestMetadataPlaces(t *testing.T) {
	const patch = ".spec.runtimePatches.*.trainingRuntimeSpec.template"
	for name, want := range map[string][]string{
		"Job.v1.batch": {".metadata", ".spec.template.metadata*"},
		// An operator may read other keys of the map than those that it documents.
		"PyTorchJob.v1.kubeflow.org": {".metadata", ".spec.pytorchReplicaSpecs.*.template.metadata*"},
		"TFJob.v1.kubeflow.org":      {".metadata", ".spec.tfReplicaSpecs.*.template.metadata*"},
		"JobSet.v1alpha2.jobset.x-k8s.io": {".metadata", ".spec.replicatedJobs.*.template.metadata",
			".spec.replicatedJobs.*.template.spec.template.metadata*"},
		// A tenant does not write the JobSet that the operator makes.
		"TrainJob.v1alpha1.trainer.kubeflow.org": {".metadata", ".spec", ".spec.podTemplateOverrides.*.metadata*",
			patch + ".metadata*", patch + ".spec.replicatedJobs.*.template.metadata*",
			patch + ".spec.replicatedJobs.*.template.spec.template.metadata*"},
		"RayJob.v1.ray.io": {".metadata", ".spec.rayClusterSpec.headGroupSpec.template.metadata*",
			".spec.rayClusterSpec.workerGroupSpecs.*.template.metadata*", ".spec.submitterPodTemplate.metadata*",
			".spec.rayClusterSpec.headGroupSpec", ".spec.rayClusterSpec.workerGroupSpecs.*"},
		"SparkApplication.v1beta2.sparkoperator.k8s.io": {".metadata", ".spec.driver", ".spec.executor",
			".spec.driver.template.metadata*", ".spec.executor.template.metadata*"},
		"Workflow.v1alpha1.argoproj.io": {".metadata", ".spec.podMetadata", ".spec.templates.*.metadata*",
			".spec.templateDefaults.metadata*", ".spec.workflowMetadata"},
		"LeaderWorkerSet.v1.leaderworkerset.x-k8s.io": {".metadata",
			".spec.leaderWorkerTemplate.leaderTemplate.metadata*", ".spec.leaderWorkerTemplate.workerTemplate.metadata*"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, ok := Find(name)
			require.True(t, ok)
			var got []string
			for _, p := range kind.MetadataPlaces() {
				at := p.Labels[:len(p.Labels)-1]
				require.Equal(t, at.Child("labels"), p.Labels)
				require.Equal(t, at.Child("annotations"), p.Annotations)
				text := at.String()
				if p.NodeName != nil {
					require.Equal(t, at[:len(at)-1].Child("spec", "nodeName"), p.NodeName)
					text += "*"
				}
				got = append(got, text)
			}
			require.ElementsMatch(t, want, got)
		})
	}
}

func TestPlacesOfAUsersKind(t *testing.T) {
	kind, err := ParseDescriptor([]byte(`
apiVersion: example.com/v1
kind: Train
resource: trains
podSets:
- {name: engine, path: .spec.engine, optional: true, count: [{default: 1}], template: .pods, labels: $.spec.labels}
podMetadata: [.spec.signals.*.all-of]
state: {}
pods: {label: example.com/train}
`))
	require.NoError(t, err)
	places := kind.MetadataPlaces()
	require.Len(t, places, 4)
	require.Equal(t, MetadataPlace{Labels: PathOf(".spec.labels")}, places[1], "annotations of this one are nowhere else")
	require.Equal(t, ".spec.engine.pods.spec.nodeName", places[2].NodeName.String(), "a field is not one key of many")
	require.Equal(t, ".spec.signals.*.all-of.annotations", places[3].Annotations.String())
	for _, wrong := range []string{".status.a", "spec.a", ".spec.a b", ""} {
		_, err := ParseDescriptor([]byte(`
apiVersion: example.com/v1
kind: Train
resource: trains
podSets: [{count: [{default: 1}], template: .spec.template}]
podMetadata: ["` + wrong + `"]
state: {}
pods: {label: example.com/train}
`))
		require.ErrorContains(t, err, "podMetadata[0]", wrong)
	}
}
