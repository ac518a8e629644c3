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

package manifests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"

	controllerconfig "github.com/koord-jobqueue/koord-jobqueue/apis/config/controller/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// buildOf builds a kustomization of these directories and components, with patches from files.
func buildOf(t *testing.T, bases, components []string, patches ...string) resmap.ResMap {
	t.Helper()
	here, err := os.Getwd()
	require.NoError(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	up, err := filepath.Rel(dir, here)
	require.NoError(t, err)
	var content strings.Builder
	for field, list := range map[string][]string{"resources": bases, "components": components} {
		content.WriteString(field + ":\n")
		for _, name := range list {
			content.WriteString("- " + up + "/" + name + "\n")
		}
	}
	if len(patches) > 0 {
		content.WriteString("patches:\n")
	}
	for i, patch := range patches {
		text, err := os.ReadFile(patch)
		require.NoError(t, err)
		name := fmt.Sprintf("patch-%d.yaml", i)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		content.WriteString("- path: " + name + "\n")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content.String()), 0o600))
	return build(t, dir)
}

// find returns the one object of this kind and name.
func find(t *testing.T, in resmap.ResMap, kind, name string) *resource.Resource {
	t.Helper()
	for _, r := range in.Resources() {
		if r.GetKind() == kind && r.GetName() == name {
			return r
		}
	}
	require.Fail(t, "not there", "%s %s", kind, name)
	return nil
}

// The plain port of the scheduler says nothing about jobs to anybody.
func TestThePlainPortAnswersNoQuestions(t *testing.T) {
	config := readYAML(t, "../scheduler-config.yaml")
	for _, key := range []string{"enableProfiling", "enableContentionProfiling"} {
		require.Equal(t, false, config[key], key)
	}
}

// The controller may read and write one Secret, by name, and no other object of its kind or of APIServices.
func TestTheControllerMayWriteOneSecret(t *testing.T) {
	built, name := build(t, "overlays/default"), "koord-jobqueue-visibility"
	find(t, built, "Secret", name)
	role := decode[rbacv1.Role](t, find(t, built, "Role", "jobqueue-visibility-certificate"))
	require.Equal(t, []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name},
		Verbs: []string{"get", "update"},
	}}, role.Rules)
	cluster := decode[rbacv1.ClusterRole](t, find(t, built, "ClusterRole", "jobqueue-visibility-certificate"))
	require.Equal(t, []rbacv1.PolicyRule{{
		APIGroups: []string{"apiregistration.k8s.io"}, Resources: []string{"apiservices"},
		ResourceNames: []string{"v1alpha1.visibility.koord-queue.x-k8s.io"}, Verbs: []string{"get", "patch"},
	}}, cluster.Rules)
	require.Equal(t, "koordinator-system/"+name, controllerconfig.Default().VisibilitySecret)
}

// APIService, Service, policy and mount lead to the port and the files that the configuration names.
func TestVisibilityLeadsToTheScheduler(t *testing.T) {
	built := build(t, "overlays/default")
	where := controlplane.JobQueueArgs(readYAML(t, "../scheduler-config.yaml"))["visibility"].(map[string]any)
	port := int(where["port"].(float64))
	require.Equal(t, controlplane.ShippedVisibilityPort, port)
	api := find(t, built, "APIService", "v1alpha1.visibility.koord-queue.x-k8s.io")
	to, err := api.GetFieldValue("spec.service.port")
	require.NoError(t, err)
	require.EqualValues(t, port, to)
	service := decode[corev1.Service](t, find(t, built, "Service", "koord-jobqueue-visibility"))
	require.EqualValues(t, port, service.Spec.Ports[0].Port)
	require.Equal(t, port, service.Spec.Ports[0].TargetPort.IntValue())
	policy := decode[networkingv1.NetworkPolicy](t, find(t, built, "NetworkPolicy", "koord-jobqueue-visibility"))
	require.Equal(t, port, policy.Spec.Ingress[0].Ports[0].Port.IntValue())

	deployment := decode[appsv1.Deployment](t, find(t, built, "Deployment", "koord-jobqueue-scheduler"))
	require.Subset(t, deployment.Spec.Template.Labels, service.Spec.Selector)
	require.Equal(t, service.Spec.Selector, policy.Spec.PodSelector.MatchLabels)
	require.Contains(t, deployment.Spec.Template.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{
		Name: "visibility-certificate", MountPath: where["certDir"].(string), ReadOnly: true,
	})
	for _, v := range deployment.Spec.Template.Spec.Volumes {
		if v.Name == "visibility-certificate" {
			require.Equal(t, "koord-jobqueue-visibility", v.Secret.SecretName)
			require.True(t, *v.Secret.Optional, "the pod starts before there is a certificate")
		}
	}
}
