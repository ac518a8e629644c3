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

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubemetrics "k8s.io/component-base/metrics"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
)

// An observed unit is admitted in its turn, says for how long it would have waited, and holds nothing. Its wait is not
// among those of managed jobs.
func TestAnObservedUnitHoldsNothing(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	registry := kubemetrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	r.queue(testQuota).lead()
	observed := func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, string(v1alpha1.ModeObserve), "spec", "mode")
	}
	gone := func(key string) {
		u := r.api.get(key)
		r.api.delete(key)
		r.drive.FeedUnit(u, true)
		r.step()
	}
	first, second := r.unit("first", 3, observed), r.unit("second", 3, observed)
	r.advance(2 * time.Second)
	r.send()
	r.advance(time.Minute)
	told := r.of(statuswrite.Report)[0]
	r.engine.Settle(told.Do(t.Context(), r.api.rest))
	r.drop(told)
	r.step()
	u := unitFrom(r.api.get(second))
	require.Contains(t, u.Condition(v1alpha1.ConditionQuotaReserved).Message, "would wait: ")
	require.Empty(t, r.outstanding(testQuota))

	u = unitFrom(r.api.get(first))
	require.Equal(t, v1alpha1.ReasonObserved, u.Condition(v1alpha1.ConditionAdmitted).Reason)
	require.True(t, u.Holds().IsZero())
	require.False(t, r.engine.Snapshot().Granted("any"))
	managed := r.unit("managed", 4)
	r.advance(2 * time.Second)
	r.send()
	require.Equal(t, "Dequeued", r.phase(managed), "nothing is in use")
	gone(managed)

	gone(first)
	r.advance(time.Minute)
	r.send()
	require.Equal(t, "Dequeued", r.phase(second))
	admitted := unitFrom(r.api.get(second)).Condition(v1alpha1.ConditionAdmitted)
	require.Regexp(t, `^would have been admitted after \d+m\d+s; it would have waited for QuotaExceeded: quota`,
		admitted.Message)
	require.Equal(t, map[string]float64{testQuota: 2}, gathered(t, registry, "observed_wait_seconds"))
	require.Equal(t, map[string]float64{testNamespace + "/" + testQuota: 1},
		gathered(t, registry, "admission_wait_seconds"))
	r.sound()
}
