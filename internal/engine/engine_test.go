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
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

func TestAdmissionWritesOnePatch(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4)
	r.step()
	require.Equal(t, []string{"a"}, keysOf(r.decisions()))
	_, admitted := r.engine.Snapshot().AdmittedUnit(key)
	require.False(t, admitted, "published before the write is confirmed")
	require.Equal(t, "cpu: 4", r.outstanding(testQuota))

	r.send()
	_, admitted = r.engine.Snapshot().AdmittedUnit(key)
	require.True(t, admitted)
	require.Equal(t, 1, r.api.applied[key])
	u := unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseDequeued, u.Phase)
	require.Equal(t, int64(1), u.Attempts)
	require.Equal(t, "cpu: 4", u.Held.String())
	require.Equal(t, testStart, u.Admitted.UTC())
	for _, c := range []string{v1alpha1.ConditionQuotaReserved, v1alpha1.ConditionAdmitted} {
		require.NotNil(t, u.Condition(c), c)
		require.Equal(t, "True", string(u.Condition(c).Status), c)
	}
	r.sound()
}

// A loan is told as one, in the condition and as a metric.
func TestALoanIsTold(t *testing.T) {
	quotas := quotasOf(10, testQuota)
	quotas.set(testQuota, func(q *admission.Quota) { q.Limit, q.Max, q.Shared = cpu(3), cpu(10), true })
	r := newRig(t, quotas)
	registry := metrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	r.queue(testQuota)
	r.lead()
	within, beyond := r.unit("a", 3), r.unit("b", 4)
	r.step()
	r.send()
	r.send()
	const lent = "part of it is beyond the runtime of its quota"
	message := func(key string) string {
		return unitFrom(r.api.get(key)).Condition(v1alpha1.ConditionQuotaReserved).Message
	}
	require.NotContains(t, message(within), lent)
	require.Contains(t, message(beyond), lent)
	loans, err := testutil.GetCounterValuesFromGatherer(registry,
		"scheduler_jobqueue_loans_total", map[string]string{"quota": testQuota}, "queue")
	require.NoError(t, err)
	require.Equal(t, map[string]float64{testQuota: 1}, loans)
	r.sound()
}

// The write protocol: the first and the last consequence of every outcome of one patch. A conflict whose reading back
// fails says nothing about the write: the unit keeps its place and its reservation (I2).
func TestReadBackFails(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4)
	r.step()
	failing := true
	r.api.client.PrependReactor("get", "queueunits", func(kubetesting.Action) (bool, runtime.Object, error) {
		return failing, nil, timeout
	})
	require.Equal(t, transition.Unknown, r.send(conflict).Outcome)
	require.Contains(t, r.engine.units.Keys(), key)
	require.Equal(t, "cpu: 4", r.outstanding(testQuota))
	failing = false
	require.Equal(t, transition.Refuted, r.send().Outcome)
	require.Equal(t, []string{"a"}, keysOf(r.decisions()), "decided again, on the new version")
	r.send()
	require.Equal(t, "Dequeued", r.phase(key))
	r.sound()
}

// A refusal settles a write whose answer was lost before only once that request cannot be under way any more.
func TestRefusedAfterALostAnswer(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4)
	r.step()
	r.send(lost)
	r.clock.Step(statuswrite.RequestLifetime - time.Second)
	require.Equal(t, transition.Unknown, r.send(forbidden).Outcome)
	require.Equal(t, "cpu: 4", r.outstanding(testQuota))
	r.clock.Step(time.Second)
	require.Equal(t, transition.Refused, r.send(forbidden).Outcome)
	require.Equal(t, "Enqueued", r.phase(key))
	r.sound()
}

