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

package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/simulation/results"
	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/internal/snapshot"
	"github.com/koord-jobqueue/koord-jobqueue/internal/whatif"
)

const (
	// quiet is how long a comparison says nothing, at its beginning and between two lines of progress.
	quiet = 2 * time.Second
	// patience with a comparison. A file of somebody else may describe a world that comes to no end.
	patience = 10 * time.Minute
	// mostUntil bounds the horizon.
	mostUntil = 366 * 24 * time.Hour
)

// question is what would happen after changes.
type question struct {
	flags   *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
	clock   clock.PassiveClock

	live         bool
	file, output string
	until        time.Duration
	all          bool
	changes      whatif.Changes
}

func (o *question) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.live, "live", false,
		"ask what if of the cluster: needs the aggregated API, and the role jobqueue-operator")
	f.StringVar(&o.file, "snapshot", "",
		"ask what if of a file of facts that kubectl jobqueue snapshot wrote; - is standard input")
	f.StringArrayVar(&o.changes.Max, "max", nil, "what if a quota has another max: QUOTA=cpu=8,memory=32Gi")
	f.StringArrayVar(&o.changes.Min, "min", nil, "what if a quota has another min: QUOTA=cpu=8")
	f.StringArrayVar(&o.changes.Capacity, "capacity", nil,
		"what if the cluster has more or less: cpu=-64,gpu=8, or ROOT=cpu=-64 if there are several root quotas")
	f.StringArrayVar(&o.changes.Priority, "priority", nil, "what if a queue has another priority: QUEUE=10")
	f.StringArrayVar(&o.changes.Hold, "hold", nil, "what if this queue admits nothing new")
	f.StringArrayVar(&o.changes.Drain, "drain", nil, "what if this queue admits nothing new, and evicts its jobs")
	f.StringArrayVar(&o.changes.Jobs, "job", nil, "what if there is one more job, with the amounts of all pods: "+
		"NAME,queue=QUEUE,quota=QUOTA,cpu=4,gpu=1,pods=2,priority=5,limit=1h")
	f.DurationVar(&o.until, "until", 24*time.Hour, "how far what if looks ahead")
	f.BoolVar(&o.all, "all", false,
		"what if shows all jobs that start at another time, also those that move by less than a minute")
	f.StringVarP(&o.output, "output", "o", "", "output format of what if: json")
	cmd.MarkFlagsMutuallyExclusive("live", "snapshot", "trace", "generate")
}

// asked says whether the command compares worlds.
func (o *question) asked() bool { return o.live || o.file != "" }

func (o *question) run(ctx context.Context) error {
	if o.changes.None() {
		return errors.New("nothing changes: name a change, such as --max, --capacity, --hold or --job")
	}
	if o.until < time.Second || o.until > mostUntil {
		return fmt.Errorf("--until: has to be between 1s and %s", mostUntil)
	}
	if o.output != "" && o.output != "json" {
		return fmt.Errorf("unknown output format %q", o.output)
	}
	s, err := o.read(ctx)
	if err != nil {
		return err
	}
	after, err := o.changes.Apply(s.Facts, s.At)
	if err != nil {
		return err
	}
	report, err := o.compare(ctx, &whatif.Question{All: o.all, Extended: s.Extended, Change: &forecast.Change{
		Before: s.Facts, After: after, Now: s.At, Until: s.At.Add(o.until), Runs: forecast.NewRuns(s.Runs),
	}})
	if err != nil {
		return err
	}
	if o.output == "json" {
		encoder := json.NewEncoder(o.streams.Out)
		encoder.SetIndent("", "    ")
		return encoder.Encode(report)
	}
	return results.WhatIf(o.streams.Out, report, o.all)
}

func (o *question) read(ctx context.Context) (*snapshot.Snapshot, error) {
	if o.live {
		config, err := o.flags.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		reader, err := answers.New(config)
		if err != nil {
			return nil, err
		}
		s, err := reader.Snapshot(ctx)
		if err != nil {
			return nil, fmt.Errorf("the facts of koord-scheduler: %w", err)
		}
		return s, nil
	}
	in := o.streams.In
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // it is only read
		in = file
	}
	s, err := snapshot.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.file, err)
	}
	return s, nil
}

// compare says on standard error how far it is. It ends in time whatever the facts are.
func (o *question) compare(ctx context.Context, q *whatif.Question) (*whatif.Report, error) {
	tooLong := fmt.Errorf("the comparison takes more than %s: shorten it with --until", patience)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, tooLong)
	defer cancel()
	begin := o.clock.Now()
	said := begin
	q.Step = func(changed bool, at time.Time) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if now := o.clock.Now(); now.Sub(said) >= quiet {
			said = now
			results.WhatIfProgress(o.streams.ErrOut, changed, at.Sub(q.Now), q.Until.Sub(q.Now), now.Sub(begin))
		}
		return nil
	}
	type result struct {
		report *whatif.Report
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: fmt.Errorf("these facts contradict each other: %v", p)}
			}
		}()
		report, err := whatif.Ask(q)
		done <- result{report, err}
	}()
	select {
	case r := <-done:
		return r.report, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
