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
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

func TestNoNodeFits(t *testing.T) {
	some := []*v1.Node{
		labelled(node("cpus", "cpu", "32", "memory", "64Gi"), "disk", "ssd"),
		tainted(node("gpus", "cpu", "8", "memory", "256Gi", "example.com/gpu", "8")),
	}
	some[0].Spec.Unschedulable = true
	byAffinity := pod("w")
	affinity(byAffinity).NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{"hdd"}},
		}}},
	}}
	unreadable := byAffinity.DeepCopy()
	unreadable.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].
		MatchExpressions[0].Operator = "Near"
	for name, c := range map[string]struct {
		pod   *v1.Pod
		nodes []*v1.Node
		want  string
	}{
		"taints and cordons do not count": {pod: pod("w", "cpu", "32"), nodes: some},
		"a resource of the other node":    {pod: pod("w", "example.com/gpu", "8"), nodes: some},
		"no request of a resource":        {pod: pod("w", "example.com/fpga", "0"), nodes: some},
		"a resource that is not compared": {pod: pod("w", "storage", "1"), nodes: some},
		"no nodes":                        {pod: pod("w"), want: "the cluster has no nodes"},
		"larger than any node": {
			pod: pod("w", "cpu", "33", "memory", "257Gi"), nodes: some,
			want: "a pod requests 33 cpu, and the largest of 2 matching nodes has 32; " +
				"a pod requests 257Gi memory, and the largest of 2 matching nodes has 256Gi",
		},
		"a resource that no node lists": {
			pod: pod("w", "example.com/fpga", "1"), nodes: some,
			want: "a pod requests 1 example.com/fpga, and the largest of 2 matching nodes has 0",
		},
		"not together": {
			pod: pod("w", "cpu", "32", "example.com/gpu", "1"), nodes: some,
			want: "a pod requests 32 cpu and 1 example.com/gpu, and none of 2 matching nodes has all of it",
		},
		"larger than the nodes that it selects": {
			pod: selecting(pod("w", "memory", "65Gi"), "disk", "ssd"), nodes: some,
			want: "a pod requests 65Gi memory, and the largest of 1 matching nodes has 64Gi",
		},
		"a selector that no node has": {
			pod: selecting(pod("w"), "disk", "hdd"), nodes: some,
			want: "none of 2 nodes matches the node selector disk=hdd and the required node affinity of a pod",
		},
		"an affinity that no node has": {
			pod: byAffinity, nodes: some, want: "none of 2 nodes matches the required node affinity of a pod",
		},
		"an affinity that cannot be read": {pod: unreadable, nodes: some},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, NoNodeFits(c.pod, c.nodes)) })
	}
}
