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

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

type scenario struct {
	// name of the result file.
	name string
	// setting is what all scenarios have, where the options of this one have it.
	setting *runner.Setting
	// measure is called once the flags are parsed.
	measure func(ctx context.Context, root string) (printer, error)
}

// scenarios by the name that is the first argument; without one it is the workload. Each adds its flags to the set.
var scenarios = map[string]func(set *flags) *scenario{
	"workload":     workloadScenario,
	"jobs":         jobsScenario,
	"latency":      latencyScenario,
	"memory":       memoryScenario,
	"savings":      savingsScenario,
	"sizing":       sizingScenario,
	"standing":     standingScenario,
	"interference": interferenceScenario,
	"reclaim":      reclaimScenario,
}

func workloadScenario(set *flags) *scenario {
	var o runner.Options
	name := set.String("workload", "baseline", "a file, or the name of one in test/cmd/perf")
	policy := set.String("policy", "",
		"policy of the queues: Priority, FIFO, Block or Intelligent (default: that of the workload, else Block)")
	set.workers(&o.Setting)
	set.profiles(&o.Profile, 15*time.Second, "scheduler and API server", "the start of the clock")
	set.audit(&o.Setting)
	set.IntVar(&o.CeilingWrites, "ceiling", 3000,
		"objects that the write ceiling is measured with, before and after; 0 for none")
	set.BoolVar(&o.Jobs, "jobs", false,
		"create real Jobs, with controller, job controller and KWOK, which plays their pods")
	s := &scenario{setting: &o.Setting}
	s.measure = func(ctx context.Context, root string) (_ printer, err error) {
		if o.Workload, err = loadWorkload(root, *name, v1alpha1.QueuePolicy(*policy)); err != nil {
			return nil, fmt.Errorf("workload: %w", err)
		}
		s.name = o.Workload.Name
		return runner.Run(ctx, o)
	}
	return s
}

// loadWorkload reads the workload, which is named or is a file.
func loadWorkload(root, path string, policy v1alpha1.QueuePolicy) (*workload.Workload, error) {
	if !strings.ContainsAny(path, "./") {
		path = filepath.Join(root, "test", "cmd", "perf", path+".yaml")
	}
	w, err := workload.Load(path)
	if err != nil || policy == "" {
		return w, err
	}
	w.QueuePolicy = policy
	return w, w.Validate()
}

// latencyScenario measures one job after the other on a cluster that does nothing else, with and without the queue.
func latencyScenario(set *flags) *scenario {
	var o runner.LatencyOptions
	set.IntVar(&o.Jobs, "jobs", 200, "jobs of each variant")
	set.IntVar(&o.Warmup, "warmup", 5, "jobs of each variant before those, which are not counted")
	set.IntVar(&o.Pods, "pods", 2, "pods of each job")
	set.DurationVar(&o.RunTime, "run-time", time.Second, "how long each pod runs")
	set.DurationVar(&o.Gap, "gap", 200*time.Millisecond,
		"from the binding of the last pod to the creation of the next job")
	set.audit(&o.Setting)
	set.BoolVar(&o.Stock, "stock", false, "only the unqueued variants, with plugin and controller off")
	return &scenario{"latency", &o.Setting,
		func(ctx context.Context, _ string) (printer, error) { return runner.Latency(ctx, o) }}
}

// jobsScenario measures what a queue of Jobs does to the API server, and to the calls of those who create them.
func jobsScenario(set *flags) *scenario {
	var o runner.JobsOptions
	set.IntVar(&o.Jobs, "jobs", 800, "jobs of 1, 4 and 16 pods")
	set.IntVar(&o.Cores, "cores", 150, "cores of their quota; a pod has one")
	set.DurationVar(&o.RunTime, "run-time", 12*time.Second, "how long pods run on average")
	set.IntVar(&o.PerSecond, "per-second", 0, "jobs that are created in a second at most; 0 for as many as the workers do")
	set.workers(&o.Setting)
	return &scenario{"jobs", &o.Setting,
		func(ctx context.Context, _ string) (printer, error) { return runner.Jobs(ctx, o) }}
}

