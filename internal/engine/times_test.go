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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// editStatus plays the controller.
func (r *rig) editStatus(key string, change func(status map[string]any)) {
	r.t.Helper()
	r.api.edit(key, func(u *unstructured.Unstructured) { change(u.Object["status"].(map[string]any)) })
	r.feed(key)
	r.step()
}

// setActive plays a person who deactivates or reactivates a unit.
func (r *rig) setActive(key string, active bool) {
	r.t.Helper()
	r.api.edit(key, func(u *unstructured.Unstructured) {
		u.SetGeneration(u.GetGeneration() + 1)
		require.NoError(r.t, unstructured.SetNestedField(u.Object, active, "spec", "active"))
	})
	r.feed(key)
	r.step()
}

// bound has the unit's job have a pod on a node.
func (r *rig) bound(name, owner, cpus string) {
	pod := podFor(name, owner, cpus)
	pod.Spec.NodeName = "node"
	r.drive.FeedPod(pod, false, false)
	r.step()
}

func podsReady(status, reason string, at time.Time) func(map[string]any) {
	return func(fields map[string]any) {
		fields["phase"] = "Running"
		var list []any
		for _, c := range fields["conditions"].([]any) {
			if c.(map[string]any)["type"] != v1alpha1.ConditionPodsReady {
				list = append(list, c)
			}
		}
		fields["conditions"] = append(list, map[string]any{
			"type": v1alpha1.ConditionPodsReady, "status": status, "reason": reason, "message": "",
			"lastTransitionTime": at.Format(time.RFC3339),
		})
	}
}

// A unit that loses its admission to time-outs as often as its queue allows is deactivated. The count ends when its
// spec changes.
func TestTheRequeueLimitOfAQueue(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	r.queueWith(testQuota, map[string]any{
		"timeouts": map[string]any{"podsReadySeconds": int64(60), "recoverySeconds": int64(20)}, "backoffLimit": int64(0),
	}).lead()
	r.job("a", "job-a")
	key := r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	r.bound("a-1", "job-a", "4")
	r.editStatus(key, podsReady("True", v1alpha1.ReasonPodsRunning, r.clock.Now()))
	r.advance(time.Hour)
	require.Empty(t, r.decisions())
	r.editStatus(key, podsReady("False", v1alpha1.ReasonPodsLost, r.clock.Now()))
	r.advance(21 * time.Second)
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	counted := r.counts()
	r.send(lostAnswer)
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, map[string]float64{string(unit.ReasonRequeueLimitReached): 1},
		counted(metrics.DeactivatedUnitsTotal, "reason"))
	require.Equal(t, map[string]float64{string(unit.ReasonRecoveryTimeout): 1},
		counted(metrics.EvictedUnitsTotal, "reason"))
	require.Equal(t, unit.PhaseEnqueued, u.Phase)
	target := u.Condition(v1alpha1.ConditionDeactivationTarget)
	require.Equal(t, metav1.ConditionTrue, target.Status)
	require.Equal(t, string(unit.ReasonRequeueLimitReached), target.Reason)
	require.Contains(t, target.Message, "20s")
	require.Equal(t, string(unit.ReasonRequeueLimitReached), u.Condition(v1alpha1.ConditionQuotaReserved).Reason)
	require.Equal(t, string(unit.ReasonRecoveryTimeout), u.Condition(v1alpha1.ConditionEvicted).Reason)
	require.Zero(t, u.Requeues)
	r.advance(24 * time.Hour)
	require.Empty(t, r.decisions(), "it is not tried again")
	require.Empty(t, r.of(statuswrite.Report), "its conditions say why already")

	r.setActive(key, true)
	require.Equal(t, statuswrite.Admit, r.decision().Kind)
	r.sound()
}

