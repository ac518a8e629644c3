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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/patch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// asks makes a unit ask for so many pods of one cpu.
func (r *rig) asks(key, cpus string, pods int64) *rig {
	r.api.edit(key, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, cpus, "spec", "request", "cpu")
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "main", "count": pods}}, "spec", "podSet")
	})
	return r.feed(key)
}

func (r *rig) pods(list ...*corev1.Pod) {
	for _, pod := range list {
		r.drive.FeedPod(pod, false, false)
	}
	r.step()
}

// A job that was admitted with two pods and makes four has two of them wait, until they are admitted as well.
func TestPodsBeyondWhatIsHeldWait(t *testing.T) {
	r := ready(t, 4)
	r.job("a", "job-a")
	key := r.unit("a", 2, withConsumer("job-a"))
	r.unit("b", 2)
	r.step()
	r.send()
	r.send()
	first, second, third, fourth := podFor("a-0", "job-a", "1"), podFor("a-1", "job-a", "1"), podFor("a-2", "job-a", "1"),
		podFor("a-3", "job-a", "1")
	r.pods(first, second, third, fourth)
	granted := func() (uids []string) {
		for _, pod := range []*corev1.Pod{first, second, third, fourth} {
			if r.engine.Snapshot().Granted(pod.UID) {
				uids = append(uids, pod.Name)
			}
		}
		return uids
	}
	require.Equal(t, []string{"a-0", "a-1"}, granted())
	require.Equal(t, []string{"team/a-0", "team/a-1"}, r.activated)
	require.Equal(t, "cpu: 4", r.outstanding(testQuota), "what they ask for is reserved for nobody")

	r.asks(key, "4", 4).step()
	require.Empty(t, r.of(statuswrite.Resize))
	r.advance(r.engine.opts.Config.ReportAfter)
	report := r.of(statuswrite.Report)
	require.Len(t, report, 1)
	r.engine.Settle(report[0].Do(t.Context(), r.api.rest))
	r.step()
	u := unitFrom(r.api.get(key))
	pending := u.Condition(v1alpha1.ConditionResizePending)
	require.Equal(t, metav1.ConditionTrue, pending.Status)
	require.Equal(t, string(unit.ReasonQuotaExceeded), pending.Reason)
	require.Equal(t, metav1.ConditionTrue, u.Condition(v1alpha1.ConditionQuotaReserved).Status, "it keeps what it has")
	require.Equal(t, pending.LastTransitionTime.UnixNano(), int64(r.engine.facts.resolve(u).ResizePending),
		"that is its place for a new process as well")

	r.activated = nil
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Limit, q.Max = cpu(6), cpu(6) })
	r.engine.Sink().QuotaChanged(testQuota)
	r.step()
	require.Len(t, r.of(statuswrite.Resize), 1)
	require.Equal(t, []string{"a-0", "a-1"}, granted(), "those that may go are not held back while that is written")
	w := r.of(statuswrite.Resize)[0]
	r.engine.Settle(w.Do(t.Context(), r.api.rest))
	r.drop(w)
	r.step()
	require.Equal(t, []string{"a-0", "a-1", "a-2", "a-3"}, granted())
	require.Equal(t, []string{"team/a-2", "team/a-3"}, r.activated)
	u = unitFrom(r.api.get(key))
	require.Equal(t, "cpu: 4", u.Held.String())
	require.EqualValues(t, 4, u.HeldPods)
	require.EqualValues(t, 1, u.Attempts)
	require.Equal(t, metav1.ConditionFalse, u.Condition(v1alpha1.ConditionResizePending).Status)
	r.sound()
}

