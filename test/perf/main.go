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

// Command perf measures admission through a real API server. It carries a workload out (a file of this directory or any
// of that form), prints a table and writes all figures as JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

type options struct {
	workload, out, dir, profile, policy string
	workers, ceiling                    int
	keep, jobs                          bool
}

// interrupted is the exit code after Ctrl-C, as of a shell.
const interrupted = 130

func main() {
	var o options
	flag.StringVar(&o.workload, "workload", "baseline", "a file, or the name of one in test/perf")
	flag.StringVar(&o.out, "out", "", "file for the result as JSON (default: _artifacts/perf-NAME.json)")
	flag.StringVar(&o.policy, "policy", "", "policy of the queues: Priority, FIFO, Block or Intelligent (default: that of the workload, else Block)")
	flag.StringVar(&o.dir, "dir", "", "work directory; must be empty or absent (default: a new one in _artifacts/)")
	flag.StringVar(&o.profile, "profile", "", "directory for CPU profiles of scheduler and API server, taken from second 15 to 35")
	flag.IntVar(&o.workers, "workers", 32, "requests of the runner at once, for creating and for finishing each")
	flag.IntVar(&o.ceiling, "ceiling", 3000, "objects that the write ceiling is measured with, before and after; 0 for none")
	flag.BoolVar(&o.jobs, "jobs", false, "create real Jobs, with controller, job controller and KWOK, which plays their pods")
	flag.BoolVar(&o.keep, "keep", false, "keep the work directory after success, too")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends this process at once; the kernel then ends its children.
	context.AfterFunc(ctx, stop)
	err := run(ctx, o)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "interrupted; every process that was started has ended")
		os.Exit(interrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	w, err := o.load(root)
	if err != nil {
		return fmt.Errorf("workload: %w", err)
	}
	artifacts := filepath.Join(root, "_artifacts")
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join(artifacts, "perf-"+w.Name+".json")
	}
	dir := o.dir
	if dir == "" {
		if dir, err = os.MkdirTemp(artifacts, "perf-"); err != nil {
			return err
		}
	}
	report, err := runner.Run(ctx, runner.Options{
		Workload: w, Dir: dir, Workers: o.workers, CeilingWrites: o.ceiling, Profile: o.profile, Jobs: o.jobs,
		Progress: os.Stderr, Terminal: term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb",
	})
	if (err == nil || ctx.Err() != nil) && !o.keep && o.dir == "" {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Fprintf(os.Stderr, "logs and store are in %s\n", dir)
	}
	if err != nil {
		return err
	}
	return o.write(report)
}

// load reads the workload, which is named or is a file.
func (o *options) load(root string) (*workload.Workload, error) {
	path := o.workload
	if !strings.ContainsAny(path, "./") {
		path = filepath.Join(root, "test", "perf", path+".yaml")
	}
	w, err := workload.Load(path)
	if err != nil || o.policy == "" {
		return w, err
	}
	w.QueuePolicy = v1alpha1.QueuePolicy(o.policy)
	return w, w.Validate()
}

func (o *options) write(report *runner.Report) error {
	content, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.out, append(content, '\n'), 0o644); err != nil {
		return err
	}
	report.Print(os.Stdout)
	fmt.Printf("\nall figures: %s\n", o.out)
	return nil
}
