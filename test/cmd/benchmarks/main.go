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

// Command benchmarks runs the measurements of docs/benchmarks.md on this machine, and writes their tables there and in
// README.md. Its reports stay in _artifacts/benchmarks, so an interrupted run can continue.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/program"
)

func main() {
	var o options
	var only string
	flag.StringVar(&only, "only", "",
		"measurements to run, separated by commas (default: all): "+strings.Join(names(), ", "))
	flag.BoolVar(&o.table, "table", false, "measure nothing: write the tables from the reports of the last runs")
	flag.Parse()
	o.only = strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	program.Main(func(ctx context.Context) (bool, error) { return false, run(ctx, o) })
}

type options struct {
	only  []string
	table bool
}

func run(ctx context.Context, o options) error {
	for _, name := range o.only {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("no measurement %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	reports := filepath.Join(root, "_artifacts", "benchmarks")
	if err := os.MkdirAll(reports, 0o755); err != nil {
		return err
	}
	for i, m := range measurements {
		if o.table || len(o.only) > 0 && !slices.Contains(o.only, m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "\n[%d/%d] %s\n", i+1, len(measurements), m.name)
		if err := measure(ctx, root, reports, m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	all, err := read(reports)
	if err != nil {
		return err
	}
	if len(all) < len(measurements) {
		made, err := table(all, false)
		fmt.Println(made + "\nThe documents stay as they are until all is measured.")
		return err
	}
	for _, document := range []string{"docs/benchmarks.md", "README.md"} {
		if err := rewrite(filepath.Join(root, document), all); err != nil {
			return fmt.Errorf("%s: %w", document, err)
		}
	}
	return nil
}

// report is the JSON of a measurement, and when and where it was made.
type report struct {
	Date    string         `json:"date"`
	Commit  string         `json:"commit"`
	Machine string         `json:"machine"`
	Result  map[string]any `json:"result"`
}

func measure(ctx context.Context, root, reports string, m measurement) error {
	out := filepath.Join(reports, m.name+".raw")
	args := append(slices.Clone(m.args), "--out="+out)
	command := exec.CommandContext(ctx, filepath.Join(root, "bin", "jobqueue-perf"), args...)
	command.Dir, command.Stdout, command.Stderr = root, os.Stderr, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	if err := command.Run(); err != nil {
		return err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	commit, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	r := report{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: strings.TrimSpace(string(commit)), Machine: machine(),
	}
	if err := json.Unmarshal(text, &r.Result); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	whole, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(reports, m.name+".json"), whole, 0o644), os.Remove(out))
}

// read returns the reports that there are, by the name of the measurement.
func read(reports string) (map[string]report, error) {
	all := map[string]report{}
	for _, name := range names() {
		text, err := os.ReadFile(filepath.Join(reports, name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var r report
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("report of %s: %w", name, err)
		}
		all[name] = r
	}
	return all, nil
}

// machine in words, as far as Linux says what it is.
func machine() string {
	about := fmt.Sprintf("%d cores", runtime.NumCPU())
	for _, of := range []struct{ file, key string }{{"/proc/cpuinfo", "model name"}, {"/proc/meminfo", "MemTotal"}} {
		text, _ := os.ReadFile(of.file)
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == of.key {
				about += ", " + strings.TrimSpace(value)
				break
			}
		}
	}
	return about
}
