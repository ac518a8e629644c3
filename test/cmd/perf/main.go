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

// Command perf measures admission through a real API server. It runs a workload, which is a file in the form of those
// in this directory, or a scenario. It prints a table and writes all figures as JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/program"
)

// printer is a result: marshalled it is the JSON.
type printer interface{ Print(out io.Writer) }

func main() {
	name, args := "workload", os.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	scenarioOf := scenarios[name]
	if scenarioOf == nil {
		fmt.Fprintf(os.Stderr, "error: no scenario %q; there are %s\n", name,
			strings.Join(slices.Sorted(maps.Keys(scenarios)), ", "))
		os.Exit(2)
	}
	set := flags{flag.NewFlagSet("perf "+name, flag.ExitOnError)}
	s := scenarioOf(&set)
	s.setting.Progress, s.setting.Terminal = os.Stderr, term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb"
	out := set.String("out", "", "file for the result as JSON (default: _artifacts/perf-NAME.json)")
	set.StringVar(&s.setting.Dir, "dir", "", "work directory; must be empty or absent (default: a new one in _artifacts/)")
	keep := set.Bool("keep", false, "keep the work directory after success, too")
	_ = set.Parse(args)
	program.Main(func(ctx context.Context) (bool, error) { return false, run(ctx, s, *out, *keep) })
}

func run(ctx context.Context, s *scenario, out string, keep bool) error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	artifacts := filepath.Join(root, "_artifacts")
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return err
	}
	dir := &s.setting.Dir
	given := *dir != ""
	if !given {
		if *dir, err = os.MkdirTemp(artifacts, "perf-"); err != nil {
			return err
		}
	}
	result, err := s.measure(ctx, root)
	switch {
	case (err == nil || ctx.Err() != nil) && !keep && !given:
		_ = os.RemoveAll(*dir)
	case os.Remove(*dir) != nil: // not empty
		fmt.Fprintf(os.Stderr, "logs and store are in %s\n", *dir)
	}
	if err != nil {
		return err
	}
	if out == "" {
		out = filepath.Join(artifacts, "perf-"+s.name+".json")
	}
	return write(out, result)
}

func write(out string, result printer) error {
	content, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, append(content, '\n'), 0o644); err != nil {
		return err
	}
	result.Print(os.Stdout)
	fmt.Printf("\nall figures: %s\n", out)
	return nil
}
