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

package engine

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// observed is an observer of fake quotas, and the times at which it wants to be asked again.
func observed(t *testing.T, quotas *fakeQuotas) (o *quotawatch.Observer, c *recovery.Core, again *[]time.Duration) {
	t.Helper()
	v := &env.Env{Clock: clocktesting.NewFakeClock(testStart), Log: logr.Discard()}
	again = &[]time.Duration{}
	retry := func(_ time.Time, in time.Duration) { *again = append(*again, in) }
	return quotawatch.New(v, quotas, 0, retry), recovery.New(v, admission.Config{}), again
}

func TestAnObservationIsRememberedAndTold(t *testing.T) {
	quotas := quotasOf(10, testQuota)
	o, c, _ := observed(t, quotas)
	require.Equal(t, "other", o.Charged("other"), "nobody knows yet which quotas there are")
	_, changed := o.Observe(testStart, c)
	require.True(t, changed)
	require.Equal(t, []string{quotawatch.DefaultQuota, root, testQuota}, o.Levels())
	require.Equal(t, quotawatch.DefaultQuota, o.Charged("other"))
	require.Equal(t, testQuota, o.Charged(testQuota))
	require.Equal(t, []string{root, testQuota}, o.WithAncestors(map[string]bool{testQuota: true}))
	require.Equal(t, "cpu: 10", o.MaxOf(testQuota).String())

	asked := quotas.observed
	_, changed = o.Observe(testStart, c)
	require.False(t, changed)
	require.Equal(t, asked, quotas.observed, "nothing is dirty (I12)")
	delete(quotas.levels, testQuota)
	o.Mark(testQuota)
	gone, changed := o.Observe(testStart, c)
	require.Equal(t, []string{testQuota}, gone)
	require.True(t, changed)
	require.False(t, o.Known(testQuota))
}

func TestQuotasThatPanicAreAskedAgainLater(t *testing.T) {
	quotas := quotasOf(10, testQuota)
	o, c, again := observed(t, quotas)
	clock := o.Clock.(*clocktesting.FakeClock)
	quotas.panicking = true
	_, changed := o.Observe(clock.Now(), c)
	require.False(t, changed)
	quotas.panicking = false
	_, ok := o.Resolve("ns", nil)
	require.False(t, ok, "for a second nobody asks")
	require.Equal(t, []time.Duration{time.Second}, *again)
	clock.Step(time.Second)
	_, changed = o.Observe(clock.Now(), c)
	require.True(t, changed, "what was dirty still is")
}

// Quotas that somebody else has looked at are still observed for the core.
func TestAPeekLeavesEverythingDirty(t *testing.T) {
	quotas := quotasOf(10, testQuota)
	o, c, _ := observed(t, quotas)
	o.Observe(testStart, c)
	found, ok := o.Peek()
	require.True(t, ok)
	require.Len(t, found, 3)
	asked := quotas.observed
	o.Observe(testStart, c)
	require.Greater(t, quotas.observed, asked)
}

// Demand that becomes a pod is no demand. If limits follow from both, the requests of pods are read in the same step.
func TestAQuotaIsObservedWhenItsDemandChanges(t *testing.T) {
	for name, shared := range map[string]bool{"runtime": true, "max": false} {
		t.Run(name, func(t *testing.T) {
			quotas := quotasOf(10, testQuota)
			quotas.set(testQuota, func(q *admission.Quota) { q.Shared = shared })
			o, c, _ := observed(t, quotas)
			o.Observe(testStart, c)
			c.Call("", func(s *admission.State) {
				s.UpsertQueue(testStart, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1})
				s.UpsertUnit(testStart, unit.Unit{
					Key: "team/a", UID: "a", Queue: "q", Quota: testQuota, Request: cpu(4), Pods: 1, Active: true,
				})
			})
			o.MarkDemand(c)
			require.Equal(t, shared, o.Dirty[testQuota])
			o.Observe(testStart, c)
			o.MarkDemand(c)
			require.Empty(t, o.Dirty, "once (I12)")
		})
	}
}
