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

package quota

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// newCluster has that many cpus and these quotas, and ElasticQuota itself.
func newCluster(t *testing.T, cores string, quotas ...*v1alpha1.ElasticQuota) *world {
	t.Helper()
	w := newWorld(t, newRealPlugin(t))
	w.setNode("node", cpu(cores), false)
	for _, q := range quotas {
		w.setQuota(q, false)
	}
	w.quiet()
	return w
}

// askFor submits n jobs of one pod each and runs what is admitted.
func (w *world) askFor(prefix, quota string, n int, amount string) {
	for i := range n {
		w.ask(fmt.Sprintf("%s%02d", prefix, i), quota, amount)
	}
	w.run()
}

// run creates the pods of all admitted jobs. ElasticQuota has to pass every one of them, and those of a borrowing job
// at least on their reservation.
func (w *world) run() {
	w.t.Helper()
	for again := true; again; {
		again = false
		for _, key := range sortedKeysOf(w.jobs) {
			j := w.jobs[key]
			if !j.admitted || len(j.pods) > 0 {
				continue
			}
			again = true
			w.createPods(j, false)
			for _, name := range j.pods {
				refusal := w.schedule(w.pods[name])
				if refusal != "" && j.borrows && w.adapter.Admits(j.unit.Quota, w.pods[name].pod) == nil {
					w.place(w.pods[name])
				} else if refusal != "" {
					w.t.Fatalf("pod %s of an admitted job is refused: %s", name, refusal)
				}
			}
		}
		w.quiet()
	}
}

// end finishes n running jobs of a quota, the oldest first.
func (w *world) end(quota string, n int) {
	for _, key := range sortedKeysOf(w.jobs) {
		if j := w.jobs[key]; n > 0 && j.admitted && j.unit.Quota == quota {
			w.finish(j)
			w.quiet()
			n--
		}
	}
	w.run()
}

// inUse is what ElasticQuota counts in a quota, in cores.
func (w *world) inUse(quota string) int64 {
	used := w.live.GetGroupQuotaManagerForTree("").GetQuotaInfoByName(quota).GetUsed()
	return used.Cpu().Value()
}

// Two quotas have min 40 and max 100 each, of 100 cores. Demand of 80 and 10 settles at 80 and 10. When the second's
// rises to 60 it gets back its 40 as the first's jobs end, before the first gets anything more.
func TestAGuaranteeComesBackAsJobsEnd(t *testing.T) {
	w := newCluster(t, "100", elasticQuota("first", "40", "100"), elasticQuota("second", "40", "100"))
	w.askFor("a", "first", 16, "5")
	w.askFor("b", "second", 2, "5")
	require.EqualValues(t, 80, w.inUse("first"))
	require.EqualValues(t, 10, w.inUse("second"))

	w.askFor("more-b", "second", 10, "5")
	require.EqualValues(t, 20, w.inUse("second"), "what is free; nothing is killed")
	w.askFor("more-a", "first", 4, "5")
	require.EqualValues(t, 80, w.inUse("first"))
	for first := int64(75); first >= 50; first -= 5 {
		w.end("first", 1)
		require.Equal(t, first, w.inUse("first"), "the first gets nothing more")
		require.Equal(t, 100-first, w.inUse("second"), "the second gets what the first gives")
	}
	w.end("first", 1)
	require.EqualValues(t, 50, w.inUse("first"),
		"each has its min and half of the rest: a job that ends is followed by one of its own")
	require.EqualValues(t, 50, w.inUse("second"))
}

func TestWhatIsNotLentIsKeptForItsOwner(t *testing.T) {
	w := newCluster(t, "100", elasticQuota("owner", "40", "100", notLent), elasticQuota("guest", "0", "100"))
	w.askFor("g", "guest", 10, "10")
	require.EqualValues(t, 60, w.inUse("guest"), "nobody of the owner is there, and its min is kept")
	w.askFor("o", "owner", 4, "10")
	require.EqualValues(t, 40, w.inUse("owner"), "at once")
	require.EqualValues(t, 60, w.inUse("guest"))
}

