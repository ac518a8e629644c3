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
	"path/filepath"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// workloadScenario carries a workload out.
type workloadScenario struct {
	workload, profile, policy string
	workers, ceiling          int
	jobs                      bool

	loaded *workload.Workload
}

func (s *workloadScenario) flags(set *flag.FlagSet) {
	set.StringVar(&s.workload, "workload", "baseline", "a file, or the name of one in test/perf")
	set.StringVar(&s.policy, "policy", "", "policy of the queues: Priority, FIFO, Block or Intelligent (default: that of the workload, else Block)")
	set.StringVar(&s.profile, "profile", "", "directory for CPU profiles of scheduler and API server, taken from second 15 to 35")
	set.IntVar(&s.workers, "workers", 32, "requests of the runner at once, for creating and for finishing each")
	set.IntVar(&s.ceiling, "ceiling", 3000, "objects that the write ceiling is measured with, before and after; 0 for none")
	set.BoolVar(&s.jobs, "jobs", false, "create real Jobs, with controller, job controller and KWOK, which plays their pods")
}

func (s *workloadScenario) name() string { return s.loaded.Name }

func (s *workloadScenario) run(ctx context.Context, root string, c common) (printer, error) {
	w, err := s.load(root)
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	s.loaded = w
	report, err := runner.Run(ctx, runner.Options{
		Workload: w, Dir: c.dir, Workers: s.workers, CeilingWrites: s.ceiling, Profile: s.profile, Jobs: s.jobs,
		Progress: c.progress, Terminal: c.terminal,
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// load reads the workload, which is named or is a file.
func (s *workloadScenario) load(root string) (*workload.Workload, error) {
	path := s.workload
	if !strings.ContainsAny(path, "./") {
		path = filepath.Join(root, "test", "perf", path+".yaml")
	}
	w, err := workload.Load(path)
	if err != nil || s.policy == "" {
		return w, err
	}
	w.QueuePolicy = v1alpha1.QueuePolicy(s.policy)
	return w, w.Validate()
}
