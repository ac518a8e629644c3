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
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// NoNodeFits says why no node could take a pod even if all nodes were empty, and returns an empty text if one could. It
// compares requests with allocatable amounts, and nodes with the node selector and the required node affinity. Taints,
// cordons and pods on nodes do not count, because they come and go. The text is a sentence with the numbers, without a
// full stop. Its cost is linear in the number of nodes.
func NoNodeFits(pod *v1.Pod, nodes []*v1.Node) string {
	if len(nodes) == 0 {
		return "the cluster has no nodes"
	}
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	maps.DeleteFunc(requests, func(name v1.ResourceName, request quantity.Quantity) bool {
		return request.IsZero() || !counts(name)
	})
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	largest := v1.ResourceList{}
	matching := 0
	for _, node := range nodes {
		// An affinity that cannot be read is not judged here.
		if ok, err := required.Match(node); err == nil && !ok {
			continue
		}
		matching++
		fits := true
		for name, request := range requests {
			has := node.Status.Allocatable[name]
			fits = fits && has.Cmp(request) >= 0
			if most, seen := largest[name]; !seen || most.Cmp(has) < 0 {
				largest[name] = has
			}
		}
		if fits {
			return ""
		}
	}
	switch {
	case matching > 0:
		return tooLarge(requests, largest, matching)
	case len(pod.Spec.NodeSelector) > 0:
		return fmt.Sprintf("none of %d nodes matches the node selector %s and the required node affinity of a pod",
			len(nodes), labels.Set(pod.Spec.NodeSelector))
	default:
		return fmt.Sprintf("none of %d nodes matches the required node affinity of a pod", len(nodes))
	}
}

// tooLarge says which requests no matching node has.
func tooLarge(requests, largest v1.ResourceList, matching int) string {
	var above, all []string
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		request, most := requests[name], largest[name]
		all = append(all, fmt.Sprintf("%s %s", &request, name))
		if most.Cmp(request) < 0 {
			above = append(above, fmt.Sprintf("a pod requests %s %s, and the largest of %d matching nodes has %s",
				&request, name, matching, &most))
		}
	}
	if len(above) == 0 {
		return fmt.Sprintf("a pod requests %s, and none of %d matching nodes has all of it",
			strings.Join(all, " and "), matching)
	}
	return strings.Join(above, "; ")
}

// counts says whether the scheduler compares a resource with that of a node.
func counts(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage ||
		schedutil.IsScalarResourceName(name)
}
