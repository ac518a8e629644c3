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

package admission

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// onlyOf keeps the streams of one quota, and returns the others.
func (e *endless) onlyOf(quota string) (others []*stream) {
	others = slices.Clone(e.streams)
	e.streams = slices.DeleteFunc(e.streams, func(s *stream) bool { return s.quota != quota })
	others = slices.DeleteFunc(others, func(s *stream) bool { return s.quota == quota })
	return others
}

// Jobs of several quotas need the same victims, and all start, large and small. A preemptor does not see the victims of
// another one. Preemptions within min leave enough above the min of the borrowers. No job ends here, so each of them
// runs by its preemption, or never.
func TestAllPreemptorsOfTheSameVictimsStart(of *testing.T) {
	of.Parallel()
	effort.Check(of, func(t *rapid.T) {
		e := drawEndless(of, t)
		e.longest = 1 << 20
		for _, s := range e.streams {
			q := queue.Spec{Name: s.queue, MaxPending: -1, MaxAdmitted: -1, Threshold: 50, Policy: "Block"}
			q.Preemption.Reclaim = queue.VictimsAny
			e.s.UpsertQueue(e.now, q)
		}
		borrower := rapid.SampledFrom(e.leaves).Draw(t, "borrower")
		others := e.onlyOf(borrower)
		for range 3 {
			e.minute(t)
		}
		var heads []string
		for _, leaf := range e.leaves {
			i := slices.IndexFunc(others, func(s *stream) bool { return s.quota == leaf })
			if i < 0 || e.min[leaf]["cpu"] == 0 {
				continue
			}
			if rapid.Bool().Draw(t, "small jobs of "+leaf) {
				e.streams = append(e.streams, others[i])
				continue
			}
			request := amounts{"cpu": e.min[leaf]["cpu"], "gpu": e.min[leaf]["gpu"]}
			if rapid.Bool().Draw(t, "less than its min") {
				request = drawAmounts(t, "head", func(kind string) int64 { return e.min[leaf][kind] })
				request["cpu"] = max(request["cpu"], 1)
			}
			name := "head-" + leaf
			heads = append(heads, name)
			e.add(name, others[i].queue, leaf, request, func(u *unit.Unit) {
				u.Created, u.Priority = epoch.Add(-time.Hour), 100
			})
		}
		const bound = 30
		for range bound {
			e.minute(t)
		}
		for _, name := range heads {
			u := e.units[name]
			if e.waits(name) {
				found, message := newWhy(e.s).waiting(e.s.roster.units[u.Key])
				require.Failf(t, "it starves", "%s of %s waits for %d minutes: %s: %s", u.Request, u.Quota, bound, found.Reason,
					message)
			}
		}
	})
}
