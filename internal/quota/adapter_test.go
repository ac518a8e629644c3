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
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// liveQuotas is ElasticQuota as the adapter sees it: a real GroupQuotaManager, given what informers would give it, with
// our hook in it.
type liveQuotas struct {
	mgr     *core.GroupQuotaManager
	adapter *Adapter
	args    *config.ElasticQuotaArgs
	specs   map[string]*v1alpha1.ElasticQuota
	total   corev1.ResourceList
	// tree is the core's, of what was observed.
	tree *capacity.Tree
}

func newLive(t testing.TB, runtime bool, total string, quotas ...*v1alpha1.ElasticQuota) *liveQuotas {
	t.Helper()
	args := quotaArgs(runtime)
	args.HookPlugins = []config.HookPluginConf{{Key: hookKey, FactoryKey: hookKey}}
	l := &liveQuotas{
		args: args, specs: map[string]*v1alpha1.ElasticQuota{}, tree: capacity.NewTree(ledger.New()),
	}
	registry := NewRegistry()
	l.adapter = registry.Adapter()
	l.adapter.captured = func() (Live, *config.ElasticQuotaArgs) { return l, args }
	registry.RegisterHook()
	l.mgr = core.NewGroupQuotaManager("", true, args.SystemQuotaGroupMax, args.DefaultQuotaGroupMax)
	require.NoError(t, l.mgr.InitHookPlugins(args))
	l.setTotal(total)
	for _, q := range quotas {
		l.set(q)
	}
	return l
}

func (l *liveQuotas) GetQuotaName(pod *corev1.Pod) string {
	if name := extension.GetQuotaName(pod); name != "" {
		return name
	}
	if _, ok := l.specs[pod.Namespace]; ok {
		return pod.Namespace
	}
	return extension.DefaultQuotaName
}

func (l *liveQuotas) GetGroupQuotaManagerForQuota(string) *core.GroupQuotaManager { return l.mgr }
func (l *liveQuotas) GetGroupQuotaManagerForTree(string) *core.GroupQuotaManager  { return l.mgr }
func (l *liveQuotas) ListGroupQuotaManagersForQuotaTree() []*core.GroupQuotaManager {
	return nil
}

func (l *liveQuotas) set(q *v1alpha1.ElasticQuota) {
	old := l.specs[q.Name]
	l.specs[q.Name] = q
	_ = l.mgr.UpdateQuota(q)
	if old == nil {
		l.adapter.onQuota(nil, q)
		return
	}
	l.adapter.onQuota(old, q)
}

func (l *liveQuotas) remove(name string) {
	old := l.specs[name]
	delete(l.specs, name)
	_ = l.mgr.DeleteQuota(old)
	l.adapter.onQuota(cache.DeletedFinalStateUnknown{Key: "default/" + name, Obj: old}, nil)
}

func (l *liveQuotas) setTotal(total string) {
	if total != "" {
		l.setNodes(cpu(total))
	}
}

// setNodes has one node that has all of the cluster.
func (l *liveQuotas) setNodes(total corev1.ResourceList) {
	node := func(list corev1.ResourceList) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Status: corev1.NodeStatus{Allocatable: list}}
	}
	l.mgr.UpdateClusterTotalResource(subtract(total, l.total))
	l.adapter.onNode(node(l.total), node(total))
	l.total = total
}

func (l *liveQuotas) pod(name, quota, amount string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name),
			Labels: map[string]string{extension.LabelQuotaName: quota},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu(amount)}}}},
	}
}

func (l *liveQuotas) addPod(pod *corev1.Pod) {
	l.mgr.OnPodAdd(l.GetQuotaName(pod), pod)
	l.adapter.onPod(nil, pod)
}

type recordingSink struct {
	assigned []string
	changed  []string
	more     []string
	totals   int
	mappings int
}

func (s *recordingSink) PodAssigned(quota string, pod *corev1.Pod, assigned bool) {
	sign := "-"
	if assigned {
		sign = "+"
	}
	s.assigned = append(s.assigned, sign+quota+"/"+pod.Name)
}

