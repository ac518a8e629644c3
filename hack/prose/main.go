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

// Command prose checks sentences against those rules of CONTRIBUTING.md that a program can check. It reads Markdown,
// the descriptions of CustomResourceDefinitions, and comments of Go code. Metric help and the configuration reach it
// through the generated tables in docs/. It also reports links to files and headings that do not exist.
//
// hack/prose/exceptions.yaml holds the number of findings that a file, or a package of Go, may have. A number only
// falls.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	exceptionsFile = "hack/prose/exceptions.yaml"
	exceptionsHead = "# Findings of hack/prose that a file, or a package of Go, may have. A number only falls.\n"
)

// patterns name the files that are checked, from the root of the repository. See goFiles for those of Go.
var patterns = []string{
	"*.md", "docs/*.md", "docs/*/*.md", "manifests/base/crd/*.yaml", "manifests/components/elasticquotatree/*_*.yaml",
}

var (
	all   = flag.Bool("all", false, "print every finding, also those that exceptions.yaml allows, worst comments first")
	lower = flag.Bool("lower", false, "write the numbers of exceptions.yaml that have fallen")
)

func main() {
	flag.Parse()
	if err := run(os.DirFS(".")); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(root fs.FS) error {
	data, err := fs.ReadFile(root, exceptionsFile)
	if err != nil {
		return err
	}
	allowed, count := map[string]int{}, map[string]int{}
	if err := yaml.UnmarshalStrict(data, &allowed); err != nil {
		return fmt.Errorf("%s: %w", exceptionsFile, err)
	}
	found, wrong, err := checkFiles(root)
	if err != nil {
		return err
	}
	for _, f := range found {
		count[f.owner]++
	}
	if *all {
		slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(b.score, a.score) })
	}
	for _, f := range found {
		if *all || count[f.owner] > allowed[f.owner] {
			fmt.Printf("%s:%s: %s\n", f.file, f.where, f.says)
		}
	}
	if *lower {
		if err := lowerTo(allowed, count); err != nil {
			return err
		}
	}
	if wrong = append(wrong, differences(allowed, count)...); len(wrong) > 0 {
		return fmt.Errorf("rules for sentences (CONTRIBUTING.md):\n  %s", strings.Join(wrong, "\n  "))
	}
	return nil
}

func differences(allowed, count map[string]int) (lines []string) {
	for owner, n := range count {
		if n > allowed[owner] {
			lines = append(lines, fmt.Sprintf("%s: %d findings, %d are allowed", owner, n, allowed[owner]))
		}
	}
	for owner, most := range allowed {
		if n := count[owner]; n < most {
			lines = append(lines, fmt.Sprintf("%s: %d findings are left of %d: run hack/prose -lower", owner, n, most))
		}
	}
	slices.Sort(lines)
	return lines
}

// lowerTo lowers allowed numbers to the count, and writes them.
func lowerTo(allowed, count map[string]int) error {
	for owner, most := range allowed {
		allowed[owner] = min(most, count[owner])
	}
	maps.DeleteFunc(allowed, func(_ string, n int) bool { return n == 0 })
	data, err := yaml.Marshal(allowed)
	if err != nil {
		return err
	}
	return os.WriteFile(exceptionsFile, append([]byte(exceptionsHead), data...), 0o644)
}

// checkFiles returns the findings in order of their files, and the links that are broken.
func checkFiles(root fs.FS) (found []finding, broken []string, err error) {
	files, err := goFiles(root)
	for _, pattern := range patterns {
		matches, _ := fs.Glob(root, pattern) // the patterns are well formed
		files = append(files, matches...)
	}
	for _, file := range files {
		data, readErr := fs.ReadFile(root, file)
		if err = cmp.Or(err, readErr); err != nil {
			return nil, nil, err
		}
		owner, blocks := file, []block(nil)
		switch path.Ext(file) {
		case ".go":
			owner = path.Dir(file)
			blocks, err = comments(data)
		case ".yaml":
			blocks, err = descriptions(data)
		default:
			var links []string
			links, err = brokenLinks(root, file)
			broken = append(broken, links...)
			blocks = markdownBlocks(data)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, f := range check(blocks) {
			f.owner, f.file = owner, file
			found = append(found, f)
		}
	}
	return found, broken, nil
}

// goFiles lists the Go files whose comments are checked.
func goFiles(root fs.FS) (files []string, err error) {
	for _, dir := range []string{"apis", "cmd", "examples", "hack", "internal", "manifests", "pkg", "test"} {
		walkErr := fs.WalkDir(root, dir, func(file string, _ fs.DirEntry, err error) error {
			if path.Ext(file) == ".go" && !strings.Contains(file, "/testdata/") {
				files = append(files, file)
			}
			return err
		})
		err = cmp.Or(err, walkErr)
	}
	return files, err
}
