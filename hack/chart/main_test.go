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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	texttemplate "text/template"

	"github.com/stretchr/testify/require"
)

// TestEveryPatternNamesAFile: a pattern of a directory that was renamed would install its files under no condition.
func TestEveryPatternNamesAFile(t *testing.T) {
	manifests := os.DirFS("../../manifests")
	files, err := resources(manifests)
	require.NoError(t, err)
	named := func(pattern string) bool {
		return slices.ContainsFunc(files, func(file string) bool { return matches(pattern, file) })
	}
	for _, c := range conditions {
		require.True(t, named(c.files), c.files)
	}
	for _, e := range edits {
		require.True(t, named(e.files), e.files)
	}

	to := filepath.Join(t.TempDir(), "chart")
	require.NoError(t, run(manifests, to, "v1.2.3"))
	templates, err := filepath.Glob(filepath.Join(to, "templates", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, templates, len(files))
	policy, err := os.ReadFile(filepath.Join(to, "templates", "base-admission-keep-parameters.yaml"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(policy), "helm.sh/resource-policy: keep"), "the policy and its binding")
	require.NotContains(t, string(policy), "{{", "it is installed whatever the values are")
	chart, err := os.ReadFile(filepath.Join(to, "Chart.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(chart), "\nversion: 1.2.3\nappVersion: v1.2.3\n")
}

// TestNotes: each next step is named once.
func TestNotes(t *testing.T) {
	raw, err := os.ReadFile("../../manifests/chart/templates/NOTES.txt")
	require.NoError(t, err)
	notes := texttemplate.Must(texttemplate.New("").Funcs(texttemplate.FuncMap{
		"default": func(_, given string) string { return given },
	}).Parse(string(raw)))
	for install, next := range map[bool]string{true: "\nNext, stop the scheduler of Koordinator", false: ""} {
		var text strings.Builder
		require.NoError(t, notes.Execute(&text, map[string]any{
			"Release": map[string]any{"IsInstall": install},
			"Values":  map[string]any{"tenancy": map[string]any{"mode": "warn"}, "scheduler": map[string]any{"enabled": true}},
		}))
		require.Contains(t, text.String(), "policies: warn.\n"+next)
		require.Equal(t, install, strings.Contains(text.String(), "Next, "))
	}
}
