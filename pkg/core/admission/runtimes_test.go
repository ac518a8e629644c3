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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// A limit may move although no quota was observed and no head is another one. Then it is looked again.
func TestALimitThatFollowsDemandIsAReasonToLook(t *testing.T) {
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	s, now := New(Config{}), time.Unix(0, 0)
	s.UpsertQueue(now, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	s.SetQuota(now, Quota{
		Name: "root", Limit: cpu(10), Max: cpu(10), Used: cpu(10), Terms: capacity.Terms{Part: shares.Top},
	})
	for name, used := range map[string]int64{"a": 10, "b": 0} {
		s.SetQuota(now, Quota{
			Name: name, Parent: "root", Max: cpu(10), Shared: true, Used: cpu(used), Requested: cpu(used),
			Terms: capacity.Terms{Part: shares.Sharing, Weight: cpu(1)},
		})
	}
	for _, key := range []string{"first", "second"} {
		s.UpsertUnit(now, unit.Unit{Key: key, UID: key, Queue: "q", Quota: "b", Request: cpu(3), Pods: 1, Active: true})
	}
	limit := func() resources.List {
		limit, _ := s.Limits().LimitOf("b")
		return limit
	}
	require.Equal(t, 1, byKind(s.Decide(now)).Examined)
	require.Zero(t, byKind(s.Decide(now)).Examined)
	require.Equal(t, cpu(5), limit())
	s.DeleteUnit(now, "second")
	require.Equal(t, 1, byKind(s.Decide(now)).Examined)
	require.Equal(t, cpu(3), limit())
	require.Zero(t, byKind(s.Decide(now)).Examined)
}
