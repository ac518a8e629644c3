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
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/measures"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// withSets are pod sets of so many pods of one cpu, with how few of them the job can do.
func withSets(sets ...[2]int64) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		list := make([]any, 0, len(sets))
		for i, set := range sets {
			list = append(list, map[string]any{
				"name": string(rune('a' + i)), "minCount": set[0], "count": set[1], "template": map[string]any{
					"spec": map[string]any{"containers": []any{map[string]any{
						"name": "main", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}},
					}}},
				},
			})
		}
		_ = unstructured.SetNestedSlice(u.Object, list, "spec", "podSet")
	}
}

// The status has the number of admitted pods by pod set. A new process reads the same, and asks for exactly that. After
// an eviction the unit asks for the whole.
func TestAdmittedInPart(t *testing.T) {
	r := ready(t, 6)
	key := r.unit("u", 9, withSets([2]int64{1, 1}, [2]int64{2, 8}))
	r.step()
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, "cpu: 6", u.Held.String())
	require.EqualValues(t, 6, u.HeldPods)
	require.Equal(t, "quota is reserved for 6 of 9 pods: cpu: 6", u.Condition(v1alpha1.ConditionQuotaReserved).Message)
	admissions, _, _ := unstructured.NestedSlice(r.api.get(key).Object, "status", "admissions")
	require.Equal(t, []any{
		map[string]any{"name": "a", "replicas": int64(1), "running": int64(0), "resources": map[string]any{"cpu": "1"}},
		map[string]any{"name": "b", "replicas": int64(5), "running": int64(0), "resources": map[string]any{"cpu": "5"}},
	}, admissions)
	require.EqualValues(t, 6, u.Pods, "it asks for what it got")
	require.Equal(t, "cpu: 6", u.Request.String())
	r.sound()

	next := rigOn(t, r.api, r.quotas, r.clock)
	next.queue(testQuota).feed(key).lead()
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Limit, q.Max = cpu(9), cpu(9) })
	next.engine.Sink().QuotaChanged(testQuota)
	next.step()
	require.Empty(t, next.of(statuswrite.Admit, statuswrite.Resize), "there is room for the rest, and nobody asks for it")
	require.Equal(t, "cpu: 6", next.outstanding(testQuota))

	next.api.edit(key, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, false, "spec", "active")
	})
	next.feed(key).step()
	require.Len(t, next.of(statuswrite.Evict), 1)
	next.send()
	u = unitFrom(next.api.get(key))
	require.Equal(t, "cpu: 9", u.Request.String())
	next.api.edit(key, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, true, "spec", "active")
	})
	next.feed(key).step()
	next.send()
	u = unitFrom(next.api.get(key))
	require.Equal(t, "cpu: 9", u.Held.String())
	require.Equal(t, "quota is reserved: cpu: 9", u.Condition(v1alpha1.ConditionQuotaReserved).Message)
	next.sound()
}

// counts of the queue of the tests, by the value of a label, from now on.
func (r *rig) counts() func(name metrics.Name, label string) map[string]float64 {
	registry := kubemetrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	return func(name metrics.Name, label string) map[string]float64 {
		r.t.Helper()
		values, err := testutil.GetCounterValuesFromGatherer(registry, string(name),
			map[string]string{"queue": testQuota}, label)
		require.NoError(r.t, err)
		return values
	}
}

// A unit is admitted in part, grows, shrinks, and loses its admission: each is counted once it is written.
func TestWhatBecomesOfAUnitIsCounted(t *testing.T) {
	r := ready(t, 4)
	counted := r.counts()
	write := func(kind statuswrite.Kind) {
		t.Helper()
		r.step()
		require.Len(t, r.of(kind), 1)
		w := r.of(kind)[0]
		r.engine.Settle(w.Do(t.Context(), r.api.rest))
		r.drop(w)
		r.step()
	}
	key := r.unit("u", 9, withSets([2]int64{2, 9}))
	write(statuswrite.Admit)
	require.Equal(t, map[string]float64{testQuota: 1}, counted(metrics.PartialAdmissionsTotal, "quota"))

	r.quotas.set(testQuota, func(q *admission.Quota) { q.Limit, q.Max = cpu(6), cpu(6) })
	r.engine.Sink().QuotaChanged(testQuota)
	r.asks(key, "6", 6)
	write(statuswrite.Resize)
	require.Equal(t, map[string]float64{"Grown": 1}, counted(metrics.ResizesTotal, "direction"))
	r.asks(key, "3", 3)
	write(statuswrite.Resize)
	require.Equal(t, map[string]float64{"Grown": 1, "Shrunk": 1}, counted(metrics.ResizesTotal, "direction"))

	r.api.edit(key, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, false, "spec", "active")
	})
	r.feed(key)
	write(statuswrite.Evict)
	require.Equal(t, map[string]float64{string(unit.ReasonInactive): 1}, counted(metrics.EvictedUnitsTotal, "reason"))
	require.Equal(t, map[string]float64{testQuota: 1}, counted(metrics.PartialAdmissionsTotal, "quota"))
	queue, quota := r.engine.gauges.Labels(&unitbook.Record{Queue: "made-up", Quota: "made-up"})
	require.Empty(t, queue+quota, "tenants make up names as they like")
	r.sound()
}

