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

package podrequest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// milliScale is the precision that the API keeps amounts in; what is finer is rounded up.
const milliScale = -3

// setDefaults is SetObjectDefaults_Pod of the API server, as far as it sets resources. Rounding comes last, as there.
func setDefaults(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				setMissing(&r.Requests, name, limit)
			}
		}
	}
	if r := pod.Spec.Resources; r != nil {
		defaultPodLimits(pod)
		defaultPodRequests(pod)
		roundUp(r.Requests)
		roundUp(r.Limits)
	}
	for _, list := range amountsOf(pod) {
		roundUp(list)
	}
}

func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(milliScale)
		list[name] = quantity
	}
}

func setMissing(list *corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if _, ok := (*list)[name]; ok {
		return
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = quantity.DeepCopy()
}

// defaultPodLimits fills in pod-level limits of huge pages from the containers, where pod-level resources are named.
func defaultPodLimits(pod *corev1.Pod) {
	r := pod.Spec.Resources
	if len(r.Limits) == 0 && len(r.Requests) == 0 {
		return
	}
	for name, limit := range resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{}) {
		if _, asked := r.Requests[name]; !asked && strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			setMissing(&r.Limits, name, limit)
		}
	}
}

// defaultPodRequests fills in pod-level requests where pod-level limits are set: from the containers for cpu and
// memory, else from the limits.
func defaultPodRequests(pod *corev1.Pod) {
	r := pod.Spec.Resources
	if len(r.Limits) == 0 {
		return
	}
	containers := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if amount, asked := containers[name]; asked {
			setMissing(&r.Requests, name, amount)
		}
	}
	for name, limit := range r.Limits {
		if resourcehelper.IsSupportedPodLevelResource(name) {
			setMissing(&r.Requests, name, limit)
		}
	}
}

// limitRanger is the admission plugin of that name: limits and requests of containers that have none. The API server
// takes LimitRanges in no certain order; where two of them name one resource, the first by name is taken here.
func (c *Creation) limitRanger(pod *corev1.Pod) {
	if len(c.LimitRanges) == 0 {
		return
	}
	ranges := slices.Clone(c.LimitRanges)
	slices.SortFunc(ranges, func(a, b corev1.LimitRange) int { return strings.Compare(a.Name, b.Name) })
	for i := range ranges {
		limits, requests := containerDefaults(&ranges[i])
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for j := range containers {
				r := &containers[j].Resources
				for name, quantity := range limits {
					setMissing(&r.Limits, name, quantity)
				}
				for name, quantity := range requests {
					setMissing(&r.Requests, name, quantity)
				}
			}
		}
	}
}

// containerDefaults of one LimitRange; of several items about containers the last one wins, resource by resource.
func containerDefaults(r *corev1.LimitRange) (limits, requests corev1.ResourceList) {
	limits, requests = corev1.ResourceList{}, corev1.ResourceList{}
	for i := range r.Spec.Limits {
		item := &r.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for name, quantity := range item.Default {
			limits[name] = quantity
		}
		for name, quantity := range item.DefaultRequest {
			requests[name] = quantity
		}
	}
	return limits, requests
}
