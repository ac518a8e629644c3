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

// Package replay has the schedulers that others compare with: they replay a workload on a machine of equal processors.
// A scheduler with more to it, such as the queue itself, is a Policy, too.
package replay

import (
	"fmt"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
)

// horizon is the latest time that a schedule may reach: 250 years fit into a Duration, with some to spare.
const horizon = 250 * 365 * 24 * time.Hour

// Hold is a time for which a job has processors; End is after Start. A job that is evicted or resized has several.
type Hold struct {
	Job        int // index in the workload
	Start, End time.Duration
	Size       int64
	Evicted    bool          // the hold ended before the job did
	Lost       time.Duration // run time whose results an eviction lost
}

// Policy is a scheduler that can replay workloads.
type Policy struct {
	Name string
	// Replay returns the holds of all jobs, in the order of Start. A job that the policy never starts has none. Equal
	// workloads give equal holds. Replay calls started with the number of jobs started so far, and ends with its error.
	Replay func(w *trace.Workload, started func(jobs int) error) ([]Hold, error)
}

// References are the schedulers of the literature.
func References() []Policy {
	limit, exact := (*trace.Job).Believed, func(j *trace.Job) time.Duration { return j.Run }
	return []Policy{
		reference("fcfs", limit, (*machine).inOrder),
		reference("easy", limit, (*machine).backfill),
		reference("easy-exact", exact, (*machine).backfill),
		reference("greedy", limit, (*machine).whateverFits),
	}
}

// reference starts jobs by a rule, after all ends and arrivals of a moment.
func reference(name string, believed func(*trace.Job) time.Duration, rule func(*machine)) Policy {
	return Policy{Name: name, Replay: func(w *trace.Workload, started func(int) error) ([]Hold, error) {
		m := &machine{
			jobs: w.Jobs, believed: believed, free: w.Processors, waiting: newLine(len(w.Jobs)),
			holds: make([]Hold, 0, len(w.Jobs)),
		}
		for m.advance() {
			rule(m)
			if err := started(len(m.holds)); err != nil {
				return nil, err
			}
		}
		if m.late {
			return nil, fmt.Errorf("%s: the last jobs end after more than %.0f years", name, horizon.Hours()/24/365)
		}
		return m.holds, nil
	}}
}
