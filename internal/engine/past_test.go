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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// The unit of a job is deleted and created again. The controller does so if somebody deletes the unit, or removes the
// quota label of the job and adds it again.
func (r *rig) anew(name, uid string) string {
	key := testNamespace + "/" + name
	u := r.api.get(key)
	r.api.delete(key)
	r.drive.FeedUnit(u, true)
	r.step()
	r.unit(name, 2, withConsumer(uid), func(u *unstructured.Unstructured) { u.SetUID("again-" + u.GetUID()) })
	r.step()
	return key
}

// The record against a job lives as long as the job. Its unit can be shorter-lived, because the owner of the job can
// have it created again.
func TestWhatCountsAgainstAJobOutlivesItsUnit(t *testing.T) {
	status := func(more map[string]any) map[string]any {
		base := map[string]any{"phase": "TimeoutBackoff", "attempts": int64(1)}
		for key, value := range more {
			base[key] = value
		}
		return base
	}
	backoff := status(map[string]any{"requeueState": map[string]any{
		"count": int64(3), "requeueAt": testStart.Add(time.Minute).Format(time.RFC3339),
	}})
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		check  func(*testing.T, *rig, string)
	}{
		"back-off": {withStatus(backoff), func(t *testing.T, r *rig, key string) {
			require.Empty(t, r.decisions(), "it waits for the rest of its back-off")
			r.advance(time.Minute)
			r.send()
			u := unitFrom(r.api.get(key))
			require.Equal(t, unit.PhaseDequeued, u.Phase)
			require.EqualValues(t, 3, u.Requeues, "the next one is as long as the fourth is")
			require.Empty(t, r.engine.facts.pasts, "its object says so itself")
		}},
		"time": {withStatus(status(map[string]any{
			"accumulatedPastExecutionTimeSeconds": int64(100), "phase": "Enqueued",
		})), func(t *testing.T, r *rig, key string) {
			r.send()
			u := unitFrom(r.api.get(key))
			require.Equal(t, unit.PhaseDequeued, u.Phase)
			require.Equal(t, 100*time.Second, u.Executed)
		}},
		"time of the run": {withStatus(status(map[string]any{
			"phase": "Running", "lastAllocateTime": testStart.Add(-50 * time.Second).Format(time.RFC3339),
			"accumulatedPastExecutionTimeSeconds": int64(10),
		})), func(t *testing.T, r *rig, key string) {
			r.send()
			require.Equal(t, time.Minute, unitFrom(r.api.get(key)).Executed)
		}},
		"to be made inactive, after a run": {withStatus(status(map[string]any{
			"accumulatedPastExecutionTimeSeconds": int64(100), "phase": "Enqueued", "conditions": []any{map[string]any{
				"type": v1alpha1.ConditionDeactivationTarget, "status": "True", "reason": "MaximumExecutionTimeExceeded",
				"message": "enough", "lastTransitionTime": testStart.Format(time.RFC3339),
			}},
		})), func(t *testing.T, r *rig, key string) {
			// The unit was adopted in between, and its run was over again: a reactivation gives it the whole time.
			r.api.setStatus(key, map[string]any{"phase": "Enqueued", "attempts": int64(1), "conditions": []any{map[string]any{
				"type": v1alpha1.ConditionDeactivationTarget, "status": "True", "reason": "MaximumExecutionTimeExceeded",
				"message": "enough", "lastTransitionTime": testStart.Format(time.RFC3339),
			}}})
			r.feed(key).step()
			require.Empty(t, r.engine.facts.pasts, "its object says it all")
		}},
		"made inactive": {func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, false, "spec", "active")
		}, deactivatedFor(unit.ReasonInactive)},
		"to be made inactive": {withStatus(status(map[string]any{"conditions": []any{map[string]any{
			"type": v1alpha1.ConditionDeactivationTarget, "status": "True", "reason": "RequeueLimitReached", "message": "enough",
			"lastTransitionTime": testStart.Format(time.RFC3339),
		}}, "phase": "Enqueued"})), deactivatedFor(unit.ReasonRequeueLimitReached)},
	} {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 4)
			r.job("a", "job-a")
			r.unit("a", 2, withConsumer("job-a"), tc.change)
			r.step()
			key := r.anew("a", "job-a")
			tc.check(t, r, r.anew("a", "job-a")) // as often as anybody likes
			require.NotEmpty(t, key)
			r.drive.FeedJob("Job.v1.batch", testNamespace, "a", "", nil, false)
			r.step()
			require.Empty(t, r.engine.facts.pasts, "it goes when the job goes")
			r.sound()
		})
	}
}

func deactivatedFor(reason unit.Reason) func(*testing.T, *rig, string) {
	return func(t *testing.T, r *rig, key string) {
		require.Empty(t, r.decisions())
		r.advance(r.engine.opts.Config.ReportAfter)
		reports := r.of(statuswrite.Report)
		require.Len(t, reports, 1)
		r.engine.Settle(reports[0].Do(t.Context(), r.api.rest))
		r.step()
		c := unitFrom(r.api.get(key)).Condition(v1alpha1.ConditionDeactivationTarget)
		require.NotNil(t, c, "its controller makes it inactive then")
		require.Equal(t, metav1.ConditionTrue, c.Status)
		require.Equal(t, string(reason), c.Reason)
		require.Empty(t, r.engine.facts.pasts, "its object says so itself")
	}
}

// The last state of a unit may reach the engine together with its end, and with the unit that the job has next.
func TestWhatAUnitSaidLastCountsAgainstItsJob(t *testing.T) {
	for name, between := range map[string]func(r *rig){
		"the next one comes later": func(r *rig) { r.step() },
		"the next one is there":    func(*rig) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 4)
			r.job("a", "job-a")
			key := r.unit("a", 2, withConsumer("job-a"))
			r.step()
			r.send()
			r.api.setStatus(key, map[string]any{
				"phase": "TimeoutBackoff", "attempts": int64(1), "requeueState": map[string]any{
					"count": int64(1), "requeueAt": testStart.Add(time.Minute).Format(time.RFC3339),
				},
			})
			last := r.api.get(key)
			r.drive.FeedUnit(last, false)
			r.api.delete(key)
			r.drive.FeedUnit(last, true)
			between(r)
			r.unit("a", 2, withConsumer("job-a"), func(u *unstructured.Unstructured) { u.SetUID("again") })
			r.step()
			require.Empty(t, r.decisions(), "it waits for the rest of its back-off")
			r.advance(time.Minute)
			require.Len(t, r.decisions(), 1)
		})
	}
}

// Of a job that is gone, or that nobody has seen, nothing is kept; nor of one that nothing counts against.
func TestNothingStaysOfAJobThatIsGone(t *testing.T) {
	r := ready(t, 4)
	backoff := withStatus(map[string]any{"phase": "TimeoutBackoff", "requeueState": map[string]any{"count": int64(3)}})
	r.job("a", "job-a").job("b", "job-b")
	a, b := r.unit("a", 2, withConsumer("job-a"), backoff), r.unit("b", 2, withConsumer("job-b"))
	unseen := r.unit("c", 2, withConsumer("job-c"), backoff)
	byHand := r.unit("d", 2, backoff)
	r.step()
	r.drive.FeedJob("Job.v1.batch", testNamespace, "a", "", nil, false)
	for _, key := range []string{a, b, unseen, byHand} {
		u := r.api.get(key)
		r.api.delete(key)
		r.drive.FeedUnit(u, true)
		r.step()
	}
	require.Empty(t, r.engine.facts.pasts)
}