// A time of the job counts from the readiness of its pods, as with the stand-alone Koord-Queue. Time before that counts
// in no run.
func TestATimeOfTheJobCountsOnceItsPodsAreReady(t *testing.T) {
	r := ready(t, 4)
	r.job("a", "job-a")
	key := r.unit("a", 4, withConsumer("job-a"), func(u *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(u.Object, int64(600), "spec", "maximumExecutionTimeSeconds"))
	})
	r.step()
	r.send()
	r.bound("a-1", "job-a", "4")
	r.advance(20 * time.Minute)
	require.Empty(t, r.decisions(), "no pod was ready")
	r.editStatus(key, podsReady("True", v1alpha1.ReasonPodsRunning, r.clock.Now()))
	r.advance(6 * time.Minute)
	require.Empty(t, r.decisions())
	r.setActive(key, false)
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	r.send()
	require.InDelta(t, 6*time.Minute, unitFrom(r.api.get(key)).Executed, float64(2*time.Second))
	require.Zero(t, unitFrom(r.api.get(key)).RanSince)

	r.setActive(key, true)
	r.send()
	r.advance(20 * time.Minute)
	require.Empty(t, r.decisions(), "it has run for six of ten minutes")
	r.editStatus(key, func(status map[string]any) {
		status["executionStartTime"] = r.clock.Now().UTC().Format(time.RFC3339)
	})
	r.advance(3*time.Minute + 50*time.Second)
	require.Empty(t, r.decisions())
	r.advance(20 * time.Second)
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, string(unit.ReasonMaximumExecutionTime), u.Condition(v1alpha1.ConditionDeactivationTarget).Reason)
	require.Zero(t, u.RanSince)
	r.sound()
}

// For how long a job ran is written down when it loses its admission, and counts the next time.
func TestExecutionTimeOfEarlierRuns(t *testing.T) {
	r := ready(t, 4)
	r.queueWith(testQuota, map[string]any{"executionTime": map[string]any{"maximumSeconds": int64(600)}})
	r.job("a", "job-a")
	key := r.unit("a", 4, withConsumer("job-a"), func(u *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(u.Object, int64(7200), "spec", "maximumExecutionTimeSeconds"))
	})
	r.step()
	r.send()
	r.bound("a-1", "job-a", "4")
	r.advance(5 * time.Minute)
	r.editStatus(key, podsReady("True", v1alpha1.ReasonPodsRunning, r.clock.Now()))
	r.setActive(key, false)
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	r.send()
	require.WithinRange(t, r.clock.Now().Add(-unitFrom(r.api.get(key)).Executed),
		r.clock.Now().Add(-5*time.Minute-2*time.Second), r.clock.Now().Add(-5*time.Minute+2*time.Second))
	r.setActive(key, true)
	r.send()
	r.advance(4*time.Minute + 50*time.Second)
	require.Empty(t, r.decisions())
	r.advance(20 * time.Second)
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, string(unit.ReasonMaximumExecutionTime),
		u.Condition(v1alpha1.ConditionDeactivationTarget).Reason)
	require.Zero(t, u.Executed, "whoever makes it active again gives it the whole time")
	r.sound()
}

// How long the pods of a unit may run is told with their grants, and again when its queue says otherwise.
func TestPodsOfABoundedUnitGoForAsLongAsItMayRun(t *testing.T) {
	r := ready(t, 4)
	r.queueWith(testQuota, map[string]any{"executionTime": map[string]any{"maximumSeconds": int64(600)}})
	r.job("a", "job-a")
	r.unit("a", 2, withConsumer("job-a"))
	r.unit("alone", 1)
	r.step()
	r.send()
	r.send()
	until := func(pod string) time.Duration {
		at := r.engine.Snapshot().RunsUntil(types.UID("pod-" + pod))
		if at.IsZero() {
			return 0
		}
		return at.Sub(r.clock.Now()).Round(time.Second)
	}
	r.advance(time.Minute)
	named := podFor("alone-1", "", "1")
	named.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: testNamespace + "/alone"}
	for _, pod := range []*corev1.Pod{podFor("a-1", "job-a", "1"), podFor("a-2", "job-a", "2"), named} {
		r.drive.FeedPod(pod, false, false)
	}
	r.step()
	require.Equal(t, 9*time.Minute, until("a-1"))
	require.Zero(t, until("a-2"), "it has to wait")
	require.True(t, r.engine.Snapshot().Granted("pod-alone-1"))
	require.Zero(t, until("alone-1"), "nobody could take it away either")
	require.Zero(t, until("unknown"))

	r.queueWith(testQuota, map[string]any{"executionTime": map[string]any{"maximumSeconds": int64(300)}})
	r.advance(time.Minute)
	require.Equal(t, 3*time.Minute, until("a-1"), "the pod waits for a node, and the limit was lowered")
	r.queueWith(testQuota, map[string]any{})
	r.advance(time.Minute)
	require.Zero(t, until("a-1"))
	r.sound()
}
