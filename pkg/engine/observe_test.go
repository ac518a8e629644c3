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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// observed is an observer of fake quotas, and the times at which it wants to be asked again.
func observed(t *testing.T, quotas *fakeQuotas) (o *observer, c *core, again *[]time.Duration) {
	t.Helper()
	v := &env{opts: Options{Quotas: quotas, Clock: clocktesting.NewFakeClock(testStart)}, log: logr.Discard()}
	again = &[]time.Duration{}
	return newObserver(v, func(_ time.Time, in time.Duration) { *again = append(*again, in) }), newCore(v), again
}

func TestAnObservationIsRememberedAndTold(t *testing.T) {
	quotas := quotasOf(10, testQuota)
	o, c, _ := observed(t, quotas)
	require.Equal(t, "other", o.charged("other"), "nobody knows yet which quotas there are")
	_, changed := o.observe(testStart, c)
	require.True(t, changed)
	require.Equal(t, []string{defaultQuota, root, testQuota}, o.levels())
	require.Equal(t, defaultQuota, o.charged("other"))
	require.Equal(t, testQuota, o.charged(testQuota))
	require.Equal(t, []string{root, testQuota}, o.withAncestors(map[string]bool{testQuota: true}))
	require.Equal(t, "cpu: 10", o.maxOf(testQuota).String())

	asked := quotas.observed
	_, changed = o.observe(testStart, c)
	require.False(t, changed)
	require.Equal(t, asked, quotas.observed, "nothing is dirty (I12)")
	delete(quotas.levels, testQuota)
	o.mark(testQuota)
	gone, changed := o.observe(testStart, c)
	require.Equal(t, []string{testQuota}, gone)
	require.True(t, changed)
	require.False(t, o.known(testQuota))
}

func TestQuotasThatPanicAreAskedAgainLater(t *testing.T) {
	quotas := quotasOf(10, testQuota)
	o, c, again := observed(t, quotas)
	clock := o.opts.Clock.(*clocktesting.FakeClock)
	quotas.panicking = true
	_, changed := o.observe(clock.Now(), c)
	require.False(t, changed)
	quotas.panicking = false
	_, ok := o.resolve("ns", nil)
	require.False(t, ok, "for a second nobody asks")
	require.Equal(t, []time.Duration{time.Second}, *again)
	clock.Step(time.Second)
	_, changed = o.observe(clock.Now(), c)
	require.True(t, changed, "what was dirty still is")
}

// What somebody else than the core was shown is shown to the core as well.
func TestAPeekLeavesEverythingDirty(t *testing.T) {
	quotas := quotasOf(10, testQuota)
	o, c, _ := observed(t, quotas)
	o.observe(testStart, c)
	found, ok := o.peek()
	require.True(t, ok)
	require.Len(t, found, 3)
	asked := quotas.observed
	o.observe(testStart, c)
	require.Greater(t, quotas.observed, asked)
}

// What becomes a pod is demand no more. Where limits follow from both, what pods request is read in the same step.
func TestAQuotaIsObservedWhenItsDemandChanges(t *testing.T) {
	for name, shared := range map[string]bool{"runtime": true, "max": false} {
		t.Run(name, func(t *testing.T) {
			quotas := quotasOf(10, testQuota)
			quotas.set(testQuota, func(q *admission.Quota) { q.Shared = shared })
			o, c, _ := observed(t, quotas)
			o.observe(testStart, c)
			c.call("", func(s *admission.State) {
				s.UpsertQueue(testStart, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1})
				s.UpsertUnit(testStart, unit.Unit{
					Key: "team/a", UID: "a", Queue: "q", Quota: testQuota, Request: cpu(4), Pods: 1, Active: true,
				})
			})
			o.markDemand(c)
			require.Equal(t, shared, o.dirty[testQuota])
			o.observe(testStart, c)
			o.markDemand(c)
			require.Empty(t, o.dirty, "once (I12)")
		})
	}
}