func TestWhatIsLentComesBackOnlyAsJobsEnd(t *testing.T) {
	w := newCluster(t, "100", elasticQuota("owner", "40", "100"), elasticQuota("guest", "0", "100"))
	w.askFor("g", "guest", 10, "10")
	require.EqualValues(t, 100, w.inUse("guest"))
	w.askFor("o", "owner", 4, "10")
	require.Zero(t, w.inUse("owner"))
	w.end("guest", 4)
	require.EqualValues(t, 40, w.inUse("owner"))
	require.EqualValues(t, 60, w.inUse("guest"))
}

// The cluster has half of what is promised. With min scaling each gets half of its min; without it each may have all of
// it, and the cluster total is what stops them.
func TestMinOfAClusterThatIsTooSmall(t *testing.T) {
	for _, scale := range []bool{true, false} {
		t.Run(fmt.Sprintf("EnableMinQuotaScale=%v", scale), func(t *testing.T) {
			live := newRealPlugin(t)
			live.args.EnableMinQuotaScale = scale
			w := newWorld(t, live)
			w.setNode("node", cpu("100"), false)
			w.setQuota(elasticQuota("big", "150", "200"), false)
			w.setQuota(elasticQuota("small", "50", "200"), false)
			w.quiet()
			// All of the demand is there before anything is decided.
			for i := range 10 {
				for _, quota := range []string{"big", "small"} {
					j := &worldJob{size: cpu("10")}
					key := fmt.Sprintf("%s-%d", quota, i)
					j.unit = unit.Unit{
						Key: "default/" + key, UID: key, Quota: quota, Queue: "priority", Created: w.now, Active: true,
						Request: toList(cpu("10")), Pods: 1,
					}
					w.submit(j)
				}
			}
			w.quiet()
			w.run()
			if !scale {
				require.EqualValues(t, 100, w.inUse("big")+w.inUse("small"), "the cluster is full, and no fuller")
				return
			}
			require.EqualValues(t, 80, w.inUse("big"), "75, in jobs of 10; the rest of both shares is lent to the older job")
			require.EqualValues(t, 20, w.inUse("small"), "25, in jobs of 10")
		})
	}
}

// The children together have more than their parent. Jobs and plain pods together never exceed the parent, whether
// ElasticQuota checks parents or not.
func TestChildrenTogetherStayBelowTheirParent(t *testing.T) {
	for _, check := range []bool{false, true} {
		for _, byRuntime := range []bool{true, false} {
			t.Run(fmt.Sprintf("EnableCheckParentQuota=%v,EnableRuntimeQuota=%v", check, byRuntime), func(t *testing.T) {
				live := newRealPlugin(t)
				live.args.EnableCheckParentQuota, live.args.EnableRuntimeQuota = check, byRuntime
				w := newWorld(t, live)
				w.setNode("node", cpu("100"), false)
				for _, q := range []*v1alpha1.ElasticQuota{
					elasticQuota("parent", "20", "50", isParent), elasticQuota("a", "10", "40", under("parent")),
					elasticQuota("b", "10", "40", under("parent")),
				} {
					w.setQuota(q, false)
				}
				w.quiet()
				plain := w.newPod("plain", "a", "", cpu("15"), false)
				w.createPod(plain, false)
				require.Empty(t, w.schedule(plain))
				w.quiet()
				w.askFor("a", "a", 8, "5")
				w.askFor("b", "b", 8, "5")
				require.EqualValues(t, 50, w.inUse("parent"), "35 beside the plain pod")
				w.deletePod("plain", false)
				w.quiet()
				w.run()
				require.EqualValues(t, 50, w.inUse("parent"))
			})
		}
	}
}

func gpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}
}

func gpuQuota(name string, min, max int64) *v1alpha1.ElasticQuota {
	q := elasticQuota(name, "0", "100")
	q.Spec.Min["nvidia.com/gpu"], q.Spec.Max["nvidia.com/gpu"] = *resource.NewQuantity(min, resource.DecimalSI),
		*resource.NewQuantity(max, resource.DecimalSI)
	return q
}

