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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

func TestWhichUnitStandsForAJob(t *testing.T) {
	for name, c := range map[string]struct {
		winner, loser func(*unit.Unit)
	}{
		"the older one":           {func(u *unit.Unit) { u.Created = epoch.Add(-time.Second) }, func(*unit.Unit) {}},
		"of the same age, by UID": {func(u *unit.Unit) { u.UID = "1" }, func(u *unit.Unit) { u.UID = "2" }},
		"its own before an older one": {func(u *unit.Unit) { u.OwnedByConsumer = true },
			func(u *unit.Unit) { u.Created = epoch.Add(-time.Second) }},
		"an admitted one before its own": {func(u *unit.Unit) { u.Phase, u.Attempts = unit.PhaseRunning, 1 },
			func(u *unit.Unit) { u.OwnedByConsumer = true }},
		"one that can be admitted": {func(*unit.Unit) {}, func(u *unit.Unit) { u.Pods, u.OwnedByConsumer = 0, true }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, keys := range [][2]string{{"ns/a", "ns/z"}, {"ns/z", "ns/a"}} {
				s := New(Config{})
				s.SetQuota(epoch, Quota{Name: "root"})
				s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
				for i, change := range []func(*unit.Unit){c.loser, c.winner} {
					u := unit.Unit{
						Key: keys[i], UID: keys[i], Queue: "q", Quota: "root", Pods: 1, Active: true, Created: epoch,
						Consumer: unit.Consumer{Kind: "Job.v1.batch", Name: "j", UID: "j"},
					}
					change(&u)
					s.UpsertUnit(epoch, u)
				}
				require.Equal(t, keys[1],
					s.StandsFor(unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: "j", UID: "j"}, false))
				for _, ad := range byKind(s.Decide(epoch)).Admit {
					require.Equal(t, keys[1], ad.Unit.Key)
				}
			}
		})
	}
}

// A unit that names the UID of a job and another name stands for nobody, from when the job is seen on.
func TestJobOfAnotherName(t *testing.T) {
	s := New(Config{})
	s.SetQuota(epoch, Quota{Name: "root"})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	job := unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: "j", UID: "1"}
	for name, phase := range map[string]unit.Phase{"waits": unit.PhaseEnqueued, "runs": unit.PhaseRunning} {
		u := unit.Unit{
			Key: "ns/" + name, UID: name, Queue: "q", Quota: "root", Pods: 1, Active: true, Phase: phase,
			Request:  resources.FromMap(map[string]int64{"cpu": 1}),
			Stated:   unit.Stated{Held: resources.FromMap(map[string]int64{"cpu": 1})},
			Consumer: unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: "other", UID: "1"}, ConsumerManaged: true,
		}
		s.UpsertUnit(epoch, u)
	}
	require.Empty(t, byKind(s.Decide(epoch)).Evict, "its job may not have been seen yet")
	reason, _, _ := s.Why("ns/waits")
	require.Equal(t, unit.ReasonConsumerNotFound, reason)
	s.SetConsumer(epoch, job, true)
	reason, message, _ := s.Why("ns/waits")
	require.Equal(t, unit.ReasonConsumerUIDMismatch, reason)
	require.Equal(t, `consumerRef names Job.v1.batch "other", but uid 1 is of Job.v1.batch "j"`, message)
	plan := byKind(s.Decide(epoch))
	require.Len(t, plan.Evict, 1)
	require.Equal(t, "ns/runs", plan.Evict[0].Unit.Key)
}
