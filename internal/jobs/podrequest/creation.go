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

// Package podrequest computes the requests of future pods. Creation follows a pod template through all changes that a
// cluster makes to a pod before ElasticQuota counts it.
package podrequest

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// Creation is everything that a cluster does to the pods of one namespace between their template and the scheduler that
// counts them. The zero value is a cluster with only the defaults of the API. A Creation is safe for concurrent use as
// long as nobody writes to the objects that it points to.
//
// The steps and their order are those of the API server: defaults, LimitRanger, Priority, RuntimeClass, and the webhook
// of koord-manager. Because that webhook changes the pod, defaults and LimitRanger follow once more. The last step is
// the transformer of koord-scheduler's informer. An effect that cannot be computed is left out, such as a missing class
// or a patch that does not apply. The API server refuses such a pod, and its job says why.
type Creation struct {
	Namespace string
	// Quota that Koordinator charges pods of the namespace to that bear no label; empty if there is none, or two may be.
	Quota string
	// LimitRanges of the namespace.
	LimitRanges []corev1.LimitRange
	// RuntimeClasses and PriorityClasses of the cluster.
	RuntimeClasses  []nodev1.RuntimeClass
	PriorityClasses []schedulingv1.PriorityClass
	// Webhook of koord-manager, nil where there is none.
	Webhook *Webhook
	Gates   Gates
}

// Gates are feature gates of Koordinator that change what ElasticQuota counts. They must be set as Koordinator's own
// processes have them; nobody publishes them.
type Gates struct {
	// IgnorePodOverhead is ElasticQuotaIgnorePodOverhead of koord-scheduler.
	IgnorePodOverhead bool
	// ReplaceResources is ReplaceResourcesTransformer of koord-scheduler.
	ReplaceResources bool
	// SkipMutatingResources is ColocationProfileSkipMutatingResources of koord-manager.
	SkipMutatingResources bool
}

// Request is what ElasticQuota counts for one pod of the template.
func (c *Creation) Request(template *corev1.PodTemplateSpec) (corev1.ResourceList, error) {
	pod, err := c.Pod(template)
	if err != nil {
		return nil, err
	}
	if err := checkPodLevel(&pod.Spec, resourcehelper.AggregateContainerRequests(pod,
		resourcehelper.PodResourcesOptions{})); err != nil {
		return nil, err
	}
	request := resourcehelper.PodRequests(pod,
		resourcehelper.PodResourcesOptions{ExcludeOverhead: c.Gates.IgnorePodOverhead})
	return request, check(request)
}

// checkPodLevel finds pods that ask for less than their containers. The API server makes none of them, so their job
// would hold quota for nothing.
func checkPodLevel(spec *corev1.PodSpec, containers corev1.ResourceList) error {
	if spec.Resources == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(containers)) {
		sum := containers[name]
		if asked, said := spec.Resources.Requests[name]; said && asked.Cmp(sum) < 0 {
			return fmt.Errorf("%w: spec.resources asks for %s %s, less than the %s of its containers", ErrRequest,
				asked.String(), name, sum.String())
		}
	}
	return nil
}

// Pod is a pod of the template as the scheduler gets to see it, as far as its quota and its request depend on it. The
// template is not changed. The error is ErrRequest for an amount that cannot be counted.
func (c *Creation) Pod(template *corev1.PodTemplateSpec) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace,
			Labels:    maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if err := checkContainers(&pod.Spec); err != nil {
		return nil, err
	}
	c.admit(pod)
	if err := checkContainers(&pod.Spec); err != nil {
		return nil, err // a default or a patch of the cluster may be as wrong as a template
	}
	return pod, nil
}

func (c *Creation) admit(pod *corev1.Pod) {
	setDefaults(pod)
	c.limitRanger(pod)
	c.priority(pod)
	c.runtimeClass(pod)
	if c.Webhook != nil {
		c.koordManager(pod)
		setDefaults(pod)
		c.limitRanger(pod)
	}
	setDefaults(pod) // once more as the pod is read back
	c.koordScheduler(pod)
}

// priority is the admission plugin of that name: the number that the class of the pod stands for.
func (c *Creation) priority(pod *corev1.Pod) {
	if class := c.PriorityClass(pod.Spec.PriorityClassName); class != nil {
		pod.Spec.PriorityClassName, pod.Spec.Priority = class.Name, ptr.To(class.Value)
		return
	}
	if pod.Spec.PriorityClassName == "" && pod.Spec.Priority == nil {
		pod.Spec.Priority = new(int32)
	}
}

// PriorityClass is the class of this name; without a name the default class, of several the one with the lowest value.
func (c *Creation) PriorityClass(name string) *schedulingv1.PriorityClass {
	var found *schedulingv1.PriorityClass
	for i := range c.PriorityClasses {
		class := &c.PriorityClasses[i]
		switch {
		case name != "" && class.Name == name:
			return class
		case name == "" && class.GlobalDefault && (found == nil || class.Value < found.Value):
			found = class
		}
	}
	return found
}

// runtimeClass is the admission plugin of that name, as far as it sets the overhead.
func (c *Creation) runtimeClass(pod *corev1.Pod) {
	if pod.Spec.RuntimeClassName == nil {
		return
	}
	for i := range c.RuntimeClasses {
		class := &c.RuntimeClasses[i]
		if class.Name == *pod.Spec.RuntimeClassName && class.Overhead != nil {
			pod.Spec.Overhead = class.Overhead.PodFixed.DeepCopy()
		}
	}
}