// Quota of pods that ended for good is free for others, and requested again if the pods return.
func TestPodsThatDoNotComeAgainHoldNothing(t *testing.T) {
	r := ready(t, 4)
	key := r.unit("a", 4)
	r.asks(key, "4", 4).step()
	r.send()
	other := r.unit("b", 2)
	r.step()
	require.Empty(t, r.of(statuswrite.Admit))
	reclaim := func(list ...any) {
		r.api.edit(key, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedSlice(u.Object, list, "status", "reclaimablePods")
		})
		r.feed(key).step()
	}
	resize := func() {
		t.Helper()
		require.Len(t, r.of(statuswrite.Resize), 1)
		w := r.of(statuswrite.Resize)[0]
		r.engine.Settle(w.Do(t.Context(), r.api.rest))
		r.drop(w)
		r.step()
	}
	reclaim(map[string]any{"name": "main", "count": int64(2)}, map[string]any{"name": "other", "count": int64(9)})
	resize()
	require.Equal(t, "cpu: 2", unitFrom(r.api.get(key)).Held.String())
	require.EqualValues(t, 2, unitFrom(r.api.get(key)).HeldPods)
	r.send()
	require.Equal(t, "cpu: 2", unitFrom(r.api.get(other)).Held.String(), "the next one has them")

	reclaim()
	require.Empty(t, r.of(statuswrite.Resize), "it started anew, and waits for what it gave back")
	require.EqualValues(t, 4, r.engine.units.Get(key).Object.Pods)
	reclaim(map[string]any{"name": "main", "count": int64(-1)})
	require.EqualValues(t, 4, r.engine.units.Get(key).Object.Pods)
	reclaim(map[string]any{"name": "main", "count": int64(3)})
	resize()
	require.Equal(t, "cpu: 1", unitFrom(r.api.get(key)).Held.String())
	reclaim(map[string]any{"name": "main", "count": int64(1) << 40})
	require.Zero(t, r.engine.units.Get(key).Object.Pods)
	resize()
	u := unitFrom(r.api.get(key))
	require.True(t, u.Held.IsZero(), "none comes again")
	require.Zero(t, u.HeldPods)
	require.True(t, u.Recorded, "a new process knows that it holds nothing")
	r.feed(key).step()
	require.Empty(t, r.of(statuswrite.Resize))
	r.sound()
}

// A job that is scaled to nothing holds nothing, and waits like others for what it asks for later.
func TestAJobScaledToNothing(t *testing.T) {
	r := ready(t, 4)
	key := r.unit("a", 4)
	r.asks(key, "4", 4).step()
	r.send()
	resize := func() {
		t.Helper()
		require.Len(t, r.of(statuswrite.Resize), 1)
		w := r.of(statuswrite.Resize)[0]
		r.engine.Settle(w.Do(t.Context(), r.api.rest))
		r.drop(w)
		r.step()
	}
	r.asks(key, "0", 0).step()
	resize()
	r.feed(key).step()
	u := unitFrom(r.api.get(key))
	require.True(t, u.Held.IsZero(), "%s", u.Held)
	require.Zero(t, u.HeldPods)
	require.True(t, u.Recorded)
	require.Empty(t, r.of(statuswrite.Resize))
	other := r.unit("b", 4)
	r.step()
	r.send()
	require.Equal(t, "cpu: 4", unitFrom(r.api.get(other)).Held.String())
	r.asks(key, "4", 4).step()
	require.Empty(t, r.of(statuswrite.Resize), "it waits for that")
	r.sound()
}

// The answer to a change of what is held may be lost like any other.
func TestAResizeWhoseAnswerIsLost(t *testing.T) {
	for name, happens := range map[string]fault{"applied": lostAnswer, "not applied": lost, "conflict": conflict} {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 9)
			key := r.unit("a", 4)
			r.step()
			r.send()
			r.asks(key, "6", 6).step()
			w := r.of(statuswrite.Resize)[0]
			r.api.faults = []fault{happens}
			r.engine.Settle(w.Do(t.Context(), r.api.rest))
			r.step()
			require.Equal(t, "cpu: 6", r.outstanding(testQuota), "it may have been applied (I1)")
			for range 3 {
				if next := r.of(statuswrite.Resize); len(next) > 0 {
					r.engine.Settle(next[0].Do(t.Context(), r.api.rest))
					r.drop(next[0])
				}
				r.step()
			}
			u := unitFrom(r.api.get(key))
			require.Equal(t, "cpu: 6", u.Held.String())
			require.Equal(t, "cpu: 6", r.outstanding(testQuota))
			require.Empty(t, r.of(statuswrite.Resize))
			r.sound()
		})
	}
}

