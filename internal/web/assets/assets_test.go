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

package assets

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

type vendored struct{ File, Package, Version, Path, Licence, SHA256 string }

// Vendored files are those of the registry, where that can be reached.
func TestVendoredFiles(t *testing.T) {
	text, err := os.ReadFile("vendored.yaml")
	require.NoError(t, err)
	var all []vendored
	require.NoError(t, yaml.UnmarshalStrict(text, &all))
	require.NotEmpty(t, all)
	for _, v := range all {
		content, err := os.ReadFile(v.File)
		require.NoError(t, err)
		sum := sha256.Sum256(content)
		require.Equal(t, v.SHA256, hex.EncodeToString(sum[:]), v.File)
		require.NotEmpty(t, v.Licence)
		t.Run(v.Package, func(t *testing.T) { require.Equal(t, packed(t, &v), content) })
	}
}

// packed is a file as the registry has it.
func packed(t *testing.T, v *vendored) []byte {
	t.Helper()
	if testing.Short() && os.Getenv("CI") == "" {
		t.Skip("the registry is not asked by short tests")
	}
	dir := t.TempDir()
	pack := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--fetch-retries=0", v.Package+"@"+v.Version)
	pack.Dir = dir
	if out, err := pack.CombinedOutput(); err != nil {
		t.Skipf("the registry cannot be reached by npm: %v %s", err, out)
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	require.NoError(t, err)
	require.Len(t, archives, 1)
	compressed, err := os.ReadFile(archives[0])
	require.NoError(t, err)
	plain, err := gzip.NewReader(bytes.NewReader(compressed))
	require.NoError(t, err)
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		require.NoError(t, err, "no such file: %s", v.Path)
		if header.Name == v.Path {
			content, err := io.ReadAll(files)
			require.NoError(t, err)
			return content
		}
	}
}