func (s *recordingSink) PodLetGo(quota string, pod *corev1.Pod) {
	s.assigned = append(s.assigned, "~"+quota+"/"+pod.Name)
}

func (s *recordingSink) QuotaChanged(names ...string) { s.changed = append(s.changed, names...) }
func (s *recordingSink) MoreRequested(name string)    { s.more = append(s.more, name) }
func (s *recordingSink) TotalChanged()                { s.totals++ }
func (s *recordingSink) MappingChanged()              { s.mappings++ }

func (s *recordingSink) drain() []string {
	names := s.changed
	s.changed = nil
	slices.Sort(names)
	return slices.Compact(names)
}

func list(cpuMilli int64) resources.List { return resources.FromMap(map[string]int64{"cpu": cpuMilli}) }

func limits(found []admission.Quota) map[string]int64 {
	m := map[string]int64{}
	for _, q := range found {
		m[q.Name], _ = q.Limit.Get("cpu")
	}
	return m
}

func namesOf(found []admission.Quota) []string {
	var names []string
	for _, q := range found {
		names = append(names, q.Name)
	}
	return names
}

func TestObserveWithoutRuntimeQuotaLimitsByMax(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("p", "60", "80", isParent), elasticQuota("c", "10", "70", under("p")),
		elasticQuota("q", "0", "90"))
	found, gone := l.adapter.Observe([]string{"q", "c", "nobody", "c"})
	require.Equal(t, []string{"nobody"}, gone)
	require.Equal(t, []string{"c", "p", "q", extension.RootQuotaName}, namesOf(found), "leaf before parent, each once")
	require.Equal(t, map[string]int64{"c": 70000, "p": 80000, "q": 90000, extension.RootQuotaName: 100000}, limits(found))
	require.Equal(t, "p", found[0].Parent)
	require.Equal(t, extension.RootQuotaName, found[1].Parent)
	require.Empty(t, found[3].Parent)
	require.Equal(t, list(10000), found[0].Min)
}

func TestObserveCountsWhatIsAssignedOnEveryLevel(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("p", "60", "80", isParent), elasticQuota("c", "10", "70", under("p")))
	pod := l.pod("x", "c", "7")
	pod.Labels[extension.LabelPreemptible] = "false"
	l.addPod(pod)
	free := l.pod("y", "", "5")
	free.Spec.NodeName = "n"
	l.addPod(free)
	used := func() map[string]int64 {
		found, _ := l.adapter.Observe([]string{"c"})
		m := map[string]int64{}
		for _, q := range found {
			m[q.Name], _ = q.Used.Get("cpu")
		}
		return m
	}
	require.Equal(t, map[string]int64{"c": 0, "p": 0, extension.RootQuotaName: 5000}, used(),
		"what the default quota uses counts in the root")
	l.mgr.ReservePod("c", pod)
	require.Equal(t, map[string]int64{"c": 7000, "p": 7000, extension.RootQuotaName: 12000}, used())
	found, _ := l.adapter.Observe([]string{"c"})
	require.Equal(t, list(7000), found[0].NonPreemptibleUsed)
}

func TestTheDefaultQuotaIsLimitedByItsMaxAndTheTotal(t *testing.T) {
	l := newLive(t, true, "100")
	found, gone := l.adapter.Observe([]string{extension.DefaultQuotaName})
	require.Empty(t, gone)
	require.Equal(t, []string{extension.DefaultQuotaName, extension.RootQuotaName}, namesOf(found))
	require.Equal(t, found[0].Max, found[0].Limit)
	require.EqualValues(t, 100000, limits(found)[extension.RootQuotaName])
}

func TestWithoutNodesNothingIsUnlimited(t *testing.T) {
	l := newLive(t, false, "", elasticQuota("a", "0", "10"))
	found, _ := l.adapter.Observe([]string{"a"})
	total, limited := found[1].Limit.Get("memory")
	require.True(t, limited)
	require.Zero(t, total)
	cpuTotal, limited := found[1].Limit.Get("cpu")
	require.True(t, limited)
	require.Zero(t, cpuTotal)
}