// A unit that is adopted holds what is bound, whatever its job asks for (C1).
func TestAnAdoptedUnitHoldsWhatIsBound(t *testing.T) {
	r := ready(t, 10)
	r.job("greedy", "job-g")
	bound := podFor("g-0", "job-g", "1")
	bound.Spec.NodeName = "node"
	r.drive.FeedPod(bound, false, true)
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Used = cpu(1) })
	key := r.unit("greedy", 2_000_000_000, withConsumer("job-g"), func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "main", "count": int64(2_000_000_000)}},
			"spec", "podSet")
		u.Object["status"] = map[string]any{"phase": "Running", "attempts": int64(1), "conditions": []any{map[string]any{
			"type": v1alpha1.ConditionAdmitted, "status": "True", "reason": v1alpha1.ReasonAdopted, "message": "it ran",
			"lastTransitionTime": testStart.Format("2006-01-02T15:04:05Z"),
		}}}
	})
	other := r.unit("other", 9)
	r.step()
	require.Len(t, r.of(statuswrite.Resize), 1)
	require.Len(t, r.of(statuswrite.Admit), 1, "nobody else waits because of it")
	for _, w := range append(r.of(statuswrite.Resize), r.of(statuswrite.Admit)...) {
		r.engine.Settle(w.Do(t.Context(), r.api.rest))
		r.drop(w)
	}
	r.step()
	require.Equal(t, "cpu: 9", r.outstanding(testQuota))
	require.Equal(t, "cpu: 1", unitFrom(r.api.get(key)).Held.String())
	require.Equal(t, "cpu: 9", unitFrom(r.api.get(other)).Held.String())
	next := podFor("g-1", "job-g", "1")
	r.pods(next)
	require.False(t, r.engine.Snapshot().Granted(next.UID))
	r.sound()
}

// A pod whose job was made by another belongs to the unit of that one, in whatever order they are heard of.
func TestPodsOfAJobThatAJobMade(t *testing.T) {
	for name, first := range map[string]bool{"pod first": true, "jobs first": false} {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 10)
			child := podFor("c-0", "child", "1")
			tell := func() {
				r.engine.box.Job("Job.v1.batch", testNamespace, "child", mail.JobEvent{
					UID: "child", Owner: &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", UID: "job-a"},
				})
			}
			if first {
				r.pods(child)
			} else {
				tell()
			}
			r.job("a", "job-a")
			r.unit("a", 2, withConsumer("job-a"))
			r.step()
			r.send()
			if first {
				tell()
				r.step()
			} else {
				r.pods(child)
			}
			require.True(t, r.engine.Snapshot().Granted(child.UID))
			beyond := podFor("c-1", "child", "2")
			r.pods(beyond)
			require.False(t, r.engine.Snapshot().Granted(beyond.UID))
			r.drive.FeedJob("Job.v1.batch", testNamespace, "child", "", nil, false)
			r.step()
			require.Zero(t, r.engine.facts.kinship.Len())
			for _, pod := range []*corev1.Pod{child, beyond} {
				r.drive.FeedPod(pod, true, false)
			}
			r.step()
			require.Zero(t, r.engine.publisher.Newest().Pods(), "of pods that are gone nothing stays")
		})
	}
}

