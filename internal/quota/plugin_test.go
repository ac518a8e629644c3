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

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"
)

// Job a is admitted on the whole cluster while b asks for nothing. Then pods of b arrive, gated or not, and the live
// runtime of a shrinks to its share. Nobody could ever use the rest, since it stays reserved.
func TestAReservationStandsWhenRuntimeShrinks(t *testing.T) {
	l := newLive(t, true, "100", elasticQuota("a", "40", "100"), elasticQuota("b", "60", "100"))
	l.reserve("a", list(80000))
	l.addPod(l.pod("b-1", "b", "60"))
	mine := l.pod("mine", "a", "80")
	l.addPod(mine)
	l.mgr.RefreshRuntime("a")
	runtime := l.mgr.GetQuotaInfoByName("a").GetRuntime()
	require.Equal(t, int64(40), runtime.Cpu().Value(), "what ElasticQuota would hold against the pod")
	require.NoError(t, l.adapter.Admits("a", mine))
}

func TestAReservationStandsNoFurther(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(l *liveQuotas)
		pod     func(l *liveQuotas) *corev1.Pod
		message string
	}{
		"than what is reserved": {
			pod:     func(l *liveQuotas) *corev1.Pod { return l.pod("x", "a", "81") },
			message: `not all that the pod asks for is reserved in quota "a"`,
		},
		"than max": {
			change:  func(l *liveQuotas) { l.set(elasticQuota("a", "10", "79", under("p"))) },
			message: `max of quota "a": [cpu]`,
		},
		"than max of a parent, where ElasticQuota checks it": {
			change: func(l *liveQuotas) {
				l.args.EnableCheckParentQuota = true
				l.set(elasticQuota("p", "10", "79", isParent))
			},
			message: `max of quota "p": [cpu]`,
		},
		"than min for what cannot be preempted": {
			pod: func(l *liveQuotas) *corev1.Pod {
				pod := l.pod("x", "a", "50")
				pod.Labels[extension.LabelPreemptible] = "false"
				return pod
			},
			message: `min of quota "a": [cpu]`,
		},
		"than the quota exists": {
			change:  func(l *liveQuotas) { l.remove("a") },
			message: `quota "a" or a parent of it does not exist`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, true, "100", elasticQuota("p", "40", "100", isParent), elasticQuota("a", "40", "100", under("p")))
			l.reserve("a", list(80000))
			pod := l.pod("x", "a", "80")
			require.NoError(t, l.adapter.Admits("a", pod))
			if tc.change != nil {
				tc.change(l)
			}
			if tc.pod != nil {
				pod = tc.pod(l)
			}
			require.EqualError(t, l.adapter.Admits("a", pod), tc.message)
		})
	}
}
