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

package cases

import (
	_ "embed"
	"fmt"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// strictScenario is what the scenario of placement needs.
//
//go:embed strict.yaml
var strictScenario []byte

const (
	// Two fragments fill six of the eight cores of each node. A pod of the other jobs needs three.
	strictNodes, fragments, largeJobs = 6, 12, 3
	strictPods, strictMilliCPU        = 2, 3000
	fragmentRun, strictRun            = 30 * time.Second, 5 * time.Second
	strictInterval                    = 150 * time.Millisecond
	// hangs is for how long a pod waits for a node before it is said to hang.
	hangs = 8 * time.Second
)

func strict() *Scenario {
	return &Scenario{
		Name: "strict", About: "quota is free and nodes are fragmented: jobs are released when all their pods find a node",
		Objects: strictScenario, Quotas: []string{"fragments", "placed", "unplaced"}, Nodes: strictNodes,
		Interval: strictInterval, cases: strictCases(), sum: sumStrict,
	}
}

func strictCases() []Case {
	cases := []Case{
		{
			name: "fragment", quota: "fragments", jobs: fragments, pods: 1, run: fragmentRun, steady: true,
			promise: "small jobs leave two cores on each node",
			missing: func(s *story) string { return s.ranAfter() },
		},
		{
			name: "placed", quota: "placed", queue: "placed", jobs: largeJobs, pods: strictPods, run: strictRun, last: true,
			promise: fmt.Sprintf("it is released when there is room on nodes: no pod waits for a node for more than %s", hangs),
			missing: missingToPlaced,
		},
		{
			name: "not placed", quota: "unplaced", jobs: largeJobs, pods: strictPods, run: strictRun, last: true,
			promise: "without the check the first job is released at once, and its pods hang",
			missing: func(s *story) string { return s.ranAfter() },
		},
	}
	for i := range cases {
		cases[i].namespace, cases[i].milliCPU = "strict", strictMilliCPU
	}
	return cases
}

func missingToPlaced(s *story) string {
	for _, reason := range s.lost {
		if reason != string(unit.ReasonCheckRetry) {
			return "it lost its quota for " + reason
		}
	}
	if n := s.hung(hangs); n > 0 {
		return fmt.Sprintf("%d of its pods waited for a node for more than %s", n, hangs)
	}
	return s.ranAfter(s.lost...)
}

// sumStrict counts the pods that hang, with the check and without it.
func sumStrict(t *Stories, once bool) (lines, broken []string) {
	hung, refused := map[string]int{}, 0
	for _, s := range t.each(nil) {
		hung[s.of.name] += s.hung(hangs)
		if s.of.name == "placed" {
			refused += len(s.lost)
		}
	}
	lines = []string{
		fmt.Sprintf("pods that hang   %d of %d of jobs that look for nodes first, %d of %d of jobs that do not",
			hung["placed"], largeJobs*strictPods, hung["not placed"], largeJobs*strictPods),
		fmt.Sprintf("no nodes         %d times, and the quota was free for others", refused),
		"jobs ended once  " + map[bool]string{true: "yes", false: "no"}[once],
	}
	if refused == 0 {
		broken = append(broken, "nodes were found for each job at once: they were not fragmented")
	}
	if hung["not placed"] == 0 {
		broken = append(broken, "no pod of the jobs without the check waited for a node")
	}
	return lines, broken
}