// Three quotas with equal rights want more than the 8 GPUs of the cluster. Koordinator v1.8.0 rounds each share to the
// nearest integer: 3 + 3 + 3. Each limit alone is that of its PreFilter. The sum exceeds the total by one, which only
// the root shows. PreFilter does not look at the root. We do, so the ninth job waits: otherwise its pod would be
// pending without a node.
func TestSharesThatRoundToMoreThanThereIs(t *testing.T) {
	node := cpu("100")
	node["nvidia.com/gpu"] = resource.MustParse("8")
	w := newWorld(t, newRealPlugin(t))
	w.setNode("node", node, false)
	for _, name := range []string{"a", "b", "c"} {
		w.setQuota(gpuQuota(name, 0, 8), false)
	}
	w.quiet()
	for i := range 3 {
		for _, quota := range []string{"a", "b", "c"} {
			for _, more := range []string{"", "-more"} {
				key := fmt.Sprintf("%s%d%s", quota, i, more)
				w.submit(&worldJob{size: gpus(1), unit: unit.Unit{
					Key: "default/" + key, UID: key, Quota: quota, Queue: "priority", Created: w.now, Active: true,
					Request: toList(gpus(1)), Pods: 1,
				}})
			}
		}
	}
	w.quiet()
	for _, quota := range []string{"a", "b", "c"} {
		limit, _ := w.limitOf(quota).Get("nvidia.com/gpu")
		require.EqualValues(t, 3, limit, "as ElasticQuota computes it")
	}
	require.Equal(t, 8, w.admitted, "and as many as there are")
	w.run()
	root := 0
	for _, key := range sortedKeysOf(w.jobs) {
		explanation, _ := w.state.Explain(key)
		for _, short := range explanation.Shortages {
			if short.Binds && short.Level == extension.RootQuotaName {
				root++
			}
		}
	}
	require.Positive(t, root, "those of the quota with room left wait for the cluster")
}

// Shares can also round to less than the total. Of 10 GPUs three quotas of equal weight get 3 each. ElasticQuota gives
// the last one only to a quota that asks alone, so a fourth pod of each quota stays pending. The queue lends it to the
// first quota, and ElasticQuota passes that pod, because the others have no pods that ask.
func TestSharesThatRoundToLessThanThereIs(t *testing.T) {
	node := cpu("100")
	node["nvidia.com/gpu"] = resource.MustParse("10")
	w := newWorld(t, newRealPlugin(t))
	w.setNode("node", node, false)
	for _, name := range []string{"a", "b", "c"} {
		w.setQuota(gpuQuota(name, 0, 10), false)
	}
	w.quiet()
	for i := range 4 {
		for _, quota := range []string{"a", "b", "c"} {
			key := fmt.Sprintf("%s%d", quota, i)
			w.submit(&worldJob{size: gpus(1), unit: unit.Unit{
				Key: "default/" + key, UID: key, Quota: quota, Queue: "priority", Created: w.now, Active: true,
				Request: toList(gpus(1)), Pods: 1,
			}})
		}
	}
	w.quiet()
	require.Equal(t, 10, w.admitted)
	require.True(t, w.jobs["default/a3"].admitted)
	w.run()
	w.end("a", 1)
	require.Equal(t, 11, w.admitted, "and then to the next")
	oracle := newRealPlugin(t)
	w.restarted(oracle)
	for _, quota := range []string{"a", "b", "c"} {
		p := w.newPod(quota+"-4th", quota, "", gpus(1), false)
		oracle.OnPodAdd(p.pod)
	}
	oracle.refreshAll()
	for _, quota := range []string{"a", "b", "c"} {
		require.NotEmpty(t, oracle.refuses(testContext, w.newPod(quota+"-4th", quota, "", gpus(1), false).pod))
	}
}

