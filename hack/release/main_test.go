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
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The version of the release that the test makes; no changelog has it.
const madeUp = "v9.8.7-test.1"

// The provenance of a program is what the linker wrote into it, and the checksums are those of all files.
func TestProvenanceAndChecksums(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	content, err := os.ReadFile(self)
	require.NoError(t, err)
	programs, out := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(programs, "self"), content, 0o644))
	p := Provenance{Version: madeUp, Commit: "c"}
	require.NoError(t, p.addDirectory(programs))
	require.NoError(t, p.write(out))
	require.NoError(t, checksums(out))

	var read Provenance
	text, err := os.ReadFile(filepath.Join(out, provenanceFile))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, p, read)
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(content)), read.Programs[0].SHA256)
	require.Equal(t, runtime.GOOS+"/"+runtime.GOARCH, read.Programs[0].Platform)
	require.True(t, slices.ContainsFunc(read.Programs[0].Modules, func(m Module) bool {
		return m.Name == "sigs.k8s.io/yaml" && m.Version != "" && strings.HasPrefix(m.Sum, "h1:")
	}), "%v", read.Programs[0].Modules)
	require.Equal(t, map[string]string{provenanceFile: fmt.Sprintf("%x", sha256.Sum256(text))}, sumsOf(t, out))

	require.NoError(t, os.WriteFile(filepath.Join(programs, "text"), []byte("no program"), 0o644))
	require.ErrorContains(t, p.addDirectory(programs), "text: ")
}

func sumsOf(t *testing.T, directory string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(directory, "SHA256SUMS"))
	require.NoError(t, err)
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, file, found := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		require.True(t, found, line)
		sums[file] = sum
	}
	return sums
}