func TestProtocol(t *testing.T) {
	const again = transition.Unknown
	cases := []struct {
		name   string
		faults []fault // of the attempts in their order
		// first and last outcome; the write is sent again while it is unknown.
		first, last transition.Outcome
		admitted    bool
		// reserved is the reserved amount at the end, and phase that of the object.
		reserved, phase string
		decidedAgain    bool
	}{
		{"confirmed", nil, transition.Confirmed, transition.Confirmed, true, "cpu: 4", "Dequeued", false},
		{"conflict, decided again on the new version", []fault{conflict}, transition.Refuted, transition.Refuted,
			false, "cpu: 4", "Enqueued", true},
		{"answer lost, turns out applied", []fault{lostAnswer}, again, transition.Confirmed, true,
			"cpu: 4", "Dequeued", false},
		{"request lost, applied by the second attempt", []fault{lost}, again, transition.Confirmed, true,
			"cpu: 4", "Dequeued", false},
		{"request lost several times", []fault{lost, broken, overloaded, lost}, again, transition.Confirmed, true,
			"cpu: 4", "Dequeued", false},
		{"request lost, then somebody changed the object", []fault{lost, conflict}, again, transition.Refuted, false,
			"cpu: 4", "Enqueued", true},
		{"applied, its answer lost, then refused", []fault{lostAnswer, forbidden}, again, transition.Confirmed, true,
			"cpu: 4", "Dequeued", false},
		{"request lost, then refused for a while", []fault{lost, forbidden, refused}, again, transition.Confirmed, true,
			"cpu: 4", "Dequeued", false},
		{"gone", []fault{deleted}, transition.Refuted, transition.Refuted, false, "none", "", false},
		{"gone after an unknown outcome", []fault{lostAnswer, deleted}, again, transition.Refuted,
			false, "none", "", false},
		{"another object of that name", []fault{recreated}, transition.Refuted, transition.Refuted,
			false, "none", "", false},
		{"refused as invalid", []fault{refused}, transition.Refused, transition.Refused, false,
			"none", "Enqueued", false},
		{"refused as forbidden", []fault{forbidden}, transition.Refused, transition.Refused, false,
			"none", "Enqueued", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := ready(t, 10)
			key := r.unit("a", 4)
			r.step()
			w := r.decision()
			var result statuswrite.Result
			for i := 0; i == 0 || result.Outcome == again; i++ {
				var f []fault
				if i < len(c.faults) {
					f = c.faults[i : i+1]
				}
				result = r.send(f...)
				if i == 0 {
					require.Equal(t, c.first, result.Outcome)
				}
				if result.Outcome == again {
					require.Equal(t, "cpu: 4", r.outstanding(testQuota), "an unknown outcome keeps the reservation")
					_, admitted := r.engine.Snapshot().AdmittedUnit(key)
					require.False(t, admitted, "an unknown outcome lets nobody pass")
					require.Equal(t, []*statuswrite.Write{w}, r.decisions(), "a unit in flight is not decided again")
				}
			}
			require.Equal(t, c.last, result.Outcome)
			_, admitted := r.engine.Snapshot().AdmittedUnit(key)
			require.Equal(t, c.admitted, admitted)
			if c.reserved == "none" {
				require.True(t, r.engine.core.Read().Holdings().Read(testQuota).Outstanding().IsZero())
			} else {
				require.Equal(t, c.reserved, r.outstanding(testQuota))
			}
			if c.phase != "" {
				require.Equal(t, c.phase, r.phase(key))
			}
			require.LessOrEqual(t, r.api.applied[key], 1, "applied more than once (I3)")
			require.Equal(t, c.decidedAgain, len(r.decisions()) == 1)
			r.sound()
			if c.decidedAgain {
				r.send()
				require.Equal(t, "Dequeued", r.phase(key))
				require.Equal(t, 1, r.api.applied[key])
				r.sound()
			}
		})
	}
}

func TestUnknownIsConfirmedByTheObject(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4)
	r.step()
	r.send(lostAnswer)
	w := r.decision()
	r.feed(key).step()
	_, admitted := r.engine.Snapshot().AdmittedUnit(key)
	require.True(t, admitted)
	require.True(t, w.Dropped(), "nothing is sent again once the outcome is known")
	r.sound()
}

func TestConflictThatTurnsOutOurs(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4)
	r.step()
	r.send(lostAnswer)
	// The controller has gone on already.
	r.api.setStatus(key, map[string]any{"phase": "Running"})
	require.Equal(t, transition.Confirmed, r.send().Outcome)
	require.Equal(t, "Running", r.phase(key))
	require.Equal(t, 1, r.api.applied[key])
	_, admitted := r.engine.Snapshot().AdmittedUnit(key)
	require.True(t, admitted)
	r.sound()
}

func TestRefusedIsTriedAgainAfterBackoff(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4)
	r.step()
	r.send(refused)
	require.Empty(t, r.decisions())
	reason, _, _ := r.engine.core.Read().Why(key)
	require.Equal(t, unit.ReasonWriteRefused, reason)
	r.advance(time.Minute)
	r.send()
	require.Equal(t, "Dequeued", r.phase(key))
}

func TestOlderStatesAreIgnored(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4)
	before := r.api.get(key)
	r.step()
	r.send()
	r.drive.FeedUnit(before, false)
	r.step()
	_, admitted := r.engine.Snapshot().AdmittedUnit(key)
	require.True(t, admitted, "a watch that lags behind our own write says nothing")
	require.Empty(t, r.decisions())
}

func TestDeletionInFlightReleases(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 8)
	r.unit("b", 8)
	r.step()
	w := r.decision()
	r.drive.FeedUnit(r.api.get(key), true)
	r.api.delete(key)
	r.step()
	require.True(t, w.Dropped())
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
	r.engine.Settle(statuswrite.Result{Write: w, Outcome: transition.Confirmed})
	r.step()
	require.Nil(t, r.engine.units.Get(key))
	r.sound()
}

// TestSuccessorThatIsGoneToo: between two steps an object is deleted, and another of its name is created and deleted.
// The mailbox has only the last event, which says that the first object is gone (I2, I7).
func TestSuccessorThatIsGoneToo(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4)
	r.step()
	r.send()
	first := r.api.get(key)
	r.api.delete(key)
	second := first.DeepCopy()
	second.SetUID("second")
	r.api.create(second)
	second = r.api.get(key)
	r.drive.FeedUnit(first, true)
	r.drive.FeedUnit(second, false)
	r.drive.FeedUnit(second, true)
	r.step()
	require.NotContains(t, r.engine.units.Keys(), key)
	require.Equal(t, "", r.outstanding(testQuota))

	// A watch cannot delete an object that was read at a later version.
	r.drive.FeedUnit(second, false)
	r.step()
	r.drive.FeedUnit(first, true)
	r.step()
	require.Contains(t, r.engine.units.Keys(), key)
}

