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
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/cases"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

// demonstration is what the demo shows in one scenario.
type demonstration struct {
	name, about string
	objects     []byte
	interval    time.Duration // mean time between two jobs
	jobs        func(n int, seed uint64) ([]cases.Submission, error)
	kinds       []jobKind       // that have operators; none if there are only Jobs
	cases       *cases.Scenario // whose jobs are always the same; nil if jobs are random
}

// The scenarios that the code asks for by name; the first is the default.
const (
	scenarioQueues = "queues"
	scenarioKinds  = "kinds"
)

func demonstrations() []demonstration {
	all := []demonstration{
		{
			name: scenarioQueues, about: "Jobs in three queues", objects: scenario, interval: submitInterval,
			jobs: workload,
		},
		{
			name: scenarioKinds, about: "jobs of many kinds, with their operators", objects: scenario,
			interval: mixedInterval, jobs: mixedWorkload, kinds: mixedKinds(),
		},
	}
	for _, c := range cases.All() {
		all = append(all, demonstration{
			name: c.Name, about: c.About, objects: c.Objects, interval: c.Interval, cases: c,
			jobs: func(int, uint64) ([]cases.Submission, error) { return c.Jobs() },
		})
	}
	return all
}

func demonstrationOf(name string) (demonstration, error) {
	all := demonstrations()
	i := slices.IndexFunc(all, func(d demonstration) bool { return d.name == name })
	if i < 0 {
		return demonstration{}, fmt.Errorf("unknown scenario %q; there are:%s", name, listed("\n  ", all))
	}
	return all[i], nil
}

func listed(separator string, all []demonstration) string {
	var text strings.Builder
	for _, d := range all {
		text.WriteString(separator + d.name + ": " + d.about)
	}
	return text.String()
}

func (d *demonstration) newView() *view {
	v := newView(d.kinds)
	if d.cases != nil {
		v.stories = d.cases.Stories()
		v.checks.Again = func(u checker.Unit) bool { return v.stories.MayLose(u.Job) }
	}
	return v
}
