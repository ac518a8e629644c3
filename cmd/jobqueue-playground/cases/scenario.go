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

// Package cases has scenarios of the demo. Each scenario promises something about its jobs, and checks that itself.
package cases

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// Scenario is what a demo of cases shows.
type Scenario struct {
	Name string
	// About is its line in the help.
	About string
	// Objects that it needs, and the quotas whose use is shown.
	Objects []byte
	Quotas  []string
	// Nodes, if no flag says otherwise; 0 is the usual number.
	Nodes int
	// Interval is the mean time between two jobs.
	Interval time.Duration
	// Start, if set, runs something until the context ends. The error that comes then is nil if that went well.
	Start func(context.Context, *controlplane.ControlPlane) (<-chan error, error)
	// Do, if set, is done once, as soon as it is due.
	Due func(*Stories) bool
	Do  func(context.Context, *controlplane.ControlPlane) error
	// sum, if set, is what the summary says of all cases together, and which promises about that are broken. It is told
	// whether each job ran to its end once.
	sum func(t *Stories, once bool) (lines, broken []string)

	cases []Case
}

// All are the scenarios. A further one is one more entry.
func All() []*Scenario { return []*Scenario{checks(), reclaim(), strict()} }

// Case is a kind of job of a scenario.
type Case struct {
	name string
	// queue that its jobs name; "" is the default queue of their quota.
	namespace, quota, queue string
	jobs                    int
	pods                    int32
	milliCPU                int64 // of each pod; 0 is one core
	run                     time.Duration
	// Refused: its jobs are not to run.
	Refused bool
	// needs is the check that its jobs have to pass; "" is none.
	needs string
	// late: no node fits until later.
	late bool
	// small: its quota is too small for its jobs, which say with how few pods they can do.
	small bool
	// last: its jobs are submitted when all others have all their pods on nodes.
	last bool
	// steady: its jobs do not lose their quota.
	steady bool
	// promise in words, and what is missing to it when a job has come to its end; "" is nothing.
	promise string
	missing func(*story) string
}

// Jobs in the order of their submission: those of all cases in turn.
func (s *Scenario) Jobs() (all []Submission, err error) {
	most := 0
	for i := range s.cases {
		most = max(most, s.cases[i].jobs)
	}
	for _, last := range []bool{false, true} {
		for i := range most {
			for c := range s.cases {
				of := &s.cases[c]
				if i >= of.jobs || of.last != last {
					continue
				}
				next, err := SubmissionOf(of.job(i))
				if err != nil {
					return nil, err
				}
				next.Of = of
				all = append(all, next)
			}
		}
	}
	return all, nil
}

func (c *Case) job(i int) *batchv1.Job {
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(c.name, " ", "-"), i)
	j := PlainJob(c.namespace, c.quota, name, c.pods, cmp.Or(c.milliCPU, 1000), c.run)
	suspended := true
	j.Spec.Suspend = &suspended
	j.Annotations = map[string]string{}
	if c.queue != "" {
		j.Annotations[v1alpha1.QueueNameKey] = c.queue
	}
	if c.needs != "" {
		j.Labels[needsLabel] = c.needs
	}
	if c.small {
		j.Annotations[v1alpha1.AnnotationMinParallelism] = strconv.Itoa(largeLeast)
	}
	if c.late {
		j.Spec.Template.Spec.NodeSelector = map[string]string{lateLabel: "true"}
	}
	return j
}
