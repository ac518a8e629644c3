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
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// However many units have become smaller, those that wait are admitted: one Decide has a bound of writes for each.
func TestResizesAndAdmissionsHaveBoundsOfTheirOwn(t *testing.T) {
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	s := New(Config{})
	s.SetQuota(epoch, Quota{Name: "root", Limit: cpu(10_000), Max: cpu(10_000)})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	in := func(i int) unit.Unit {
		return unit.Unit{Key: fmt.Sprintf("ns/u%04d", i), UID: fmt.Sprint(i), Queue: "q", Quota: "root", Active: true,
			Request: cpu(1), Pods: 1}
	}
	const smaller = mostResizes + 44
	for i := range smaller {
		u := in(i)
		u.Phase, u.Held, u.HeldPods, u.Recorded = unit.PhaseDequeued, cpu(2), 2, true
		s.UpsertUnit(epoch, u)
	}
	for i := range 2 {
		s.UpsertUnit(epoch, in(smaller+i))
	}
	plan := byKind(s.Decide(epoch))
	require.Len(t, plan.Admit, 2)
	require.Len(t, plan.Resize, mostResizes)
	require.Equal(t, epoch, plan.WakeAt, "the rest is for at once")
	plan = byKind(s.Decide(epoch))
	require.Empty(t, plan.Admit)
	require.Len(t, plan.Resize, smaller-mostResizes)
	require.Zero(t, plan.WakeAt)
}
