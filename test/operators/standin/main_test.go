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

// Package standin_test checks what plays operators in tests: that their CRDs keep what users write, and that the
// stand-in does against a real API server what it does against a fake one.
package standin_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const namespace = "team"

// start starts a control plane with the CRDs of all operators, which ends with the test.
func start(t *testing.T, o controlplane.Options) (*controlplane.ControlPlane, client.Client) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	o.Dir = filepath.Join(t.TempDir(), "state")
	cp, err := controlplane.Start(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cp.Stop()) })
	objects := []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}}}
	for _, object := range files(t, "../../harness/standin/crds/*.yaml") {
		objects = append(objects, object)
	}
	require.NoError(t, cp.ApplyObjects(ctx, objects...))
	c, err := client.New(cp.RESTConfig(controlplane.Admin), client.Options{})
	require.NoError(t, err)
	return cp, c
}

// files are the objects in the files that match, by the names of the files.
func files(t *testing.T, pattern string) map[string]*unstructured.Unstructured {
	t.Helper()
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, names)
	objects := map[string]*unstructured.Unstructured{}
	for _, name := range names {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(content, &object.Object), name)
		objects[filepath.Base(name)] = object
	}
	return objects
}

// samples are objects as the documentation of their operators shows them, one of each kind, by the names of the files.
func samples(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	all := files(t, "../samples/*.yaml")
	for _, object := range all {
		object.SetNamespace(namespace)
	}
	return all
}