func TestTheRuntimeFollowsFromWhatIsObservedAndDemanded(t *testing.T) {
	l := newLive(t, true, "100", elasticQuota("a", "40", "100"), elasticQuota("b", "40", "100"))
	require.Equal(t, map[string]int64{"a": 0, "b": 0, extension.RootQuotaName: 100000}, l.limits("a", "b"),
		"nothing asked, nothing granted")
	zero, named := l.limitOf("a").Get("cpu")
	require.True(t, named, "a resource that the limit does not name would be unlimited")
	require.Zero(t, zero)

	l.want("a", list(80000))
	l.want("b", list(80000))
	require.Equal(t, list(50000), l.limitOf("a"))
	require.Equal(t, list(50000), l.limitOf("b"))
	l.want("b", list(45000))
	require.Equal(t, list(55000), l.limitOf("a"), "the demand of one changes the limit of the other")
	l.want("b", list(0))
	require.Equal(t, list(80000), l.limitOf("a"))
	require.Equal(t, list(0), l.limitOf("b"))
}

func TestPodsOfOthersChangeTheRuntime(t *testing.T) {
	l := newLive(t, true, "100", elasticQuota("a", "40", "100"), elasticQuota("b", "40", "100"))
	l.want("a", list(80000))
	sink := &recordingSink{}
	l.adapter.Subscribe(sink)
	l.observe("a", "b")
	sink.drain()
	l.addPod(l.pod("x", "b", "45"))
	require.Equal(t, []string{"b"}, sink.more, "a pending pod is not told by the hook")
	require.Empty(t, sink.drain(), "and nobody has to hurry for it")
	l.addPod(l.pod("y", "b", "0"))
	require.Len(t, sink.more, 1, "what is known is not told again before it is observed")
	l.adapter.onPod(l.pod("y", "b", "0"), nil)
	require.Equal(t, []string{"b"}, sink.drain(), "one that goes is told at once: limits may have become larger")
	l.observe("b")
	require.Equal(t, list(55000), l.limitOf("a"))
	require.Empty(t, sink.drain(), "at rest nothing is told")
	l.addPod(l.pod("z", "b", "1"))
	require.Len(t, sink.more, 2)
}

// A pod whose quota does not exist is charged to the default quota, of which nobody is told.
func TestTheDefaultQuotaComesAlong(t *testing.T) {
	l := newLive(t, true, "100", elasticQuota("a", "0", "100"))
	l.want("a", list(100000))
	require.EqualValues(t, 100000, l.limits("a")["a"])
	pod := l.pod("x", "nobody", "20")
	pod.Spec.NodeName = "n"
	l.mgr.OnPodAdd(extension.DefaultQuotaName, pod)
	require.EqualValues(t, 80000, l.limits("nobody", "a")["a"])
	require.Equal(t, []string{"a", extension.DefaultQuotaName, extension.RootQuotaName},
		namesOf(first(l.adapter.Observe([]string{"a"}))))
	l.args.EnableRuntimeQuota = false
	require.Equal(t, []string{"a", extension.RootQuotaName}, namesOf(first(l.adapter.Observe([]string{"a"}))))
}

func first(found []admission.Quota, _ []string) []admission.Quota { return found }

func TestQuotasComeAndGo(t *testing.T) {
	l := newLive(t, true, "100", elasticQuota("a", "40", "100"), elasticQuota("b", "40", "100"))
	l.want("a", list(80000))
	l.want("b", list(80000))
	l.observe("a", "b")
	sink := &recordingSink{}
	l.adapter.Subscribe(sink)
	l.remove("b")
	require.Contains(t, sink.drain(), "b")
	_, gone := l.observe("a", "b")
	require.Equal(t, []string{"b"}, gone)
	require.Equal(t, list(80000), l.limitOf("a"))
	require.NotContains(t, l.adapter.All(), "b")
	l.set(elasticQuota("b", "40", "100"))
	_, gone = l.observe("a", "b")
	require.Empty(t, gone)
	require.Equal(t, list(50000), l.limitOf("b"), "its queued jobs are still known")
	require.Equal(t, []string{"a", "b", extension.DefaultQuotaName, extension.SystemQuotaName}, l.adapter.All())
}

