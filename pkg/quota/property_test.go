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
	"pgregory.net/rapid"

	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"
)

// truth is a manager that has real pods where the shadow has one aggregate: as many as are asked for, one by one.
type truth struct {
	mgr  *core.GroupQuotaManager
	pods map[string][]*corev1.Pod
	next int
}

func (m *truth) ask(quota string, milli int64) {
	for _, pod := range m.pods[quota] {
		m.mgr.OnPodDelete(quota, pod)
	}
	m.pods[quota] = nil
	for milli > 0 {
		size := min(milli, 7000)
		milli -= size
		m.next++
		pod := aggregatePod(fmt.Sprintf("pod-%d", m.next), milliCPU(size))
		m.mgr.OnPodAdd(quota, pod)
		m.pods[quota] = append(m.pods[quota], pod)
	}
}

// settled is what the manager says when it has just been started and everything was refreshed: it scales min only for
// what is refreshed, and a min that is not lent counts as requested only after a pod came, or a start.
func (m *truth) settled(names []string) map[string]int64 {
	m.mgr.ResetQuota()
	for range 2 {
		for _, name := range names {
			m.mgr.RefreshRuntime(name)
		}
	}
	found := map[string]int64{}
	for _, name := range names {
		runtime := m.mgr.RefreshRuntime(name)
		found[name] = runtime.Cpu().MilliValue()
	}
	return found
}

func milliCPU(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(n, resource.DecimalSI)}
}

// The runtime that the shadow gives for demand is the one that a manager gives for that many pods, whatever came
// before.
func TestShadowEqualsAManagerWithPods(t *testing.T) {
	leaves := []string{"a", "b", "p1", "p2"}
	parents := map[string]string{"a": "", "b": "", "p1": "p", "p2": "p"}
	rapid.Check(t, func(t *rapid.T) {
		args := quotaArgs(true)
		s := newShadow("", args, false)
		m := &truth{
			mgr:  core.NewGroupQuotaManager("", true, args.SystemQuotaGroupMax, args.DefaultQuotaGroupMax),
			pods: map[string][]*corev1.Pod{},
		}
		both := func(q *v1alpha1.ElasticQuota) {
			s.setSpec(q.Name, q)
			require.NoError(t, m.mgr.UpdateQuota(q))
		}
		total := int64(rapid.IntRange(1, 200).Draw(t, "total"))
		m.mgr.UpdateClusterTotalResource(milliCPU(total * 1000))
		s.setTotal(milliCPU(total * 1000))
		both(drawQuota(t, "p", isParent))
		for _, leaf := range leaves {
			both(drawQuota(t, leaf, under(parents[leaf])))
		}
		asked := map[string]int64{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			name := rapid.SampledFrom(leaves).Draw(t, "quota")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				m.ask(name, 0)
				both(drawQuota(t, name, under(parents[name])))
				m.ask(name, asked[name])
			case 1:
				next := int64(rapid.IntRange(1, 200).Draw(t, "total"))
				m.mgr.UpdateClusterTotalResource(milliCPU((next - total) * 1000))
				s.setTotal(milliCPU(next * 1000))
				total = next
			default:
				live := int64(rapid.IntRange(0, 60).Draw(t, "live")) * 1000
				demand := int64(rapid.IntRange(0, 150).Draw(t, "demand")) * 1000
				s.setLive(name, milliCPU(live), nil)
				s.setDemand(name, milliCPU(demand))
				asked[name] = live + demand
				m.ask(name, asked[name])
			}
		}
		want := m.settled(leaves)
		got := map[string]int64{}
		for _, name := range leaves {
			got[name] = s.milli(name)
		}
		require.Equal(t, want, got)
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