func TestStandbyDecidesNothing(t *testing.T) {
	r := newRig(t, quotasOf(10, testQuota))
	r.queue(testQuota)
	r.unit("a", 4)
	held := r.unit("b", 4, withStatus(map[string]any{
		"phase": "Dequeued", "attempts": int64(1),
		"admissions": []any{map[string]any{"name": "main", "replicas": int64(1), "resources": map[string]any{"cpu": "4"}}},
	}))
	for range 5 {
		r.advance(10 * time.Second)
	}
	require.Empty(t, r.submitted)
	require.Empty(t, r.activated)
	require.Equal(t, "cpu: 4", r.outstanding(testQuota), "a standby has the state warm")
	_, admitted := r.engine.Snapshot().AdmittedUnit(held)
	require.False(t, admitted, "the gate is closed until all is loaded")
	r.lead()
	require.Equal(t, []string{"a"}, keysOf(r.decisions()))
	_, admitted = r.engine.Snapshot().AdmittedUnit(held)
	require.True(t, admitted)
}

// I8: another process that starts from the objects alone comes to the same state and writes nothing.
func TestRestartRebuilds(t *testing.T) {
	r := ready(t, 10)
	for _, name := range []string{"a", "b", "c", "d"} {
		r.unit(name, 4, withConsumer("job-"+name))
		r.job(name, "job-"+name)
	}
	r.step()
	r.send()
	r.send(lostAnswer) // the process dies before it learns the outcome
	before := maps.Clone(r.api.asked)

	next := rigOn(t, r.api, r.quotas, clocktesting.NewFakeClock(r.clock.Now()))
	next.queue(testQuota)
	for _, name := range []string{"a", "b", "c", "d"} {
		next.job(name, "job-"+name)
	}
	next.lead()
	require.Empty(t, next.decisions())
	require.Equal(t, before, r.api.asked)
	require.Equal(t, "cpu: 8", next.outstanding(testQuota))
	snapshot := next.engine.Snapshot()
	require.True(t, snapshot.AdmittedConsumer("job-a"))
	require.True(t, snapshot.AdmittedConsumer("job-b"))
	require.False(t, snapshot.AdmittedConsumer("job-c"))
	require.True(t, snapshot.UnitOfConsumer("job-c"))
	next.sound()
}

// Only the unit with the job's own name releases the job's pods (I3), because the controller keeps that unit as the job
// says. With any other unit an author could ask little of another quota, and have all pods of the job pass.
func TestOnlyTheUnitOfItsNameStandsForAJob(t *testing.T) {
	for name, change := range map[string]func(*unstructured.Unstructured){
		"another name": func(*unstructured.Unstructured) {},
		"owned by the job": func(u *unstructured.Unstructured) {
			yes := true
			u.SetOwnerReferences([]metav1.OwnerReference{
				{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "job-a", Controller: &yes},
			})
		},
		"admitted": withStatus(map[string]any{"phase": "Running", "attempts": int64(1)}),
		"another kind": func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "example.com/v1", "spec", "consumerRef", "apiVersion")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 10)
			r.job("a", "job-a")
			twin := r.unit("twin", 1, withConsumer("job-a"), func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, "a", "spec", "consumerRef", "name")
			}, change)
			pod := podFor("a-0", "job-a", "4")
			r.drive.FeedPod(pod, false, false)
			decide := func() {
				for r.step(); len(r.decisions()) > 0; {
					r.send()
				}
			}
			decide()
			require.False(t, r.engine.Snapshot().AdmittedConsumer("job-a"))
			require.False(t, r.engine.Snapshot().UnitOfConsumer("job-a"))
			require.Empty(t, r.engine.units.UnitOf(pod))

			r.unit("a", 4, withConsumer("job-a"))
			decide()
			require.True(t, r.engine.Snapshot().AdmittedConsumer("job-a"))
			require.Equal(t, testNamespace+"/a", r.engine.units.UnitOf(pod))
			gone := r.api.get(twin)
			r.api.delete(twin)
			r.drive.FeedUnit(gone, true)
			decide()
			require.True(t, r.engine.Snapshot().AdmittedConsumer("job-a"))
			r.sound()
		})
	}
}

func TestAdmitSequenceIsTheOrderOfDecisions(t *testing.T) {
	r := ready(t, 100)
	for i, name := range []string{"a", "b", "c"} {
		r.unit(name, 4, withConsumer("job-"+name), func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, int64(i), "spec", "priority")
		})
		r.job(name, "job-"+name)
	}
	r.step()
	require.Equal(t, []string{"c", "b", "a"}, keysOf(r.decisions()))
	// The confirmations arrive in another order.
	writes := r.decisions()
	for _, i := range []int{2, 0, 1} {
		r.engine.Settle(writes[i].Do(t.Context(), r.api.rest))
		r.step()
	}
	var order []int64
	for _, key := range []string{"team/c", "team/b", "team/a"} {
		order = append(order, r.engine.units.Get(key).Seq)
	}
	require.IsIncreasing(t, order)
}

