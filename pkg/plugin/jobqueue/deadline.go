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
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwktype "k8s.io/kube-scheduler/framework"
)

// A job that has used up its time is suspended. Pods that their job has left behind (`kubectl delete job
// --cascade=orphan`) would run on. So each such pod is bound with activeDeadlineSeconds if the time of its job is
// bounded and already counts. The kubelet then ends the pod, no matter who owns it.
//
// A bound of the queue counts from admission, so all pods of such a job have the field. Kubernetes lets nobody raise or
// remove the field, and it cannot be written into the template of a Job, not even of a suspended one.

// deadlineMargin is how much longer a pod may run than its unit. The queue has to be first, because it suspends the job
// and says why. A pod that the kubelet ends counts as a failure of its job. A minute is enough for another scheduler to
// take over.
const deadlineMargin = time.Minute

// PreBindPreFlight says whether PreBind has work. It has for a pod that waits for its gang, whose admission may be lost
// until then, and for a pod with a bounded time. Reserve has just asked the gate about all others.
func (p *Plugin) PreBindPreFlight(_ context.Context, _ fwktype.CycleState, pod *corev1.Pod, _ string) *fwktype.Status {
	if p.core.handle.GetWaitingPod(pod.UID) == nil && p.core.gate.Snapshot().RunsUntil(pod.UID).IsZero() {
		return fwktype.NewStatus(fwktype.Skip)
	}
	return nil
}

// PreBind asks the gate again, since a pod may have waited for its gang. It then writes the end of the time into the
// pod. The pod is a copy, and Koordinator's plugin DefaultPreBind writes the changes of all plugins in one patch. If
// that fails the pod is not bound, and tried again.
func (p *Plugin) PreBind(_ context.Context, _ fwktype.CycleState, pod *corev1.Pod, _ string) *fwktype.Status {
	gate := p.core.gate
	unbound := *pod
	unbound.Spec.NodeName = "" // the scheduler assumes its node already
	if status := gate.Check(&unbound); status != nil {
		return status
	}
	if until := gate.Snapshot().RunsUntil(pod.UID); !until.IsZero() {
		most := deadline(until.Sub(gate.Clock.Now()))
		if named := pod.Spec.ActiveDeadlineSeconds; named == nil || *named > most {
			pod.Spec.ActiveDeadlineSeconds = &most
		}
	}
	return nil
}

// deadline is the activeDeadlineSeconds of a pod whose unit may run for so long yet.
func deadline(left time.Duration) int64 {
	return min(int64((max(left, 0)+deadlineMargin+time.Second-1)/time.Second), math.MaxInt32)
}
