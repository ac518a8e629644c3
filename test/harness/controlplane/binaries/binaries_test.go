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

package binaries

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module writes a small module that builds without any other and returns its directory.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.test/hello\n\ngo 1.25\n")
	write(t, dir, "cmd/hello/main.go", "package main\n\nfunc main() { println(\"hello\") }\n")
	write(t, dir, "cmd/hello/main_test.go", "package main\n")
	return dir
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func hello() Binary {
	return Binary{Name: "hello", Package: "./cmd/hello", Sources: []string{"go.mod", "cmd"}}
}

func TestBuildIsSkippedUntilASourceChanges(t *testing.T) {
	dir := module(t)
	run := func() string {
		var out bytes.Buffer
		require.NoError(t, Build(context.Background(), Options{Root: dir, Out: &out}, hello()))
		return out.String()
	}
	require.Contains(t, run(), "[1/1] hello")
	require.FileExists(t, filepath.Join(dir, "bin", "hello"))
	require.Empty(t, run(), "nothing changed")

	write(t, dir, "cmd/hello/main_test.go", "package main // changed\n")
	require.Empty(t, run(), "tests are not part of the program")

	write(t, dir, "cmd/hello/main.go", "package main\n\nfunc main() { println(\"changed\") }\n")
	require.Contains(t, run(), "done")

	require.NoError(t, os.Remove(filepath.Join(dir, "bin", "hello")))
	require.Contains(t, run(), "done", "the program is gone")
}

func TestBuildSaysWhatTheCompilerSaid(t *testing.T) {
	dir := module(t)
	write(t, dir, "cmd/hello/main.go", "package main\n\nfunc main() { undefined() }\n")
	var out bytes.Buffer
	err := Build(context.Background(), Options{Root: dir, Out: &out}, hello())
	require.ErrorContains(t, err, "build hello")
	require.ErrorContains(t, err, "undefined: undefined")
	require.NotContains(t, out.String(), "done")
	require.Error(t, Build(context.Background(), Options{Root: dir, Out: &out}, hello()), "a failure leaves no stamp")
}

func TestDefaultNamesExistingSources(t *testing.T) {
	for _, b := range append(Default(), Kubectl()) {
		for _, source := range b.Sources {
			_, err := os.Stat(filepath.Join("..", "..", "..", "..", source))
			require.NoError(t, err, "%s: %s", b.Name, source)
		}
		require.False(t, strings.HasPrefix(b.Package, "/"))
	}
}
