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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
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

// Whatever changed in whatever order, the limits that were brought up to date step by step are those of shares that are
// made anew, and those of a manager that has just been started; and settle names every quota whose limit it changed.
func TestSharesFollowEveryChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkSharesFollow(t, false) })
}

// The same where Koordinator guarantees what is used.
func TestSharesFollowEveryChangeOfWhatIsUsed(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate,
		features.ElasticQuotaGuaranteeUsage, true)
	rapid.Check(t, func(t *rapid.T) { checkSharesFollow(t, true) })
}

func checkSharesFollow(t *rapid.T, usedMatters bool) {
	args := quotaArgs(true)
	args.EnableMinQuotaScale = rapid.IntRange(0, 4).Draw(t, "scaling") > 0
	s := newShadow("", args, usedMatters)
	m := core.NewGroupQuotaManager("", args.EnableMinQuotaScale, args.SystemQuotaGroupMax, args.DefaultQuotaGroupMax)
	var total corev1.ResourceList
	setTotal := func() {
		before := total
		total = drawAmounts(t, 300, "total")
		if _, ok := total[gpu]; !ok {
			total[gpu] = resource.Quantity{}
		}
		m.UpdateClusterTotalResource(subtract(total, before))
		s.setTotal(total)
	}
	asked := map[string][]*corev1.Pod{}
	ask := func(name string, used, request corev1.ResourceList) {
		for _, pod := range asked[name] {
			m.OnPodDelete(name, pod)
		}
		asked[name] = []*corev1.Pod{aggregatePod("assigned", used), aggregatePod("pod-"+name, request)}
		for _, pod := range asked[name] {
			m.OnPodAdd(name, pod)
		}
		s.setLive(name, used, used)
		s.setDemand(name, request)
	}
	set := func(at int) {
		q := drawWood(t, at)
		var used, request corev1.ResourceList
		if pods := asked[q.Name]; pods != nil {
			used, request = pods[0].Spec.Containers[0].Resources.Requests, pods[1].Spec.Containers[0].Resources.Requests
			ask(q.Name, nil, nil)
		}
		require.NoError(t, m.UpdateQuota(q))
		s.setSpec(q.Name, q)
		ask(q.Name, capped(q.Spec.Max, used), request)
	}
	setTotal()
	for at := range wood {
		set(at)
	}
	before := map[string]resources.List{}
	for range rapid.IntRange(1, 10).Draw(t, "steps") {
		switch rapid.IntRange(0, 7).Draw(t, "step") {
		case 0:
			set(rapid.IntRange(0, len(wood)-1).Draw(t, "spec of"))
		case 1:
			setTotal()
		default:
			leaf := rapid.SampledFrom(woodNames(true)).Draw(t, "leaf")
			// No more than max is ever used.
			ask(leaf, capped(s.specs[leaf].Spec.Max, drawAmounts(t, 100, "used")), drawAmounts(t, 250, "ask"))
		}
		if rapid.IntRange(0, 2).Draw(t, "batched") == 0 {
			continue
		}
		moved := s.settle()
		for _, name := range woodNames(false) {
			limit, known := s.limit(name)
			require.True(t, known)
			if old, seen := before[name]; seen && !slices.Contains(moved, name) {
				require.Equal(t, old, limit, name)
			}
			before[name] = limit
		}
	}
	s.settle()
	anew := newShares(s.mgr, s.quotas, s.scales)
	anew.setTotal(s.mgr.RefreshRuntime(extension.RootQuotaName))
	anew.settle()
	m.ResetQuota()
	for range 3 {
		for _, name := range woodNames(false) {
			m.RefreshRuntime(name)
		}
	}
	for _, name := range woodNames(false) {
		limit, _ := s.limit(name)
		require.Equal(t, anew.byName[name].limit, limit, name)
		info := m.GetQuotaInfoByName(name)
		require.Equal(t, runtimeLimit(toList(info.GetMax()), toList(info.GetRuntime())), limit, name)
	}
}

