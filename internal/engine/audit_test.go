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
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	kubemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/audit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// audit compares; between the two looks happens what the test says, then a step.
func (r *rig) audit(between ...func()) audit.Result {
	r.t.Helper()
	result, err := r.drive.Audit(klog.NewContext(context.Background(), logr.Discard()), func() {
		for _, f := range between {
			f()
		}
		r.advance(audit.SettleTime)
	})
	require.NoError(r.t, err)
	r.step()
	return result
}

// audited runs an audit that finds these differences and rebuilds the state. Afterwards there are none.
func (r *rig) audited(want ...audit.Difference) {
	r.t.Helper()
	found := r.audit()
	require.Equal(r.t, want, found.Differences)
	require.Equal(r.t, len(want), found.Found)
	require.True(r.t, found.Rebuilt)
	require.Equal(r.t, found.Differences, r.engine.LastAudit().Differences)
	again := r.audit()
	require.Empty(r.t, again.Differences, "they are gone once the state was built anew")
	require.False(r.t, again.Rebuilt)
	r.sound()
}

// busy has an admitted unit with a pod that is counted, one in flight, one that waits and one that is over.
func busy(t *testing.T) *rig {
	r := ready(t, 10)
	r.engine.opts.Pods = cache.NewSharedIndexInformer(nil, &corev1.Pod{}, 0, cache.Indexers{})
	r.engine.auditor = r.engine.newAuditor()
	r.job("a", "job-a")
	r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	pod := podFor("a-0", "job-a", "1")
	r.cachePod(pod)
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Used = cpu(1) })
	r.quotas.set(root, func(q *admission.Quota) { q.Used = cpu(1) })
	r.engine.Sink().PodAssigned(testQuota, pod, true)
	r.unit("b", 5)
	r.unit("c", 4)
	r.unit("d", 1, withStatus(map[string]any{"phase": "Succeed"}))
	r.step()
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
	return r
}

func (r *rig) registry() kubemetrics.KubeRegistry {
	registry := kubemetrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	return registry
}

// cachePod puts a pod into the scheduler's cache and feeds it.
func (r *rig) cachePod(pod *corev1.Pod) {
	require.NoError(r.t, r.engine.opts.Pods.GetStore().Add(pod))
	r.drive.FeedPod(pod, false, false)
}

// A total that moved is told until it is observed.
func TestWhatAnAuditObservesIsNotLost(t *testing.T) {
	r := ready(t, 10)
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Limit = cpu(3) })
	r.engine.quotas.Peek()
	r.unit("a", 4)
	r.step()
	require.Empty(t, r.decisions())
}

func TestAuditOfWhatIsInOrderFindsNothing(t *testing.T) {
	r := busy(t)
	registry := r.registry()
	found := r.audit()
	require.Empty(t, found.Differences)
	require.False(t, found.Rebuilt)
	require.Equal(t, []int{4, 1, 3}, []int{found.Units, found.Pods, found.Levels})
	r.send()
	require.Empty(t, r.audit().Differences)
	require.Equal(t, map[string]float64{"Clean": 2}, gathered(t, registry, "audits_total"))
	require.Equal(t, map[string]float64{"ledger": 0, "unit": 0, "queue": 0, "pod": 0, "used": 0},
		gathered(t, registry, "ledger_differences"))
}

func TestAuditFindsWhatTheCoreHasOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(now time.Time, s *admission.State, u unit.Unit)
		want  []audit.Difference
		// held is held quota after the rebuild: 3 of a and 5 of b if it is empty.
		held string
	}{
		"a unit that it lost": {
			func(now time.Time, s *admission.State, u unit.Unit) {
				s.DeleteUnit(now, u.Key)
				s.Elections() // the engine does not hear of it
			},
			[]audit.Difference{
				differs(audit.DifferencePod, "team/a-0", "unit", "team/a", ""),
				differs(audit.DifferenceUnit, "team/a", "unit", "unknown", "uid unit-a"),
			},
			"cpu: 12", // c was admitted before it was found out
		},
		"an admission that it does not know": {
			func(now time.Time, s *admission.State, u unit.Unit) {
				u.Phase, u.Held = unit.PhaseEnqueued, cpu(0)
				s.UpsertUnit(now, u)
			},
			[]audit.Difference{differs(audit.DifferenceUnit, "team/a", "stage", "waiting", "admitted")}, "",
		},
		"an amount": {
			func(now time.Time, s *admission.State, u unit.Unit) {
				u.Held = cpu(1)
				s.UpsertUnit(now, u)
			},
			[]audit.Difference{differs(audit.DifferenceUnit, "team/a", "holds", "cpu: 1", "cpu: 4")}, "",
		},
		"another object of that name": {
			func(now time.Time, s *admission.State, u unit.Unit) {
				u.UID = "other"
				s.UpsertUnit(now, u)
			},
			[]audit.Difference{differs(audit.DifferenceUnit, "team/a", "uid", "other", "unit-a")}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := busy(t)
			c.spoil(r.clock.Now(), r.engine.core.Read(), r.engine.facts.resolve(r.engine.units.Get("team/a").Object))
			r.audited(c.want...)
			require.Equal(t, cmp.Or(c.held, "cpu: 8"), r.outstanding(testQuota))
			r.send()
			require.Equal(t, "Dequeued", r.phase("team/b"), "what was in flight is settled as ever")
			require.Equal(t, 1, r.api.applied["team/b"])
			r.sound()
		})
	}
}

func TestAuditFindsEventsThatNeverCame(t *testing.T) {
	t.Run("a change", func(t *testing.T) {
		r := busy(t)
		before := r.api.get("team/c").GetResourceVersion()
		now := r.api.setStatus("team/c", map[string]any{"phase": "Succeed"}).GetResourceVersion()
		r.audited(differs(audit.DifferenceUnit, "team/c", "resourceVersion", before, now))
		require.Equal(t, unit.Phase("Succeed"), r.engine.units.Get("team/c").Object.Phase)
	})
	t.Run("a creation", func(t *testing.T) {
		r := busy(t)
		u := r.api.get("team/c")
		u.SetName("e")
		u.SetUID("unit-e")
		r.api.create(u)
		r.audited(differs(audit.DifferenceUnit, "team/e", "unit", "unknown", "uid unit-e"))
		require.Contains(t, r.engine.units.Keys(), "team/e")
	})
	t.Run("a deletion", func(t *testing.T) {
		r := busy(t)
		r.api.delete("team/a")
		r.audited(differs(audit.DifferenceUnit, "team/a", "unit", "uid unit-a", "does not exist"))
		require.NotContains(t, r.engine.units.Keys(), "team/a")
		require.Equal(t, []string{"b", "c"}, keysOf(r.decisions()), "what it held is free")
	})
	t.Run("another object of that name", func(t *testing.T) {
		r := busy(t)
		u := r.api.get("team/a")
		r.api.delete("team/a")
		u.SetUID("unit-a2")
		u.Object["status"] = map[string]any{"phase": "Enqueued"}
		r.api.create(u)
		r.audited(differs(audit.DifferenceUnit, "team/a", "uid", "unit-a", "unit-a2"))
	})
}

func TestWhatIsOnlyOnItsWayIsNoDifference(t *testing.T) {
	r := busy(t)
	r.api.setStatus("team/c", map[string]any{"phase": "Succeed"})
	r.api.delete("team/a")
	u := r.api.get("team/c")
	u.SetName("e")
	u.SetUID("unit-e")
	r.api.create(u)
	pod := podFor("c-0", "job-c", "1")
	require.NoError(t, r.engine.opts.Pods.GetStore().Add(pod))
	found := r.audit(func() {
		r.feed("team/c")
		r.api.delete("team/e") // created and deleted between two looks
		r.drive.FeedUnit(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"name": "a", "namespace": testNamespace, "uid": "unit-a",
		}}}, true)
		r.drive.FeedPod(pod, false, false)
	})
	require.Empty(t, found.Differences)
	require.False(t, found.Rebuilt)
}