// An owner that makes no jobs, as anybody may write one, has no pods of theirs.
func TestOnlyMakersOfJobsHaveTheirPods(t *testing.T) {
	r := ready(t, 10)
	f, err := r.engine.sources.FollowJobs(nil, r.engine.facts.managed.Load())
	require.NoError(t, err)
	for owner, kin := range map[schema.GroupVersionKind]bool{
		batchKind: false,
		{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}: true,
	} {
		meta := liveJobOf(batchKind, "child")
		meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{UID: "o"}, owner)}
		r.engine.sources.JobHandlers(f, batchKind).OnAdd(intake.NewJobMeta(meta, nil), false)
		r.step()
		require.Equal(t, kin, r.engine.facts.kinship.Len() > 0, owner.Kind)
		r.engine.sources.JobHandlers(f, batchKind).OnDelete(intake.NewJobMeta(meta, nil))
		r.step()
	}
}

// A snapshot is true of a rebuilt state.
func TestGrantsAfterTheStateWasBuiltAnew(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	r.unit("a", 1, withConsumer("job-a"))
	r.step()
	r.send()
	one, two := podFor("a-0", "job-a", "1"), podFor("a-1", "job-a", "1")
	r.pods(one, two)
	require.True(t, r.engine.Snapshot().Granted(one.UID))
	r.engine.core.Discard(recovery.Difference)
	r.drive.FeedPod(one, true, false)
	r.advance(2 * r.engine.core.RebuildDelay())
	r.step()
	require.False(t, r.engine.Snapshot().Granted(one.UID))
	require.True(t, r.engine.Snapshot().Granted(two.UID))
	require.Equal(t, 1, r.engine.publisher.Newest().Pods())
	require.True(t, r.engine.Snapshot().Granted(types.UID("pod-a-1")))
}

// A job without pods loses its quota, and its reason helps a person.
func TestAnIdleReservationEnds(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	r.engine.core.Config.Rules.Timeouts.Idle = 10 * time.Minute
	r.engine.core.Extend(nil, nil)
	r.queue(testQuota).lead()
	r.job("a", "job-a")
	key := r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	r.advance(10*time.Minute - time.Second)
	require.Empty(t, r.decisions())
	r.advance(2 * time.Second)
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	r.send(lostAnswer)
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseTimeoutBackoff, u.Phase)
	require.EqualValues(t, 1, u.Requeues)
	require.WithinRange(t, u.RequeueAt, r.clock.Now().Add(50*time.Second), r.clock.Now().Add(70*time.Second))
	require.Equal(t, string(unit.ReasonIdleReservation), u.Condition(v1alpha1.ConditionEvicted).Reason)
	require.True(t, r.engine.core.Read().Holdings().Read(testQuota).Outstanding().IsZero())
	r.advance(70 * time.Second)
	require.Equal(t, statuswrite.Admit, r.decision().Kind)
	r.sound()
}

// Of a pod that nothing lets go the unit says so after a minute, and until that ends.
func TestAPodThatNothingLetsGoIsTold(t *testing.T) {
	type change = func(r *rig, pod *corev1.Pod)
	marked := func(marked bool) change {
		return func(r *rig, _ *corev1.Pod) {
			r.drive.FeedJob("Job.v1.batch", testNamespace, "a", "job-a", nil, marked)
		}
	}
	for reason, tt := range map[unit.Reason]struct{ begin, end change }{
		unit.ReasonPodsChargedElsewhere: {
			begin: func(_ *rig, pod *corev1.Pod) { delete(pod.Labels, v1alpha1.LabelQuotaName) },
			end:   func(r *rig, pod *corev1.Pod) { r.drive.FeedPod(pod, true, false) },
		},
		unit.ReasonPodsHeldBySuspension: {begin: marked(true), end: marked(false)},
	} {
		t.Run(string(reason), func(t *testing.T) {
			r := ready(t, 10)
			r.job("a", "job-a")
			key := r.unit("a", 2, withConsumer("job-a"))
			r.step()
			r.send()
			pod := podFor("a-0", "job-a", "1")
			tt.begin(r, pod)
			r.pods(pod)
			r.advance(time.Minute - time.Second)
			require.Empty(t, r.of(statuswrite.Report))
			told := func() *metav1.Condition {
				report := r.of(statuswrite.Report)
				require.Len(t, report, 1)
				r.engine.Settle(report[0].Do(t.Context(), r.api.rest))
				r.drop(report[0])
				r.feed(key).step()
				return unitFrom(r.api.get(key)).Condition(v1alpha1.ConditionResizePending)
			}
			r.advance(2 * time.Second)
			condition := told()
			require.Equal(t, metav1.ConditionTrue, condition.Status)
			require.Equal(t, string(reason), condition.Reason)
			require.Empty(t, r.decisions(), "it keeps what it holds")
			tt.end(r, pod)
			r.step()
			r.advance(time.Minute)
			require.Equal(t, metav1.ConditionFalse, told().Status)
			r.advance(time.Minute)
			require.Empty(t, r.of(statuswrite.Report), "it is told once")
			r.sound()
			require.Zero(t, r.engine.facts.kinship.Len())
		})
	}
}

