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

// Package api_test checks the shipped manifests against a real API server. They install, and the rules of the CRDs
// accept and refuse the right objects. Objects of the stand-alone Koord-Queue apply unchanged. Each account has exactly
// its rights.
package api_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const (
	root     = "../../.."
	testdata = root + "/apis/scheduling/v1alpha1/testdata"
	manager  = "test"
)

// server is the one control plane that the tests of this package share; each test has names of its own.
var server *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "jobqueue-api-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	defer func() {
		if server != nil {
			_ = server.Stop()
		}
	}()
	stateDir = filepath.Join(dir, "state")
	return m.Run()
}

var (
	stateDir string
	// started is set at the first attempt: when that failed, the tests after it say so instead of trying again.
	started bool
)

// connect starts the control plane at the first call and installs manifests/overlays/fresh.
func connect(t *testing.T) dynamic.Interface {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	if !started {
		started = true
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cp, err := controlplane.Start(ctx, controlplane.Options{Dir: stateDir})
		require.NoError(t, err)
		server = cp
		install(t, "overlays/fresh")
	}
	require.NotNil(t, server, "the control plane did not start, see the first test")
	return clientOf(t, controlplane.Admin)
}

func clientOf(t *testing.T, who controlplane.Identity) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(server.RESTConfig(who))
	require.NoError(t, err)
	return client
}

// install applies manifests/dir as `kubectl apply -k` does.
func install(t *testing.T, dir string) {
	t.Helper()
	installFrom(t, filepath.Join(root, "manifests", dir))
}

func installFrom(t *testing.T, dir string) {
	t.Helper()
	out, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	require.NoError(t, err)
	config := server.RESTConfig(controlplane.Admin)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	policies := false
	for _, r := range out.Resources() {
		raw, err := r.AsYAML()
		require.NoError(t, err)
		obj := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(raw, obj))
		if obj.GetKind() == "APIService" {
			continue // nobody answers here
		}
		gvk := obj.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		require.NoError(t, err)
		var to dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			to = client.Resource(mapping.Resource).Namespace(obj.GetNamespace())
		}
		_, err = to.Apply(t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: manager, Force: true})
		require.NoError(t, err, "%s %s", gvk.Kind, obj.GetName())
		policies = policies || gvk.Kind == "ValidatingAdmissionPolicyBinding"
	}
	if policies {
		waitForPolicies(t)
	}
	for _, name := range []string{"queues", "queueunits"} {
		waitEstablished(t, client, name+"."+schedulingv1alpha1.GroupName)
	}
}

// waitForPolicies returns when the API server asks every policy and binding that was written before. Once a second it
// takes over all that it has heard of, and it hears in the order of writing. So it asks the others when it asks the one
// that was written last.
func waitForPolicies(t *testing.T) {
	t.Helper()
	admin, err := kubernetes.NewForConfig(server.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	policies := admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	policy, err := policies.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "written-last-"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: []string{"written-last"},
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	name := policy.Name
	defer func() { require.NoError(t, policies.Delete(t.Context(), name, metav1.DeleteOptions{})) }()
	_, err = bindings.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, bindings.Delete(t.Context(), name, metav1.DeleteOptions{})) }()
	require.Eventually(t, func() bool {
		_, err := admin.CoreV1().ConfigMaps("default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "written-last"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), name)
	}, 30*time.Second, 100*time.Millisecond, "the API server asks the policy that was written last")
}

var crds = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

func waitEstablished(t *testing.T, client dynamic.Interface, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		crd, err := client.Resource(crds).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, c := range conditions {
			c := c.(map[string]any)
			if c["type"] == "Established" && c["status"] == "True" {
				return true
			}
		}
		return false
	}, 30*time.Second, 50*time.Millisecond, "%s is not established", name)
}

func resourceOf(kind string) schema.GroupVersionResource {
	if kind == "Queue" {
		return schedulingv1alpha1.QueueResource
	}
	return schedulingv1alpha1.QueueUnitResource
}

// ensureNamespace makes sure that the namespace of a sample exists.
func ensureNamespace(t *testing.T, client dynamic.Interface, name string) {
	t.Helper()
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	_, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(t.Context(), ns, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}
