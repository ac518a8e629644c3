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
	"flag"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
)

// savingsScenario measures what the queue saves: the same jobs with it and without.
type savingsScenario struct {
	o        runner.SavingsOptions
	variants string
}

func (s *savingsScenario) flags(set *flag.FlagSet) {
	set.StringVar(&s.variants, "variants", "queue,none", "queue (jobs are created suspended), unsuspended (created as without the queue), none")
	set.IntVar(&s.o.Jobs, "jobs", 10000, "jobs that are submitted")
	set.IntVar(&s.o.PerSecond, "per-second", 50, "jobs that are submitted in a second at most")
	set.IntVar(&s.o.Capacity, "capacity", 100, "jobs that fit the quota at once")
	set.IntVar(&s.o.Pods, "pods", 2, "pods of each job")
	set.DurationVar(&s.o.RunTime, "run-time", 20*time.Second, "how long each pod runs")
	set.DurationVar(&s.o.Fill, "fill", 6*time.Minute, "how long submission may take, until all that does not run waits")
	set.DurationVar(&s.o.Window, "window", 5*time.Minute, "how long the rest is watched, from the late job of high priority on")
	set.BoolVar(&s.o.Preempt, "preempt", false, "let the late job preempt")
	set.IntVar(&s.o.Workers, "workers", 32, "requests of the runner at once")
}

func (s *savingsScenario) name() string { return "savings" }

func (s *savingsScenario) run(ctx context.Context, _ string, c common) (printer, error) {
	s.o.Dir, s.o.Progress, s.o.Terminal = c.dir, c.progress, c.terminal
	s.o.Variants = strings.Split(s.variants, ",")
	report, err := runner.Savings(ctx, s.o)
	if err != nil {
		return nil, err
	}
	return report, nil
}
