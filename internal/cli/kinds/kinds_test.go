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

package kinds

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

func kindsOutput(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	flags := genericclioptions.NewConfigFlags(true)
	command := Command(flags)
	flags.AddFlags(command.PersistentFlags())
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(args)
	err := command.Execute()
	return out.String(), err
}

// A job that names no queue goes to the queue of its quota, a job that names no quota to that of its namespace.
func TestAJobThatNamesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: n}
spec: {template: {spec: {containers: [{name: c}]}}}
`), 0o600))
	out, err := kindsOutput(t, "test", "-f", file)
	require.NoError(t, err)
	require.Regexp(t, `Quota: +- \(that of the namespace\)\n`, out)
	require.Regexp(t, `Queue: +- \(that of the quota\)\n`, out)
}

// The ConfigMap of managed jobs is read where the queues are.
func TestTheClusterIsAskedInTheNamespaceOfQueues(t *testing.T) {
	for namespace, args := range map[string][]string{"koord-queue": nil, "queues": {"--queue-namespace=queues"}} {
		var read []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Path == "/api":
				_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case r.URL.Path == "/apis":
				_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1"}`)
			case r.URL.Path == "/api/v1":
				_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[
					{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["get"]}]}`)
			case strings.Contains(r.URL.Path, "/configmaps/"):
				read = append(read, r.URL.Path)
				w.WriteHeader(http.StatusForbidden)
			}
		}))
		defer server.Close()
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(kubeconfig, []byte(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+server.URL+`"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`), 0o600))
		_, err := kindsOutput(t, append([]string{"list", "--cluster", "--kubeconfig=" + kubeconfig}, args...)...)
		require.Error(t, err)
		require.Equal(t, []string{"/api/v1/namespaces/" + namespace + "/configmaps/koord-jobqueue-managed-jobs"}, read)
	}
}

// The printed policies of a built-in kind equal the shipped ones, and those of a user's kind are analogous.
func TestPoliciesOfKinds(t *testing.T) {
	shipped, err := os.ReadFile("../../../manifests/components/kinds/pytorchjob/tenancy.yaml")
	require.NoError(t, err)
	printed, err := kindsOutput(t, "policy", "PyTorchJob")
	require.NoError(t, err)
	require.Contains(t, string(shipped), printed)
	require.Equal(t, 5, strings.Count(printed, "\n  validationActions: [Deny]\n"), "they refuse")
	require.NotContains(t, printed, "validationActions: [Warn, Audit]")
	warns, err := kindsOutput(t, "policy", "PyTorchJob", "--warn")
	require.NoError(t, err)
	require.Equal(t, printed, strings.ReplaceAll(warns, "validationActions: [Warn, Audit]", "validationActions: [Deny]"))
	require.NotEqual(t, printed, warns)

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