// memoryScenario measures what units that wait take of the API server's memory.
func memoryScenario(set *flags) *scenario {
	var o runner.MemoryOptions
	set.IntVar(&o.Objects, "objects", 5000, "units of each variant")
	set.IntVar(&o.Watchers, "watchers", 2, "watchers of the units")
	set.workers(&o.Setting)
	return &scenario{"memory", &o.Setting,
		func(ctx context.Context, _ string) (printer, error) { return runner.MeasureUnitMemory(ctx, o) }}
}

// savingsScenario measures what the queue saves: the same jobs with it and without.
func savingsScenario(set *flags) *scenario {
	o := runner.SavingsOptions{Variants: []string{"queue", "none"}}
	set.Var(&list[string]{&o.Variants, []string{"queue", "unsuspended", "none"}}, "variants",
		"queue (jobs are created suspended), unsuspended (created as without the queue), none")
	set.IntVar(&o.Jobs, "jobs", 10000, "jobs that are submitted")
	set.IntVar(&o.PerSecond, "per-second", 50, "jobs that are submitted in a second at most")
	set.IntVar(&o.Capacity, "capacity", 100, "jobs that fit the quota at once")
	set.IntVar(&o.Pods, "pods", 2, "pods of each job")
	set.DurationVar(&o.RunTime, "run-time", 20*time.Second, "how long each pod runs")
	set.DurationVar(&o.Fill, "fill", 6*time.Minute, "how long submission may take, until all that does not run waits")
	set.DurationVar(&o.Window, "window", 5*time.Minute,
		"how long the rest is watched, from the late job of high priority on")
	set.BoolVar(&o.Preempt, "preempt", false, "let the late job preempt")
	set.workers(&o.Setting)
	return &scenario{"savings", &o.Setting,
		func(ctx context.Context, _ string) (printer, error) { return runner.Savings(ctx, o) }}
}

// sizingScenario measures how much memory the processes need for jobs that wait.
func sizingScenario(set *flags) *scenario {
	o := runner.SizingOptions{Waiting: []int{1000, 10_000, 100_000}}
	const usage = "numbers of jobs that wait, from few to many (default 1000,10000,100000)"
	set.Func("waiting", usage, func(text string) error {
		o.Waiting = nil
		for word := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || len(o.Waiting) > 0 && n <= o.Waiting[len(o.Waiting)-1] {
				return fmt.Errorf("%q: want numbers that grow", text)
			}
			o.Waiting = append(o.Waiting, n)
		}
		return nil
	})
	set.workers(&o.Setting)
	return &scenario{"sizing", &o.Setting,
		func(ctx context.Context, _ string) (printer, error) { return runner.Sizing(ctx, o) }}
}

// standingScenario measures on a store with many pending units. It measures the next admission after the end of a unit,
// and the start and the takeover of a scheduler.
func standingScenario(set *flags) *scenario {
	o := runner.StandingOptions{
		Measure:  []string{runner.MeasureStartup, runner.MeasureWake},
		Policies: []v1alpha1.QueuePolicy{v1alpha1.PolicyPriority, v1alpha1.PolicyBlock},
	}
	set.Var(&list[string]{&o.Measure, []string{runner.MeasureStartup, runner.MeasureWake}}, "measure",
		"what to measure on one store: startup, wake or both")
	set.IntVar(&o.Waiting, "waiting", 100_000, "units that wait while the wake-up is measured")
	set.IntVar(&o.Few, "few", 1000, "units that wait in the store that the wake-up is compared with; 0 for none")
	set.IntVar(&o.StartupWaiting, "startup-waiting", 50_000, "units that wait at start and when the leader changes")
	set.IntVar(&o.Holding, "holding", 5100, "units that hold quota, all that can; a multiple of 30 or rounded up to one")
	set.Var(&list[v1alpha1.QueuePolicy]{&o.Policies, []v1alpha1.QueuePolicy{
		v1alpha1.PolicyPriority, v1alpha1.PolicyFIFO, v1alpha1.PolicyBlock, v1alpha1.PolicyIntelligent,
	}}, "policies", "policies of the queues that the wake-up is measured with")
	set.IntVar(&o.Samples, "samples", 1000, "samples of the wake-up for each policy and number of waiting units")
	set.IntVar(&o.Rounds, "rounds", 5, "rounds in which the numbers of waiting units take turns")
	set.Float64Var(&o.PerSecond, "per-second", 20, "samples in a second at most")
	set.IntVar(&o.Changes, "changes", 3, "changes of the leader of each kind: killed, and asked to end")
	set.IntVar(&o.Freed, "freed", 100, "units that end before each start and change of the leader")
	set.Int64Var(&o.Seed, "seed", 1, "which units end")
	set.workers(&o.Setting)
	set.profiles(&o.Profile, 15*time.Second, "scheduler and API server", "the first sample of the wake-up")
	return &scenario{"standing", &o.Setting,
		func(ctx context.Context, _ string) (printer, error) { return runner.Standing(ctx, o) }}
}

