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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

func cpuAndGPU(milli, gpus int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI),
		"gpu":              *resource.NewQuantity(gpus, resource.DecimalSI),
	}
}

func withMin(min corev1.ResourceList) quotaOption {
	return func(q *v1alpha1.ElasticQuota) { q.Spec.Min, q.Spec.Max = min, cpuAndGPU(100000, 100) }
}

// minRefuses is the sentence of ElasticQuota's PreFilter about min: of the quota of the pod alone, and over what min
// and use both name.
func (l *liveQuotas) minRefuses(quota string, pod *corev1.Pod) bool {
	info := l.mgr.GetQuotaInfoByName(quota)
	fits, _ := quotav1.LessThanOrEqual(quotav1.Add(pod.Spec.Containers[0].Resources.Requests,
		info.GetNonPreemptibleUsed()), info.GetMin())
	return extension.IsPodNonPreemptible(pod) && !fits
}

// Where min of the leaf decides, a job is held back exactly if ElasticQuota would refuse its pod; min of a parent holds
// back more.
func TestMinHoldsBackWhatElasticQuotaRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		leaf, parent, used, request corev1.ResourceList
		preemptible                 string
		refused                     bool
		reason                      unit.Reason
	}{
		"fits": {leaf: cpuAndGPU(6000, 1), request: cpuAndGPU(6000, 1), preemptible: "false"},
		"never fits": {leaf: cpuAndGPU(6000, 1), request: cpuAndGPU(7000, 1), preemptible: "false",
			refused: true, reason: unit.ReasonExceedsMin},
		"does not fit now": {leaf: cpuAndGPU(6000, 1), used: cpuAndGPU(2000, 0), request: cpuAndGPU(5000, 1),
			preemptible: "false", refused: true, reason: unit.ReasonMinExceeded},
		"only false is non-preemptible": {leaf: cpuAndGPU(6000, 1), request: cpuAndGPU(7000, 1), preemptible: "False"},
		"no label":                      {leaf: cpuAndGPU(6000, 1), request: cpuAndGPU(7000, 1)},
		"a resource that min leaves out": {leaf: cpu("6"), used: cpuAndGPU(0, 9),
			request: cpuAndGPU(6000, 9), preemptible: "false"},
		"no min at all": {used: cpuAndGPU(9000, 9), request: cpuAndGPU(6000, 9), preemptible: "false"},
		"another resource is overspent": {leaf: cpuAndGPU(6000, 1), used: cpuAndGPU(0, 2), request: cpu("1"),
			preemptible: "false", refused: true, reason: unit.ReasonMinExceeded},
		"overspent, and preemptible": {leaf: cpuAndGPU(6000, 1), used: cpuAndGPU(0, 2), request: cpu("1")},
		"the parent's min is used up": {leaf: cpuAndGPU(6000, 1), parent: cpuAndGPU(6000, 1), used: cpuAndGPU(2000, 0),
			request: cpuAndGPU(4000, 1), preemptible: "false"},
		"the parent promised less": {leaf: cpuAndGPU(6000, 1), parent: cpuAndGPU(5000, 1), used: cpuAndGPU(2000, 0),
			request: cpuAndGPU(4000, 1), preemptible: "false", reason: unit.ReasonMinExceeded},
		"the parent promised nothing": {leaf: cpuAndGPU(6000, 1), parent: cpuAndGPU(0, 1), request: cpuAndGPU(1000, 1),
			preemptible: "false", reason: unit.ReasonExceedsMin},
		"the parent's min leaves it out": {leaf: cpuAndGPU(6000, 1), parent: cpu("6"),
			request: cpuAndGPU(1000, 1), preemptible: "false"},
		"a preemptible job of the parent": {leaf: cpuAndGPU(6000, 1), parent: cpuAndGPU(0, 0), request: cpuAndGPU(9000, 9)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, false, "100", elasticQuota("p", "0", "0", isParent, withMin(tc.parent)),
				elasticQuota("a", "0", "0", under("p"), withMin(tc.leaf)))
			l.setTotal("100")
			pod := func(name, preemptible string, request corev1.ResourceList) *corev1.Pod {
				pod := l.pod(name, "a", "0")
				pod.Spec.Containers[0].Resources.Requests = request
				if preemptible != "" {
					pod.Labels[extension.LabelPreemptible] = preemptible
				}
				l.addPod(pod)
				return pod
			}
			if tc.used != nil {
				l.mgr.ReservePod("a", pod("running", "false", tc.used))
			}
			asks := pod("asks", tc.preemptible, tc.request)
			require.Equal(t, tc.refused, l.minRefuses("a", asks))

			state, now := admission.New(admission.Config{}), time.Unix(0, 0)
			state.UpsertQueue(now, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
			found, _ := l.adapter.Observe([]string{"a"})
			for _, q := range found {
				state.SetQuota(now, q)
			}
			state.UpsertUnit(now, unit.Unit{
				Key: "ns/u", UID: "u", Queue: "q", Quota: "a", Request: toList(tc.request), Pods: 1, Active: true,
				NonPreemptible: extension.IsPodNonPreemptible(asks), Phase: unit.PhaseEnqueued,
			})
			admitted := len(state.Decide(now).Writes) == 1
			reason, message, _ := state.Why("ns/u")
			require.Equal(t, tc.reason == "", admitted, message)
			if !admitted {
				require.Equal(t, tc.reason, reason, message)
			}
		})
	}
}
