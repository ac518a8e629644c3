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
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// view shows the nodes of a snapshot with supposed changes. It copies a node at its first change, so the snapshot stays
// as it is. It implements fwk.SharedLister for the plugins, which keep it for their lifetime.
type view struct {
	nodes []fwk.NodeInfo
	index map[string]int
	// copied says of each node whether it is a copy that belongs to the view.
	copied []bool
}

var _ fwk.SharedLister = &view{}

// reset shows nodes without changes, and forgets all others.
func (v *view) reset(nodes []fwk.NodeInfo) {
	v.nodes, v.copied = slices.Clone(nodes), make([]bool, len(nodes))
	v.index = make(map[string]int, len(nodes))
	for i, n := range nodes {
		v.index[n.Node().Name] = i
	}
}

// add supposes n equal pods on the node at an index.
func (v *view) add(i int, pod fwk.PodInfo, n int) {
	node := v.own(i)
	for range n {
		node.AddPodInfo(pod)
	}
}

// remove supposes that a pod is gone from its node. A pod that is on no node changes nothing. The node is counted again
// from the pods that stay: a host port that another pod uses too stays in use.
func (v *view) remove(pod *v1.Pod) {
	i, ok := v.index[pod.Spec.NodeName]
	if !ok {
		return
	}
	node := framework.NewNodeInfo()
	node.SetNode(v.nodes[i].Node())
	for _, p := range v.nodes[i].GetPods() {
		if p.GetPod().UID != pod.UID {
			node.AddPodInfo(p)
		}
	}
	v.nodes[i], v.copied[i] = node, true
}

func (v *view) own(i int) fwk.NodeInfo {
	if !v.copied[i] {
		v.nodes[i], v.copied[i] = v.nodes[i].Snapshot(), true
	}
	return v.nodes[i]
}

// NodeInfos implements fwk.SharedLister.
func (v *view) NodeInfos() fwk.NodeInfoLister { return v }

// StorageInfos implements fwk.SharedLister.
func (v *view) StorageInfos() fwk.StorageInfoLister { return v }

// List implements fwk.NodeInfoLister.
func (v *view) List() ([]fwk.NodeInfo, error) { return v.nodes, nil }

// HavePodsWithAffinityList implements fwk.NodeInfoLister.
func (v *view) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return v.having(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithAffinity()) > 0 }), nil
}

// HavePodsWithRequiredAntiAffinityList implements fwk.NodeInfoLister.
func (v *view) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return v.having(func(n fwk.NodeInfo) bool { return len(n.GetPodsWithRequiredAntiAffinity()) > 0 }), nil
}

func (v *view) having(has func(fwk.NodeInfo) bool) (nodes []fwk.NodeInfo) {
	for _, n := range v.nodes {
		if has(n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Get implements fwk.NodeInfoLister.
func (v *view) Get(name string) (fwk.NodeInfo, error) {
	if i, ok := v.index[name]; ok {
		return v.nodes[i], nil
	}
	return nil, fmt.Errorf("node %q is not in the snapshot", name)
}

// IsPVCUsedByPods implements fwk.StorageInfoLister.
func (v *view) IsPVCUsedByPods(key string) bool {
	return slices.ContainsFunc(v.nodes, func(n fwk.NodeInfo) bool { return n.GetPVCRefCounts()[key] > 0 })
}
