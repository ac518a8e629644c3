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
	"fmt"

	corev1 "k8s.io/api/core/v1"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
)

// Handlers is what an adapter adds itself to; a part of cache.SharedIndexInformer.
type Handlers interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// watch follows events that change limits without a call of the hook: specs of quotas, nodes, and requests of
// unassigned pods. The handlers only mark changes. ElasticQuota's own handlers run in other goroutines, so the live
// state can be a moment behind or ahead of ours.
func (a *Adapter) watch(quotas, nodes, pods Handlers) error {
	if _, err := quotas.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { a.onQuota(nil, obj) },
		UpdateFunc: func(oldObj, newObj any) {
			a.onQuota(oldObj, newObj)
		},
		DeleteFunc: func(obj any) { a.onQuota(obj, nil) },
	}); err != nil {
		return fmt.Errorf("watching elastic quotas: %w", err)
	}
	if _, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { a.onNode(nil, obj) },
		UpdateFunc: a.onNode,
		DeleteFunc: func(obj any) { a.onNode(obj, nil) },
	}); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { a.onPod(nil, obj) },
		UpdateFunc: a.onPod,
		DeleteFunc: a.onPodGone,
	}); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return nil
}

func (a *Adapter) onQuota(oldObj, newObj any) {
	before, after := object[v1alpha1.ElasticQuota](oldObj), object[v1alpha1.ElasticQuota](newObj)
	if namespacesOf(before) != namespacesOf(after) {
		a.mappingChanged()
	}
	if treeTotalOf(before) != treeTotalOf(after) {
		a.totalChanged()
	}
	switch {
	case after != nil && after.DeletionTimestamp != nil:
		// ElasticQuota ignores a quota that is being deleted until it is gone.
	case after == nil && before == nil:
	case after == nil:
		a.noteSpec(before.Name, nil)
	case before != nil && sameSpec(before, after) && sameMaxJobs(before, after):
	default:
		a.noteSpec(after.Name, after)
	}
}

// sameSpec compares the fields that change the arithmetic. All others, above all the status, are rewritten up to once a
// second and raise the generation each time.
func sameSpec(a, b *v1alpha1.ElasticQuota) bool {
	return extension.GetParentQuotaName(a) == extension.GetParentQuotaName(b) &&
		extension.IsParentQuota(a) == extension.IsParentQuota(b) &&
		extension.IsAllowLentResource(a) == extension.IsAllowLentResource(b) &&
		extension.GetQuotaTreeID(a) == extension.GetQuotaTreeID(b) &&
		quotav1.Equals(a.Spec.Min, b.Spec.Min) &&
		quotav1.Equals(a.Spec.Max, b.Spec.Max) &&
		quotav1.Equals(extension.GetSharedWeight(a), extension.GetSharedWeight(b))
}

// namespacesOf are the namespaces whose pods a quota takes without a label of theirs, as its annotation has them.
func namespacesOf(q *v1alpha1.ElasticQuota) string {
	if q == nil {
		return ""
	}
	return q.Annotations[extension.AnnotationQuotaNamespaces]
}

// treeTotalOf is the total of a tree in a quota, and whether the default tree loses that. ElasticQuota reads it only
// from the quota at the top of a tree, and the hook is not called for it.
func treeTotalOf(q *v1alpha1.ElasticQuota) string {
	if q == nil || !extension.IsTreeRootQuota(q) {
		return ""
	}
	return q.Annotations[extension.AnnotationTotalResource] + "/" + q.Labels[extension.LabelQuotaIgnoreDefaultTree]
}

func (a *Adapter) onNode(oldObj, newObj any) {
	before, after := object[corev1.Node](oldObj), object[corev1.Node](newObj)
	a.roomMoved(a.room.node(before, after))
	if before == nil || after == nil || !quotav1.Equals(before.Status.Allocatable, after.Status.Allocatable) {
		a.totalChanged()
	}
}

func (a *Adapter) onPodGone(obj any) {
	if pod := object[corev1.Pod](obj); pod != nil {
		a.protection.forget(pod)
	}
	a.onPod(obj, nil)
}

func (a *Adapter) onPod(oldObj, newObj any) {
	before, after := object[corev1.Pod](oldObj), object[corev1.Pod](newObj)
	same := before != nil && after != nil && sameRequest(before, after)
	if !same || before.Spec.NodeName != after.Spec.NodeName {
		a.roomMoved(a.room.pod(before, after))
	}
	if same {
		return
	}
	plugin, args := a.captured()
	if plugin == nil || !args.EnableRuntimeQuota {
		// Requests decide nothing where max is the limit.
		return
	}
	var names []string
	for _, pod := range []*corev1.Pod{before, after} {
		if pod == nil {
			continue
		}
		if name := plugin.GetQuotaName(pod); name != "" {
			names = append(names, name)
		}
	}
	if before == nil && len(names) == 1 {
		a.noteMoreRequested(names[0])
		return
	}
	a.quotaChanged(names...)
}

func sameRequest(a, b *corev1.Pod) bool {
	if a.Labels[extension.LabelQuotaName] != b.Labels[extension.LabelQuotaName] ||
		(a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) {
		return false
	}
	return sameSpecRequests(&a.Spec, &b.Spec)
}

// sameSpecRequests compares all that a pod's request follows from. It runs for every change of every pod, partly under
// a lock that ElasticQuota needs for scheduling, so it makes no sums and no garbage.
func sameSpecRequests(a, b *corev1.PodSpec) bool {
	return sameContainers(a.Containers, b.Containers) && sameContainers(a.InitContainers, b.InitContainers) &&
		quotav1.Equals(a.Overhead, b.Overhead) && quotav1.Equals(podLevelRequests(a), podLevelRequests(b))
}

func sameContainers(a, b []corev1.Container) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !ptr.Equal(a[i].RestartPolicy, b[i].RestartPolicy) ||
			!quotav1.Equals(a[i].Resources.Requests, b[i].Resources.Requests) {
			return false
		}
	}
	return true
}

func podLevelRequests(spec *corev1.PodSpec) corev1.ResourceList {
	if spec.Resources == nil {
		return nil
	}
	return spec.Resources.Requests
}

// object unwraps what an informer hands over, tombstones included; nil if it is something else.
func object[T any](obj any) *T {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	typed, _ := obj.(*T)
	return typed
}
