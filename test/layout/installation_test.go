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
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	kindOfObject = regexp.MustCompile(`(?m)^kind: (\w+)`)
	nameOfOurs   = regexp.MustCompile(`\bname: ((?:koord-)?jobqueue-[a-z-]+)`)
)

// setting is the object in which an operator changes what is managed, with kustomize or by a value of the chart.
const setting = "koord-jobqueue-managed-jobs"

// Tests and playground install what users install. None of them writes an object of ours by hand: what chart and
// kustomization do not have, nobody has.
func TestNobodyInstallsByHand(t *testing.T) {
	settings := 0
	for _, dir := range []string{"test", "cmd/jobqueue-playground"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(file string, _ fs.DirEntry, err error) error {
			if !strings.HasSuffix(file, ".go") || strings.Contains(file, "test/layout") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			require.NoError(t, err)
			ast.Inspect(parsed, func(n ast.Node) bool {
				text, ok := n.(*ast.BasicLit)
				if !ok || text.Kind != token.STRING {
					return true
				}
				for _, object := range yamlDocument.Split(strings.Trim(text.Value, "`"), -1) {
					kind, name := kindOfObject.FindStringSubmatch(object), nameOfOurs.FindStringSubmatch(object)
					if kind == nil || name == nil {
						continue
					}
					require.Equal(t, "ConfigMap "+setting, kind[1]+" "+name[1], "%s installs it", file)
					settings++
				}
				return true
			})
			return nil
		}))
	}
	require.GreaterOrEqual(t, settings, 3, "objects in tests are no longer found")
}