// A reason about its pods gives a unit no earlier position for later growth.
func TestGrowthIsInLineSinceItWasAskedFor(t *testing.T) {
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for before, since := range map[unit.Reason]time.Duration{
		unit.ReasonPodsChargedElsewhere: time.Hour, unit.ReasonPodsHeldBySuspension: time.Hour,
		unit.ReasonQuotaChanged: time.Hour, unit.ReasonExceedsMax: 0,
	} {
		t.Run(string(before), func(t *testing.T) {
			u := &objects.Unit{Phase: unit.PhaseRunning, History: &objects.History{}}
			said := func(reason unit.Reason, at time.Time) {
				said := &transition.Explain{Unit: &unit.Unit{}, Saying: unit.Saying{Reason: reason}}
				u.Conditions = patch.Reason(said, &patch.Subject{Object: u}, at)["conditions"].([]metav1.Condition)
			}
			said(before, epoch)
			if since > 0 {
				require.Zero(t, u.ResizePending())
			}
			said(unit.ReasonQuotaExceeded, epoch.Add(time.Hour))
			require.Equal(t, ordered.MomentOf(epoch.Add(since)), u.ResizePending())
		})
	}
}

// A job that cannot be suspended keeps its quota while a pod of it is on a node, and loses it like others without one.
func TestAnIdleReservationOfWhatCannotBeSuspended(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	predicate, err := managedjobs.NewPredicate(managedjobs.Jobs{Kinds: managedjobs.KindsNamed("Deployment.v1.apps")})
	require.NoError(t, err)
	r.engine.facts.managed.Store(predicate)
	r.engine.core.Config.Rules.Timeouts.Idle = 10 * time.Minute
	r.engine.core.Extend(nil, nil)
	r.queue(testQuota).lead()
	r.drive.FeedJob("Deployment.v1.apps", testNamespace, "a", "web", nil, false)
	key := r.unit("a-deployment", 4, withConsumer("web"), func(u *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(u.Object, "apps/v1", "spec", "consumerRef", "apiVersion"))
		require.NoError(t, unstructured.SetNestedField(u.Object, "Deployment", "spec", "consumerRef", "kind"))
		require.NoError(t, unstructured.SetNestedField(u.Object, "a", "spec", "consumerRef", "name"))
	})
	r.step()
	r.send()
	pod := podFor("a-0", "web", "1")
	pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = "apps/v1", "Deployment"
	pod.Spec.NodeName = "node"
	r.drive.FeedPod(pod, false, true)
	r.step()
	r.advance(10*time.Minute + time.Second)
	require.Equal(t, key, r.engine.units.UnitOf(pod))
	require.Empty(t, keysOf(r.decisions()), "its pod could not be taken away")
	r.drive.FeedPod(pod, true, false)
	r.step()
	r.advance(10*time.Minute + time.Second)
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseTimeoutBackoff, u.Phase)
	require.Equal(t, string(unit.ReasonIdleReservation), u.Condition(v1alpha1.ConditionEvicted).Reason)
	r.sound()
}

