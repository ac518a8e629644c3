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

// Package simulation has the command "kubectl jobqueue simulate": it asks what would happen after a change, or compares
// schedulers on a trace.
package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	configv1 "github.com/koord-jobqueue/koord-jobqueue/apis/config/v1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/simulation/results"
	"github.com/koord-jobqueue/koord-jobqueue/internal/coreplay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/replay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/replay/export"
	"github.com/koord-jobqueue/koord-jobqueue/internal/replay/measure"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// progressPeriod is the time between two lines of progress. Short replays end before the first.
const progressPeriod = 5 * time.Second

// replays are replays of a trace with several policies.
type replays struct {
	streams  genericiooptions.IOStreams
	clock    clock.PassiveClock
	policies []replay.Policy

	trace, model   string
	resource       string
	jobs           int
	processors     int64
	seed           uint64
	names          []string
	claimAfter     time.Duration
	forecasts      int
	shake          bool
	out, svg, kept string
}

// Command is simulate.
func Command(
	flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, passive clock.PassiveClock,
) *cobra.Command {
	o := &replays{streams: streams, clock: passive, claimAfter: defaultClaimAfter()}
	o.policies = o.allPolicies()
	q := &question{flags: flags, streams: streams, clock: passive}
	cmd := &cobra.Command{
		Use:   "simulate --live | --snapshot FILE | --trace FILE | --generate MODEL",
		Short: "Show what a change of queues or quotas would do, or compare schedulers on a trace of jobs",
		Long: `With --live or --snapshot, simulate shows which jobs would start at another time after a change of quotas,
queues, capacity or jobs. It changes nothing. It plays the decisions of the scheduler twice, with and without the
change. The run times are the same: the median of past runs like it, or else the time limit of the job.

With --trace or --generate, simulate replays a trace of jobs with several schedulers, and compares waits, slowdown and
use. It reads no cluster.

A trace is in the Standard Workload Format 2.2 or in Batsim's JSON, or the file of the scheduler's history. The Parallel
Workloads Archive has traces:
https://www.cs.huji.ac.il/labs/parallel/workload. Without a trace, --generate makes jobs by a model.

Policies:
  fcfs         starts jobs in the order of their submission
  easy         starts later jobs early if the first one that waits is not delayed, as far as limits tell (EASY)
  easy-exact   as easy, with the real run times in place of limits
  greedy       starts whatever fits; large jobs may starve
  priority     the core of koord-scheduler itself, with a queue of policy Priority; the first one that waits claims
               after --claim-after
  block        the same with a queue of policy Block`,
		Example: `  # What if a quota had more, and a queue came first
  kubectl jobqueue simulate --live --max research=cpu=64,gpu=8 --priority research=10

  # What if 64 cpu were gone, from a file and without the cluster
  kubectl jobqueue simulate --snapshot state.facts.json --capacity cpu=-64

  # When would another job start, and who would wait for it
  kubectl jobqueue simulate --live --job big,queue=research,gpu=16,limit=2h

  # Generated jobs, without a trace
  kubectl jobqueue simulate --generate lublin --jobs 10000

  # A trace from the archive, with a plot
  zcat KTH-SP2-1996-2.1-cln.swf.gz | kubectl jobqueue simulate --trace - --svg kth.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !q.asked() && !q.changes.None():
				return errors.New("a change needs the facts that it changes: add --live or --snapshot FILE")
			case !q.asked():
				return o.run(cmd.Context())
			}
			if cmd.Flags().Changed("policy") {
				q.changes.Policy = o.names
			}
			return q.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.trace, "trace", "", "file with a trace; - is standard input")
	cmd.Flags().StringVar(&o.model, "generate", "",
		"model that makes the jobs: lublin, of Lublin and Feitelson (2003), with limits as in public traces")
	cmd.Flags().IntVar(&o.jobs, "jobs", 10000, "number of jobs to generate")
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "seed of --generate and --shake; equal seeds give equal results")
	cmd.Flags().Int64Var(&o.processors, "procs", 0, "number of processors (default that of the trace, or 128)")
	cmd.Flags().StringVar(&o.resource, "resource", "cpu", "resource that is a processor, in the file of a history")
	cmd.Flags().StringSliceVar(&o.names, "policy", o.policyNames(),
		"policies to compare; with --live or --snapshot, what if a queue has another policy: QUEUE=FIFO")
	cmd.Flags().DurationVar(&o.claimAfter, "claim-after", o.claimAfter,
		"how long a job waits at the front until policy priority keeps room for it; 0 is never")
	cmd.Flags().IntVar(&o.forecasts, "forecasts", 0,
		"ask about so many jobs when they will start, as kubectl jobqueue when does, and say how often that was right")
	cmd.Flags().BoolVar(&o.shake, "shake", false, fmt.Sprintf("repeat each replay %d times with submissions moved by up "+
		"to 1 s and run times by up to 1 %%, and print mean and range", measure.Shakes))
	cmd.Flags().StringVar(&o.out, "out", "",
		"write a file with a row for each job, with the columns of Batsim's jobs.csv; several policies write "+
			"NAME-POLICY.csv each")
	cmd.Flags().StringVar(&o.svg, "svg", "", "write a file with a plot of waiting jobs and use over time")
	cmd.Flags().StringVar(&o.kept, "swf", "", "write a file with the jobs in the Standard Workload Format")
	q.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("trace", "jobs")
	return cmd
}

// defaultClaimAfter is the setting claimAfter of the scheduler.
func defaultClaimAfter() time.Duration {
	args := &configv1.JobQueueArgs{}
	configv1.SetDefaultsJobQueueArgs(args)
	return args.ClaimAfter.Duration
}

// allPolicies are those of the literature, and the core.
func (o *replays) allPolicies() []replay.Policy {
	return append(replay.References(), coreplay.Policies(admission.Config{ClaimAfter: o.claimAfter})...)
}

func (o *replays) policyNames() []string {
	names := make([]string, 0, len(o.policies))
	for _, p := range o.policies {
		names = append(names, p.Name)
	}
	return names
}

func (o *replays) run(ctx context.Context) error {
	if o.trace == "" && o.model == "" {
		return errors.New("no jobs: name a file with --trace, or make jobs with --generate lublin; ask what if with --live " +
			"or --snapshot")
	}
	policies, err := o.chosen()
	if err != nil {
		return err
	}
	w, err := o.workload()
	if err != nil {
		return err
	}
	if o.kept != "" {
		if err := writeFile(o.kept, func(out io.Writer) error { return trace.WriteSWF(out, w) }); err != nil {
			return err
		}
	}
	all := make([]results.Replayed, 0, len(policies))
	schedules := make([]export.Schedule, 0, len(policies))
	for _, p := range policies {
		holds, err := o.replay(ctx, p, w, "")
		if err != nil {
			return err
		}
		r := results.Replayed{Policy: p.Name, Figures: measure.Of(w, holds)}
		if r.Shaken, err = o.shaken(ctx, p, w); err != nil {
			return err
		}
		all, schedules = append(all, r), append(schedules, export.Schedule{Policy: p.Name, Holds: holds})
	}
	if err := results.Replays(o.streams.Out, w, all); err != nil {
		return err
	}
	if err := o.judge(ctx, w); err != nil {
		return err
	}
	return o.export(w, schedules)
}

// judge asks about jobs in replays of the core.
func (o *replays) judge(ctx context.Context, w *trace.Workload) error {
	for _, policy := range []string{coreplay.Priority, coreplay.Block} {
		if o.forecasts <= 0 || !slices.Contains(o.names, strings.ToLower(policy)) {
			continue
		}
		config := admission.Config{ClaimAfter: o.claimAfter}
		j, err := coreplay.Judge(w, config, policy, o.forecasts, o.progress(ctx, strings.ToLower(policy)+" (forecasts)", w))
		if err != nil {
			return err
		}
		if err := results.Judged(o.streams.Out, strings.ToLower(policy), &j); err != nil {
			return err
		}
	}
	return nil
}

func (o *replays) chosen() ([]replay.Policy, error) {
	if o.claimAfter < 0 {
		return nil, errors.New("--claim-after: a negative time")
	}
	o.policies = o.allPolicies()
	var chosen []replay.Policy
	for _, name := range o.names {
		i := slices.Index(o.policyNames(), name)
		if i < 0 {
			return nil, fmt.Errorf("--policy: %q is not known; choose from %s", name, strings.Join(o.policyNames(), ", "))
		}
		chosen = append(chosen, o.policies[i])
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--policy: choose from %s", strings.Join(o.policyNames(), ", "))
	}
	return chosen, nil
}

func (o *replays) workload() (*trace.Workload, error) {
	if o.trace == "" {
		if o.model != "lublin" {
			return nil, fmt.Errorf("--generate: %q is not known; choose lublin", o.model)
		}
		if o.processors == 0 {
			o.processors = 128
		}
		return trace.Lublin(o.jobs, o.processors, o.seed)
	}
	in := o.streams.In
	if o.trace != "-" {
		file, err := os.Open(o.trace)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // it is only read
		in = file
	}
	w, changes, err := trace.Read(in, o.processors, o.resource)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.trace, err)
	}
	if said := changes.String(); said != "" {
		_, err = fmt.Fprintln(o.streams.ErrOut, said)
	}
	return w, err
}

// shaken measures the policy on workloads that differ from a workload by chance.
func (o *replays) shaken(ctx context.Context, p replay.Policy, w *trace.Workload) (
	all []*measure.Figures, err error,
) {
	for i := uint64(0); o.shake && i < measure.Shakes; i++ {
		other := measure.Shaken(w, o.seed*measure.Shakes+i)
		holds, err := o.replay(ctx, p, other, fmt.Sprintf(" (shaken, %d of %d)", i+1, measure.Shakes))
		if err != nil {
			return nil, err
		}
		all = append(all, measure.Of(other, holds))
	}
	return all, nil
}

func (o *replays) replay(ctx context.Context, p replay.Policy, w *trace.Workload, run string) ([]replay.Hold, error) {
	return p.Replay(w, o.progress(ctx, p.Name+run, w))
}

// progress says on standard error how far a replay is.
func (o *replays) progress(ctx context.Context, run string, w *trace.Workload) func(jobs int) error {
	begin := o.clock.Now()
	said := begin
	return func(jobs int) error {
		if now := o.clock.Now(); now.Sub(said) >= progressPeriod {
			said = now
			results.ReplayProgress(o.streams.ErrOut, run, jobs, len(w.Jobs), now.Sub(begin))
		}
		return ctx.Err()
	}
}

func (o *replays) export(w *trace.Workload, schedules []export.Schedule) error {
	if o.svg != "" {
		err := writeFile(o.svg, func(out io.Writer) error { return export.Plot(out, w, schedules) })
		if err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	workload := strings.TrimSuffix(filepath.Base(o.trace+o.model), filepath.Ext(o.trace))
	for _, s := range schedules {
		path := o.out
		if len(schedules) > 1 {
			extension := filepath.Ext(path)
			path = strings.TrimSuffix(path, extension) + "-" + s.Policy + extension
		}
		err := writeFile(path, func(out io.Writer) error { return export.Jobs(out, workload, w, s.Holds) })
		if err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes all of a file, or nothing.
func writeFile(path string, write func(io.Writer) error) error {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
	return os.WriteFile(path, content.Bytes(), 0o600)
}
