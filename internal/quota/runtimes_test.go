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
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"pgregory.net/rapid"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/features"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// wood is a tree of quotas on three levels below the root, in the order in which they can be created.
var wood = []struct{ name, parent string }{
	{"x", ""}, {"y", ""}, {"a", ""},
	{"xp", "x"}, {"xq", "x"}, {"ya", "y"}, {"yb", "y"},
	{"xpa", "xp"}, {"xpb", "xp"}, {"xqa", "xq"}, {"xqb", "xq"},
}

func woodNames(leaves bool) []string {
	var names []string
	for _, q := range wood {
		parent := slices.ContainsFunc(wood, func(o struct{ name, parent string }) bool { return o.parent == q.name })
		if !leaves || !parent {
			names = append(names, q.name)
		}
	}
	return names
}

// drawAmounts draws cpu, with memory and GPUs now and then: integers, where rounding shows.
func drawAmounts(t *rapid.T, most int, what string) corev1.ResourceList {
	list := milliCPU(int64(rapid.IntRange(0, most).Draw(t, what)) * 500)
	if rapid.IntRange(0, 3).Draw(t, what+" has gpu") > 0 {
		list[gpu] = *resource.NewQuantity(int64(rapid.IntRange(0, most/4).Draw(t, what+" gpu")), resource.DecimalSI)
	}
	return list
}

func drawWood(t *rapid.T, at int) *v1alpha1.ElasticQuota {
	name, parent := wood[at].name, wood[at].parent
	options := []quotaOption{under(parent)}
	if !slices.Contains(woodNames(true), name) {
		options = append(options, isParent)
	}
	if rapid.IntRange(0, 3).Draw(t, name+" kept") == 0 {
		options = append(options, notLent)
	}
	q := elasticQuota(name, "0", "0", options...)
	q.Spec.Max = drawAmounts(t, 200, name+" max")
	q.Spec.Max[gpu] = *resource.NewQuantity(int64(rapid.IntRange(0, 12).Draw(t, name+" max gpu")), resource.DecimalSI)
	// The webhook admits no min above max; a manager would take off too much when such a quota is deleted.
	q.Spec.Min = capped(q.Spec.Max, drawAmounts(t, 60, name+" min"))
	if rapid.Bool().Draw(t, name+" weighted") {
		q.Annotations = map[string]string{extension.AnnotationSharedWeight: fmt.Sprintf(`{"cpu":"%d","nvidia.com/gpu":"%d"}`,
			rapid.IntRange(1, 20).Draw(t, name+" weight"), rapid.IntRange(1, 3).Draw(t, name+" gpu weight"))}
	}
	return q
}

// After any changes in any order, the runtime of every quota is that of a new manager with pods for all demand. The
// core knows the demand as pods, or as jobs without pods.
func TestRuntimesAreThoseOfAManagerWithPods(t *testing.T) {
	effort.Check(t, func(rt *rapid.T) { checkRuntimes(t, rt) })
}

// The same where Koordinator guarantees what is used.
func TestRuntimesAreThoseOfAManagerThatGuaranteesWhatIsUsed(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate,
		features.ElasticQuotaGuaranteeUsage, true)
	effort.Check(t, func(rt *rapid.T) { checkRuntimes(t, rt) })
}

// truth has two managers: one with pods for all demand, and the live one with the existing pods.
type truth struct {
	*liveQuotas
	mgr *core.GroupQuotaManager
	// pods of each quota: used, live and demanded.
	pods map[string][]*corev1.Pod
}

func (m *truth) setTotal(total corev1.ResourceList) {
	m.mgr.UpdateClusterTotalResource(subtract(total, m.total))
	m.setNodes(total)
}

func (m *truth) ask(name string, used, live, demand corev1.ResourceList) {
	for i, pod := range m.pods[name] {
		if m.mgr.OnPodDelete(name, pod); i < 2 {
			m.liveQuotas.mgr.OnPodDelete(name, pod)
		}
	}
	m.pods[name] = []*corev1.Pod{
		aggregatePod("assigned", used), aggregatePod("live-"+name, live), aggregatePod("demand-"+name, demand),
	}
	for i, pod := range m.pods[name] {
		if m.mgr.OnPodAdd(name, pod); i < 2 {
			m.liveQuotas.mgr.OnPodAdd(name, pod)
		}
	}
	m.want(name, toList(demand))
}

// set takes off what is asked for and asks again: a manager masks requests by the names that max has at the time.
func (m *truth) set(t *rapid.T, q *v1alpha1.ElasticQuota) {
	var asked [3]corev1.ResourceList
	for i, pod := range m.pods[q.Name] {
		asked[i] = requestOf(pod)
	}
	m.ask(q.Name, nil, nil, nil)
	require.NoError(t, m.mgr.UpdateQuota(q))
	m.liveQuotas.set(q)
	m.ask(q.Name, capped(q.Spec.Max, asked[0]), asked[1], asked[2])
}

