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
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// reclaimScenario is what the scenario of reclaim needs.
//
//go:embed reclaim.yaml
var reclaimScenario []byte

const (
	// Borrowers fill the company. Owners ask for the min of research together, which platform has borrowed.
	borrowers, borrowerPods = 12, 4
	owners, ownerPods       = 3, 8
	// leastSuspended jobs of platform free what the owners need: all borrowers are equal.
	leastSuspended = owners * ownerPods / borrowerPods
	// promptly is how soon an owner has its pods on nodes.
	promptly        = 10 * time.Second
	reclaimInterval = 300 * time.Millisecond
	borrowerRun     = 40 * time.Second
	ownerRun        = 10 * time.Second
)

func reclaim() *Scenario {
	return &Scenario{
		Name: "reclaim", About: "a team borrows the whole cluster, and the owner of a min takes it back",
		Objects: reclaimScenario, Quotas: []string{"platform", "research", "company"}, Nodes: 6, Interval: reclaimInterval,
		cases: reclaimCases(), sum: sumReclaim,
	}
}

func reclaimCases() []Case {
	return []Case{
		{
			name: "borrower", namespace: "company", quota: "platform", jobs: borrowers, pods: borrowerPods, run: borrowerRun,
			promise: "a job that is suspended for the owner runs again, and to its end",
			missing: func(s *story) string {
				if len(s.lost) == 0 {
					return s.ranAfter()
				}
				return s.ranAfter(string(unit.ReasonReclaimed))
			},
		},
		{
			name: "owner", namespace: "company", quota: "research", queue: "owners", jobs: owners, pods: ownerPods,
			run: ownerRun, last: true, steady: true,
			promise: fmt.Sprintf("all pods are on nodes within %s of the submission", promptly),
			missing: func(s *story) string {
				if took := s.wait(); took == 0 || took > promptly {
					return fmt.Sprintf("%d of %d pods were on nodes, after %s", len(s.bound), ownerPods, inSeconds(took))
				}
				return s.ranAfter()
			},
		},
	}
}

// sumReclaim says how long the owners waited, and what that took.
func sumReclaim(t *Stories, once bool) (lines, broken []string) {
	var waits []string
	suspended, resumed := 0, 0
	for _, s := range t.each(nil) {
		switch {
		case s.of.steady:
			waits = append(waits, inSeconds(s.wait()))
		case len(s.lost) > 0:
			suspended++
			if s.attempts > int64(len(s.lost)) {
				resumed++
			}
		}
	}
	lines = []string{
		"owner's wait     " + strings.Join(waits, ", ") + ": from the submission of each job to all its pods on nodes",
		fmt.Sprintf("borrowers        %d of %d suspended, the fewest that free what the owner needs are %d; %d resumed",
			suspended, borrowers, leastSuspended, resumed),
		"jobs ended once  " + map[bool]string{true: "yes", false: "no"}[once],
	}
	if suspended != leastSuspended {
		broken = append(broken, fmt.Sprintf("%d borrowers were suspended, and not %d", suspended, leastSuspended))
	}
	if resumed != suspended {
		broken = append(broken, fmt.Sprintf("%d of %d suspended borrowers were resumed", resumed, suspended))
	}
	return lines, broken
}