// interferenceScenario compares the scheduling of pods with the plugin off, on, and on with units and gated pods that
// wait.
func interferenceScenario(set *flags) *scenario {
	var o runner.InterferenceOptions
	set.workers(&o.Setting)
	set.profiles(&o.Profile, 0, "the scheduler", "the creation of the pods that come at once, in the last round")
	set.IntVar(&o.Nodes, "nodes", 5000, "nodes, without anybody who plays them")
	set.IntVar(&o.Pods, "pods", 10_000, "pods that are scheduled in each run")
	set.IntVar(&o.Paced, "paced", 500, "how many of them come one by one, before the others come at once")
	set.IntVar(&o.PacedPerSecond, "paced-rate", 50, "how many of those come in a second")
	set.IntVar(&o.Groups, "groups", 10, "parent quotas")
	set.IntVar(&o.QueuesPerGroup, "queues-per-group", 10, "leaf quotas of each, all with a queue and with pods")
	set.IntVar(&o.Units, "units", 100_000, "units that wait, in the second half of the run")
	set.IntVar(&o.Gated, "gated", 10_000, "pods of such units that exist")
	set.IntVar(&o.PodsPerJob, "pods-per-job", 10, "gated pods of one Job")
	set.IntVar(&o.Shapes, "shapes", 8, "different amounts that units ask for")
	set.IntVar(&o.Rounds, "rounds", 3, "how often each of the four variants is measured")
	return &scenario{"interference", &o.Setting,
		func(ctx context.Context, _ string) (printer, error) { return runner.Interfere(ctx, o) }}
}

// reclaimScenario measures how soon owners of a min get it back from jobs that borrow it, and what is killed for that.
func reclaimScenario(set *flags) *scenario {
	var o runner.ReclaimOptions
	set.IntVar(&o.Borrowers, "borrowers", 4, "quotas that borrow")
	set.IntVar(&o.Jobs, "jobs", 200, "jobs of borrowers, which fill the cluster")
	set.IntVar(&o.Pods, "pods", 2, "pods of each of those, of one core")
	set.BoolVar(&o.Mixed, "mixed", false, "jobs of borrowers have 1 to 2*pods-1 pods, and not all as many")
	set.IntVar(&o.Owners, "owners", 4, "quotas that take back: three quarters of the cluster are their min")
	set.IntVar(&o.OwnerJobs, "owner-jobs", 60, "jobs that they submit, one after the other")
	set.IntVar(&o.OwnerPods, "owner-pods", 5, "pods of each of those")
	set.DurationVar(&o.Settle, "settle", 30*time.Second, "how long the cluster is full before the first of those jobs")
	set.DurationVar(&o.Gap, "gap", 500*time.Millisecond,
		"from the binding of the last pod to the creation of the next job")
	set.workers(&o.Setting)
	return &scenario{"reclaim", &o.Setting,
		func(ctx context.Context, _ string) (printer, error) { return runner.Reclaim(ctx, o) }}
}