// settle restarts the manager and refreshes everything, because only a refresh scales min.
func (m *truth) settle(names []string) {
	m.mgr.ResetQuota()
	for range 3 {
		for _, name := range names {
			m.mgr.RefreshRuntime(name)
		}
	}
}

func (m *truth) check(t *rapid.T, names []string) {
	for _, name := range names {
		info := m.mgr.GetQuotaInfoByName(name)
		runtime := toListOf(info.GetRuntime(), info.GetMax())
		require.Equal(t, runtime, m.limitOf(name), name)
	}
}

func checkRuntimes(t *testing.T, rt *rapid.T) {
	m := &truth{liveQuotas: newLive(t, true, ""), pods: map[string][]*corev1.Pod{}}
	m.args.EnableMinQuotaScale = rapid.IntRange(0, 4).Draw(rt, "scaling") > 0
	m.mgr = core.NewGroupQuotaManager("", m.args.EnableMinQuotaScale, m.args.SystemQuotaGroupMax,
		m.args.DefaultQuotaGroupMax)
	setTotal := func() {
		total := drawAmounts(rt, 300, "total")
		// A manager that never saw any of a resource does not say that there is none, and min is not scaled then.
		total[corev1.ResourceCPU] = *resource.NewMilliQuantity(1+total.Cpu().MilliValue(), resource.DecimalSI)
		if _, ok := total[gpu]; !ok {
			total[gpu] = resource.Quantity{}
		}
		m.setTotal(total)
	}
	setTotal()
	for at := range wood {
		m.set(rt, drawWood(rt, at))
	}
	for range rapid.IntRange(1, 10).Draw(rt, "steps") {
		switch rapid.IntRange(0, 7).Draw(rt, "step") {
		case 0:
			m.set(rt, drawWood(rt, rapid.IntRange(0, len(wood)-1).Draw(rt, "spec of")))
		case 1:
			setTotal()
		default:
			leaf := rapid.SampledFrom(woodNames(true)).Draw(rt, "leaf")
			// Used amounts are at most max.
			m.ask(leaf, capped(m.specs[leaf].Spec.Max, drawAmounts(rt, 100, "used")), drawAmounts(rt, 50, "live"),
				drawAmounts(rt, 250, "demand"))
		}
		if rapid.Bool().Draw(rt, "looked at") {
			m.observe(m.adapter.All()...)
			m.tree.Refresh()
		}
	}
	m.observe(m.adapter.All()...)
	m.settle(woodNames(false))
	m.check(rt, woodNames(false))
}

// The use of the default quota is subtracted twice, as the manager does after the first such pod. It is subtracted from
// the total, and as the request of one more child of the root.
func TestRuntimesDeductTheDefaultQuotaAsTheManagerDoes(t *testing.T) {
	effort.Check(t, func(rt *rapid.T) {
		m := &truth{liveQuotas: newLive(t, true, ""), pods: map[string][]*corev1.Pod{}}
		m.mgr = core.NewGroupQuotaManager("", true, m.args.SystemQuotaGroupMax, m.args.DefaultQuotaGroupMax)
		m.setTotal(milliCPU(int64(rapid.IntRange(1, 200).Draw(rt, "total")) * 1000))
		names := []string{"a", "b", "c"}
		for _, name := range names {
			q := drawQuota(rt, name)
			delete(q.Labels, extension.LabelAllowLentResource)
			m.set(rt, q)
		}
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			amount := milliCPU(int64(rapid.IntRange(0, 100).Draw(rt, "amount")) * 1000)
			if rapid.Bool().Draw(rt, "default") {
				m.ask(extension.DefaultQuotaName, amount, nil, nil)
			} else {
				m.ask(rapid.SampledFrom(names).Draw(rt, "quota"), nil, nil, amount)
			}
			m.observe(names...) // the default quota comes along
			for range 3 {
				for _, name := range names {
					m.mgr.RefreshRuntime(name)
				}
			}
			m.check(rt, names)
		}
	})
}

func drawQuota(t *rapid.T, name string, options ...quotaOption) *v1alpha1.ElasticQuota {
	most := rapid.IntRange(1, 150).Draw(t, name+" max")
	least := rapid.IntRange(0, most).Draw(t, name+" min")
	if rapid.Bool().Draw(t, name+" kept") {
		options = append(options, notLent)
	}
	return elasticQuota(name, fmt.Sprint(least), fmt.Sprint(most), options...)
}

func subtract(a, b corev1.ResourceList) corev1.ResourceList {
	difference := a.DeepCopy()
	for name, amount := range b {
		d := difference[name]
		d.Sub(amount)
		difference[name] = d
	}
	return difference
}

