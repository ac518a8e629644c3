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
	"fmt"

	corev1 "k8s.io/api/core/v1"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/klog/v2"
	fwktype "k8s.io/kube-scheduler/framework"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext/services"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"
)

// Plugin is ElasticQuota in the profile that enables JobQueue, with other PreFilter and PostFilter.
//
// The runtime of a quota can shrink between the admission of a job and the arrival of its pods: other quotas have got
// pods. Even gated pods count. ElasticQuota would then refuse pods for which quota is reserved, while the reservation
// keeps the other job pending. Neither would ever run. So a reservation stands: an admitted job gets its quota, up to
// max. The other quota gets its share when the job ends, as if the pods had arrived in time.
//
// The same rule covers a race in ElasticQuota. Its runtime never exceeds the requests of pods. A pod that the
// scheduling queue returns before ElasticQuota's handler has counted it is refused until something wakes it a second
// later.
type Plugin struct {
	*elasticquota.Plugin
	adapter *Adapter
	handle  fwktype.Handle
	sieve   *sieve
}

// The framework and Koordinator find these interfaces by type assertion.
var (
	_ fwktype.EnqueueExtensions       = &Plugin{}
	_ fwktype.PreFilterPlugin         = &Plugin{}
	_ fwktype.PostFilterPlugin        = &Plugin{}
	_ fwktype.ReservePlugin           = &Plugin{}
	_ frameworkext.ControllerProvider = &Plugin{}
	_ services.APIServiceProvider     = &Plugin{}
)

// NewControllers adds one that says from when this replica leads which quotas are withheld.
func (p *Plugin) NewControllers() ([]frameworkext.Controller, error) {
	controllers, err := p.Plugin.NewControllers()
	return append(controllers, p.sieve), err
}

// PreFilter is that of ElasticQuota with one exception. A pod of an admitted job passes if only the runtime refuses it
// and its quota is still reserved.
func (p *Plugin) PreFilter(
	ctx context.Context, state fwktype.CycleState, pod *corev1.Pod, nodes []fwktype.NodeInfo,
) (*fwktype.PreFilterResult, *fwktype.Status) {
	result, status := p.Plugin.PreFilter(ctx, state, pod, nodes)
	guard := p.adapter.protection.guard.Load()
	if status.Code() != fwktype.Unschedulable || guard == nil || !guard.Admitted(pod) {
		return result, status
	}
	quota := p.GetQuotaName(pod)
	cause := causeOf(p.Plugin, quota, pod)
	err := p.adapter.Admits(quota, pod)
	guard.Beyond(quota, cause, err == nil)
	logger := klog.FromContext(ctx).V(4).WithValues("pod", klog.KObj(pod), "cause", cause, "refusal", status.Message())
	if err != nil {
		logger.Info("ElasticQuota refuses a pod of an admitted job", "reason", err)
		return result, status
	}
	logger.Info("Pod of an admitted job passes on reserved quota")
	return nil, nil
}

func causeOf(plugin Live, quota string, pod *corev1.Pod) Cause {
	if mgr := plugin.GetGroupQuotaManagerForQuota(quota); mgr != nil {
		if info := mgr.GetQuotaInfoByName(quota); info != nil && !info.IsPodExist(pod) {
			return CauseUncounted
		}
	}
	return CauseLimit
}

// Admits says whether quota is reserved for the pod and may be used up to max. It repeats the check of ElasticQuota's
// PreFilter in v1.8.0, with max for runtime on each level. Reserved quota was within runtime at its admission, or lent.
func (a *Adapter) Admits(quota string, pod *corev1.Pod) error {
	plugin, args := a.captured()
	path, ok := pathOf(plugin, quota)
	if !ok {
		return fmt.Errorf("quota %q or a parent of it does not exist", quota)
	}
	leaf := path[0]
	max := leaf.info.GetMax()
	request := quotav1.Mask(core.PodRequests(pod), quotav1.ResourceNames(max))
	if !a.protection.covers(quota, request) {
		return fmt.Errorf("not all that the pod asks for is reserved in quota %q", quota)
	}
	if fits, names := quotav1.LessThanOrEqual(quotav1.Add(request, leaf.info.GetUsed()), max); !fits {
		return fmt.Errorf("max of quota %q: %v", quota, names)
	}
	if extension.IsPodNonPreemptible(pod) {
		if fits, names := quotav1.LessThanOrEqual(quotav1.Add(request, leaf.info.GetNonPreemptibleUsed()),
			leaf.info.GetMin()); !fits {
			return fmt.Errorf("min of quota %q: %v", quota, names)
		}
	}
	for _, hook := range leaf.mgr.GetHookPlugins() {
		if err := hook.CheckPod(quota, pod); err != nil {
			return err
		}
	}
	if !args.EnableCheckParentQuota {
		return nil
	}
	for _, l := range path[1 : len(path)-1] {
		used := quotav1.Mask(quotav1.Add(request, l.info.GetUsed()), quotav1.ResourceNames(request))
		if fits, names := quotav1.LessThanOrEqual(used, l.info.GetMax()); !fits {
			return fmt.Errorf("max of quota %q: %v", l.name, names)
		}
	}
	return nil
}