// laggingWatch is an informer that has come to a version.
type laggingWatch struct {
	cache.SharedIndexInformer
	version string
}

func (w *laggingWatch) LastSyncResourceVersion() string { return w.version }

// After the API server was away the watch may be behind for longer than an audit waits.
func TestWhatTheWatchHasNotComeToIsNoDifference(t *testing.T) {
	r := busy(t)
	w := &laggingWatch{r.engine.sources.Units, r.api.get("team/c").GetResourceVersion()}
	r.engine.sources.Units = w
	now := r.api.setStatus("team/c", map[string]any{"phase": "Succeed"}).GetResourceVersion()
	require.Empty(t, r.audit().Differences)
	w.version = now
	require.Len(t, r.audit().Differences, 1, "it has passed it, and never spoke of it")
}

// A unit of the list at Lead that the watch has not reached keeps its held quota (I1, I7), however long the watch
// hangs.
func TestAUnitTheWatchHasNotComeToIsNotForgotten(t *testing.T) {
	r := newRig(t, quotasOf(10, testQuota)).queue(testQuota)
	b := r.unit("b", 8)
	w := &laggingWatch{r.engine.sources.Units, r.api.get(b).GetResourceVersion()}
	r.engine.sources.Units = w
	u := r.api.get(b)
	u.SetName("a")
	u.SetUID("unit-a")
	u.Object["status"] = map[string]any{"phase": "Dequeued", "attempts": int64(1), "admissions": []any{
		map[string]any{"name": "main", "resources": map[string]any{"cpu": "8"}},
	}}
	r.api.create(u)
	r.lead()
	require.Equal(t, "cpu: 8", r.outstanding(testQuota))
	for range 5 {
		r.advance(r.engine.opts.Config.ResyncInterval)
	}
	require.Contains(t, r.engine.units.Keys(), "team/a")
	require.Empty(t, r.decisions(), "there is no room for b")
	w.version = r.api.get("team/a").GetResourceVersion()
	for range 2 {
		r.advance(r.engine.opts.Config.ResyncInterval)
	}
	require.NotContains(t, r.engine.units.Keys(), "team/a",
		"the watch has passed it and never spoke of it: it went in between")
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
}

func TestAuditComparesWithKoordinatorsUsed(t *testing.T) {
	r := busy(t)
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Used = resources.FromMap(map[string]int64{"cpu": 500}) })
	found := r.audit()
	require.Equal(t, []audit.Difference{differs(audit.DifferenceUsed, testQuota, "cpu", "1", "500m")}, found.Differences,
		"capacity that only the ledger takes for counted is given away twice (I1)")
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Used = cpu(7) })
	require.Empty(t, r.audit().Differences, "more in use than by units is what other pods use")
}

func TestAuditComparesWhatKoordinatorCounts(t *testing.T) {
	r := busy(t)
	gpu := resources.FromMap(map[string]int64{"gpu": 8})
	for _, tt := range []struct {
		name string
		max  resources.List
	}{{"GPUs only", gpu}, {"no max", resources.List{}}} {
		r.quotas.set(testQuota, func(q *admission.Quota) {
			q.Max, q.Limit, q.Min, q.Used = tt.max, tt.max, tt.max, resources.List{}
		})
		r.quotas.set(root, func(q *admission.Quota) { q.Used = resources.FromMap(map[string]int64{"cpu": 0}) })
		require.Empty(t, r.audit().Differences, "%s: the root does not count the cpu of these pods either", tt.name)
	}
}

