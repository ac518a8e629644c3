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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

func cpu(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

type quotaOption func(*v1alpha1.ElasticQuota)

func under(parent string) quotaOption {
	return func(q *v1alpha1.ElasticQuota) {
		if parent != "" {
			q.Labels[extension.LabelQuotaParent] = parent
		}
	}
}

func isParent(q *v1alpha1.ElasticQuota) { q.Labels[extension.LabelQuotaIsParent] = "true" }

func notLent(q *v1alpha1.ElasticQuota) { q.Labels[extension.LabelAllowLentResource] = "false" }

func elasticQuota(name, min, max string, options ...quotaOption) *v1alpha1.ElasticQuota {
	q := &v1alpha1.ElasticQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{}},
		Spec:       v1alpha1.ElasticQuotaSpec{Min: cpu(min), Max: cpu(max)},
	}
	for _, option := range options {
		option(q)
	}
	return q
}

func quotaArgs(runtime bool) *config.ElasticQuotaArgs {
	huge := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(1<<62/1000, resource.DecimalSI)}
	return &config.ElasticQuotaArgs{
		EnableRuntimeQuota: runtime, EnableMinQuotaScale: true,
		DefaultQuotaGroupMax: huge, SystemQuotaGroupMax: huge,
	}
}

func milliOf(list corev1.ResourceList) int64 { return list.Cpu().MilliValue() }

func milliCPU(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(n, resource.DecimalSI)}
}

// aggregatePod is one pod that requests as much as many would.
func aggregatePod(name string, request corev1.ResourceList) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: request},
		}}},
	}
	if name == "assigned" {
		pod.Spec.NodeName = "n"
	}
	return pod
}

// observe gives the tree of the core what the adapter says.
func (l *liveQuotas) observe(names ...string) (found []admission.Quota, gone []string) {
	found, gone = l.adapter.Observe(names)
	for _, name := range gone {
		l.tree.Delete(name)
	}
	for _, q := range found {
		l.tree.Set(q)
	}
	return found, gone
}

// want makes this much what jobs of a quota will request beyond their pods.
func (l *liveQuotas) want(quota string, demand resources.List) {
	l.tree.Want(quota, func(sum *resources.Sum) {
		*sum = resources.Sum{}
		sum.Add(demand)
	})
}

func (l *liveQuotas) limitOf(quota string) resources.List {
	limit, _ := l.tree.LimitOf(quota)
	return limit
}

// limits are those of all quotas that were observed last, and of their ancestors, in thousandths of cpu.
func (l *liveQuotas) limits(names ...string) map[string]int64 {
	found, _ := l.observe(names...)
	m := map[string]int64{}
	for _, q := range found {
		if q.Name != extension.DefaultQuotaName {
			m[q.Name], _ = l.limitOf(q.Name).Get("cpu")
		}
	}
	return m
}

// reserve sets held quota of admitted jobs, and the bound for others.
func (l *liveQuotas) reserve(quota string, outstanding resources.List) {
	_, promised := l.tree.LimitOf(quota)
	l.adapter.SetOutstanding(quota, outstanding, promised)
}

// capped returns the sum of the lists by name, restricted to the names of max and never above it.
func capped(max corev1.ResourceList, lists ...corev1.ResourceList) corev1.ResourceList {
	sum := make(corev1.ResourceList, len(max))
	for name, most := range max {
		var total resource.Quantity
		for _, list := range lists {
			if q, ok := list[name]; ok {
				total.Add(q)
			}
		}
		if total.Cmp(most) > 0 {
			total = most.DeepCopy()
		}
		if total.Sign() > 0 {
			sum[name] = total
		}
	}
	return sum
}

func TestStatusOfAQuotaIsNotItsSpec(t *testing.T) {
	a := elasticQuota("a", "40", "100")
	b := a.DeepCopy()
	b.Generation, b.ResourceVersion = 7, "9"
	b.Status.Used = cpu("3")
	b.Annotations = map[string]string{extension.AnnotationRequest: "{}", extension.AnnotationRuntime: "{}"}
	require.True(t, sameSpec(a, b))
	b.Annotations[extension.AnnotationSharedWeight] = `{"cpu":"1"}`
	require.False(t, sameSpec(a, b))
}
