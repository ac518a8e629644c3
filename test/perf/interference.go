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

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
)

// interferenceScenario compares the scheduling of pods with the plugin off, on, and on with units and gated pods that wait.
type interferenceScenario struct{ o runner.InterferenceOptions }

func (s *interferenceScenario) flags(set *flag.FlagSet) {
	set.IntVar(&s.o.Workers, "workers", 32, "requests of the runner at once")
	set.StringVar(&s.o.Profile, "profile", "", "directory for CPU profiles of the scheduler, of 20 s in the last round")
	set.IntVar(&s.o.Nodes, "nodes", 5000, "nodes, without anybody who plays them")
	set.IntVar(&s.o.Pods, "pods", 10_000, "pods that are scheduled in each run")
	set.IntVar(&s.o.Paced, "paced", 500, "how many of them come one by one, before the others come at once")
	set.IntVar(&s.o.PacedPerSecond, "paced-rate", 50, "how many of those come in a second")
	set.IntVar(&s.o.Groups, "groups", 10, "parent quotas")
	set.IntVar(&s.o.QueuesPerGroup, "queues-per-group", 10, "leaf quotas of each, all with a queue and with pods")
	set.IntVar(&s.o.Units, "units", 100_000, "units that wait, in the second half of the run")
	set.IntVar(&s.o.Gated, "gated", 10_000, "pods of such units that exist")
	set.IntVar(&s.o.PodsPerJob, "pods-per-job", 10, "gated pods of one Job")
	set.IntVar(&s.o.Shapes, "shapes", 8, "different amounts that units ask for")
	set.IntVar(&s.o.Rounds, "rounds", 3, "how often each of the four variants is measured")
}

func (s *interferenceScenario) name() string { return "interference" }

func (s *interferenceScenario) run(ctx context.Context, _ string, c common) (printer, error) {
	s.o.Dir, s.o.Progress, s.o.Terminal = c.dir, c.progress, c.terminal
	report, err := runner.Interfere(ctx, s.o)
	if err != nil {
		return nil, err
	}
	return report, nil
}
