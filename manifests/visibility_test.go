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
)

// buildWith builds what a user writes who adds a component to a base.
func buildWith(t *testing.T, base, component string) resmap.ResMap {
	t.Helper()
	return buildOf(t, []string{base}, []string{component})
}

// buildOf builds a kustomization of these directories and components.
func buildOf(t *testing.T, bases, components []string) resmap.ResMap {
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

// An APIService that nobody answers behind blocks the deletion of namespaces: nobody gets one without asking for it.
func TestTheAggregatedAPIIsAChoice(t *testing.T) {
	for _, dir := range directories(t) {
		for _, r := range build(t, dir).Resources() {
			require.NotEqual(t, "APIService", r.GetKind(), dir)
		}
	}
	config := readYAML(t, "../scheduler-config.yaml")
	for _, p := range config["profiles"].([]any)[0].(map[string]any)["pluginConfig"].([]any) {
		if p := p.(map[string]any); p["name"] == "JobQueue" {
			args := p["args"].(map[string]any)
			require.EqualValues(t, 0, args["visibility"].(map[string]any)["port"])
			require.NotContains(t, args, "insecureVisibility")
		}
	}
	for _, key := range []string{"enableProfiling", "enableContentionProfiling"} {
		require.Equal(t, false, config[key], key)
	}
}

// The controller may read and write one Secret, by name, and no other object of its kind or of APIServices.
func TestTheControllerMayWriteOneSecret(t *testing.T) {
	built := buildWith(t, "overlays/fresh", "components/visibility")
	name := "koord-jobqueue-visibility"
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
	controller := decode[appsv1.Deployment](t, find(t, built, "Deployment", "jobqueue-controller"))
	require.Contains(t, controller.Spec.Template.Spec.Containers[0].Args,
		"--visibility-secret=koordinator-system/"+name)
}

// Service, policy and mount of the component lead to the port and the files that the configuration names.
func TestVisibilityLeadsToTheScheduler(t *testing.T) {
	const port = 10261
	for _, base := range []string{"overlays/fresh", "overlays/scheduler"} {
		t.Run(base, func(t *testing.T) {
			built := buildWith(t, base, "components/visibility")
			service := decode[corev1.Service](t, find(t, built, "Service", "koord-jobqueue-visibility"))
			require.Equal(t, port, service.Spec.Ports[0].TargetPort.IntValue())
			policy := decode[networkingv1.NetworkPolicy](t, find(t, built, "NetworkPolicy", "koord-jobqueue-visibility"))
			require.Equal(t, port, policy.Spec.Ingress[0].Ports[0].Port.IntValue())
			require.Equal(t, service.Spec.Selector, policy.Spec.PodSelector.MatchLabels)

			deployment := decode[appsv1.Deployment](t, find(t, built, "Deployment", "koord-scheduler"))
			container := deployment.Spec.Template.Spec.Containers[0]
			require.Contains(t, container.VolumeMounts,
				corev1.VolumeMount{Name: "visibility-certificate", MountPath: "/visibility-certificate", ReadOnly: true})
			for _, v := range deployment.Spec.Template.Spec.Volumes {
				if v.Name == "visibility-certificate" {
					require.True(t, *v.Secret.Optional, "the pod starts before there is a certificate")
				}
			}
		})
	}
}
