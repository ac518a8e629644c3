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
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	layerRow  = regexp.MustCompile("(?m)^\\| (\\d+) \\| `(\\w+)` \\|")
	namedCall = regexp.MustCompile("(?m)^\\d\\. `([\\w.]+)` in `([\\w/.]+)`")
)

// The core is as docs/design/architecture.md draws it. Each package is in a layer, and imports run down. The functions
// on the path of a unit are in the files that the page names.
func TestTheArchitectureOfTheCore(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/design/architecture.md"))
	require.NoError(t, err)
	layers := map[string]int{}
	for _, row := range layerRow.FindAllStringSubmatch(string(page), -1) {
		layers[row[2]], err = strconv.Atoi(row[1])
		require.NoError(t, err)
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
				t.Errorf("%s (layer %d) imports %s (layer %d)", name, layers[name], below, layers[below])
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

// termLine is a line of the glossary or the vocabulary.
var termLine = regexp.MustCompile(`(?m)^- \*\*(.+?)\*\*`)

// camelWord is a word of a name in CamelCase.
var camelWord = regexp.MustCompile("[A-Z][a-z0-9]*")

// notDomain are words of names that say how a type is made, not what is queued.
const notDomain = "Book Config Factory Item Key List Name No Numbering Pair Reader Row Spec State Sum Tree"

// The glossary or the vocabulary explains each exported type of the core. Each word of its name that is of the domain
// is in a term, and each term stands once.
func TestTheGlossaryExplainsTheTypesOfTheCore(t *testing.T) {
	explained, terms := map[string]bool{}, map[string]bool{}
	for _, file := range []string{"docs/glossary.md", "docs/design/vocabulary.md"} {
		page, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for _, term := range termLine.FindAllStringSubmatch(string(page), -1) {
			require.False(t, terms[term[1]], "%q is explained twice", term[1])
			terms[term[1]] = true
			for word := range strings.FieldsSeq(term[1]) {
				explained[singular(strings.ToLower(word))] = true
			}
		}
	}
	for word := range strings.FieldsSeq(notDomain) {
		require.False(t, explained[singular(strings.ToLower(word))], "%s is a term", word)
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
						t.Errorf("%s.%s: docs/design/vocabulary.md does not explain %q", path.Dir(file), spec.Name.Name, word)
					}
				}
			}
			return true
		})
	})
}

// singular of a word; of some words only a stem, which is enough to compare them.
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