// A unit can stand for something outside of the cluster. Its creator reports from time to time that it is used, if its
// queue asks for that.
func TestAUnitWithoutConsumerNeedsAHeartbeat(t *testing.T) {
	r := ready(t, 4)
	r.queueWith(testQuota, map[string]any{"queuePolicy": "Priority", "heartbeatTimeoutSeconds": int64(60)})
	key := r.unit("a", 2)
	r.step()
	r.send()
	beat := func(at time.Time) {
		r.api.edit(key, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationHeartbeat: at.Format(time.RFC3339)})
		})
		r.feed(key)
	}
	r.advance(50 * time.Second)
	beat(r.clock.Now())
	r.advance(50 * time.Second)
	require.Empty(t, r.decisions())
	beat(r.clock.Now().Add(time.Hour)) // takes the place of the one before, and is none
	r.advance(time.Second)
	require.Equal(t, statuswrite.Evict, r.decision().Kind)
	r.send()
	u := unitFrom(r.api.get(key))
	require.Equal(t, unit.PhaseTimeoutBackoff, u.Phase)
	require.Equal(t, string(unit.ReasonNoHeartbeat), u.Condition(v1alpha1.ConditionEvicted).Reason)
	r.sound()
}

// A status that somebody wrote by hand is made whole: what it holds, and that quota is reserved for it.
func TestAPhaseWrittenByHandIsMadeWhole(t *testing.T) {
	r := ready(t, 4)
	key := r.unit("a", 2, withStatus(map[string]any{
		"phase": "Dequeued", "conditions": []any{map[string]any{
			"type": v1alpha1.ConditionQuotaReserved, "status": "False", "reason": "QuotaExceeded", "message": "too little",
			"lastTransitionTime": testStart.Format(time.RFC3339),
		}},
	}))
	r.step()
	require.Len(t, r.of(statuswrite.Resize), 1)
	r.engine.Settle(r.of(statuswrite.Resize)[0].Do(t.Context(), r.api.rest))
	r.step()
	u := unitFrom(r.api.get(key))
	require.Equal(t, "cpu: 2", u.Held.String())
	reserved := u.Condition(v1alpha1.ConditionQuotaReserved)
	require.Equal(t, metav1.ConditionTrue, reserved.Status)
	require.Equal(t, "quota is reserved: cpu: 2", reserved.Message)
	r.sound()
}

// A job that is deleted without its pods leaves their place in its queue behind.
func TestPodsThatAreLeftKeepThePlaceOfTheirUnit(t *testing.T) {
	r := ready(t, 10)
	r.queueWith("one", map[string]any{"maxAdmitted": int64(1)})
	r.job("a", "job-a")
	inQueue := func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "one", "spec", "queue")
	}
	first := r.unit("a", 1, withConsumer("job-a"), inQueue)
	r.unit("b", 1, inQueue)
	r.step()
	r.send()
	pod := podFor("a-0", "job-a", "1")
	pod.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: first}
	pod.Spec.NodeName = "node"
	r.drive.FeedPod(pod, false, true)
	r.step()
	orphan := pod.DeepCopy()
	orphan.OwnerReferences, orphan.ResourceVersion = nil, "2"
	r.drive.FeedPod(orphan, false, false)
	gone := r.api.get(first)
	r.api.delete(first)
	r.drive.FeedUnit(gone, true)
	r.step()
	require.Empty(t, r.of(statuswrite.Admit), "a pod of the first job runs")
	r.drive.FeedPod(orphan, true, false)
	r.step()
	require.Len(t, r.of(statuswrite.Admit), 1)
	r.sound()
}

