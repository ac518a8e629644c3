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
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	fwktype "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota"
)

// PostFilter is ElasticQuota's preemption within a quota, which spares pods of admitted jobs. The amount of a deleted
// pod stays reserved for its job. So a pod outside of admitted jobs would not get it, and would have the successor
// deleted as well, again and again.
func (p *Plugin) PostFilter(
	ctx context.Context, state fwktype.CycleState, pod *corev1.Pod, nodes fwktype.NodeToStatusReader,
) (*fwktype.PostFilterResult, *fwktype.Status) {
	guard := p.adapter.protection.guard.Load()
	if guard == nil || guard.Admitted(pod) {
		return p.Plugin.PostFilter(ctx, state, pod, nodes)
	}
	metrics.PreemptionAttempts.Inc()
	rule := sparing{Plugin: p.Plugin, spared: guard.Runs}
	result, status := preemption.NewEvaluator(elasticquota.Name, p.handle, rule, false).Preempt(ctx, state, pod, nodes)
	if status.Message() == "" {
		return result, status
	}
	return result, fwktype.NewStatus(status.Code(), "preemption: "+status.Message())
}

// sparing is the rule of ElasticQuota by which victims are chosen, on nodes where none of them is spared.
type sparing struct {
	*elasticquota.Plugin
	spared func(*corev1.Pod) bool
}

var _ preemption.Interface = sparing{}

// SelectVictimsOnNode returns the victims on a node and how many of them violate a PodDisruptionBudget.
func (s sparing) SelectVictimsOnNode(
	ctx context.Context, state fwktype.CycleState, pod *corev1.Pod, node fwktype.NodeInfo,
	budgets []*policyv1.PodDisruptionBudget,
) (victims []*corev1.Pod, violations int, status *fwktype.Status) {
	victims, violations, status = s.Plugin.SelectVictimsOnNode(ctx, state, pod, node, budgets)
	if slices.ContainsFunc(victims, s.spared) {
		return nil, 0, fwktype.NewStatus(fwktype.UnschedulableAndUnresolvable,
			"node(s) had victims of admitted jobs, whose quota stays reserved")
	}
	return victims, violations, status
}
