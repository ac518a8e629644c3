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
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// toList converts amounts of ElasticQuota. Its own defaults exceed the core's range of cpu (koordinator-default-quota
// has a max of MaxInt64/5 cores), so amounts saturate and are not refused.
func toList(rl corev1.ResourceList) resources.List { return toListWhere(rl, nil) }

// toListOf is toList of the resources that max names, without the number of jobs and without pods. Max may name the
// number of jobs like a resource. ElasticQuota counts requests of containers, and none requests pods, so a max of pods
// bounds nothing.
func toListOf(rl, max corev1.ResourceList) resources.List {
	return toListWhere(rl, func(name corev1.ResourceName) bool {
		_, named := max[name]
		return named && name != resources.Jobs && name != corev1.ResourcePods
	})
}

func toListWhere(rl corev1.ResourceList, counts func(corev1.ResourceName) bool) resources.List {
	if len(rl) == 0 {
		return resources.List{}
	}
	items := make([]resources.Item, 0, len(rl))
	for name, q := range rl {
		if counts == nil || counts(name) {
			items = append(items, resources.Item{Name: string(name), Amount: amount(string(name), q)})
		}
	}
	return sorted(items)
}

func sorted(items []resources.Item) resources.List {
	slices.SortFunc(items, func(a, b resources.Item) int { return strings.Compare(a.Name, b.Name) })
	return resources.FromSorted(items)
}

func amount(name string, q resource.Quantity) int64 {
	if q.Sign() <= 0 {
		return 0
	}
	if name == string(corev1.ResourceCPU) {
		if q.CmpInt64(math.MaxInt64/1000) >= 0 {
			return math.MaxInt64
		}
		return q.MilliValue()
	}
	if q.CmpInt64(math.MaxInt64) >= 0 {
		return math.MaxInt64
	}
	return q.Value()
}

// toWeights converts the weights of ElasticQuota to the numbers that it computes with. An amount beyond its range, as
// that of its default quota, counts as zero.
func toWeights(rl corev1.ResourceList) resources.List {
	items := make([]resources.Item, 0, len(rl))
	for name, q := range rl {
		weight := q.Value()
		if name == corev1.ResourceCPU {
			weight = q.MilliValue()
		}
		items = append(items, resources.Item{Name: string(name), Amount: weight})
	}
	return sorted(items)
}
