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

// Package quotatest runs Koordinator's quota arithmetic without a scheduler, for tests and the simulator. It has a real
// GroupQuotaManager with our hook and adapter, and sends it the events of ElasticQuota's informers.
package quotatest

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/internal/quota"
)

// Live is what ElasticQuota v1.8.0 makes of quotas, nodes and pods, for one quota tree. Its methods follow those of the
// plugin; they belong to one goroutine.
type Live struct {
	mgr     *core.GroupQuotaManager
	args    *config.ElasticQuotaArgs
	adapter *quota.Adapter
	quotas  map[string]*v1alpha1.ElasticQuota
	// Handlers of the adapter: it follows the same informers as ElasticQuota, in goroutines of its own.
	Quotas, Nodes, Pods Handler
}

// Handler holds what an informer would call.
type Handler struct{ cache.ResourceEventHandler }

// AddEventHandler keeps the handler.
func (h *Handler) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.ResourceEventHandler = handler
	return nil, nil
}

// factories guards Koordinator's map of hook factories, which has no lock, while several are made at once.
var factories sync.Mutex

// New returns live quotas without any quota; runtime is ElasticQuota's enableRuntimeQuota.
func New(runtime bool) (*Live, error) {
	huge := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(1<<62/1000, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(1<<62, resource.BinarySI),
	}
	args := quota.WithHook(&config.ElasticQuotaArgs{
		EnableRuntimeQuota: runtime, EnableMinQuotaScale: true, DefaultQuotaGroupMax: huge, SystemQuotaGroupMax: huge,
	})
	registry := quota.NewRegistry()
	l := &Live{args: args, adapter: registry.Adapter(), quotas: map[string]*v1alpha1.ElasticQuota{}}
	l.mgr = core.NewGroupQuotaManager("", true, args.SystemQuotaGroupMax, args.DefaultQuotaGroupMax)
	factories.Lock()
	defer factories.Unlock()
	registry.RegisterHook()
	if err := l.mgr.InitHookPlugins(args); err != nil {
		return nil, err
	}
	return l, registry.Capture(l, args, &l.Quotas, &l.Nodes, &l.Pods)
}

// Adapter answers from these quotas.
func (l *Live) Adapter() *quota.Adapter { return l.adapter }

// GetQuotaName is the plugin's: the label, else the quota that is named as the namespace, else the default quota.
func (l *Live) GetQuotaName(pod *corev1.Pod) string {
	if name := extension.GetQuotaName(pod); name != "" {
		return name
	}
	if q := l.quotas[pod.Namespace]; q != nil && q.Namespace == pod.Namespace {
		return pod.Namespace
	}
	return extension.DefaultQuotaName
}

// GetGroupQuotaManagerForQuota returns the one manager.
func (l *Live) GetGroupQuotaManagerForQuota(string) *core.GroupQuotaManager { return l.mgr }

// GetGroupQuotaManagerForTree returns the one manager.
func (l *Live) GetGroupQuotaManagerForTree(string) *core.GroupQuotaManager { return l.mgr }

// ListGroupQuotaManagersForQuotaTree is empty: there is one tree.
func (l *Live) ListGroupQuotaManagersForQuotaTree() []*core.GroupQuotaManager { return nil }

// chargedTo is getPodAssociateQuotaName of the plugin.
func (l *Live) chargedTo(pod *corev1.Pod) string {
	name := l.GetQuotaName(pod)
	if l.quotas[name] == nil && name != extension.SystemQuotaName {
		return extension.DefaultQuotaName
	}
	return name
}

// OnQuota takes a quota that came (before nil), changed, or went (after nil).
func (l *Live) OnQuota(before, after *v1alpha1.ElasticQuota) {
	if after == nil {
		delete(l.quotas, before.Name)
		_ = l.mgr.DeleteQuota(before) // fails only for an absent quota
		return
	}
	l.quotas[after.Name] = after
	if old := l.mgr.GetQuotaInfoByName(after.Name); old != nil {
		if before == nil || !old.IsQuotaChange(core.NewQuotaInfoFromQuota(after)) {
			return
		}
	}
	_ = l.mgr.UpdateQuota(after) // never fails
}

// OnNode takes a node that came, changed or went.
func (l *Live) OnNode(before, after *corev1.Node) {
	switch {
	case before == nil:
		l.mgr.OnNodeAdd(after)
	case after == nil:
		l.mgr.OnNodeDelete(before)
	default:
		l.mgr.OnNodeUpdate(before, after)
	}
}

// OnPod takes a pod that came, changed or went.
func (l *Live) OnPod(before, after *corev1.Pod) {
	switch {
	case before == nil:
		l.mgr.OnPodAdd(l.chargedTo(after), after)
	case after == nil:
		l.mgr.OnPodDelete(l.chargedTo(before), before)
	default:
		l.mgr.OnPodUpdate(l.chargedTo(after), l.chargedTo(before), after, before)
	}
}

// Migrate moves pods out of the default quota whose quota has come; the plugin does it every second.
func (l *Live) Migrate() {
	pods := l.mgr.GetQuotaInfoByName(extension.DefaultQuotaName).GetPodCache()
	for _, key := range slices.Sorted(maps.Keys(pods)) {
		pod := pods[key]
		if to := l.chargedTo(pod); to != extension.DefaultQuotaName && l.mgr.GetQuotaInfoByName(to) != nil {
			l.mgr.MigratePod(pod, extension.DefaultQuotaName, to)
		}
	}
}

// PreFilter is what the plugin checks before a pod is scheduled, our hook included. passes says whether a refusal is
// one that quota.Plugin may overrule: an insufficient quota, not an error.
func (l *Live) PreFilter(pod *corev1.Pod) (err error, overrulable bool) { //nolint:revive // the second says its sort
	name := l.chargedTo(pod)
	if l.args.EnableRuntimeQuota {
		l.mgr.RefreshRuntime(name)
	}
	info := l.mgr.GetQuotaInfoByName(name)
	if info == nil {
		return fmt.Errorf("quota %q is not there", name), false
	}
	limit := info.GetMax()
	request := quotav1.Mask(core.PodRequests(pod), quotav1.ResourceNames(limit))
	if l.args.EnableRuntimeQuota {
		limit = info.GetRuntime()
	}
	if fits, _ := quotav1.LessThanOrEqual(quotav1.Add(request, info.GetUsed()), limit); !fits {
		return fmt.Errorf("insufficient quota %q", name), true
	}
	if extension.IsPodNonPreemptible(pod) {
		if fits, _ := quotav1.LessThanOrEqual(quotav1.Add(request, info.GetNonPreemptibleUsed()), info.GetMin()); !fits {
			return fmt.Errorf("insufficient min of quota %q", name), true
		}
	}
	for _, hook := range l.mgr.GetHookPlugins() {
		if err := hook.CheckPod(name, pod); err != nil {
			return err, true
		}
	}
	return nil, false
}

// Reserve counts a pod as assigned before it is bound, and says whether it counts. It does not count if its quota
// appeared or disappeared since ElasticQuota's last event of the pod. Unreserve takes that back.
func (l *Live) Reserve(pod *corev1.Pod) (counted bool) {
	name := l.chargedTo(pod)
	l.mgr.ReservePod(name, pod)
	info := l.mgr.GetQuotaInfoByName(name)
	return info != nil && info.CheckPodIsAssigned(pod)
}

// Unreserve takes a reservation back.
func (l *Live) Unreserve(pod *corev1.Pod) { l.mgr.UnreservePod(l.chargedTo(pod), pod) }
