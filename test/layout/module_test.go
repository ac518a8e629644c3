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
	"encoding/json"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// goMod is what `go mod edit -json` says of a file.
type goMod struct {
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

// TestModulesNameOneVersion: a dependency that a module of the repository requires itself, or replaces, has one version
// in all of them. Indirect requirements count in the go.mod of the product only. Those of a tool are the tool's choice.
func TestModulesNameOneVersion(t *testing.T) {
	versions := map[string]string{}
	for _, file := range goMods(t) {
		out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", filepath.Join(root, file)).Output()
		require.NoError(t, err, file)
		var mod goMod
		require.NoError(t, json.Unmarshal(out, &mod), file)
		named := map[string]string{}
		for _, r := range mod.Require {
			if !r.Indirect || file == "go.mod" {
				named[r.Path] = r.Version
			}
		}
		for _, r := range mod.Replace {
			if _, needed := named[r.Old.Path]; needed || file != "go.mod" {
				named[r.Old.Path] = r.New.Version
			}
		}
		for name, version := range named {
			if first, ok := versions[name]; ok && first != version {
				t.Errorf("%s names %s %s, another module of the repository %s", file, name, version, first)
			}
			versions[name] = version
		}
	}
}

// goMods lists the go.mod of the product, and then those of the other modules.
func goMods(t *testing.T) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains(skipped, d.Name()) {
			return filepath.SkipDir
		}
		if err == nil && d.Name() == "go.mod" {
			rel, _ := filepath.Rel(root, p)
			files = append(files, rel)
		}
		return err
	}))
	slices.SortFunc(files, func(a, b string) int { return len(a) - len(b) })
	require.Equal(t, "go.mod", files[0])
	return files
}
