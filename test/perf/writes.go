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

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
)

// writesScenario measures what each write of a unit costs the API server, and what it would cost otherwise.
type writesScenario struct{ o runner.WriteCostOptions }

func (s *writesScenario) flags(set *flag.FlagSet) {
	set.IntVar(&s.o.Objects, "objects", 200, "units of each variant and round")
	set.IntVar(&s.o.Rounds, "rounds", 5, "rounds, after one that does not count")
	set.IntVar(&s.o.Workers, "workers", 32, "requests at once")
	set.IntVar(&s.o.Watchers, "watchers", 2, "watchers of the units")
	set.Func("variant", "a variant to measure; may be repeated (default: all; an unknown one names them)", func(name string) error {
		s.o.Variants = append(s.o.Variants, name)
		return nil
	})
	s.o.Definitions = map[string]string{}
	set.Func("definition", "NAME=FILE: another definition of units as a variant; may be repeated", func(text string) error {
		name, file, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=FILE", text)
		}
		s.o.Definitions[name] = file
		return nil
	})
}

func (s *writesScenario) name() string { return "writes" }

func (s *writesScenario) run(ctx context.Context, _ string, c common) (printer, error) {
	s.o.Dir, s.o.Progress, s.o.Terminal = c.dir, c.progress, c.terminal
	costs, err := runner.MeasureWriteCosts(ctx, s.o)
	if err != nil {
		return nil, err
	}
	return costs, nil
}
