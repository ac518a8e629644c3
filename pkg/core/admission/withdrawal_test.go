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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// A released unit loses its admission exactly if a check of its queue refuses it, and its pods can be removed. One
// sentence about the answers says so here, for any order of them.
func TestAReleasedUnitStaysUnlessACheckSaysNo(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		one := resources.FromMap(map[string]int64{"cpu": 1})
		names := []string{"a", "b", "c"}
		q := queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1}
		for _, name := range names {
			if rapid.Bool().Draw(t, "the queue asks "+name) {
				q.AdmissionChecks = append(q.AdmissionChecks, queue.AdmissionCheck{Name: name, Timeout: time.Second})
			}
		}
		u := unit.Unit{
			Key: "ns/u", UID: "u", Queue: "q", Quota: "root", Request: one, Active: true, Attempts: 1,
			Consumer: unit.Consumer{Kind: "Job", Namespace: "ns", Name: "u", UID: "j"}, OwnedByConsumer: true,
			Unsuspendable: rapid.Bool().Draw(t, "unsuspendable"),
			Phase: rapid.SampledFrom([]unit.Phase{
				unit.PhaseDequeued, unit.PhaseSchedSucceed, unit.PhaseRunning,
			}).Draw(t, "phase"),
			Stated: unit.Stated{Admitted: epoch, Held: one, Recorded: true},
		}
		s := New(Config{})
		s.SetQuota(epoch, Quota{Name: "root", Limit: one})
		s.SetConsumer(epoch, u.Consumer, true)
		s.UpsertQueue(epoch, q)
		s.UpsertUnit(epoch, u)
		s.SetPod(epoch, u.Key, Pod{UID: "p", Quota: "root", Request: one, Assigned: true})
		now := epoch.Add(time.Hour)
		require.Empty(t, byKind(s.Decide(now)).Evict, "nobody was asked")

		states := []unit.CheckState{unit.CheckPending, unit.CheckReady, unit.CheckRetry, unit.CheckRejected, "Unheard", ""}
		for range rapid.IntRange(1, 4).Draw(t, "writes") {
			u.Checks = &unit.CheckAnswers{Conflict: rapid.SampledFrom([]string{"", "yes"}).Draw(t, "conflict")}
			no, never := false, false
			for _, name := range names {
				state := rapid.SampledFrom(states).Draw(t, name)
				u.Checks.Answers = append(u.Checks.Answers, unit.CheckAnswer{Name: name, State: state})
				for _, of := range q.AdmissionChecks {
					no = no || of.Name == name && (state == unit.CheckRetry || state == unit.CheckRejected)
					never = never || of.Name == name && state == unit.CheckRejected
				}
			}
			s.UpsertUnit(now, u)
			plan := byKind(s.Decide(now))
			if !no || u.Unsuspendable {
				require.Empty(t, plan.Evict)
				continue
			}
			require.Len(t, plan.Evict, 1)
			require.Equal(t, never, plan.Evict[0].Reason == unit.ReasonCheckRejected)
			require.Equal(t, never, plan.Evict[0].RequeueAt.IsZero())
			return
		}
	})
}