// TestAdmissionTakesTheMessageAway: what a waiting unit was told is gone; a unit without a message gets none.
func TestAdmissionTakesTheMessageAway(t *testing.T) {
	r := ready(t, 10)
	told := r.unit("told", 1, withStatus(map[string]any{"phase": "Enqueued", "message": "waits"}))
	fresh := r.unit("fresh", 1)
	r.step()
	for _, w := range r.decisions() {
		r.engine.Settle(w.Do(t.Context(), r.api.rest))
	}
	for _, key := range []string{told, fresh} {
		require.EqualValues(t, unit.PhaseDequeued, r.phase(key), key)
	}
	require.Empty(t, r.api.get(told).Object["status"].(map[string]any)["message"])
	require.NotContains(t, r.api.get(fresh).Object["status"], "message")
}

func TestMalformedUnitsAreParkedAndOthersGoOn(t *testing.T) {
	spec := func(change func(map[string]any)) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { change(u.Object["spec"].(map[string]any)) }
	}
	cases := map[string]func(*unstructured.Unstructured){
		"negative":     spec(func(s map[string]any) { s["request"] = map[string]any{"cpu": "-1"} }),
		"not-quantity": spec(func(s map[string]any) { s["request"] = map[string]any{"cpu": "many"} }),
		"absurd":       spec(func(s map[string]any) { s["request"] = map[string]any{"memory": "9999999999999999999999Ei"} }),
		"priority":     spec(func(s map[string]any) { s["priority"] = "high" }),
		"pod-set":      spec(func(s map[string]any) { s["podSet"] = "one"; delete(s, "request") }),
		"pod-set-item": spec(func(s map[string]any) { s["podSet"] = []any{"one"} }),
		"bad-template": spec(func(s map[string]any) { s["podSet"] = templates("no quantity"); delete(s, "request") }),
		"negative-pods": spec(func(s map[string]any) {
			s["podSet"] = []any{map[string]any{"name": "x", "count": int64(-1)}}
		}),
		"spec-is-text": func(u *unstructured.Unstructured) { u.Object["spec"] = "text" },
		"status":       withStatus(map[string]any{"phase": "Enqueued", "conditions": "none"}),
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 10)
			bad := r.unit("bad", 1, change)
			r.unit("good", 4)
			r.step()
			require.Equal(t, []string{"good"}, keysOf(r.decisions()))
			reason, message, _ := r.engine.core.Read().Why(bad)
			require.Contains(t, []unit.Reason{unit.ReasonInvalidRequest, unit.ReasonNoPods}, reason)
			require.NotEmpty(t, message)
			require.Equal(t, []string{"bad"}, keysOf(r.of(statuswrite.Report)))
		})
	}
}

func templates(cpu string) []any {
	return []any{map[string]any{"name": "x", "count": int64(2), "template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}}}},
	}}}}
}

func TestUnreadableHolderKeepsItsQuota(t *testing.T) {
	r := ready(t, 10)
	r.unit("bad", 4, withStatus(map[string]any{
		"phase": "Running", "attempts": int64(1), "conditions": "none",
	}))
	r.unit("good", 8)
	r.step()
	require.Empty(t, r.of(statuswrite.Admit), "what may run counts")
}

func TestPodsBeforeUnitAndUnitBeforePods(t *testing.T) {
	for _, podsFirst := range []bool{true, false} {
		r := ready(t, 10)
		r.job("a", "job-a")
		pod := podFor("a-0", "job-a", "3")
		pod.Spec.NodeName = "node"
		feedPod := func() {
			r.drive.FeedPod(pod, false, false)
			r.engine.Sink().PodAssigned(testQuota, pod, true)
			r.step()
		}
		feedUnit := func() {
			r.unit("a", 4, withConsumer("job-a"), withStatus(map[string]any{
				"phase": "Running", "attempts": int64(1),
				"admissions": []any{map[string]any{"name": "main", "replicas": int64(1), "resources": map[string]any{"cpu": "4"}}},
			}))
			r.step()
		}
		if podsFirst {
			feedPod()
			feedUnit()
		} else {
			feedUnit()
			require.Equal(t, "cpu: 4", r.outstanding(testQuota))
			feedPod()
		}
		require.Equal(t, "cpu: 1", r.outstanding(testQuota), "pods first: %v", podsFirst)
		r.drive.FeedPod(pod, true, false)
		r.step()
		require.Equal(t, "cpu: 4", r.outstanding(testQuota), "a pod that ends gives its part back to the job")
		r.sound()
	}
}

// The hook reports the end of a pod before used falls. If that happens between the draining of the mailbox and the
// reading of used, neither has the pod, and it must not be missing.
func TestPodThatEndsWhileUsedIsRead(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	r.unit("a", 8, withConsumer("job-a"))
	r.step()
	r.send()
	pod := podFor("a-0", "job-a", "8")
	pod.Spec.NodeName = "node"
	r.drive.FeedPod(pod, false, false)
	r.engine.Sink().PodAssigned(testQuota, pod, true)
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Used = cpu(8) })
	r.step()
	require.True(t, r.engine.core.Read().Holdings().Read(testQuota).Outstanding().IsZero())
	r.unit("b", 8)
	r.quotas.onObserve = func() {
		r.quotas.onObserve = nil
		r.engine.Sink().PodAssigned(testQuota, pod, false)
		r.quotas.set(testQuota, func(q *admission.Quota) { q.Used = resources.List{} })
	}
	r.engine.Sink().QuotaChanged(testQuota)
	r.step()
	require.Empty(t, r.decisions(), "the quota of a running job was given away a second time (I1)")
	require.Equal(t, "cpu: 8", r.outstanding(testQuota))
	r.step()
	require.Empty(t, r.decisions())
	r.sound()
}

