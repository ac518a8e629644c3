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
	"fmt"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
)

// standingScenario measures on a store with many units that wait: how long the end of one takes to let the next one go, and
// how long a scheduler takes to start and to take over.
type standingScenario struct {
	o                 runner.StandingOptions
	measure, policies string
}

func (s *standingScenario) flags(set *flag.FlagSet) {
	set.StringVar(&s.measure, "measure", "startup,wake", "what to measure: startup, wake or both, on one store")
	set.IntVar(&s.o.Waiting, "waiting", 100_000, "units that wait while the wake-up is measured")
	set.IntVar(&s.o.Few, "few", 1000, "units that wait in the store that the wake-up is compared with; 0 for none")
	set.IntVar(&s.o.StartupWaiting, "startup-waiting", 50_000, "units that wait at start and when the leader changes")
	set.IntVar(&s.o.Holding, "holding", 5100, "units that hold quota, all that can; a multiple of 30 or rounded up to one")
	set.StringVar(&s.policies, "policies", "Priority,Block", "policies of the queues that the wake-up is measured with")
	set.IntVar(&s.o.Samples, "samples", 1000, "samples of the wake-up for each policy and number of waiting units")
	set.IntVar(&s.o.Rounds, "rounds", 5, "rounds in which the numbers of waiting units take turns")
	set.Float64Var(&s.o.PerSecond, "per-second", 20, "samples in a second at most")
	set.IntVar(&s.o.Changes, "changes", 3, "changes of the leader of each kind: killed, and asked to end")
	set.IntVar(&s.o.Freed, "freed", 100, "units that end before each start and change of the leader")
	set.Int64Var(&s.o.Seed, "seed", 1, "which units end")
	set.IntVar(&s.o.Workers, "workers", 32, "requests at once for creating units")
	set.StringVar(&s.o.Profile, "profile", "", "directory for CPU profiles of scheduler and API server, from second 15 to 35 of the wake-up")
}

func (s *standingScenario) name() string { return "standing" }

func (s *standingScenario) run(ctx context.Context, _ string, c common) (printer, error) {
	for _, name := range strings.Split(s.measure, ",") {
		switch name {
		case "wake":
			s.o.Wake = true
		case "startup":
			s.o.Startup = true
		default:
			return nil, fmt.Errorf("--measure: %q is neither startup nor wake", name)
		}
	}
	for _, name := range strings.Split(s.policies, ",") {
		switch policy := v1alpha1.QueuePolicy(name); policy {
		case v1alpha1.PolicyPriority, v1alpha1.PolicyFIFO, v1alpha1.PolicyBlock, v1alpha1.PolicyIntelligent:
			s.o.Policies = append(s.o.Policies, policy)
		default:
			return nil, fmt.Errorf("--policies: %q is none of Priority, FIFO, Block and Intelligent", name)
		}
	}
	s.o.Dir, s.o.Progress, s.o.Terminal = c.dir, c.progress, c.terminal
	report, err := runner.Standing(ctx, s.o)
	if err != nil {
		return nil, err
	}
	return report, nil
}
