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
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	layerRow  = regexp.MustCompile("(?m)^\\| (\\d) \\| `(\\w+)` \\|")
	namedCall = regexp.MustCompile("(?m)^\\d\\. `([\\w.]+)` in `([\\w/.]+)`")
)

// The core is as docs/design/architecture.md draws it: each package is in a layer, imports run down, and the functions
// on the path of a unit are where the page says.
func TestTheArchitectureOfTheCore(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/design/architecture.md"))
	require.NoError(t, err)
	layers := map[string]string{}
	for _, row := range layerRow.FindAllStringSubmatch(string(page), -1) {
		layers[row[2]] = row[1]
	}
	const core = module + "/pkg/core/"
	found := 0
	for _, p := range listPackages(t) {
		name, ours := strings.CutPrefix(p.ImportPath, core)
		if !ours {
			continue
		}
		found++
		require.Contains(t, layers, name, "a package that the page does not have")
		for _, imported := range p.Imports {
			if below, ours := strings.CutPrefix(imported, core); ours && layers[below] >= layers[name] {
				t.Errorf("%s (layer %s) imports %s (layer %s)", name, layers[name], below, layers[below])
			}
		}
	}
	require.Len(t, layers, found, "the page has a package that does not exist")

	calls := namedCall.FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, calls)
	for _, call := range calls {
		require.Contains(t, functionsOf(t, path.Join("pkg/core", call[2])), call[1], call[2])
	}
}

// termLine is a line of the glossary.
var termLine = regexp.MustCompile(`(?m)^- \*\*(.+?)\*\*`)

// camelWord is a word of a name in CamelCase.
var camelWord = regexp.MustCompile("[A-Z][a-z0-9]*")

// notDomain are words of names that say how a type is made, not what is queued.
const notDomain = "Book Config Factory Item Key Keyed List Name No Numbering Pair Reader Row Spec State Sum Tree"

// The glossary explains each exported type of the core: each word of its name is in a term, if it is of the domain.
func TestTheGlossaryExplainsTheTypesOfTheCore(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/glossary.md"))
	require.NoError(t, err)
	explained := map[string]bool{}
	for _, term := range termLine.FindAllStringSubmatch(string(page), -1) {
		for word := range strings.FieldsSeq(term[1]) {
			explained[singular(strings.ToLower(word))] = true
		}
	}
	for word := range strings.FieldsSeq(notDomain) {
		require.False(t, explained[singular(strings.ToLower(word))], "%s is a term of the glossary", word)
		explained[singular(strings.ToLower(word))] = true
	}
	goFiles(t, func(file string) {
		if !below("pkg/core")(file) || strings.HasSuffix(file, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				for _, word := range camelWord.FindAllString(spec.Name.Name, -1) {
					if !explained[singular(strings.ToLower(word))] {
						t.Errorf("%s.%s: docs/glossary.md does not explain %q", path.Dir(file), spec.Name.Name, word)
					}
				}
			}
			return true
		})
	})
}

// singular of a word; of some words no more than a stem, which is enough to compare them.
func singular(word string) string { return strings.TrimSuffix(word, "s") }

// functionsOf a file, those of a type with its name before theirs.
func functionsOf(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, 0)
	require.NoError(t, err)
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
			names = append(names, typeName(fn.Recv.List[0].Type)+"."+fn.Name.Name)
		} else if ok {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}