// The hook alone says that a pod is counted, whatever its node name says.
func TestHookDecidesWhatIsAssigned(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	bound, unbound := podFor("a-0", "job-a", "3"), podFor("a-0", "job-a", "3")
	bound.Spec.NodeName = "node"
	outstanding := func(want, why string) {
		t.Helper()
		r.step()
		require.Equal(t, want, r.outstanding(testQuota), why)
		r.sound()
	}

	r.engine.Sink().PodAssigned(testQuota, bound, true)
	outstanding("cpu: 4", "the informer has not spoken of it, so nothing is known to be counted for the unit")
	r.drive.FeedPod(unbound, false, false)
	outstanding("cpu: 1", "reserved, and seen without a node name")
	r.drive.FeedPod(bound, false, false)
	outstanding("cpu: 1", "bound")
	r.drive.FeedPod(unbound, false, false)
	outstanding("cpu: 1", "a status patch comes between reserve and bind")
	r.engine.Sink().PodAssigned(testQuota, bound, false)
	outstanding("cpu: 4", "unreserved")

	other := podFor("a-1", "job-a", "1")
	other.Spec.NodeName = "node"
	r.drive.FeedPod(other, false, false)
	outstanding("cpu: 4", "bound by somebody else, and not counted yet")
	r.advance(31 * time.Second)
	r.advance(31 * time.Second)
	outstanding("cpu: 3", "counted if it ever will be")

	// The pod moves to another quota: in before out.
	r.engine.Sink().PodAssigned(quotawatch.DefaultQuota, bound, true)
	r.engine.Sink().PodAssigned(testQuota, bound, false)
	r.drive.FeedPod(bound, false, false)
	r.step()
	require.Equal(t, quotawatch.DefaultQuota, toldOf(r, bound.UID).Quota)
	r.drive.FeedPod(bound, true, false)
	r.engine.Sink().PodAssigned(quotawatch.DefaultQuota, bound, false)
	r.step()
	require.False(t, r.engine.pods.Known(bound.UID))
	r.sound()
}

func TestInitialPodsOnNodesAreCounted(t *testing.T) {
	r := newRig(t, quotasOf(10, testQuota))
	r.queue(testQuota)
	pod := podFor("a-0", "job-a", "3")
	pod.Spec.NodeName = "node"
	r.drive.FeedPod(pod, false, true)
	r.job("a", "job-a")
	r.unit("a", 4, withConsumer("job-a"), withStatus(map[string]any{"phase": "Running", "attempts": int64(1)}))
	r.lead()
	require.Equal(t, "cpu: 1", r.outstanding(testQuota))
}

func TestPodOfAnotherJobDoesNotBelongByAnnotation(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	r.unit("a", 4, withConsumer("job-a"))
	free := r.unit("free", 4)
	r.step()
	thief := podFor("thief", "job-x", "1")
	thief.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: testNamespace + "/a"}
	own := podFor("own", "", "1")
	own.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: free}
	elsewhere := podFor("elsewhere", "", "1")
	elsewhere.Namespace = "other"
	elsewhere.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: free}
	for _, pod := range []*corev1.Pod{thief, own, elsewhere} {
		r.drive.FeedPod(pod, false, false)
	}
	r.step()
	require.Empty(t, unitOf(r, thief.UID))
	require.Empty(t, unitOf(r, elsewhere.UID))
	require.Equal(t, free, unitOf(r, own.UID))
}

func TestPodsAreActivatedAfterPublication(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	r.drive.FeedPod(podFor("a-0", "job-a", "2"), false, false)
	r.unit("a", 4, withConsumer("job-a"))
	r.step()
	require.Empty(t, r.activated)
	r.engine.pods.Scheduler.Activate = func(pods map[string]*corev1.Pod) {
		require.True(t, r.engine.Snapshot().AdmittedConsumer("job-a"), "activated before it was published")
		for key := range pods {
			r.activated = append(r.activated, key)
		}
	}
	r.send()
	require.Equal(t, []string{testNamespace + "/a-0"}, r.activated)

	r.activated = nil
	r.drive.FeedPod(podFor("a-1", "job-a", "2"), false, false)
	r.step()
	require.Equal(t, []string{testNamespace + "/a-1"}, r.activated,
		"the gate may have seen it before the admission was published")

	r.activated = nil
	r.advance(31 * time.Second)
	require.ElementsMatch(t, []string{testNamespace + "/a-0", testNamespace + "/a-1"}, r.activated,
		"the net below all events")
}

func TestActivationWaitsForTheScheduler(t *testing.T) {
	r := ready(t, 10)
	built := false
	r.engine.pods.Scheduler.Ready = func() bool { return built }
	r.job("a", "job-a")
	r.drive.FeedPod(podFor("a-0", "job-a", "2"), false, false)
	r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	require.Empty(t, r.activated)
	built = true
	r.advance(time.Second)
	require.Equal(t, []string{testNamespace + "/a-0"}, r.activated)
}