// TestElasticQuotaForgetsRequestsWhenAParentMoves shows a fault of ElasticQuota that lasts until its restart. If a
// parent moves, ElasticQuota subtracts the whole demand of its children from the former parent, although at most its
// max was added there.
func TestElasticQuotaForgetsRequestsWhenAParentMoves(t *testing.T) {
	args := quotaArgs(true)
	mgr := core.NewGroupQuotaManager("", true, args.SystemQuotaGroupMax, args.DefaultQuotaGroupMax)
	mgr.UpdateClusterTotalResource(cpu("100"))
	quotas := []*v1alpha1.ElasticQuota{
		elasticQuota("from", "10", "50", isParent), elasticQuota("to", "10", "50", isParent),
		elasticQuota("moves", "0", "3", isParent, under("from")), elasticQuota("child", "5", "5", under("moves"), notLent),
		elasticQuota("stays", "0", "20", under("from")),
	}
	for _, q := range quotas {
		require.NoError(t, mgr.UpdateQuota(q))
	}
	mgr.OnPodAdd("stays", aggregatePod("pending", cpu("2")))
	require.EqualValues(t, 5000, milliOf(mgr.GetQuotaInfoByName("from").GetRequest()))
	require.NoError(t, mgr.UpdateQuota(elasticQuota("moves", "0", "3", isParent, under("to"))))
	require.EqualValues(t, 0, milliOf(mgr.GetQuotaInfoByName("from").GetRequest()),
		"5 were taken off, of which 3 were added")
	require.EqualValues(t, 0, milliOf(mgr.RefreshRuntime("stays")))
	mgr.ResetQuota()
	require.EqualValues(t, 2000, milliOf(mgr.GetQuotaInfoByName("from").GetRequest()))
	require.EqualValues(t, 2000, milliOf(mgr.RefreshRuntime("stays")))
}

// Nothing waits forever: after any change, a caller that observes the quotas reported to the sink knows the limit of
// every quota with pending jobs. The limits equal those of a first observation of everything.
func TestWhoeverObservesWhatIsToldKnowsEveryLimit(t *testing.T) {
	effort.Check(t, func(rt *rapid.T) {
		l := newLive(t, true, "")
		sink := &recordingSink{}
		l.adapter.Subscribe(sink)
		setTotal := func() {
			// A manager that never saw a resource says nothing about it. A manager that saw it disappear says zero, and only
			// then scales min.
			next := drawAmounts(rt, 300, "total")
			next[corev1.ResourceCPU] = *resource.NewQuantity(1+next.Cpu().Value(), resource.DecimalSI)
			next[gpu] = *resource.NewQuantity(1+int64(rapid.IntRange(0, 30).Draw(rt, "total gpu")), resource.DecimalSI)
			l.setNodes(next)
		}
		setTotal()
		for at := range wood {
			l.set(drawWood(rt, at))
		}
		demands := map[string]resources.List{}
		pods := map[string]*corev1.Pod{}
		for i := range rapid.IntRange(1, 15).Draw(rt, "steps") {
			leaf := rapid.SampledFrom(woodNames(true)).Draw(rt, "leaf")
			switch rapid.IntRange(0, 8).Draw(rt, "step") {
			case 0:
				l.set(drawWood(rt, rapid.IntRange(0, len(wood)-1).Draw(rt, "spec of")))
			case 1:
				setTotal()
			case 2:
				if l.specs[leaf] != nil {
					l.remove(leaf)
				}
			case 3, 4:
				name := fmt.Sprintf("pod-%d", i)
				pod := l.pod(name, leaf, "0")
				pod.Spec.Containers[0].Resources.Requests = drawAmounts(rt, 40, "pod")
				if rapid.Bool().Draw(rt, "assigned") {
					pod.Spec.NodeName = "n"
				}
				pods[name] = pod
				l.addPod(pod)
			case 5:
				if len(pods) > 0 {
					name := rapid.SampledFrom(slices.Sorted(maps.Keys(pods))).Draw(rt, "pod ends")
					l.mgr.OnPodDelete(l.GetQuotaName(pods[name]), pods[name])
					l.adapter.onPod(pods[name], nil)
					delete(pods, name)
				}
			default:
				demands[leaf] = toList(drawAmounts(rt, 250, "demand"))
				l.want(leaf, demands[leaf])
			}
			told := append(sink.drain(), sink.more...)
			sink.more = nil
			if sink.totals > 0 {
				sink.totals = 0
				told = l.adapter.All()
			}
			l.observe(told...)
			if rapid.Bool().Draw(rt, "looked at") {
				l.tree.Refresh()
			}
			require.Empty(rt, sink.drain())
		}
		known := l.tree
		l.tree = capacity.NewTree(ledger.New())
		for name, demand := range demands {
			l.want(name, demand)
		}
		found, _ := l.observe(l.adapter.All()...)
		for _, q := range found {
			limit, promised := known.LimitOf(q.Name)
			freshLimit, freshPromised := l.tree.LimitOf(q.Name)
			require.Equal(rt, freshLimit, limit, q.Name)
			require.Equal(rt, freshPromised, promised, q.Name)
		}
	})
}