// The sixth eviction of a unit is counted as repeated. The counter is there from the first eviction of any unit on.
func TestRepeatedEvictionsAreCounted(t *testing.T) {
	for attempts, want := range map[int64]float64{1: 0, measures.ManyEvictions: 0, measures.ManyEvictions + 1: 1} {
		t.Run(fmt.Sprint(attempts), func(t *testing.T) {
			r := ready(t, 4)
			counted := r.counts()
			key := r.unit("u", 4, withStatus(map[string]any{"phase": "Dequeued", "attempts": attempts, "admissions": []any{
				map[string]any{"name": "main", "replicas": int64(4), "resources": map[string]any{"cpu": "4"}},
			}}))
			r.step()
			r.api.edit(key, func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, false, "spec", "active")
			})
			r.feed(key)
			r.step()
			require.Equal(t, statuswrite.Evict, r.decision().Kind)
			r.send()
			require.Equal(t, map[string]float64{testQuota: want}, counted(metrics.RepeatedEvictionsTotal, "queue"))
		})
	}
}

// Nobody evicts the job that its owner deletes: no metric counts what its unit gives back. Counters of a queue and of a
// quota go with them.
func TestTheDeletionOfAJobIsNoEviction(t *testing.T) {
	for name, after := range map[string]string{"deleted": "", "made again": "job-b"} {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 4)
			registry := kubemetrics.NewKubeRegistry()
			r.metrics.MustRegister(registry.MustRegister)
			r.job("u", "job-a")
			key := r.unit("u", 4, withConsumer("job-a"))
			r.step()
			r.send()
			r.job("u", after)
			r.step()
			require.Equal(t, statuswrite.Evict, r.decision().Kind)
			r.send()
			require.Equal(t, unit.PhaseEnqueued, unitFrom(r.api.get(key)).Phase, "the quota is free all the same")
			require.Empty(t, gathered(t, registry, "evicted_units_total"))
			require.Empty(t, gathered(t, registry, "repeated_evictions_total"))

			require.NotEmpty(t, gathered(t, registry, "admissions_total"))
			r.engine.facts.applyQueue(r.engine.Clock.Now(), testQuota, nil)
			require.Empty(t, gathered(t, registry, "admissions_total"))
		})
	}
}

// The owner of the job changes its pods, and drops the minimum. The unit then grows like any other.
func TestAdmittedInPartAndGrown(t *testing.T) {
	r := ready(t, 4)
	key := r.unit("u", 9, withSets([2]int64{2, 9}))
	r.step()
	r.send()
	require.Equal(t, "cpu: 4", unitFrom(r.api.get(key)).Held.String())
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Limit, q.Max = cpu(6), cpu(6) })
	r.engine.Sink().QuotaChanged(testQuota)
	r.asks(key, "6", 6).step()
	require.Len(t, r.of(statuswrite.Resize), 1)
	w := r.of(statuswrite.Resize)[0]
	r.engine.Settle(w.Do(t.Context(), r.api.rest))
	r.step()
	require.Equal(t, "cpu: 6", unitFrom(r.api.get(key)).Held.String())
	r.sound()
}

// How a unit may be smaller, and what an admitted one asks for.
func TestSizesThatAreRead(t *testing.T) {
	status := func(phase string, admissions ...any) func(*unstructured.Unstructured) {
		return withStatus(map[string]any{"phase": phase, "attempts": int64(1), "admissions": admissions})
	}
	admitted := func(name string, replicas int64) any {
		return map[string]any{"name": name, "replicas": replicas, "resources": map[string]any{"cpu": "3"}}
	}
	reclaims := func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "a", "count": int64(3)}},
			"status", "reclaimablePods")
	}
	part := withSets([2]int64{2, 5})
	type edits = []func(*unstructured.Unstructured)
	for name, tc := range map[string]struct {
		change edits
		sizes  bool
		pods   int64
	}{
		"waits":                {edits{part}, true, 5},
		"was admitted in part": {edits{part, status("Running", admitted("a", 3))}, true, 3},
		"was admitted whole":   {edits{part, status("Running", admitted("a", 5))}, true, 5},
		"is reserved in part":  {edits{part, status("Reserved", admitted("a", 3))}, true, 3},
		"lost it":              {edits{part, status("Enqueued", admitted("a", 3))}, true, 5},
		"more than it has":     {edits{part, status("Running", admitted("a", 1<<40))}, true, 5},
		"less than nothing":    {edits{part, status("Running", admitted("a", -1))}, true, 0},
		"another name":         {edits{part, status("Running", admitted("b", 3))}, true, 5},
		"said as a whole": {edits{part, status("Running",
			admitted(v1alpha1.DefaultRequirementPodSet, 3))}, true, 3},
		"some of its pods do not come":     {edits{part, status("Running", admitted("a", 3)), reclaims}, false, 2},
		"one size":                         {edits{withSets([2]int64{5, 5})}, false, 5},
		"more than all":                    {edits{withSets([2]int64{9, 5})}, false, 5},
		"sets that are not the request":    {edits{withSets([2]int64{1, 2}, [2]int64{1, 2})}, false, 4},
		"an absurd number of pods":         {edits{withSets([2]int64{-1 << 31, 1<<31 - 1})}, true, 1<<31 - 1},
		"one pod set, whatever it adds up": {edits{withSets([2]int64{1, 2})}, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 4)
			u := unitFrom(r.api.get(r.unit("u", 5, tc.change...)))
			require.Empty(t, u.InvalidMessage)
			require.Equal(t, tc.sizes, u.Sizes != nil)
			require.Equal(t, tc.pods, u.Pods)
		})
	}
}
