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
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// Request asks for nodes for all pods of a job, or of the jobs of a gang group: all or none.
type Request struct {
	// Sets are the pods that need a node. Pods that have one are no part of a set.
	Sets []PodSet
	// Gone are pods that are supposed to have left their nodes, such as victims of a reclaim. Their UID and
	// spec.nodeName count. Pods that are on no node change nothing.
	Gone []*v1.Pod
}

// PodSet is a number of equal pods of a unit.
type PodSet struct {
	// Unit is the UID of the QueueUnit that the promise is for.
	Unit types.UID
	// Name of the pod set, unique within its unit.
	Name string
	// Template is a pod as kube-scheduler is to see it, with its namespace, labels, and what webhooks write. It is not
	// changed.
	Template *v1.Pod
	// Count of pods, 1 or more. A set of none is ignored.
	Count int
}

// Answer to a Request.
type Answer struct {
	// Fits: all pods find a node.
	Fits bool
	// Placed are the nodes of the pods, in the order of their placement. If Fits is false, these are the pods that
	// found a node before the search ended.
	Placed []Placed
	// Shortage describes the pod that finds no node. It is nil if Fits is true.
	Shortage *Shortage
	// Nodes is the number of nodes in the cluster.
	Nodes int
}

// Placed is a number of pods of a set on a node.
type Placed struct {
	// Unit and Set name the pod set.
	Unit types.UID
	Set  string
	// Node is the name of the node.
	Node string
	// Count of pods, 1 or more.
	Count int

	pod fwk.PodInfo
}

// Shortage describes why the next pod of a set finds no node.
type Shortage struct {
	// Unit and Set name the pod set.
	Unit types.UID
	Set  string
	// Placed and Count are the pods of the set that found a node, and all of them.
	Placed, Count int
	// Nodes is the number of nodes in the cluster.
	Nodes int
	// Reasons are counts of nodes by reason, in the words of kube-scheduler. A node may have several reasons.
	Reasons map[string]int
	// All: the pod was rejected before any node was looked at, and the reason is that of all nodes.
	All bool
}

// String is a sentence such as this, whose second part is the text of an event of kube-scheduler:
//
//	3 of 5 pods of pod set "workers" find a node; 0/10 nodes are available: 7 Insufficient cpu.
func (s *Shortage) String() string {
	found := fmt.Sprintf("%d of %d pods of pod set %q find a node; ", s.Placed, s.Count, s.Set)
	if s.Nodes == 0 {
		return found + "no nodes available to schedule pods"
	}
	var reasons []string
	for reason, nodes := range s.Reasons {
		if !s.All {
			reason = fmt.Sprintf("%d %s", nodes, reason)
		}
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	return fmt.Sprintf("%s0/%d nodes are available: %s.", found, s.Nodes, strings.Join(reasons, ", "))
}

// newShortage counts the statuses of nodes.
func newShortage(m *model, placed int, statuses []*fwk.Status, all bool) *Shortage {
	s := &Shortage{
		Unit: m.Unit, Set: m.Name, Placed: placed, Count: m.Count, Nodes: len(statuses), Reasons: map[string]int{}, All: all,
	}
	for _, status := range statuses {
		for _, reason := range status.Reasons() {
			s.Reasons[reason]++
		}
	}
	return s
}

// promises are placed pods of units that are not bound yet.
type promises map[types.UID][]Placed

// bound removes one pod from the promise to a unit: one on the node, or else the last one. missed says that none was on
// the node.
func (p promises) bound(unit types.UID, node string) (missed bool) {
	found := slices.IndexFunc(p[unit], func(placed Placed) bool { return placed.Node == node })
	if found < 0 {
		missed, found = true, len(p[unit])-1
	}
	if found < 0 {
		return false
	}
	if p[unit][found].Count--; p[unit][found].Count == 0 {
		p[unit] = slices.Delete(p[unit], found, found+1)
	}
	if len(p[unit]) == 0 {
		delete(p, unit)
	}
	return missed
}

// open is the number of pods that nodes are kept for.
func (p promises) open(unit types.UID) (pods int) {
	for i := range p[unit] {
		pods += p[unit][i].Count
	}
	return pods
}

// others returns a copy of the promises to all units that have no pod set in sets.
func (p promises) others(sets []PodSet) (others []Placed) {
	asking := map[types.UID]bool{}
	for _, set := range sets {
		asking[set.Unit] = true
	}
	for _, unit := range slices.Sorted(maps.Keys(p)) {
		if !asking[unit] {
			others = append(others, p[unit]...)
		}
	}
	return others
}
