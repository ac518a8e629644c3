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

package jobqueue

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwktype "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"

	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext"
)

// Name of the plugin in the scheduler configuration.
const Name = "JobQueue"

// Plugin is JobQueue in one profile. All profiles share the engine and the gate.
type Plugin struct {
	core *core
	sort queuesort.PrioritySort
}

var (
	_ fwktype.PreEnqueuePlugin        = &Plugin{}
	_ fwktype.QueueSortPlugin         = &Plugin{}
	_ fwktype.PreFilterPlugin         = &Plugin{}
	_ fwktype.ReservePlugin           = &Plugin{}
	_ fwktype.PreBindPlugin           = &Plugin{}
	_ fwktype.EnqueueExtensions       = &Plugin{}
	_ frameworkext.ControllerProvider = &Plugin{}
	_ frameworkext.Controller         = &Plugin{}
)

// Name returns the name of the plugin, and of its controller.
func (p *Plugin) Name() string { return Name }

// PreEnqueue keeps pods of jobs that are not admitted out of the scheduling queue. It also runs in replicas that do not
// lead, and before the engine is loaded: nothing is admitted then.
func (p *Plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwktype.Status {
	return p.core.gate.Check(pod)
}

// EventsToRegister asks to look at a held pod again when its own labels change. The engine knows every other cause that
// can release a pod, and activates it. Any further event would be tried on every held pod, under the queue's lock.
func (p *Plugin) EventsToRegister(context.Context) ([]fwktype.ClusterEventWithHint, error) {
	return []fwktype.ClusterEventWithHint{{
		Event:          fwktype.ClusterEvent{Resource: fwktype.Pod, ActionType: fwktype.UpdatePodLabel},
		QueueingHintFn: ownLabels,
	}}, nil
}

// ownLabels tolerates events without objects: Koordinator sends a pod deletion with two nils.
func ownLabels(_ klog.Logger, pod *corev1.Pod, _, newObj any) (fwktype.QueueingHint, error) {
	if changed, ok := newObj.(*corev1.Pod); ok && changed != nil && changed.UID == pod.UID {
		return fwktype.Queue, nil
	}
	return fwktype.QueueSkip, nil
}

// Less orders pods as PrioritySort does.
//
// It ignores the order of admission. The order of pods must be total over all pods in the queue, and must not change
// while they are there. A sequence number gives neither: other pods have none, and a pod loses its number when its unit
// ends. Suspended jobs get their pods in the order of admission anyway, and equal pods are ordered by their arrival.
func (p *Plugin) Less(a, b fwktype.QueuedPodInfo) bool { return p.sort.Less(a, b) }

// PreFilter refuses pods that passed PreEnqueue and whose admission was taken back since, and siblings of a gang that
// were taken past it. The status keeps preemption from being tried for them.
func (p *Plugin) PreFilter(
	_ context.Context, _ fwktype.CycleState, pod *corev1.Pod, _ []fwktype.NodeInfo,
) (*fwktype.PreFilterResult, *fwktype.Status) {
	if status := p.core.gate.Check(pod); status != nil {
		return nil, status
	}
	return nil, fwktype.NewStatus(fwktype.Skip)
}

// PreFilterExtensions returns nil: the answer does not depend on nodes.
func (p *Plugin) PreFilterExtensions() fwktype.PreFilterExtensions { return nil }

// Reserve looks again: an admission can be taken back while the pod is being scheduled.
func (p *Plugin) Reserve(_ context.Context, _ fwktype.CycleState, pod *corev1.Pod, _ string) *fwktype.Status {
	return p.core.gate.Check(pod)
}

// Unreserve has nothing to take back.
func (p *Plugin) Unreserve(context.Context, fwktype.CycleState, *corev1.Pod, string) {}

// NewControllers returns the plugin itself; Koordinator asks the instance of the first profile only.
func (p *Plugin) NewControllers() ([]frameworkext.Controller, error) {
	return []frameworkext.Controller{p}, nil
}

// Start is called when this replica leads and the scheduler is about to run.
func (p *Plugin) Start() { p.core.lead() }