// Koordinator v1.8.0 subtracts the use of the default quota from the total. The object of the default quota, if it
// exists as ElasticQuota creates it, has weight. Then the quota gets the same amount again, as a child of the root.
// With 20 of 100 GB of memory used there, 60 are left for all others, and not 80. The limit is the same here. Nobody
// asks for the other 20, so they are lent, and the pods of an admitted job pass on their reservation.
func TestUseOfTheDefaultQuotaIsDeductedTwice(t *testing.T) {
	for _, object := range []bool{true, false} {
		t.Run(fmt.Sprintf("its object is there: %v", object), func(t *testing.T) {
			live := newRealPlugin(t)
			w := newWorld(t, live)
			total := cpu("100")
			total[corev1.ResourceMemory] = resource.MustParse("100")
			w.setNode("node", total, false)
			if object {
				w.setQuota(&v1alpha1.ElasticQuota{
					ObjectMeta: elasticQuota(extension.DefaultQuotaName, "0", "0").ObjectMeta,
					Spec:       v1alpha1.ElasticQuotaSpec{Max: live.args.DefaultQuotaGroupMax.DeepCopy()},
				}, false)
			}
			q := elasticQuota("a", "10", "100")
			q.Spec.Min[corev1.ResourceMemory], q.Spec.Max[corev1.ResourceMemory] = resource.MustParse("10"),
				resource.MustParse("100")
			w.setQuota(q, false)
			w.quiet()
			request := cpu("1")
			request[corev1.ResourceMemory] = resource.MustParse("20")
			plain := w.newPod("plain", "", "", request, false)
			w.createPod(plain, false)
			require.Empty(t, w.schedule(plain))
			w.quiet()

			ask := cpu("1")
			ask[corev1.ResourceMemory] = resource.MustParse("80")
			j := &worldJob{size: ask, unit: unit.Unit{
				Key: "default/j", UID: "j", Quota: "a", Queue: "priority", Created: w.now, Active: true,
				Request: toList(ask), Pods: 1,
			}}
			w.submit(j)
			w.quiet()
			oracle := newRealPlugin(t)
			w.restarted(oracle)
			pod := w.missingPods(j)[0].pod
			oracle.OnPodAdd(pod)
			refusal := oracle.refuses(testContext, pod)
			require.Equal(t, object, refusal != "", "80 of 100 are free, and ElasticQuota says: %s", refusal)
			require.True(t, j.admitted)
			w.createPod(w.missingPods(j)[0], false)
			require.NoError(t, w.adapter.Admits("a", pod))
			w.quiet()
			limit, _ := w.limitOf("a").Get("memory")
			require.EqualValues(t, map[bool]int{true: 60, false: 80}[object], limit)
		})
	}
}

// ElasticQuota drops the pods of a deleted quota without a word, and counts them again when it next hears of each.
func TestPodsOfAQuotaThatIsMadeAgainAreCountedOnce(t *testing.T) {
	a := elasticQuota("a", "0", "50", under("p"))
	w := newCluster(t, "100", elasticQuota("p", "0", "60", isParent), a, elasticQuota("b", "0", "60", under("p")))
	w.askFor("a", "a", 1, "40")
	require.EqualValues(t, 40, w.inUse("a"))
	w.deleteQuota("a", false)
	w.setQuota(a, false)
	w.quiet()
	require.Zero(t, w.inUse("a"), "what ElasticQuota counts")
	more := w.ask("a-more", "a", "20")
	other := w.ask("b-more", "b", "30")
	require.Equal(t, unit.ReasonQuotaExceeded, w.whyNot(more))
	require.Equal(t, unit.ReasonQuotaExceeded, w.whyNot(other))
	w.report()
	w.quiet()
	require.EqualValues(t, 40, w.inUse("a"))
	require.True(t, w.state.Holdings().Read("a").Outstanding().IsZero())
	require.True(t, w.ask("b-fits", "b", "20").admitted, "40 and 20 of 60")
}

