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
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// lent has so many jobs in 50 quotas without a min hold all that there is. So many preemptors wait, whose quota has a
// min for all of them.
func lent(holders, preemptors int) *State {
	const leaves = 50
	s := New(Config{ExplainAfter: 5 * time.Second, ExplainEvery: time.Minute, RefusedBackoff: time.Second})
	cores := func(n int) resources.List { return resources.FromMap(map[string]int64{"cpu": int64(n) * 1000}) }
	all := cores(holders)
	s.SetQuota(epoch, Quota{Name: "root", Limit: all, Max: all})
	s.SetQuota(epoch, Quota{Name: "owner", Parent: "root", Limit: all, Max: all, Min: cores(preemptors)})
	s.UpsertQueue(epoch, queue.Spec{Name: "borrower", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	for i := range leaves {
		s.SetQuota(epoch, Quota{Name: fmt.Sprint("leaf", i), Parent: "root", Limit: all, Max: all, Min: cores(0)})
	}
	job := func(i int, queue, quota string) unit.Unit {
		name := fmt.Sprintf("%s-%06d", queue, i)
		c := unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: name, UID: "job-" + name}
		s.SetConsumer(epoch, c, true)
		return unit.Unit{
			Key: "ns/" + name, UID: name, Queue: queue, Quota: quota, Created: epoch.Add(-time.Hour), Request: cores(1),
			Pods: 1, Active: true, Consumer: c, ConsumerManaged: true, OwnedByConsumer: true, Phase: unit.PhaseEnqueued,
		}
	}
	for i := range holders {
		u := job(i, "borrower", fmt.Sprint("leaf", i%leaves))
		u.Phase, u.Attempts, u.Priority = unit.PhaseRunning, 1, int32(i%5)
		u.Admitted = epoch.Add(-time.Hour - time.Duration(i)*time.Second)
		u.SetHeld(u.Request, u.Pods)
		s.UpsertUnit(epoch, u)
	}
	for i := range preemptors {
		q := queue.Spec{Name: fmt.Sprint("owner", i), Policy: "Priority", MaxPending: -1, MaxAdmitted: -1}
		q.Preemption.Reclaim = queue.VictimsAny
		s.UpsertQueue(epoch, q)
		s.UpsertUnit(epoch, job(i, q.Name, "owner"))
	}
	return s
}

// A decision about preemptors allocates as much for 20 times as many holders: it looks at the first ones alone.
func TestCostOfAPreemption(t *testing.T) {
	allocations := func(holders int) float64 {
		s := lent(holders, 20)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		plan := s.Decide(epoch)
		runtime.ReadMemStats(&after)
		require.Len(t, byKind(plan).Preempt, 20)
		return float64(after.Mallocs - before.Mallocs)
	}
	few := allocations(1_000)
	require.Less(t, allocations(20_000), 1.2*few)
}

// BenchmarkPreemption is 200 preemptors in as many queues, from their arrival until all are admitted. Each write is
// confirmed before the next decision.
func BenchmarkPreemption(b *testing.B) {
	for _, holders := range []int{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprint("holders=", holders), func(b *testing.B) {
			const preemptors = 200
			var longest time.Duration
			decides := 0
			for range b.N {
				b.StopTimer()
				s := lent(holders, preemptors)
				now := epoch
				b.StartTimer()
				for admitted := 0; admitted < preemptors; decides++ {
					begun := time.Now()
					plan := s.Decide(now)
					longest = max(longest, time.Since(begun))
					require.True(b, len(plan.Writes) > 0 || !plan.WakeAt.IsZero())
					for _, w := range plan.Writes {
						s.Settle(now, w.Of().Key, w.Attempt(), transition.Confirmed)
					}
					admitted += len(of[*transition.Admit](plan))
					if len(plan.Writes) == 0 {
						now = plan.WakeAt
					}
				}
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms/longest-decide")
			b.ReportMetric(float64(decides)/float64(b.N), "decides/op")
		})
	}
}