func TestEvictionClosesTheGateBeforeItIsWritten(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	key := r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	require.True(t, r.engine.Snapshot().AdmittedConsumer("job-a"))

	r.api.edit(key, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, false, "spec", "active")
	})
	r.feed(key).step()
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	require.False(t, r.engine.Snapshot().AdmittedConsumer("job-a"))
	require.Equal(t, "cpu: 4", r.outstanding(testQuota), "what is not taken back yet counts")
	r.send(lostAnswer)
	require.Equal(t, "cpu: 4", r.outstanding(testQuota))
	r.send()
	require.True(t, r.engine.core.Read().Holdings().Read(testQuota).Outstanding().IsZero())
	u := unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseEnqueued, u.Phase)
	require.True(t, u.Held.IsZero())
	require.Nil(t, u.Condition(v1alpha1.ConditionPodsReady), "nobody has said anything of its pods")
	require.Equal(t, "True", string(u.Condition(v1alpha1.ConditionEvicted).Status))
	require.Equal(t, "False", string(u.Condition(v1alpha1.ConditionAdmitted).Status))
	require.Equal(t, int64(1), u.Attempts, "attempts only grow (I9)")
	r.sound()
}

// The controller takes an admission back by making the unit inactive. People are told why, and not that somebody holds
// it.
func TestAnEvictionSaysWhyTheControllerWantsIt(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	key := r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	r.api.edit(key, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{v1alpha1.AnnotationParkedReason: "EstimateChanged"})
		_ = unstructured.SetNestedField(u.Object, false, "spec", "active")
	})
	r.feed(key).step()
	r.send()
	u := unitFrom(r.api.get(key))
	for _, name := range []string{
		v1alpha1.ConditionQuotaReserved, v1alpha1.ConditionAdmitted, v1alpha1.ConditionEvicted,
	} {
		require.Equal(t, "EstimateChanged", u.Condition(name).Reason, name)
	}
	r.sound()
}

// A unit that the controller has parked waits for the reason that the controller gives, in lists and in why.
func TestAParkedUnitIsToldAsTheControllerSays(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	key := r.unit("a", 4, withConsumer("job-a"), withStatus(map[string]any{"conditions": []any{map[string]any{
		"type": "QuotaReserved", "status": "False", "reason": "OtherScheduler", "message": "set the field",
	}}}))
	r.api.edit(key, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{v1alpha1.AnnotationParkedReason: "OtherScheduler"})
		_ = unstructured.SetNestedField(u.Object, false, "spec", "active")
	})
	r.feed(key).step()
	info, known := r.engine.asked.View().Unit(key)
	require.True(t, known)
	require.Equal(t, unit.Reason("OtherScheduler"), info.Explanation.Reason)
	require.Equal(t, "set the field", info.Explanation.Message)
	require.Equal(t, unit.Reason("OtherScheduler"), info.Finding.Reason)

	r.api.edit(key, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
	r.feed(key).step()
	info, _ = r.engine.asked.View().Unit(key)
	require.Equal(t, unit.ReasonInactive, info.Explanation.Reason, "somebody holds it")
}

func TestJobThatIsGoneReleases(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	r.job("a", "")
	r.step()
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	require.False(t, r.engine.Snapshot().AdmittedConsumer("job-a"))
}

func TestHolderWhoseJobWasNeverSeenIsFound(t *testing.T) {
	r := newRig(t, quotasOf(10, testQuota))
	r.queue(testQuota)
	r.unit("a", 4, withConsumer("job-a"), withStatus(map[string]any{"phase": "Dequeued", "attempts": int64(1)}))
	r.lead()
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	require.False(t, r.engine.Snapshot().AdmittedConsumer("job-a"))
}

// The watch of jobs may lag behind that of units: that is worth no write.
func TestMissingJobIsNotToldAtOnce(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4, withConsumer("job-a"))
	r.step()
	require.Empty(t, r.of(statuswrite.Report))
	r.advance(time.Second)
	r.job("a", "job-a").step()
	require.Equal(t, []string{"a"}, keysOf(r.decisions()))
	r.send()
	r.advance(5 * time.Second)
	require.Empty(t, r.of(statuswrite.Report))
	require.Equal(t, 1, r.api.applied[key])

	r.unit("b", 4, withConsumer("job-b"))
	r.step()
	r.advance(6 * time.Second)
	require.Equal(t, []string{"b"}, keysOf(r.of(statuswrite.Report)))
}

func TestReasonIsWrittenOnceAlsoAcrossARestart(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "nowhere", "spec", "queue")
	})
	r.step()
	r.advance(6 * time.Second)
	reports := r.of(statuswrite.Report)
	require.Equal(t, []string{"a"}, keysOf(reports))
	r.engine.Settle(reports[0].Do(t.Context(), r.api.rest))
	r.step()
	u := unitFrom(r.api.get(key))
	require.Equal(t, string(unit.ReasonUnknownQueue), u.Condition(v1alpha1.ConditionQuotaReserved).Reason)

	next := rigOn(t, r.api, r.quotas, clocktesting.NewFakeClock(r.clock.Now()))
	next.queue(testQuota).lead()
	for range 10 {
		next.advance(10 * time.Second)
	}
	require.Empty(t, next.of(statuswrite.Report, statuswrite.Admit, statuswrite.Evict))
}

