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

// Package cluster sums the capacity of those nodes that take pods. ElasticQuota's total counts every node, and a job
// that was admitted for capacity of other nodes would never run.
package cluster

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Nodes sum up the capacity for pods: all of the nodes that take pods, and the used part of the others. Each event
// updates the sum at a cost that does not depend on the number of nodes or pods. Nodes are safe for concurrent use.
type Nodes struct {
	mu     sync.Mutex
	nodes  map[string]*node
	usable resources.Sum
}

type node struct {
	known, takes bool
	allocatable  resources.List
	// pods that run on it, and what they request together.
	pods    map[types.UID]resources.List
	running resources.Sum
	// usable is its part of the sum.
	usable resources.List
}

// NewNodes returns an empty sum.
func NewNodes() *Nodes { return &Nodes{nodes: map[string]*node{}} }

// Takes says whether new pods may come to the node: it is ready, and neither cordoned nor being deleted. A node that
// does not say whether it is ready counts as ready, as it does for the scheduler.
func Takes(n *corev1.Node) bool {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return false
		}
	}
	return !n.Spec.Unschedulable && n.DeletionTimestamp == nil
}

// Set takes a node that came or changed, and says whether the sum is another one.
func (n *Nodes) Set(name string, allocatable resources.List, takes bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.at(name)
	at.known, at.takes, at.allocatable = true, takes, allocatable
	return n.settle(name, at)
}

// Delete forgets a node. The pods there are forgotten one by one.
func (n *Nodes) Delete(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.at(name)
	at.known, at.takes, at.allocatable = false, false, resources.List{}
	return n.settle(name, at)
}

// Run takes a pod that runs on a node, and says whether the sum is another one.
func (n *Nodes) Run(name string, pod types.UID, request resources.List) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.at(name)
	if former, runs := at.pods[pod]; runs {
		at.running.Sub(former)
	}
	at.pods[pod] = request
	at.running.Add(request)
	return n.settle(name, at)
}

// Runs says whether a pod is known to run on a node.
func (n *Nodes) Runs(name string, pod types.UID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.nodes[name]
	if at == nil {
		return false
	}
	_, runs := at.pods[pod]
	return runs
}

// End forgets a pod, and says whether the sum is another one.
func (n *Nodes) End(name string, pod types.UID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.nodes[name]
	if at == nil {
		return false
	}
	request, runs := at.pods[pod]
	if !runs {
		return false
	}
	delete(at.pods, pod)
	at.running.Sub(request)
	return n.settle(name, at)
}

// Bound a total by what is usable. It keeps its names: a resource that it does not name is not limited.
func (n *Nodes) Bound(total resources.List) resources.List {
	n.mu.Lock()
	defer n.mu.Unlock()
	items := make([]resources.Item, 0, total.Len())
	for _, it := range total.Items() {
		items = append(items, resources.Item{Name: it.Name, Amount: min(it.Amount, max(0, n.usable.Get(it.Name)))})
	}
	return resources.FromSorted(items)
}

func (n *Nodes) at(name string) *node {
	at := n.nodes[name]
	if at == nil {
		at = &node{pods: map[types.UID]resources.List{}}
		n.nodes[name] = at
	}
	return at
}

// settle brings the part of a node in the sum up to date.
func (n *Nodes) settle(name string, at *node) (moved bool) {
	usable := at.allocatable
	if !at.takes {
		usable = usable.Min(at.running.List())
	}
	if !usable.Equal(at.usable) {
		n.usable.Sub(at.usable)
		n.usable.Add(usable)
		at.usable, moved = usable, true
	}
	if !at.known && len(at.pods) == 0 {
		delete(n.nodes, name)
	}
	return moved
}