// The time for which a pod has been leaving counts from its deletion, whatever grace period it was given.
func TestALeavingPodCountsSinceItsDeletion(t *testing.T) {
	r := ready(t, 10)
	r.job("a", "job-a")
	r.unit("a", 1, withConsumer("job-a"))
	r.step()
	r.send()
	pod := podFor("a-0", "job-a", "1")
	pod.Spec.NodeName = "node"
	r.drive.FeedPod(pod, false, true)
	r.step()
	leaving, hour := pod.DeepCopy(), int64(3600)
	leaving.DeletionTimestamp, leaving.DeletionGracePeriodSeconds = &metav1.Time{Time: r.clock.Now().Add(time.Hour)}, &hour
	leaving.ResourceVersion = "2"
	next := podFor("a-1", "job-a", "1")
	r.drive.FeedPod(leaving, false, false)
	r.pods(next)
	require.True(t, r.engine.Snapshot().Granted(next.UID))
	require.Equal(t, "cpu: 1", r.outstanding(testQuota))
	r.advance(2 * time.Minute)
	r.step()
	require.False(t, r.engine.Snapshot().Granted(next.UID))
	require.Len(t, r.of(statuswrite.Resize), 1, "it asks for what the other one keeps")
}

// The label with the quota of a unit is edited while its job runs. The unit holds its quota where it was admitted, also
// for a new process. It asks for the other quota once none of its pods is on a node.
func TestAUnitStaysInTheQuotaThatItWasAdmittedIn(t *testing.T) {
	const other = "other"
	r := newRig(t, quotasOf(4, testQuota, other)).queue(testQuota)
	r.queue("shared")
	shared := func(quota string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{v1alpha1.LabelQuotaName: quota})
			u.SetAnnotations(map[string]string{v1alpha1.QueueNameKey: "shared"})
		}
	}
	r.lead()
	r.job("a", "job-a").job("b", "job-b")
	a := r.unit("a", 4, withConsumer("job-a"), shared(testQuota))
	r.unit("b", 4, withConsumer("job-b"), shared(other))
	r.step()
	r.send()
	r.send()
	pod := podFor("a-0", "job-a", "2")
	pod.Spec.NodeName = "n"
	r.pods(pod)
	r.engine.Sink().PodAssigned(testQuota, pod, true)
	r.step()
	require.Equal(t, "cpu: 4", r.outstanding(other), "of b")

	r.api.edit(a, shared(other))
	r.feed(a).step()
	require.Equal(t, "cpu: 4", r.outstanding(other), "it is full: nothing else is held there")
	r.advance(r.engine.opts.Config.ReportAfter)
	report := r.of(statuswrite.Report)
	require.Len(t, report, 1)
	r.engine.Settle(report[0].Do(t.Context(), r.api.rest))
	r.step()
	pending := unitFrom(r.api.get(a)).Condition(v1alpha1.ConditionResizePending)
	require.Equal(t, string(unit.ReasonQuotaChanged), pending.Reason)

	next := rigOn(t, r.api, r.quotas, r.clock).queue("shared")
	next.job("a", "job-a").job("b", "job-b").feed(a).feed(testNamespace + "/b")
	next.drive.FeedPod(pod, false, false)
	next.engine.Sink().PodAssigned(testQuota, pod, true)
	next.lead()
	require.Equal(t, "cpu: 4", next.outstanding(other), "the object says where it holds what it holds")
	next.engine.Sink().PodAssigned(testQuota, pod, false)
	next.drive.FeedPod(pod, true, false)
	next.step()
	require.Len(t, next.of(statuswrite.Evict), 1)
	next.send()
	u := unitFrom(r.api.get(a))
	require.Equal(t, string(unit.ReasonQuotaChanged), u.Condition(v1alpha1.ConditionEvicted).Reason)
	require.Equal(t, unit.PhaseEnqueued, u.Phase)
	next.step()
	require.Empty(t, next.of(statuswrite.Admit), "the other quota is full")
}
