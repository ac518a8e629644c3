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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
)

// latencyScenario measures one job after the other on a cluster that does nothing else, with and without the queue.
type latencyScenario struct{ o runner.LatencyOptions }

func (s *latencyScenario) flags(set *flag.FlagSet) {
	set.IntVar(&s.o.Jobs, "jobs", 200, "jobs of each variant")
	set.IntVar(&s.o.Warmup, "warmup", 5, "jobs of each variant before those, which are not counted")
	set.IntVar(&s.o.Pods, "pods", 2, "pods of each job")
	set.DurationVar(&s.o.RunTime, "run-time", time.Second, "how long each pod runs")
	set.DurationVar(&s.o.Gap, "gap", 200*time.Millisecond, "from the binding of the last pod to the creation of the next job")
	set.BoolVar(&s.o.Stock, "stock", false, "only the unqueued variants, with plugin and controller off")
}

func (s *latencyScenario) name() string { return "latency" }

func (s *latencyScenario) run(ctx context.Context, _ string, c common) (printer, error) {
	s.o.Dir, s.o.Progress, s.o.Terminal = c.dir, c.progress, c.terminal
	report, err := runner.Latency(ctx, s.o)
	if err != nil {
		return nil, err
	}
	return report, nil
}