// What pods of the default quota use is taken off twice, as the manager does from the first such pod on: off the total,
// and as the request of one more child of the root.
func TestSharesDeductTheDefaultQuotaAsTheManagerDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := quotaArgs(true)
		s := newShadow("", args, false)
		m := core.NewGroupQuotaManager("", true, args.SystemQuotaGroupMax, args.DefaultQuotaGroupMax)
		total := milliCPU(int64(rapid.IntRange(1, 200).Draw(t, "total")) * 1000)
		m.UpdateClusterTotalResource(total)
		s.setTotal(total)
		names := []string{"a", "b", "c"}
		for _, name := range names {
			q := drawQuota(t, name)
			delete(q.Labels, extension.LabelAllowLentResource)
			require.NoError(t, m.UpdateQuota(q))
			s.setSpec(name, q)
		}
		var pod *corev1.Pod
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "default") {
				if pod != nil {
					m.OnPodDelete(extension.DefaultQuotaName, pod)
				}
				used := milliCPU(int64(rapid.IntRange(0, 100).Draw(t, "used")) * 1000)
				pod = aggregatePod("assigned", used)
				m.OnPodAdd(extension.DefaultQuotaName, pod)
				s.setLive(extension.DefaultQuotaName, used, used)
			} else {
				name := rapid.SampledFrom(names).Draw(t, "quota")
				ask := aggregatePod(fmt.Sprintf("pod-%d", rapid.IntRange(0, 1<<30).Draw(t, "pod")),
					milliCPU(int64(rapid.IntRange(1, 60).Draw(t, "ask"))*1000))
				m.OnPodAdd(name, ask)
				request := m.GetQuotaInfoByName(name).GetSelfRequest()
				s.setLive(name, request, nil)
			}
			s.settle()
			for range 3 {
				for _, name := range names {
					m.RefreshRuntime(name)
				}
			}
			for _, name := range names {
				limit, _ := s.limit(name)
				info := m.GetQuotaInfoByName(name)
				require.Equal(t, runtimeLimit(toList(info.GetMax()), toList(info.GetRuntime())), limit, name)
			}
		}
	})
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

// Nothing waits forever: after any change, whoever observes what the sink was told of knows the limit of every quota in
// which jobs wait, as somebody would who observes everything for the first time.
func TestWhoeverObservesWhatIsToldKnowsEveryLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLive(t, true, "")
		sink := &recordingSink{}
		l.adapter.Subscribe(sink)
		setTotal := func() {
			// A manager that never saw any of a resource says nothing of it, one that saw it go says that there is none,
			// and min is scaled in the second case alone.
			next := drawAmounts(rt, 300, "total")
			next[corev1.ResourceCPU] = *resource.NewQuantity(1+next.Cpu().Value(), resource.DecimalSI)
			next[gpu] = *resource.NewQuantity(1+int64(rapid.IntRange(0, 30).Draw(rt, "total gpu")), resource.DecimalSI)
			l.mgr.UpdateClusterTotalResource(subtract(next, l.total))
			l.total = next
			l.adapter.totalChanged()
		}
		setTotal()
		for at := range wood {
			l.set(drawWood(rt, at))
		}
		demands := map[string]resources.List{}
		pods := map[string]*corev1.Pod{}
		known := map[string]resources.List{}
		for i := range rapid.IntRange(1, 15).Draw(rt, "steps") {
			leaf, asked := rapid.SampledFrom(woodNames(true)).Draw(rt, "leaf"), false
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
				asked = l.adapter.SetDemand(leaf, demands[leaf])
			}
			told := sink.drain()
			if asked {
				told = append(told, leaf)
			}
			if sink.totals > 0 {
				sink.totals = 0
				told = l.adapter.All()
			}
			found, gone := l.adapter.Observe(told)
			for _, q := range found {
				known[q.Name] = q.Limit
			}
			for _, name := range gone {
				delete(known, name)
			}
			require.Empty(rt, sink.drain())
		}
		fresh := newAdapter(l.adapter.captured)
		for name, spec := range l.specs {
			fresh.noteSpec(name, "", spec)
		}
		for name, demand := range demands {
			fresh.SetDemand(name, demand)
		}
		found, _ := fresh.Observe(fresh.All())
		for _, q := range found {
			if !demands[q.Name].IsZero() {
				require.Equal(rt, q.Limit, known[q.Name], q.Name)
			}
		}
	})
}
