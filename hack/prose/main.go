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

// Command prose checks the sentences of the documentation against the rules in CONTRIBUTING.md. It finds long
// sentences, sentences that start with a relative pronoun, words that are out of use, long table cells, and links to
// files and headings that do not exist.
//
// It reads Markdown and the descriptions of CustomResourceDefinitions. Metric help and the configuration reach it
// through the generated tables in docs/. In comments of Go code it finds words that are out of use, and nothing else.
// hack/prose/exceptions.yaml holds the number of findings that a file may have; a number only falls.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const exceptionsFile = "hack/prose/exceptions.yaml"

// patterns name the files that are checked, from the root of the repository. See goFiles for those of Go.
var patterns = []string{
	"*.md", "docs/*.md", "docs/*/*.md", "manifests/base/crd/*.yaml", "manifests/components/elasticquotatree/*_*.yaml",
}

func main() {
	all := flag.Bool("all", false, "print every finding, also those that exceptions.yaml allows")
	flag.Parse()
	if err := run(*all); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(all bool) error {
	allowed := map[string]int{}
	data, err := os.ReadFile(exceptionsFile)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(data, &allowed); err != nil {
		return fmt.Errorf("%s: %w", exceptionsFile, err)
	}
	found, err := checkFiles()
	if err != nil {
		return err
	}
	var wrong []string
	for file := range found {
		if filepath.Ext(file) != ".md" {
			continue
		}
		broken, err := brokenLinks(os.DirFS("."), file)
		if err != nil {
			return err
		}
		for _, b := range broken {
			wrong = append(wrong, file+": "+b)
		}
	}
	slices.Sort(wrong)
	for _, file := range slices.Sorted(maps.Keys(found)) {
		n, most := len(found[file]), allowed[file]
		if n > most || all {
			for _, f := range found[file] {
				fmt.Printf("%s:%s\n", file, f)
			}
		}
		if n > most {
			wrong = append(wrong, fmt.Sprintf("%s: %d findings, %d are allowed", file, n, most))
		} else if n < most {
			wrong = append(wrong, fmt.Sprintf("%s: %d findings are left of %d: lower the number in %s", file, n, most,
				exceptionsFile))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("rules for sentences (CONTRIBUTING.md):\n  %s", strings.Join(wrong, "\n  "))
	}
	return nil
}

// checkFiles returns the findings of each file.
func checkFiles() (map[string][]string, error) {
	files, err := goFiles(os.DirFS("."))
	if err != nil {
		return nil, err
	}
	for _, pattern := range patterns {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		files = append(files, matches...)
	}
	found := map[string][]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		blocks, err := blocksOf(file, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		found[file] = check(blocks)
	}
	return found, nil
}

// goFiles lists the Go files below pkg and cmd that are not tests.
func goFiles(root fs.FS) (files []string, err error) {
	for _, dir := range []string{"pkg", "cmd"} {
		err := fs.WalkDir(root, dir, func(file string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
				files = append(files, file)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

func blocksOf(file string, data []byte) ([]block, error) {
	switch filepath.Ext(file) {
	case ".go":
		return comments(data)
	case ".yaml":
		return descriptions(data)
	default:
		return markdownBlocks(data), nil
	}
}