func TestAuditFindsPodsThatDiffer(t *testing.T) {
	t.Run("never heard of", func(t *testing.T) {
		r := busy(t)
		require.NoError(t, r.engine.opts.Pods.GetStore().Add(podFor("a-1", "job-a", "1")))
		r.audited(differs(audit.DifferencePod, "team/a-1", "pod", "unknown", "uid pod-a-1"))
		require.Equal(t, "team/a", unitOf(r, "pod-a-1"))
	})
	t.Run("gone", func(t *testing.T) {
		r := busy(t)
		require.NoError(t, r.engine.opts.Pods.GetStore().Delete(podFor("a-0", "job-a", "1")))
		r.audited(differs(audit.DifferencePod, "team/a-0", "pod", "uid pod-a-0", "is over or does not exist"))
		require.Equal(t, "cpu: 9", r.outstanding(testQuota), "what it used is held for its successor")
	})
	t.Run("of another state", func(t *testing.T) {
		r := busy(t)
		pod := podFor("a-0", "job-a", "1")
		pod.ResourceVersion = "5"
		r.cachePod(pod)
		r.step()
		next := pod.DeepCopy()
		next.ResourceVersion, next.Spec.NodeName = "6", "node-1"
		require.NoError(t, r.engine.opts.Pods.GetStore().Update(next))
		r.audited(differs(audit.DifferencePod, "team/a-0", "resourceVersion", "5", "6"))
	})
	t.Run("bound, and not counted", func(t *testing.T) {
		r := busy(t)
		pod := podFor("a-0", "job-a", "1")
		pod.Spec.NodeName = "node-1"
		r.cachePod(pod)
		r.engine.Sink().PodAssigned(testQuota, pod, false)
		r.step()
		found := r.audit()
		lost := differs(audit.DifferencePod, "team/a-0", "assigned", "no", "on node node-1")
		require.Equal(t, []audit.Difference{lost}, found.Differences)
	})
}

// Koordinator drops the pods of a deleted quota, and finds them in the new quota of the name only after they change.
// The audit knows that, and the held amount of the unit stays.
func TestPodsThatKoordinatorLetGo(t *testing.T) {
	for _, tc := range []struct {
		name string
		// seen: the quota is observed while it is away; else it is back before the next step.
		seen bool
		// released: used is observed just after the pod was let go, before the news of that is applied.
		released bool
	}{
		{name: "the quota is seen missing", seen: true},
		{name: "the quota is replaced"},
		{name: "the quota goes while it is observed", released: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := busy(t)
			pod := podFor("a-0", "job-a", "1")
			pod.Spec.NodeName = "node-1"
			r.cachePod(pod)
			r.step()
			goes := func() {
				r.engine.Sink().QuotaChanged(testQuota)
				r.engine.Sink().PodLetGo(testQuota, pod)
				r.quotas.set(testQuota, func(q *admission.Quota) { q.Used = resources.List{} })
				r.quotas.set(root, func(q *admission.Quota) { q.Used = resources.List{} })
			}
			if tc.released {
				r.quotas.onObserve = func() {
					r.quotas.onObserve = nil
					goes()
				}
				r.engine.Sink().QuotaChanged(testQuota)
				r.step()
			} else {
				goes()
			}
			there := r.quotas.levels[testQuota]
			if tc.seen {
				delete(r.quotas.levels, testQuota)
				r.step()
				require.Empty(t, r.audit().Differences)
			}
			r.quotas.levels[testQuota] = there
			r.engine.Sink().QuotaChanged(testQuota)
			r.step()
			found := r.audit()
			require.Empty(t, found.Differences)
			require.False(t, found.Rebuilt)
			require.Equal(t, "cpu: 9", r.outstanding(testQuota), "four of the one and five of the other: none of it is used")
			r.advance(time.Second)
			demand := r.engine.core.Read().Accounts().Demand(testQuota)
			require.Equal(t, cpu(13), demand, "with what waits; the request of no pod is counted")
			r.engine.Sink().PodAssigned(testQuota, pod, true)
			r.step()
			r.advance(time.Second)
			require.Empty(t, r.audit().Differences)
			require.Equal(t, cpu(1), demand.Sub(r.engine.core.Read().Accounts().Demand(testQuota)), "the request has it again")
			r.engine.Sink().PodAssigned(testQuota, pod, false)
			r.step()
			require.Len(t, r.audit().Differences, 1, "what was let go once is audited as ever")
		})
	}
}

