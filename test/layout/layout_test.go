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

// Package layout_test checks the rules of the repository itself: licence headers, package comments, names, imports,
// budgets, and tests without sleep.
package layout_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../.."
	module = "github.com/koord-jobqueue/koord-jobqueue"
)

// skipped are directories without code of ours.
var skipped = []string{".git", "bin", "_artifacts", "testdata", "vendor"}

// goFiles calls visit with every Go file of the repository, path relative to its root.
func goFiles(t *testing.T, visit func(file string)) {
	t.Helper()
	count := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(skipped, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(p) == ".go" {
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			count++
			visit(filepath.ToSlash(rel))
		}
		return nil
	})
	require.NoError(t, err)
	require.NotZero(t, count)
}

func TestLicenceHeaders(t *testing.T) {
	header, err := os.ReadFile(filepath.Join(root, "hack/boilerplate.go.txt"))
	require.NoError(t, err)
	want := strings.TrimSpace(string(header))
	goFiles(t, func(file string) {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		// A build constraint may come first.
		_, body, found := strings.Cut(string(text), "/*")
		if !found || !strings.HasPrefix("/*"+body, want) {
			t.Errorf("%s does not start with the header of hack/boilerplate.go.txt", file)
		}
	})
}

// TestPackageComments: each package says once, and only once, what it is for.
func TestPackageComments(t *testing.T) {
	comments := map[string][]string{}
	goFiles(t, func(file string) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil,
			parser.PackageClauseOnly|parser.ParseComments)
		require.NoError(t, err)
		// The package of external tests is documented only where there is no other.
		key := path.Dir(file) + " " + strings.TrimSuffix(f.Name.Name, "_test")
		if _, seen := comments[key]; !seen {
			comments[key] = nil
		}
		if f.Doc != nil && strings.TrimSpace(f.Doc.Text()) != "" {
			comments[key] = append(comments[key], file)
		}
	})
	for pkg, files := range comments {
		if len(files) != 1 {
			t.Errorf("package %s has %d package comments, want one: %v", pkg, len(files), files)
		}
	}
}

var vague = regexp.MustCompile(`^(utils?|commons?|helpers?|misc|shared|base|types|lib)$`)

func TestPackageNames(t *testing.T) {
	goFiles(t, func(file string) {
		for _, part := range strings.Split(path.Dir(file), "/") {
			if vague.MatchString(part) {
				t.Errorf("%s: a package is named after one noun of the design, not %q", file, part)
			}
		}
	})
}

// rule forbids imports in the packages below a directory.
type rule struct {
	name string
	// in selects the packages, by path relative to the module.
	in func(pkg string) bool
	// forbidden reports whether such a package must not import that path.
	forbidden func(imported string) bool
	// tests: it holds for the tests of the packages, too.
	tests bool
}

func below(dirs ...string) func(string) bool {
	return func(p string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool { return p == d || strings.HasPrefix(p, d+"/") })
	}
}

func not(f func(string) bool) func(string) bool { return func(p string) bool { return !f(p) } }

func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// decisions are the packages that say what to do about a job, as the linter has them.
var decisions = []string{
	"internal/controller/doubt", "internal/controller/event", "internal/controller/jobask", "internal/controller/jobplan",
	"internal/controller/jobunit", "internal/controller/notice", "internal/controller/ownerhold",
	"internal/controller/podreport", "internal/controller/resumption", "internal/controller/stall",
	"internal/controller/unitstatus",
}

