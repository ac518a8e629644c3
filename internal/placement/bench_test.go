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

package placement

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// benchWorld has nodes in three zones with ten pods each.
func benchWorld(b *testing.B, count int) *world {
	w := newWorld(b)
	all := nodes(count, "cpu", "64", "memory", "256Gi", "example.com/gpu", "8")
	var pods []*v1.Pod
	for i, n := range all {
		labelled(n, v1.LabelTopologyZone, fmt.Sprint("zone", i%3))
		for k := range 10 {
			pods = append(pods, on(n.Name, pod(fmt.Sprintf("old-%d-%d", i, k), "cpu", "1", "memory", "2Gi")))
		}
	}
	w.add(all, pods)
	return w
}

// BenchmarkPlace: a job of 500 equal pods in a cluster of so many nodes. The pods take half a node each, so 250 nodes
// are changed.
func BenchmarkPlace(b *testing.B) {
	worker := func() *v1.Pod { return pod("w", "cpu", "24", "memory", "16Gi", "example.com/gpu", "4") }
	for _, count := range []int{1000, 10000} {
		for name, s := range map[string]PodSet{
			"equal":    set(worker(), 500),
			"apart":    set(away(worker(), "w", v1.LabelHostname), 500),
			"spread":   set(spread(worker(), v1.LabelTopologyZone), 500),
			"affinity": set(near(worker(), "w", v1.LabelTopologyZone), 500),
			"no":       set(pod("w", "cpu", "55"), 500),
		} {
			b.Run(fmt.Sprintf("nodes=%d/%s", count, name), func(b *testing.B) {
				w := benchWorld(b, count)
				w.place(set(worker(), 1))
				b.ReportAllocs()
				for b.Loop() {
					require.Equal(b, name != "no", w.place(s).Fits)
				}
			})
		}
	}
}

// BenchmarkPlaceFirst: the first question clones the cache of the scheduler.
func BenchmarkPlaceFirst(b *testing.B) {
	for _, count := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("nodes=%d", count), func(b *testing.B) {
			w := benchWorld(b, count)
			for b.Loop() {
				w.placer.snapshot = w.snapshot()
				w.place(set(pod("w", "cpu", "1"), 500))
			}
		})
	}
}