func TestPanickingQuotasDoNotKill(t *testing.T) {
	r := ready(t, 10)
	r.quotas.panicking = true
	key := r.unit("a", 4)
	r.step()
	reason, _, _ := r.engine.core.Read().Why(key)
	require.Equal(t, unit.ReasonInternalError, reason)
	require.Empty(t, r.decisions())
	r.quotas.panicking = false
	r.advance(time.Second)
	require.Equal(t, []string{"a"}, keysOf(r.decisions()))
	r.send()
	require.Equal(t, "Dequeued", r.phase(key))
}

func TestStateIsBuiltAnewAfterAPanic(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	r.unit("b", 5)
	r.step() // in flight
	r.engine.core.Discard(recovery.Panic)
	r.unit("c", 5)
	r.step()
	require.Equal(t, []string{"b"}, keysOf(r.decisions()), "what is in flight counts")
	require.True(t, r.engine.Snapshot().AdmittedConsumer("job-a"))
	require.Equal(t, "cpu: 9", r.outstanding(testQuota))
	r.send()
	require.Equal(t, "cpu: 9", r.outstanding(testQuota))
	_, admitted := r.engine.Snapshot().AdmittedUnit(testNamespace + "/b")
	require.True(t, admitted)
	r.sound()

	r.clock.Step(2 * time.Second)
	r.unit("d", 1)
	r.step()
	r.engine.core.Discard(recovery.Panic)
	r.advance(2 * time.Second)
	r.send(refused) // the new state has not made this decision; it makes it once more
	r.send(refused)
	require.Equal(t, "cpu: 9", r.outstanding(testQuota), "a refused admission holds nothing")
	r.sound()
}

func TestQuotaIsObservedOnceMore(t *testing.T) {
	r := ready(t, 4)
	r.unit("a", 3)
	r.unit("b", 3)
	r.step()
	r.send()
	require.Empty(t, r.decisions())
	r.step()
	observed := r.quotas.observed
	// The hook speaks, used moves a moment later.
	r.engine.Sink().QuotaChanged(testQuota)
	r.step()
	require.Empty(t, r.decisions())
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Limit, q.Max = cpu(6), cpu(6) })
	require.False(t, r.wake.IsZero())
	r.clock.SetTime(r.clock.Now().Add(20 * time.Millisecond))
	r.step()
	require.Equal(t, observed+2, r.quotas.observed)
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
}

// ElasticQuota may hear of a lost node long after us, and no hook says so: the total is read again when it has settled.
func TestTotalIsObservedWhenItHasSettled(t *testing.T) {
	r := ready(t, 10)
	setTotal := func(n int64) {
		r.quotas.set(root, func(q *admission.Quota) { q.Limit, q.Max = cpu(n), cpu(n) })
	}
	r.createQueue(testQuota, nil)
	setTotal(3)
	r.engine.Sink().TotalChanged()
	r.unit("a", 4)
	r.step()
	require.Empty(t, r.decisions())
	for range 10 {
		r.advance(time.Second)
		r.sendQueues()
	}
	require.True(t, r.wake.After(r.clock.Now().Add(5*time.Second)), "nothing else is to be done")
	r.engine.Sink().TotalChanged()
	r.step()
	r.advance(20 * time.Millisecond)
	setTotal(5)
	require.False(t, r.wake.After(r.clock.Now().Add(time.Second)))
	r.advance(time.Second)
	require.Equal(t, []string{"a"}, keysOf(r.decisions()), "ElasticQuota heard of a node later than we did (I6)")
}

func TestNothingIsDecidedOnATotalThatIsGone(t *testing.T) {
	r := ready(t, 10)
	r.engine.Sink().TotalChanged()
	r.step()
	r.advance(20 * time.Millisecond)
	r.quotas.set(root, func(q *admission.Quota) { q.Limit, q.Max = cpu(3), cpu(3) })
	r.unit("a", 4)
	r.step()
	require.Empty(t, r.decisions(), "ElasticQuota has heard of the node, and told nobody (I1)")
}

func TestNothingIsDoneWhenNothingHappens(t *testing.T) {
	r := ready(t, 4)
	r.unit("a", 3)
	r.step()
	r.send()
	r.advance(time.Second)
	r.advance(time.Second)
	submitted, observed := len(r.submitted), r.quotas.observed
	for range 20 {
		r.advance(time.Second)
	}
	require.Equal(t, observed, r.quotas.observed)
	require.LessOrEqual(t, len(r.submitted), submitted+1)
}

func TestUnitsFollowTheQuotaOfTheirNamespace(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4, func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	r.step()
	require.Equal(t, quotawatch.DefaultQuota, r.engine.units.Get(key).Quota)
	r.quotas.levels["ns-quota"] = admission.Quota{Name: "ns-quota", Parent: root, Limit: cpu(10), Max: cpu(10)}
	r.quotas.byNS[testNamespace] = "ns-quota"
	r.engine.Sink().QuotaChanged("ns-quota")
	r.queue("ns-quota")
	r.step()
	require.Equal(t, "ns-quota", r.engine.units.Get(key).Quota)
	require.Equal(t, []string{"a"}, keysOf(r.decisions()))
}

