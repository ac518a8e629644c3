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

package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
)

var update = flag.Bool("golden", false, "write the golden files")

const unitsPath = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/blue/queueunits"

// apiOf serves a QueueUnit "secret" of namespace blue and, from the tests of the server, what it says of that.
func apiOf(t *testing.T, live string) *httptest.Server {
	t.Helper()
	const discovery = `{"kind": "APIResourceList", "groupVersion": "scheduling.x-k8s.io/v1alpha1", "resources": [
		{"name": "queueunits", "kind": "QueueUnit", "namespaced": true, "verbs": ["get", "list"]}]}`
	const unit = `{"metadata": {"namespace": "blue", "name": "secret", "creationTimestamp": "2026-01-01T11:48:00Z"},
		"spec": {"consumerRef": {"kind": "Job", "name": "secret"}}, "status": {"phase": "Enqueued", "conditions": [
		{"type": "QuotaReserved", "status": "False", "reason": "QuotaExceeded", "message": "too little cpu left"}]}}`
	answers := map[string]string{
		"/api": `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "groups": [{"name": "scheduling.x-k8s.io", "versions": [
			{"groupVersion": "scheduling.x-k8s.io/v1alpha1", "version": "v1alpha1"}]}]}`,
		"/apis/scheduling.x-k8s.io/v1alpha1": discovery,
		unitsPath: `{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnitList",
			"items": [` + unit + `]}`,
	}
	if live != "" {
		text, err := os.ReadFile(filepath.Join("..", "visibility", "testdata", live+".json"))
		require.NoError(t, err)
		answers["/apis/visibility.koord-queue.x-k8s.io/v1alpha1/namespaces/blue/units/secret"] = string(text)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if text, served := answers[r.URL.Path]; served {
			fmt.Fprint(w, text)
			return
		}
		code, reason := http.StatusNotFound, "NotFound"
		if strings.Contains(r.URL.Path, "/namespaces/red/") {
			code, reason = http.StatusForbidden, "Forbidden"
		}
		w.WriteHeader(code)
		require.NoError(t, json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1",
			"status": "Failure", "reason": reason, "code": code, "message": "the server says: " + reason}))
	}))
	t.Cleanup(server.Close)
	return server
}

// The golden files have standard output, standard error and the error with which the command ends.
func TestScreensOfWhy(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for name, c := range map[string]struct {
		live string
		args []string
	}{
		"why":           {"share-lead", []string{"secret", "-n", "blue"}},
		"why-wide":      {"share-lead", []string{"secret", "-n", "blue", "-o", "wide"}},
		"why-no-api":    {"", []string{"job/secret", "-n", "blue"}},
		"why-none":      {"", []string{"none", "-n", "blue"}},
		"why-forbidden": {"", []string{"secret", "-n", "red"}},
		"why-format":    {"", []string{"secret", "-n", "blue", "-o", "html"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errors bytes.Buffer
			server := apiOf(t, c.live)
			cmd := commandAt(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errors},
				clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)))
			cmd.SetArgs(append([]string{"why", "--server", server.URL, "--cache-dir", t.TempDir()}, c.args...))
			err := cmd.ExecuteContext(t.Context())
			text := fmt.Sprintf("$ kubectl jobqueue why %s\n%s\nstderr:\n%s", strings.Join(c.args, " "), &out, &errors)
			if err != nil {
				text += fmt.Sprintf("Error: %v\n", err)
			}
			file := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o700))
				require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), text)
		})
	}
}
