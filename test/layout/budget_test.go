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
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var lowerBudget = flag.Bool("lower-budget", false, "write the figures of budget.yaml that have fallen")

// budget bounds how large a part of the product may be.
type budget struct {
	// Limits hold for what is not listed in Over.
	Limits struct {
		Methods int `json:"methods"`
		Files   int `json:"files"`
		Lines   int `json:"lines"`
		// LinesOf are limits of the packages below a directory; the longest directory counts.
		LinesOf map[string]int `json:"linesOf"`
	} `json:"limits"`
	Over figures `json:"over"`
	// Writers names the only file that may assign a field (package.field), tests aside. Types are not told apart.
	Writers map[string]string `json:"writers"`
}

// figures are by type (package.Type) for Methods and Files, and by package for Lines.
type figures struct {
	// Methods of a type. Functions of its package that take it first count too, and methods of an embedded type of this
	// module.
	Methods map[string]int `json:"methods,omitempty"`
	// Files that declare methods of a type.
	Files map[string]int `json:"files,omitempty"`
	// Lines of a package, without tests and generated files.
	Lines map[string]int `json:"lines,omitempty"`
}

// TestBudget: a type or a package that is over the limit does not grow, and one that is within stays within. A figure
// that has fallen by more than a twentieth has to be written down: go test ./test/layout -run TestBudget -lower-budget
func TestBudget(t *testing.T) {
	text, b := readBudget(t)
	measured := measure(t)

	limit := func(of int) func(string) int { return func(string) int { return of } }
	compare(t, "methods", 1, b.Over.Methods, measured.Methods, limit(b.Limits.Methods))
	compare(t, "files with methods", 1, b.Over.Files, measured.Files, limit(b.Limits.Files))
	compare(t, "lines", 50, b.Over.Lines, measured.Lines, func(pkg string) int {
		for dir := pkg; dir != "."; dir = path.Dir(dir) {
			if lines, ok := b.Limits.LinesOf[dir]; ok {
				return lines
			}
		}
		return b.Limits.Lines
	})
	if *lowerBudget {
		comment, _, _ := bytes.Cut(text, []byte("limits:"))
		out, err := yaml.Marshal(b)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(budgetFile, append(comment, out...), 0o644))
	}
}

const budgetFile = "budget.yaml"

func readBudget(t *testing.T) (text []byte, b budget) {
	t.Helper()
	text, err := os.ReadFile(budgetFile)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &b))
	return text, b
}

// TestWriters: a field of budget.yaml is assigned in its file only, and in that one.
func TestWriters(t *testing.T) {
	_, b := readBudget(t)
	for field, writer := range b.Writers {
		pkg, name := strings.TrimSuffix(field, path.Ext(field)), path.Ext(field)[1:]
		writes := 0
		goFiles(t, func(file string) {
			if path.Dir(file) != pkg || strings.HasSuffix(file, "_test.go") {
				return
			}
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, 0)
			require.NoError(t, err)
			ast.Inspect(f, func(n ast.Node) bool {
				var written []ast.Expr
				switch n := n.(type) {
				case *ast.AssignStmt:
					written = n.Lhs
				case *ast.IncDecStmt:
					written = []ast.Expr{n.X}
				}
				for _, e := range written {
					if s, ok := e.(*ast.SelectorExpr); ok && s.Sel.Name == name {
						writes++
						require.Equal(t, writer, path.Base(file), "%s is assigned in %s", field, file)
					}
				}
				return true
			})
		})
		require.NotZero(t, writes, "nothing assigns %s", field)
	}
}

// compare checks measured figures against the limit or the recorded figure. With -lower-budget it lowers the recorded
// ones, rounded up to a step.
func compare(t *testing.T, what string, step int, over, measured map[string]int, limit func(string) int) {
	for _, name := range slices.Sorted(maps.Keys(measured)) {
		is, allowed := measured[name], limit(name)
		if figure, ok := over[name]; ok {
			allowed = figure
		}
		if is > allowed {
			t.Errorf("%s has %d %s, %d are allowed: divide it (docs/design/architecture.md)", name, is, what, allowed)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(over)) {
		is, figure := measured[name], over[name]
		switch {
		case is <= limit(name) && *lowerBudget:
			delete(over, name)
		case is < figure && *lowerBudget:
			over[name] = min(figure, (is+step-1)/step*step)
		case is <= limit(name) || is < figure-figure/20:
			t.Errorf("%s has %d %s by now, and budget.yaml allows %d: lower it (-lower-budget)", name, is, what, figure)
		}
	}
}

// declared is what the files of the product declare of a type.
type declared struct {
	methods  int
	files    map[string]bool
	embedded []string
}

func measure(t *testing.T) figures {
	t.Helper()
	types, lines := map[string]*declared{}, map[string]int{}
	var takenFirst []string // the types that functions take first
	of := func(name string) *declared {
		if types[name] == nil {
			types[name] = &declared{files: map[string]bool{}}
		}
		return types[name]
	}
	goFiles(t, func(file string) {
		if !below("apis", "cmd", "internal", "pkg")(file) || strings.HasSuffix(file, "_test.go") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
		require.NoError(t, err)
		if ast.IsGenerated(f) {
			return
		}
		pkg := path.Dir(file)
		lines[pkg] += bytes.Count(text, []byte("\n"))
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					receiver := of(pkg + "." + typeName(d.Recv.List[0].Type))
					receiver.methods++
					receiver.files[file] = true
				} else if parameters := d.Type.Params.List; len(parameters) > 0 {
					takenFirst = append(takenFirst, pkg+"."+typeName(parameters[0].Type))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						of(pkg + "." + spec.Name.Name).embedded = embedded(f, pkg, spec.Type)
					}
				}
			}
		}
	})
	for _, name := range takenFirst {
		if d := types[name]; d != nil {
			d.methods++
		}
	}
	found := figures{Methods: map[string]int{}, Files: map[string]int{}, Lines: lines}
	for name, d := range types {
		found.Methods[name] = promoted(types, name)
		found.Files[name] = len(d.files)
	}
	return found
}

// promoted counts the methods of a type and of what it embeds.
func promoted(types map[string]*declared, name string) int {
	d := types[name]
	if d == nil {
		return 0
	}
	n := d.methods
	for _, other := range d.embedded {
		n += promoted(types, other)
	}
	return n
}

// embedded are the types of this module that a struct embeds.
func embedded(f *ast.File, pkg string, of ast.Expr) (names []string) {
	s, ok := of.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range s.Fields.List {
		if len(field.Names) > 0 {
			continue
		}
		prefix, name, ok := strings.Cut(typeName(field.Type), ".")
		if !ok {
			names = append(names, pkg+"."+prefix)
			continue
		}
		for _, spec := range f.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			called := path.Base(imported)
			if spec.Name != nil {
				called = spec.Name.Name
			}
			if rel, ours := strings.CutPrefix(imported, module+"/"); ours && called == prefix {
				names = append(names, rel+"."+name)
			}
		}
	}
	return names
}

// typeName is the name of a type as it is written, without pointers and type arguments.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}