func TestUnitsFollowTheMappingOfTheirNamespaceAtOnce(t *testing.T) {
	r := ready(t, 10)
	for _, name := range []string{"one", "two"} {
		r.quotas.levels[name] = admission.Quota{Name: name, Parent: root, Limit: cpu(1), Max: cpu(10)}
		r.queue(name)
	}
	r.quotas.byNS[testNamespace] = "one"
	r.engine.Sink().QuotaChanged("one", "two")
	r.step()
	key := r.unit("a", 4, func(u *unstructured.Unstructured) { u.SetLabels(nil) })
	r.step()
	require.Equal(t, "one", r.engine.units.Get(key).Quota)
	require.Empty(t, r.decisions())
	two := r.quotas.levels["two"]
	two.Limit = cpu(10)
	r.quotas.levels["two"] = two
	r.engine.Sink().QuotaChanged("two")
	r.quotas.byNS[testNamespace] = "two"
	r.engine.Sink().MappingChanged()
	r.step()
	require.Equal(t, "two", r.engine.units.Get(key).Quota)
	require.Equal(t, []string{"a"}, keysOf(r.decisions()))
}

func TestPriorityComesFromTheClass(t *testing.T) {
	r := ready(t, 4)
	class := func(name string, value int64, byDefault bool) {
		r.drive.FeedClass(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": name},
			"value": value, "globalDefault": byDefault,
		}}, false)
	}
	without := func(class string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "spec", "priority")
			if class != "" {
				_ = unstructured.SetNestedField(u.Object, class, "spec", "priorityClassName")
			}
		}
	}
	a, b := r.unit("a", 3, without("")), r.unit("b", 3, without("urgent"))
	class("usual", 5, true)
	class("urgent", 100, false)
	r.step()
	require.Equal(t, int32(5), r.engine.units.Get(a).Priority)
	require.Equal(t, int32(100), r.engine.units.Get(b).Priority)
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
	class("usual", 7, true)
	r.step()
	require.Equal(t, int32(7), r.engine.units.Get(a).Priority)
}

// The list of accepted quotas is an annotation: it changes without the generation of the Queue.
func TestAChangedListOfQuotasActsAtOnce(t *testing.T) {
	r := ready(t, 10)
	accept := func(annotations map[string]any) {
		r.drive.FeedQueue(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": testQuota, "uid": "queue-" + testQuota, "annotations": annotations},
			"spec":     map[string]any{"queuePolicy": "Block"},
		}}, false)
		r.step()
	}
	accept(map[string]any{v1alpha1.AnnotationAvailableQuota: "another"})
	key := r.unit("a", 4)
	r.step()
	reason, _, _ := r.engine.core.Read().Why(key)
	require.Equal(t, unit.ReasonQuotaNotInQueue, reason)
	require.Empty(t, r.decisions())
	accept(map[string]any{v1alpha1.AnnotationAvailableQuota: "another, " + testQuota})
	require.Equal(t, []string{"a"}, keysOf(r.decisions()))
	r.send()

	accept(map[string]any{v1alpha1.AnnotationAvailableQuotaShort: "another"})
	require.Empty(t, r.decisions(), "what is admitted stays")
	key = r.unit("b", 4)
	r.step()
	reason, _, _ = r.engine.core.Read().Why(key)
	require.Equal(t, unit.ReasonQuotaNotInQueue, reason)
	accept(nil)
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
}

func TestAdmissionsNamePodSets(t *testing.T) {
	set := func(name string, count int64, cpu string) any {
		s := templates(cpu)[0].(map[string]any)
		s["name"], s["count"] = name, count
		return s
	}
	with := func(request any, sets ...any) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			spec := u.Object["spec"].(map[string]any)
			spec["podSet"] = sets
			delete(spec, "request")
			if request != nil {
				spec["request"] = request
			}
		}
	}
	cases := []struct {
		name   string
		change func(*unstructured.Unstructured)
		want   map[string]string
	}{
		{"from templates", with(nil, set("ps", 1, "1"), set("worker", 3, "2")), map[string]string{"ps": "1", "worker": "6"}},
		{"request agrees", with(map[string]any{"cpu": "7"}, set("ps", 1, "1"), set("worker", 3, "2")),
			map[string]string{"ps": "1", "worker": "6"}},
		{"request differs", with(map[string]any{"cpu": "8"}, set("ps", 1, "1"), set("worker", 3, "2")),
			map[string]string{v1alpha1.DefaultRequirementPodSet: "8"}},
		{"one set", with(map[string]any{"cpu": "8"}, set("main", 2, "1")), map[string]string{"main": "8"}},
		{"no set", with(map[string]any{"cpu": "8"}), map[string]string{v1alpha1.DefaultRequirementPodSet: "8"}},
		{"unreadable template with request", with(map[string]any{"cpu": "8"}, set("a", 1, "no"), set("b", 1, "1")),
			map[string]string{v1alpha1.DefaultRequirementPodSet: "8"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := ready(t, 10)
			key := r.unit("a", 1, c.change)
			r.step()
			r.send()
			admissions, _, err := unstructured.NestedSlice(r.api.get(key).Object, "status", "admissions")
			require.NoError(t, err)
			have := map[string]string{}
			for _, item := range admissions {
				fields := item.(map[string]any)
				have[fields["name"].(string)] = fields["resources"].(map[string]any)["cpu"].(string)
			}
			require.Equal(t, c.want, have)
			r.sound()
		})
	}
}