// At its start a scheduler finds all quotas at once, including the built-in ones.
func TestQuotasThatAreThereAtTheStart(t *testing.T) {
	top, leaves := elasticQuota("company", "40", "40", isParent), []string{"alpha", "zeta"}
	l := newLive(t, true, "100", top,
		elasticQuota("alpha", "10", "40", under("lab")), elasticQuota("lab", "20", "40", under("company"), isParent),
		elasticQuota("zeta", "10", "40", under("company")),
		elasticQuota(extension.DefaultQuotaName, "0", "100"), elasticQuota(extension.SystemQuotaName, "0", "100"))
	for _, name := range leaves {
		l.want(name, list(20000))
	}
	limits := l.limits(leaves...)
	for _, name := range append(leaves, "lab") {
		require.EqualValues(t, 20000, limits[name], name)
	}
	require.EqualValues(t, 40000, limits["company"])
}

func TestTheTotalIsFollowed(t *testing.T) {
	l := newLive(t, true, "100", elasticQuota("a", "40", "100"), elasticQuota("b", "40", "100"))
	l.want("a", list(80000))
	l.want("b", list(80000))
	for _, total := range []string{"50", "100", "60"} {
		l.setTotal(total)
		half := l.total.Cpu().MilliValue() / 2
		require.Equal(t, map[string]int64{"a": half, "b": half, extension.RootQuotaName: 2 * half}, l.limits("a", "b"))
	}
}

func TestATotalThatMovesIsTold(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("a", "40", "100"))
	require.False(t, l.adapter.TotalMoved(), "nobody has observed any")
	l.adapter.Observe([]string{"a"})
	require.False(t, l.adapter.TotalMoved())
	for _, total := range []string{"50", "100"} {
		l.setTotal(total)
		require.True(t, l.adapter.TotalMoved())
		require.False(t, l.adapter.TotalMoved(), "it is told once")
		l.adapter.Observe([]string{"a"})
		require.False(t, l.adapter.TotalMoved())
	}
}

func TestAQuotaWithoutItsParentIsGone(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("c", "10", "70", under("nobody")))
	_, gone := l.adapter.Observe([]string{"c"})
	require.Equal(t, []string{"c"}, gone)
}

func TestNothingIsThereBeforeElasticQuotaIs(t *testing.T) {
	adapter := NewRegistry().Adapter()
	found, gone := adapter.Observe([]string{"b", "a"})
	require.Empty(t, found)
	require.Equal(t, []string{"a", "b"}, gone)
	require.Empty(t, adapter.All())
	require.Equal(t, "x", adapter.Resolve("ns", map[string]string{extension.LabelQuotaName: "x"}))
	require.Empty(t, adapter.Resolve("ns", nil))
}

func TestResolveReadsTheLabelsInOrderAndThenAsksElasticQuota(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("team", "0", "10"))
	for _, tt := range []struct {
		namespace string
		labels    map[string]string
		want      string
	}{
		{"team", map[string]string{extension.LabelQuotaName: "x", "alibabacloud.com/quota-name": "y"}, "x"},
		{"team", map[string]string{"alibabacloud.com/quota-name": "y", "quota.scheduling.alibabacloud.com/name": "z"}, "y"},
		{"team", map[string]string{"quota.scheduling.alibabacloud.com/name": "z"}, "z"},
		{"team", nil, "team"},
		{"other", nil, extension.DefaultQuotaName},
	} {
		require.Equal(t, tt.want, l.adapter.Resolve(tt.namespace, tt.labels))
	}
}

func TestAmountsBeyondTheCoreSaturate(t *testing.T) {
	got := toList(corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(1<<61, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(1<<61, resource.BinarySI),
	})
	most, _ := got.Get("cpu")
	require.EqualValues(t, int64(^uint64(0)>>1), most)
	memory, _ := got.Get("memory")
	require.EqualValues(t, 1<<61, memory)
}
