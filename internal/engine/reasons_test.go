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
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
)

// crowded has so many units wait that none of them fits.
func crowded(t *testing.T, n int) *rig {
	r := ready(t, 4)
	for i := range n {
		r.unit(fmt.Sprintf("u%03d", i), 5-i%2*4)
	}
	r.step()
	return r
}

// writeReasons makes the writes of reasons that were submitted, and counts them.
func (r *rig) writeReasons() (n int) {
	for _, w := range r.of(statuswrite.Report) {
		r.engine.Settle(w.Do(r.t.Context(), r.api.rest))
		r.drop(w)
		n++
	}
	r.step()
	return n
}

// Every pending unit gets its reason once, twenty per second, and then nothing is written. A new leader writes nothing
// (I8, I12).
func TestEveryUnitThatWaitsIsToldAtAPace(t *testing.T) {
	const units = 200
	r := crowded(t, units)
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Used = cpu(4) })
	for _, w := range r.decisions() {
		r.engine.Settle(w.Do(t.Context(), r.api.rest))
		r.drop(w)
	}
	r.engine.Sink().QuotaChanged(testQuota)
	r.step()
	total, seconds := 0, 0
	r.advance(5 * time.Second)
	waiting := 0
	for i := range units {
		if unitFrom(r.api.get(fmt.Sprintf("%s/u%03d", testNamespace, i))).Phase.Waits() {
			waiting++
		}
	}
	require.Greater(t, waiting, 190)
	for total += r.writeReasons(); total < waiting; seconds++ {
		written := 0
		for range 20 {
			r.advance(50 * time.Millisecond)
			written += r.writeReasons()
		}
		require.LessOrEqual(t, written, 21)
		require.Positive(t, written)
		total += written
	}
	require.Equal(t, waiting, total)
	require.InDelta(t, waiting/20-1, seconds, 1)
	r.advance(time.Hour)
	require.Zero(t, r.writeReasons(), "nothing moves")

	reasons := map[string]int{}
	for i := range units {
		u := unitFrom(r.api.get(fmt.Sprintf("%s/u%03d", testNamespace, i)))
		if !u.Phase.Waits() {
			continue
		}
		c := u.Condition(v1alpha1.ConditionQuotaReserved)
		require.NotNil(t, c, u.Name)
		reasons[c.Reason+": "+c.Message]++
	}
	const never = `ExceedsMax: quota "team-quota" may never use as much cpu as the job asks for: that is above its max`
	require.Equal(t, map[string]int{
		never: units / 2, `QuotaExceeded: quota "team-quota" has too little cpu left`: waiting - units/2,
	}, reasons)

	next := rigOn(t, r.api, r.quotas, r.clock)
	next.queue(testQuota).lead()
	for range 20 {
		next.advance(10 * time.Second)
		require.Empty(t, next.of(statuswrite.Report))
	}
}

// A reason that could not be written is tried again, also after it was given up.
func TestAReasonThatIsLostIsToldAgain(t *testing.T) {
	r := ready(t, 4)
	key := r.unit("a", 5)
	r.step()
	tries := 0
	for range 200 {
		r.advance(time.Second)
		for _, w := range r.of(statuswrite.Report) {
			tries++
			r.engine.Settle(statuswrite.Result{Write: w, Outcome: transition.Unknown})
			r.drop(w)
		}
		r.step()
	}
	require.Greater(t, tries, maxReportTries+1)
	for range 100 {
		r.advance(time.Second)
		r.writeReasons()
	}
	require.NotNil(t, unitFrom(r.api.get(key)).Condition(v1alpha1.ConditionQuotaReserved))
	effective, _ := r.api.get(key).Object["status"].(map[string]any)["effective"].(map[string]any)
	require.Equal(t, map[string]any{"queue": testQuota, "quota": testQuota, "requested": "cpu: 5"}, effective)
}