var rules = []rule{
	{
		name: "the core knows quantities of Kubernetes, and nothing else of it",
		in:   below("pkg/core"),
		forbidden: func(p string) bool {
			allowed := below("k8s.io/apimachinery/pkg/api/resource", module+"/pkg/core")
			return !standard(p) && !allowed(p)
		},
	},
	{
		name:      "the core has no locks, no goroutines to wait for, no logger and no dice",
		in:        below("pkg/core"),
		forbidden: below("sync", "context", "log", "math/rand", "os", "net"),
	},
	{
		name: "a replay depends on its workload alone",
		in:   below("internal/trace", "internal/replay"),
		forbidden: func(p string) bool {
			return below("sync", "context", "log", "os", "net")(p) ||
				!standard(p) && !below(module+"/internal/trace", module+"/internal/replay")(p)
		},
	},
	{
		name:      "only internal/quota, pkg/plugin and pkg/scheduler know Koordinator's code",
		in:        not(below("internal/quota", "pkg/plugin", "pkg/scheduler", "test")),
		forbidden: below("github.com/koordinator-sh/koordinator/pkg", "github.com/koordinator-sh/koordinator/cmd"),
	},
	{
		name:      "only what links the scheduler or the control plane imports k8s.io/kubernetes",
		in:        not(below("internal/placement", "internal/quota", "pkg/plugin", "pkg/scheduler", "cmd", "test")),
		forbidden: below("k8s.io/kubernetes"),
	},
	{
		name:      "types know nothing of what works on them",
		in:        below("apis"),
		forbidden: below(module+"/internal", module+"/pkg", module+"/cmd", module+"/test"),
	},
	{
		name:      "the product does not use what tests it",
		in:        not(below("test", "cmd/jobqueue-playground")),
		forbidden: below(module+"/test", "github.com/stretchr/testify", "pgregory.net/rapid"),
	},
	{
		name:      "nothing imports a program, and tests no more than the rest",
		in:        not(below("cmd/jobqueue-playground")),
		forbidden: below(module + "/cmd"),
		tests:     true,
	},
	{
		name: "the playground imports packages of its own, and no program",
		in:   below("cmd/jobqueue-playground"),
		forbidden: func(p string) bool {
			return below(module+"/cmd")(p) && !strings.HasPrefix(p, module+"/cmd/jobqueue-playground/")
		},
		tests: true,
	},
	{
		name: "test/harness is all that programs, tests of packages and tests of the whole share",
		in:   not(below("test")),
		forbidden: func(p string) bool {
			return below(module+"/test")(p) && !below(module+"/test/harness")(p)
		},
		tests: true,
	},
	{
		name: "test/harness does not use the tests that use it",
		in:   below("test/harness"),
		forbidden: func(p string) bool {
			return below(module+"/test")(p) && !below(module+"/test/harness")(p)
		},
		tests: true,
	},
	{
		name:      "a program does not import what needs a test",
		in:        below("cmd"),
		forbidden: below(module+"/test/harness/podwebhook", "github.com/stretchr/testify", "pgregory.net/rapid"),
	},
	{
		name:      "what to do about a job is decided without a client and a clock",
		in:        below(decisions...),
		forbidden: below("k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/utils/clock"),
	},
	{
		name: "what several programs know alike knows API types and the core",
		in:   below("internal/contract"),
		forbidden: func(p string) bool {
			return below(module+"/internal", module+"/pkg")(p) && !below(module+"/internal/contract", module+"/pkg/core")(p)
		},
	},
	{
		name:      "the controller and the engine meet in API objects only",
		in:        below("internal/controller"),
		forbidden: below(module+"/internal/engine", module+"/internal/quota", module+"/pkg/plugin"),
	},
}

func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module+"/")
		if slices.Contains(skipped, rel) {
			continue
		}
		for _, r := range rules {
			if !r.in(rel) {
				continue
			}
			imports := p.Imports
			if r.tests {
				imports = slices.Concat(imports, p.TestImports, p.XTestImports)
			}
			for _, imported := range imports {
				if r.forbidden(imported) {
					t.Errorf("%s imports %s: %s", rel, imported, r.name)
				}
			}
		}
	}
}

type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var list []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p goPackage
		require.NoError(t, dec.Decode(&p))
		list = append(list, p)
	}
	require.NotEmpty(t, list)
	return list
}

// TestTestsDoNotSleep: unit tests use fake clocks; only tests against a real control plane wait, for conditions.
func TestTestsDoNotSleep(t *testing.T) {
	eachUseInTests(t, "time", "Sleep", func(file string, at token.Position) {
		if !below("test")(path.Dir(file)) {
			t.Errorf("%s: a unit test must not sleep", at)
		}
	})
}

// TestPropertiesAreChecksOfEffort: otherwise Go's test cache shows the result of another number of checks.
func TestPropertiesAreChecksOfEffort(t *testing.T) {
	eachUseInTests(t, "rapid", "Check", func(_ string, at token.Position) {
		t.Errorf("%s: effort.Check tells the test cache how many checks were asked for", at)
	})
}

// eachUseInTests visits every use of the function of a package in the files of tests.
func eachUseInTests(t *testing.T, pkg, function string, visit func(file string, at token.Position)) {
	t.Helper()
	goFiles(t, func(file string) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(root, file), nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == pkg && sel.Sel.Name == function {
				visit(file, set.Position(sel.Pos()))
			}
			return true
		})
	})
}

var (
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	namedTest = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z]\\w+)`")
)

// Tests that the documents name exist.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	exists := map[string]bool{}
	goFiles(t, func(file string) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for _, match := range testFunc.FindAllSubmatch(text, -1) {
			exists[string(match[1])] = true
		}
	})
	documents := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found)
		documents = append(documents, found...)
	}
	for _, document := range documents {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, match := range namedTest.FindAllSubmatch(text, -1) {
			require.True(t, exists[string(match[1])], "%s names %s", document, match[1])
		}
	}
}
