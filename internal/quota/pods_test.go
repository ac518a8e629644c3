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
	"k8s.io/apimachinery/pkg/api/resource"

	eqv1alpha1 "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
)

// ElasticQuota counts what containers request. None requests pods, and a level that shows 0 of 3 would mislead.
func TestPodsAreNoAmountOfAQuota(t *testing.T) {
	three := func(q *eqv1alpha1.ElasticQuota) {
		q.Spec.Max[corev1.ResourcePods] = resource.MustParse("3")
		q.Spec.Min[corev1.ResourcePods] = resource.MustParse("1")
	}
	for name, runtime := range map[string]bool{"max is the limit": false, "runtime is the limit": true} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, runtime, "100", elasticQuota("a", "10", "100", three))
			found, gone := l.observe("a")
			require.Empty(t, gone)
			for _, q := range found {
				limit, _ := l.tree.LimitOf(q.Name)
				for what, list := range map[string]interface{ Get(string) (int64, bool) }{
					"min": q.Min, "max": q.Max, "limit": limit, "used": q.Used, "requested": q.Requested,
				} {
					_, named := list.Get(string(corev1.ResourcePods))
					require.False(t, named, "%s of %s", what, q.Name)
				}
			}
		})
	}
}
