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
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHelmOfThePath: an operator has a Helm, and building another one takes minutes.
func TestHelmOfThePath(t *testing.T) {
	programs, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	built, err := filepath.Abs("../../bin/helm")
	require.NoError(t, err)
	helm := filepath.Join(programs, "helm")
	for _, c := range []struct{ version, pinned, want string }{
		{"v3.17.0", "", helm}, {"v3.20.1", "", helm}, {"v4.2", "", helm},
		{"v3.16.9", "", built}, {"v2.17.0", "", built}, {"", "", built}, {"v4.2", "1", built},
	} {
		program := "#!/bin/sh\necho '" + c.version + "'\n"
		require.NoError(t, os.WriteFile(helm, []byte(program), 0o755))
		command := exec.CommandContext(t.Context(), "../../hack/helm.sh")
		command.Env = append(os.Environ(), "GO=true", "PINNED="+c.pinned, // nothing is built
			"PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
		out, err := command.Output()
		require.NoError(t, err)
		require.Equal(t, c.want, strings.TrimSpace(string(out)), "%+v", c)
	}
}
