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

package layout_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another module builds against the API types and the library for admission checks without any replacement, because
// replacements of this module are not inherited.
func TestAnotherModuleImportsTheLibraries(t *testing.T) {
	checkout, err := filepath.Abs(root)
	require.NoError(t, err)
	var source strings.Builder
	source.WriteString("package consumer\n\nimport (\n")
	libraries := 0
	for _, p := range listPackages(t) {
		if rel := strings.TrimPrefix(p.ImportPath, module+"/"); below("apis", "pkg/admissioncheck")(rel) {
			fmt.Fprintf(&source, "\t_ %q\n", p.ImportPath)
			libraries++
		}
	}
	source.WriteString(")\n")
	require.Greater(t, libraries, 1)
	consume(t, module, checkout, source.String(), "build", "-mod=mod", "./...")
}

// A program that submits jobs builds with few packages that are not of Go itself.
func TestSubmittersStaySmall(t *testing.T) {
	checkout, err := filepath.Abs(filepath.Join(root, "pkg/submit"))
	require.NoError(t, err)
	source := "package main\n\nimport \"" + module + "/pkg/submit\"\n\nfunc main() { println(submit.Drivers()[0]) }\n"
	said := consume(t, module+"/pkg/submit", checkout, source, "list", "-mod=mod", "-deps", "-f",
		"{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	packages := strings.Fields(said)
	require.Contains(t, packages, module+"/pkg/submit")
	require.Less(t, len(packages), 60, "%s", said)
	consume(t, module+"/pkg/submit", checkout, source, "build", "-mod=mod", "-o", os.DevNull, ".")
}

// consume runs the go command in a module of somebody else, who requires one of ours, and returns what it writes.
func consume(t *testing.T, required, at, source string, command ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"consumer.go": source,
		// The module is not published, so its place in the file system stands for a version of it.
		"go.mod": "module example.com/consumer\n\ngo 1.25.0\n\nrequire " + required + " v0.0.0\n\nreplace " +
			required + " => " + at + "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	run := exec.CommandContext(t.Context(), "go", command...)
	run.Dir = dir
	run.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var failed strings.Builder
	run.Stderr = &failed
	said, err := run.Output()
	require.NoError(t, err, "%s", failed.String())
	return string(said)
}
