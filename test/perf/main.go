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

// Command perf measures admission through a real API server. Without a scenario it carries a workload out (a file of this
// directory or any of that form); with one it measures what that is about. It prints a table and writes all figures as
// JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/test/controlplane"
)

// printer is a result: marshalled it is the JSON.
type printer interface{ Print(out io.Writer) }

// scenario is one thing to measure. flags registers its own; run measures once they are parsed.
type scenario interface {
	flags(set *flag.FlagSet)
	// name of the result file.
	name() string
	run(ctx context.Context, root string, common common) (printer, error)
}

// scenarios by the name that is the first argument; without one it is the workload.
var scenarios = map[string]scenario{
	"workload":     &workloadScenario{},
	"latency":      &latencyScenario{},
	"writes":       &writesScenario{},
	"savings":      &savingsScenario{},
	"standing":     &standingScenario{},
	"interference": &interferenceScenario{},
}

// common is what every scenario has.
type common struct {
	out  string
	dir  string
	keep bool
	// progress takes lines about what happens; terminal says that a line can be rewritten.
	progress io.Writer
	terminal bool
}

// interrupted is the exit code after Ctrl-C, as of a shell.
const interrupted = 130

func main() {
	name, args := "workload", os.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	s := scenarios[name]
	if s == nil {
		fmt.Fprintf(os.Stderr, "error: no scenario %q; there are %s\n", name, strings.Join(slices.Sorted(maps.Keys(scenarios)), ", "))
		os.Exit(2)
	}
	set := flag.NewFlagSet("perf "+name, flag.ExitOnError)
	c := common{progress: os.Stderr, terminal: term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb"}
	set.StringVar(&c.out, "out", "", "file for the result as JSON (default: _artifacts/perf-NAME.json)")
	set.StringVar(&c.dir, "dir", "", "work directory; must be empty or absent (default: a new one in _artifacts/)")
	set.BoolVar(&c.keep, "keep", false, "keep the work directory after success, too")
	s.flags(set)
	_ = set.Parse(args)
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends this process at once; the kernel then ends its children.
	context.AfterFunc(ctx, stop)
	err := run(ctx, s, c)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "interrupted; every process that was started has ended")
		os.Exit(interrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s scenario, c common) error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	artifacts := filepath.Join(root, "_artifacts")
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return err
	}
	given := c.dir != ""
	if !given {
		if c.dir, err = os.MkdirTemp(artifacts, "perf-"); err != nil {
			return err
		}
	}
	result, err := s.run(ctx, root, c)
	switch {
	case (err == nil || ctx.Err() != nil) && !c.keep && !given:
		_ = os.RemoveAll(c.dir)
	case os.Remove(c.dir) != nil: // not empty
		fmt.Fprintf(os.Stderr, "logs and store are in %s\n", c.dir)
	}
	if err != nil {
		return err
	}
	if c.out == "" {
		c.out = filepath.Join(artifacts, "perf-"+s.name()+".json")
	}
	return write(c.out, result)
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
