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

// Command mutants plants each bug of test/mutants/mutants.yaml in an overlay of the source, and runs the tests that the
// bug names. They must fail. Arguments select some bugs.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

const list = "test/mutants/mutants.yaml"

type mutant struct {
	Name string `json:"name"`
	// Origin says who had the bug.
	Origin string `json:"origin"`
	// Invariant is the one that the bug breaks.
	Invariant string `json:"invariant"`
	// Function names what is changed: a directory, and in it a function, a method (`Type.Method`) or a package variable.
	Function string `json:"function"`
	// Replace is an expression or a statement that occurs there exactly once. White space and comments do not matter.
	Replace string `json:"replace"`
	// With takes its place.
	With string `json:"with"`
	// Tests are packages, separated by spaces.
	Tests string `json:"tests"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	all, err := read(list)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	wanted := all
	if len(names) > 0 {
		if wanted, err = named(all, names); err != nil {
			return err
		}
	}
	if out, ok := test(packagesOf(wanted), ""); !ok {
		return fmt.Errorf("the tests fail without any of the bugs:\n%s", out)
	}
	killed := 0
	fmt.Print("| bug | breaks | verdict |\n|---|---|---|\n")
	for _, m := range wanted {
		verdict, out := m.try(dir)
		fmt.Printf("| `%s` | %s | %s |\n", m.Name, m.Invariant, verdict)
		if strings.HasPrefix(verdict, "killed") {
			killed++
		} else if verdict != "survived" {
			fmt.Fprintln(os.Stderr, out)
		}
	}
	fmt.Printf("\n%d of %d killed\n", killed, len(wanted))
	if killed < len(wanted) {
		return fmt.Errorf("%d bugs were not noticed", len(wanted)-killed)
	}
	return nil
}

func read(file string) (all []mutant, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return all, yaml.UnmarshalStrict(text, &all)
}

func named(all []mutant, names []string) (found []mutant, err error) {
	byName := map[string]mutant{}
	for _, m := range all {
		byName[m.Name] = m
	}
	for _, name := range names {
		m, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("%s has no bug %q", list, name)
		}
		found = append(found, m)
	}
	return found, nil
}

func packagesOf(mutants []mutant) (packages []string) {
	seen := map[string]bool{}
	for _, m := range mutants {
		for _, p := range strings.Fields(m.Tests) {
			if !seen[p] {
				seen[p], packages = true, append(packages, p)
			}
		}
	}
	return packages
}

var (
	failed  = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)|^(fatal error: .*)|^(panic: .*)`)
	unbuilt = []byte("[build failed]")
)

// try plants the bug and says what became of it.
func (m *mutant) try(dir string) (verdict, output string) {
	file, text, err := m.plant(".")
	if err != nil {
		return "not found", err.Error()
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	file, err = filepath.Abs(file)
	if err == nil {
		err = os.WriteFile(changed, text, 0o600)
	}
	if err == nil {
		replaced, _ := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
		err = os.WriteFile(overlay, replaced, 0o600)
	}
	if err != nil {
		return "not planted", err.Error()
	}
	out, ok := test(strings.Fields(m.Tests), overlay)
	by := failed.FindSubmatch(out)
	switch {
	case ok:
		return "survived", ""
	case bytes.Contains(out, unbuilt):
		return "does not compile", string(out)
	case by == nil:
		return "does not run", string(out)
	default:
		return "killed by " + string(bytes.Join(by[1:], nil)), ""
	}
}

// test runs the fast tests of packages. Properties draw the same histories every time.
func test(packages []string, overlay string) (out []byte, ok bool) {
	for _, p := range packages {
		args := []string{"test", "-short", "-count=1", "-failfast", "-vet=off", "-timeout=5m"}
		if overlay != "" {
			args = append(args, "-overlay="+overlay)
		}
		args = append(args, p)
		if strings.HasPrefix(p, "./pkg/core/") {
			args = append(args, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=0s")
		}
		out, err := exec.Command("go", args...).CombinedOutput()
		if err != nil {
			return out, false
		}
	}
	return nil, true
}
