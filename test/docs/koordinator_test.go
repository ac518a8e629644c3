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

package docs_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var replicas = regexp.MustCompile(`(?m)^  replicas: \d+$`)

// koordinatorChart serves a repository with a chart that is called as Koordinator's, and returns its address. The chart
// of Koordinator is not a part of its module. This one has the definitions of the module, and its scheduler.
func koordinatorChart(t *testing.T, helm string) string {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/koordinator-sh/koordinator").Output()
	require.NoError(t, err)
	config := filepath.Join(strings.TrimSpace(string(module)), "config")
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).
		Run(filesys.MakeFsOnDisk(), filepath.Join(config, "default"))
	require.NoError(t, err)
	repository := t.TempDir()
	chart := filepath.Join(repository, "koordinator")
	require.NoError(t, os.MkdirAll(filepath.Join(chart, "templates"), 0o755))
	require.NoError(t, os.CopyFS(filepath.Join(chart, "crds"), os.DirFS(filepath.Join(config, "crd", "bases"))))
	files := map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: koordinator\nversion: 1.8.0\n",
		"values.yaml": "scheduler: {replicas: 2}\n",
	}
	for _, r := range all.Resources() {
		if !strings.Contains(r.GetName(), "koord-scheduler") {
			continue
		}
		text, err := r.AsYAML()
		require.NoError(t, err)
		of := replicas.ReplaceAllString(string(text), "  replicas: {{ .Values.scheduler.replicas }}")
		files["templates/"+r.GetKind()+"-"+r.GetName()+".yaml"] = strings.ReplaceAll(of, "scheduler:latest",
			"registry.example.com/koordinator-sh/koord-scheduler:v1.8.0")
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(chart, name), []byte(text), 0o644))
	}
	server := httptest.NewServer(http.FileServer(http.Dir(repository)))
	t.Cleanup(server.Close)
	for _, args := range [][]string{{"package", chart, "--destination", repository}, {"repo", "index", repository}} {
		out, err := exec.CommandContext(t.Context(), helm, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return server.URL
}