// A deleted quota is created again. Koordinator then finds the pods that it had charged to the default quota, and moves
// them within a second. A pod that ends in between is moved as if it ran. A pod that changes in between is counted
// twice. When this test fails, Koordinator has changed: remove the first lines of two plans of the simulator
// (test/sim/testdata/plans: ended-before-it-was-moved, counted-and-moved).
func TestElasticQuotaMovesWhatHasEndedOrIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile, later func(w *world)
		used             int64
	}{
		"it ends":         {func(w *world) { w.deletePod("plain", false) }, func(*world) {}, 40},
		"it changes":      {func(w *world) { w.touch("plain") }, func(w *world) { w.deletePod("plain", false) }, 40},
		"it is let alone": {func(*world) {}, func(w *world) { w.deletePod("plain", false) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := elasticQuota("a", "0", "50")
			w := newCluster(t, "100", a)
			plain := w.newPod("plain", "a", "", cpu("40"), false)
			w.createPod(plain, false)
			require.Empty(t, w.schedule(plain))
			w.deleteQuota("a", false)
			w.touch("plain")
			w.setQuota(a, false)
			c.meanwhile(w)
			w.migrate()
			c.later(w)
			w.allDirty = true
			w.quiet()
			require.EqualValues(t, c.used, w.inUse("a"), "what ElasticQuota counts, of no pod at all")
			require.Equal(t, c.used == 0, w.ask("more", "a", "20").admitted)
		})
	}
}

func TestUseOfADeletedQuotaIsFreeAbove(t *testing.T) {
	w := newCluster(t, "100", elasticQuota("a", "0", "100"), elasticQuota("b", "0", "100"))
	plain := w.newPod("plain", "a", "", cpu("80"), false)
	w.createPod(plain, false)
	require.Empty(t, w.schedule(plain))
	w.quiet()
	job := w.ask("b", "b", "30")
	require.Equal(t, unit.ReasonQuotaExceeded, w.whyNot(job))
	w.deleteQuota("a", false)
	w.quiet()
	require.True(t, job.admitted, "ElasticQuota counts the pod nowhere, and nothing but the deletion says so")
}

// A job without a quota is charged to Koordinator's default one. It belongs to nobody, so nothing is queued there
// unless the administrator allows it.
func TestTheBuiltInQuotasAreClosed(t *testing.T) {
	l := newLive(t, true, "100", elasticQuota("a", "0", "100"))
	names := []string{"a", extension.DefaultQuotaName, extension.SystemQuotaName}
	closed := func() (list []string) {
		found, _ := l.adapter.Observe(names)
		for i := range found {
			if found[i].Closed {
				list = append(list, found[i].Name)
			}
		}
		return list
	}
	require.ElementsMatch(t, names[1:], closed())
	l.adapter.OpenBuiltIn()
	require.Empty(t, closed())
}

func TestWhatIsReservedInTheDefaultQuotaIsNotShared(t *testing.T) {
	w := newCluster(t, "100", elasticQuota("a", "0", "100"), elasticQuota("b", "0", "100"))
	require.True(t, w.ask("free", extension.DefaultQuotaName, "40").admitted)
	w.ask("a", "a", "61")
	limit, _ := w.limitOf("a").Get("cpu")
	require.EqualValues(t, 60000, limit, "as when the pods are there")
	limit, _ = w.limitOf(extension.DefaultQuotaName).Get("cpu")
	require.Greater(t, limit, int64(100000), "the default quota has no share of its own")
	require.True(t, w.ask("free-more", extension.DefaultQuotaName, "20").admitted)
}

// Koordinator's webhook refuses such trees. ElasticQuota has no limit for what the parent does not name: max is ours.
func TestMaxLimitsWhatTheParentDoesNotName(t *testing.T) {
	leaf := gpuQuota("leaf", 0, 2)
	leaf.Labels[extension.LabelQuotaParent] = "p"
	w := newCluster(t, "100", elasticQuota("p", "0", "100", isParent), leaf)
	for i := range 3 {
		key := fmt.Sprint(i)
		w.submit(&worldJob{size: gpus(1), unit: unit.Unit{
			Key: "default/" + key, UID: key, Quota: "leaf", Queue: "priority", Created: w.now, Active: true,
			Request: toList(gpus(1)), Pods: 1,
		}})
	}
	w.quiet()
	require.Equal(t, 2, w.admitted)
	w.run()
}
