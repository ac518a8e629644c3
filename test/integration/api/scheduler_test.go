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
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// TestSchedulerPatchKeepsTheRest does what `kubectl apply -k manifests/overlays/scheduler` does over a Deployment that
// somebody else made: the image changes and nothing else.
func TestSchedulerPatchKeepsTheRest(t *testing.T) {
	connect(t)
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	deployments := admin.AppsV1().Deployments("koordinator-system")
	before, err := deployments.Get(t.Context(), "koord-scheduler", metav1.GetOptions{})
	require.NoError(t, err)
	before.Spec.Template.Spec.Containers[0].Image = "example.test/koord-scheduler:v1.8.0"
	before.Spec.Template.Spec.Containers[0].Args = []string{"--v=4"}
	before, err = deployments.Update(t.Context(), before, metav1.UpdateOptions{})
	require.NoError(t, err)

	patch := applyPatch(t, before)
	after, err := deployments.Patch(t.Context(), before.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, "registry.invalid/koord-jobqueue/koord-scheduler:unset", after.Spec.Template.Spec.Containers[0].Image)
	after.Spec.Template.Spec.Containers[0].Image = before.Spec.Template.Spec.Containers[0].Image
	require.Equal(t, before.Spec, after.Spec)
}

// applyPatch is the patch that kubectl makes for an object that it has not applied before.
func applyPatch(t *testing.T, current *appsv1.Deployment) []byte {
	t.Helper()
	out, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
		filepath.Join(root, "manifests/overlays/scheduler"))
	require.NoError(t, err)
	for _, r := range out.Resources() {
		if r.GetKind() != "Deployment" {
			continue
		}
		raw, err := r.AsYAML()
		require.NoError(t, err)
		modified, err := yaml.YAMLToJSON(raw)
		require.NoError(t, err)
		now, err := json.Marshal(current)
		require.NoError(t, err)
		schema, err := strategicpatch.NewPatchMetaFromStruct(appsv1.Deployment{})
		require.NoError(t, err)
		patch, err := strategicpatch.CreateThreeWayMergePatch(nil, modified, now, schema, true)
		require.NoError(t, err)
		return patch
	}
	require.Fail(t, "manifests/overlays/scheduler has no Deployment")
	return nil
}

// TestConfigurationIsThere: what the Deployment mounts has the key that it mounts.
func TestConfigurationIsThere(t *testing.T) {
	connect(t)
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	d, err := admin.AppsV1().Deployments("koordinator-system").Get(t.Context(), "koord-scheduler", metav1.GetOptions{})
	require.NoError(t, err)
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		var cm *corev1.ConfigMap
		cm, err = admin.CoreV1().ConfigMaps(d.Namespace).Get(t.Context(), v.ConfigMap.Name, metav1.GetOptions{})
		require.NoError(t, err)
		for _, item := range v.ConfigMap.Items {
			require.Contains(t, cm.Data, item.Key)
		}
	}
}
