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

package answers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

var errStandby = errors.New("the schedulers that answered do not lead and know no dry run; ask again")

// attempts to be answered by the scheduler that leads. With two replicas one in 1,000 questions finds it in none.
const attempts = 10

// DryRun is what units of queues with dryRun would take. The takers are of the namespace of the query; Since does not
// count. It is an error if the aggregated API is not there, or if the scheduler that leads does not answer.
func (r *Reader) DryRun(ctx context.Context, q *PreemptionQuery) (*Preemptions, error) {
	if q.Namespace == "" && !r.hasDryRun(ctx) {
		return &Preemptions{DryRun: true, Taking: []Taking{}, Taken: []Taken{}}, nil
	}
	units, err := r.Units(ctx, q.Namespace)
	if err != nil {
		return nil, err
	}
	dry, asked := map[string]*visibility.DryRun{}, map[string]bool{}
	for i := range units {
		u := &units[i]
		if asked[u.Namespace] || !unit.Phase(u.Status.Phase).Waits() {
			continue
		}
		asked[u.Namespace] = true
		live, err := r.unitsOfLeader(ctx, u.Namespace)
		if err != nil {
			return nil, fmt.Errorf("the aggregated API has the dry runs: %w", err)
		}
		for _, l := range live {
			dry[string(l.UID)] = l.Status.DryRun
		}
	}
	holders := func() ([]v1alpha1.QueueUnit, error) { return r.Admitted(ctx, "", math.MaxInt) }
	return r.named(ctx, q, units, holders, func(units []v1alpha1.QueueUnit) (*Preemptions, bool) {
		return dryRunsOf(units, dry, q)
	})
}

// hasDryRun says whether a queue has dryRun. It is true if the caller may not read queues.
func (r *Reader) hasDryRun(ctx context.Context) bool {
	queues := &v1alpha1.QueueList{}
	err := r.Objects.List(ctx, queues)
	return err != nil || slices.ContainsFunc(queues.Items, func(q v1alpha1.Queue) bool {
		return q.Spec.Preemption != nil && q.Spec.Preemption.DryRun
	})
}

// unitsOfLeader asks until the scheduler answers that leads: each question goes to any of them.
func (r *Reader) unitsOfLeader(ctx context.Context, namespace string) (map[string]visibility.Unit, error) {
	for range attempts {
		live, err := r.LiveUnits(ctx, namespace)
		led := !slices.ContainsFunc(slices.Collect(maps.Values(live)), func(l visibility.Unit) bool {
			return l.Observation != nil && !l.Leader
		})
		if err != nil || led {
			return live, err
		}
	}
	return nil, errStandby
}

// dryRunsOf units, by their UIDs. They are complete if all victims are among the units.
func dryRunsOf(
	units []v1alpha1.QueueUnit, dry map[string]*visibility.DryRun, q *PreemptionQuery,
) (p *Preemptions, complete bool) {
	c := preemptionsAmong(units, q)
	p, complete = &Preemptions{DryRun: true, Taking: []Taking{}, Taken: []Taken{}}, true
	for _, u := range units {
		d := dry[string(u.UID)]
		if d == nil {
			continue
		}
		u.Status.Preemption = &v1alpha1.Preemption{Attempts: u.Status.Attempts, Holds: d.Holds}
		t, selected := c.taking(&u)
		complete = complete && t.Others == 0
		if t.Others += int(d.Units) - len(d.Holds); selected {
			p.Taking = append(p.Taking, t)
		}
	}
	return p, complete
}
