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

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func kindsOutput(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := kindsCommand(&runOptions{})
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(args)
	err := command.Execute()
	return out.String(), err
}

// What is printed for a built-in kind is what is shipped for it, and a user's kind has the same.
func TestPoliciesOfKinds(t *testing.T) {
	shipped, err := os.ReadFile("../../manifests/kinds/pytorchjob/tenancy.yaml")
	require.NoError(t, err)
	printed, err := kindsOutput(t, "policy", "PyTorchJob")
	require.NoError(t, err)
	require.Contains(t, string(shipped), printed)

	managed := filepath.Join(t.TempDir(), "managed.yaml")
	require.NoError(t, os.WriteFile(managed, []byte(`
kinds:
- apiVersion: example.com/v1
  kind: Train
  resource: trains
  podSets:
  - {path: .spec.cars.*, count: [{default: 1}], template: .template}
  state: {}
  pods: {label: example.com/train}
`), 0o600))
	printed, err = kindsOutput(t, "policy", "Train", "--managed-jobs="+managed)
	require.NoError(t, err)
	for _, want := range []string{
		"name: jobqueue-tenancy-quota-train.v1.example.com\n", "resources: [trains]\n",
		"[dyn(job.?spec.cars.orValue([]))]\n", "e1.?template.metadata.labels[?k]", "e1.?template.spec.nodeName",
	} {
		require.Contains(t, printed, want)
	}
	_, err = kindsOutput(t, "policy", "Nothing")
	require.ErrorIs(t, err, errNoSuchKind)
}
