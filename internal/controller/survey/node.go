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

package survey

import (
	"hash/maphash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Node is what nodes have in common that differ in their names alone.
type Node struct {
	Size corev1.ResourceList
	// Labels without that of the host; nil where they are not known.
	Labels map[string]string
}

// mostLabelled bounds the nodes whose labels are kept. Labels that every node has another value of would fill memory.
const mostLabelled = 1000

func nodeOf(n *corev1.Node, labelled bool) Node {
	node := Node{Size: n.Status.Allocatable}
	if labelled {
		node.Labels = map[string]string{}
		maps.Copy(node.Labels, n.Labels)
		delete(node.Labels, corev1.LabelHostname)
	}
	return node
}

func (n *Node) hash(h *maphash.Hash) uint64 {
	h.Reset()
	for _, name := range slices.Sorted(maps.Keys(n.Size)) {
		amount := n.Size[name]
		_, _ = h.WriteString(string(name) + "=" + amount.String() + ";")
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		_, _ = h.WriteString(key + "=" + n.Labels[key] + ",")
	}
	return h.Sum64()
}

// Selected are the nodes that have what the node selector and the required node affinity of a pod ask for. All are if
// the pod names its node, or its affinity cannot be read.
func (c *Cluster) Selected(pod *corev1.Pod) []Node {
	if namesNode(pod) {
		return c.Nodes
	}
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(n Node) bool {
		node := &corev1.Node{}
		node.Labels = n.Labels
		matches, err := required.Match(node)
		return n.Labels != nil && err == nil && !matches
	})
}

// namesNode says whether a pod selects nodes by what every node has another value of.
func namesNode(pod *corev1.Pod) bool {
	if _, named := pod.Spec.NodeSelector[corev1.LabelHostname]; named {
		return true
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return len(term.MatchFields) > 0 || slices.ContainsFunc(term.MatchExpressions,
			func(r corev1.NodeSelectorRequirement) bool { return r.Key == corev1.LabelHostname })
	})
}

// TooLarge names a resource of the request that no node has enough of. It is empty if some node is large enough, or no
// node is known. most is the greatest amount on a node.
func TooLarge(nodes []Node, request corev1.ResourceList) (of corev1.ResourceName, most resource.Quantity) {
	for i := range nodes {
		name, has := lacking(request, nodes[i].Size)
		if name == "" {
			return "", resource.Quantity{}
		}
		if i == 0 || name < of || name == of && has.Cmp(most) > 0 {
			of, most = name, has
		}
	}
	return of, most
}

func lacking(request, size corev1.ResourceList) (corev1.ResourceName, resource.Quantity) {
	for _, name := range slices.Sorted(maps.Keys(request)) {
		asks, has := request[name], size[name]
		if asks.Cmp(has) > 0 {
			return name, has
		}
	}
	return "", resource.Quantity{}
}