// A pod was reserved when its quota was deleted, and never reached its node. It is not counted, and Koordinator reports
// nothing more about it. It counts as a pending pod of its unit: otherwise its gate would stay shut.
func TestAPodThatIsLetGoBeforeItIsBoundWaitsAsAnyOther(t *testing.T) {
	r := busy(t)
	pod := podFor("a-0", "job-a", "1")
	r.engine.Sink().QuotaChanged(testQuota)
	r.engine.Sink().PodLetGo(testQuota, pod)
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Used = resources.List{} })
	r.quotas.set(root, func(q *admission.Quota) { q.Used = resources.List{} })
	r.step()
	require.Equal(t, testQuota, toldOf(r, pod.UID).Quota)
	require.Empty(t, r.audit().Differences)
	r.engine.Sink().PodAssigned(testQuota, pod, true)
	r.step()
	require.True(t, toldOf(r, pod.UID).Assigned)
	require.Empty(t, r.audit().Differences)
}

func TestAuditSaysWhenTheAPIDoesNotAnswer(t *testing.T) {
	r := busy(t)
	registry := r.registry()
	r.api.client.PrependReactor("list", "queueunits", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("etcd has no leader")
	})
	_, err := r.drive.Audit(klog.NewContext(context.Background(), logr.Discard()), func() {})
	require.ErrorContains(t, err, "no leader")
	require.Nil(t, r.engine.LastAudit())
	require.Equal(t, map[string]float64{"Failed": 1}, gathered(t, registry, "audits_total"))
}

// After a panic the state may be half changed: nothing is decided on it, also while the next rebuild is put off.
func TestNothingIsDecidedOnAStateThatIsToBeBuiltAnew(t *testing.T) {
	r := ready(t, 10)
	registry := r.registry()
	r.unit("a", 1)
	r.engine.core.Call("", func(*admission.State) { panic("first") })
	r.step()
	require.Equal(t, []string{"a"}, keysOf(r.decisions()), "the state was built anew in that step")
	r.send()
	r.engine.core.Call("", func(*admission.State) { panic("second") })
	r.unit("b", 1)
	r.step()
	require.Empty(t, r.decisions(), "less than a second later the state is still the broken one")
	r.advance(time.Second)
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
	require.Equal(t, map[string]float64{"Panic": 2}, gathered(t, registry, "state_rebuilds_total"))
	require.Equal(t, map[string]float64{"core": 2}, gathered(t, registry, "panics_total"))
}

// A leader audits every interval, and any process when it is asked to.
func TestRunAudits(t *testing.T) {
	api := newFakeAPI(t)
	liveQueue(t, api)
	api.create(liveUnit("a", "1"))
	l := newLive(t, api, quotasOf(10, testQuota), nil, liveJob("a"))
	l.engine.AuditSoon()
	l.until("a standby audits when it is asked to", func() bool { return l.engine.LastAudit() != nil })
	require.Zero(t, l.engine.LastAudit().Found)
	require.Equal(t, 1, l.engine.LastAudit().Units)

	leader := newLive(t, api, quotasOf(10, testQuota), nil, liveJob("a"))
	leader.engine.Lead()
	leader.await("Dequeued", 1)
	leader.until("a leader audits without being asked", func() bool { return leader.engine.LastAudit() != nil })
	found, err := leader.engine.Audit(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Differences)
}

func differs(kind audit.DifferenceKind, object, field, engine, source string) audit.Difference {
	return audit.Difference{Kind: kind, Object: object, Field: field, Engine: engine, Source: source}
}
