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
	"hash/maphash"

	corev1 "k8s.io/api/core/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intern"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/cluster"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// room is what pods can use of the nodes, by the events of nodes and pods.
type room struct{ nodes *cluster.Nodes }

// node handles a node that appeared, changed or disappeared (after is nil), and says whether the room changed.
// ElasticQuota ignores a node that is being deleted when it is first seen. If a node is deleted later, its amounts
// stay.
func (r room) node(before, after *corev1.Node) bool {
	switch {
	case after == nil:
		return before != nil && r.nodes.Delete(before.Name)
	case after.DeletionTimestamp != nil && before == nil:
		return false
	default:
		return r.nodes.Set(after.Name, toList(after.Status.Allocatable), cluster.Takes(after))
	}
}

// pod takes a pod that came, changed or went (after nil), and says whether the room is another one. A pod that is known
// to have ended does not come back by a late change of it.
func (r room) pod(before, after *corev1.Pod) bool {
	switch {
	case after == nil:
		return before != nil && r.end(before)
	case before != nil && before.Spec.NodeName != "" && !r.nodes.Runs(after.Spec.NodeName, after.UID):
		return false
	default:
		return r.run(after)
	}
}

func (r room) run(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	return r.nodes.Run(pod.Spec.NodeName, pod.UID, sharedRequests.Of(toList(core.PodRequests(pod))))
}

func (r room) end(pod *corev1.Pod) bool { return r.nodes.End(pod.Spec.NodeName, pod.UID) }

// limit is the part of a tree's total that pods can use. Which nodes a tree has is known for the only tree.
func (r room) limit(plugin Live, l *level, total resources.List) resources.List {
	if l.name != extension.RootQuotaName || len(plugin.ListGroupQuotaManagersForQuotaTree()) > 0 {
		return total
	}
	return r.nodes.Bound(total)
}

var sharedRequests = intern.NewPool(hashOfList, resources.List.Same)

func hashOfList(seed maphash.Seed, list resources.List) (sum uint64) {
	for _, it := range list.Items() {
		sum ^= maphash.Comparable(seed, it)
	}
	return sum
}
