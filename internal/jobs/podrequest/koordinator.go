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
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"github.com/koordinator-sh/koordinator/apis/config/v1alpha1"
	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

// Webhook is koord-manager's webhook for new pods, for one namespace.
type Webhook struct {
	// Objects selects the pods that are sent to it, by their labels; nil selects all.
	Objects labels.Selector
	// NamespaceLabels of the namespace, for the selectors of profiles.
	NamespaceLabels map[string]string
	// Profiles are all ClusterColocationProfiles of the cluster.
	Profiles []v1alpha1.ClusterColocationProfile
}

// HasProfiles says whether the labels of pods can come out otherwise than their template has them.
func (c *Creation) HasProfiles() bool { return c.Webhook != nil && len(c.Webhook.Profiles) > 0 }

// koordManager does what the webhook of koord-manager v1.8.0 does (pkg/webhook/pod/mutating), as far as labels,
// priority and resources go.
func (c *Creation) koordManager(pod *corev1.Pod) {
	if w := c.Webhook; w.Objects == nil || w.Objects.Matches(labels.Set(pod.Labels)) {
		c.colocate(pod)
		translateDevices(pod)
	}
}

// colocate applies the profiles that select the pod, in the order of their names.
func (c *Creation) colocate(pod *corev1.Pod) {
	var matching []*v1alpha1.ClusterColocationProfile
	for i := range c.Webhook.Profiles {
		p := &c.Webhook.Profiles[i]
		// Both are decided on the pod as it comes in, before any profile has changed it.
		if selects(p.Spec.NamespaceSelector, c.Webhook.NamespaceLabels) && selects(p.Spec.Selector, pod.Labels) {
			matching = append(matching, p)
		}
	}
	if len(matching) == 0 {
		return
	}
	slices.SortFunc(matching, func(a, b *v1alpha1.ClusterColocationProfile) int { return strings.Compare(a.Name, b.Name) })
	keep := c.Gates.SkipMutatingResources
	for _, p := range matching {
		keep = keep || extension.ShouldSkipUpdateResource(p)
		if applies(p) {
			c.apply(p, pod)
		}
	}
	if !keep {
		translatePriority(pod)
	}
}

// selects: a selector that is absent selects everything, and so does one that cannot be read, as koord-manager has it.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	if selector == nil {
		return true
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || compiled.Matches(labels.Set(set))
}

// applies says whether the profile is applied to every pod that it selects. One with a probability in between is
// applied to some, and nobody knows to which; the estimate leaves it out. koord-manager skips a pod when a number
// from 0 to 99 is above the percentage, so that 99 is already certain.
func applies(p *v1alpha1.ClusterColocationProfile) bool {
	if p.Spec.Probability == nil {
		return true
	}
	percent, err := intstr.GetScaledValueFromIntOrPercent(p.Spec.Probability, 100, false)
	return err == nil && percent >= 99
}

func (c *Creation) apply(p *v1alpha1.ClusterColocationProfile, pod *corev1.Pod) {
	relabel(&p.Spec, pod)
	if p.Spec.SchedulerName != "" {
		pod.Spec.SchedulerName = p.Spec.SchedulerName
	}
	if p.Spec.PriorityClassName != "" {
		if class := c.PriorityClass(p.Spec.PriorityClassName); class != nil {
			pod.Spec.PriorityClassName, pod.Spec.Priority = class.Name, ptr.To(class.Value)
		}
	}
	if p.Spec.KoordinatorPriority != nil {
		pod.Labels[extension.LabelPodPriority] = strconv.FormatInt(int64(*p.Spec.KoordinatorPriority), 10)
	}
	if p.Spec.Patch.Raw != nil {
		patch(pod, p.Spec.Patch.Raw)
	}
}

// relabel sets labels and annotations. Where mappings of one profile build on each other, koord-manager takes them in
// no certain order; here they are sorted.
func relabel(spec *v1alpha1.ClusterColocationProfileSpec, pod *corev1.Pod) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	maps.Copy(pod.Labels, spec.Labels)
	maps.Copy(pod.Annotations, spec.Annotations)
	for _, key := range slices.Sorted(maps.Keys(spec.LabelKeysMapping)) {
		pod.Labels[spec.LabelKeysMapping[key]] = pod.Labels[key]
	}
	for _, key := range slices.Sorted(maps.Keys(spec.AnnotationKeysMapping)) {
		pod.Annotations[spec.AnnotationKeysMapping[key]] = pod.Annotations[key]
	}
	for key, suffix := range spec.LabelSuffixes {
		if value, ok := pod.Labels[key]; ok {
			pod.Labels[key] = value + suffix
		}
	}
	if spec.QoSClass != "" {
		pod.Labels[extension.LabelPodQoS] = spec.QoSClass
	}
}

// patch is a strategic merge into the pod; a patch that does not apply leaves the pod as it is.
func patch(pod *corev1.Pod, raw []byte) {
	before, err := json.Marshal(pod)
	if err != nil {
		return
	}
	after, err := strategicpatch.StrategicMergePatch(before, raw, &corev1.Pod{})
	if err != nil {
		return
	}
	patched := &corev1.Pod{}
	if podtemplate.DecodeInto(after, patched) == nil {
		*pod = *patched
	}
}

// translatePriority has pods of the classes batch and mid ask for resources of their class in place of cpu and memory.
// The class is that of the label koordinator.sh/priority-class, else of the priority, else of the QoS. Pod-level
// resources stay as they are.
func translatePriority(pod *corev1.Pod) {
	names := extension.ResourceNameMap[extension.GetPodPriorityClassWithDefault(pod)]
	if len(names) == 0 {
		return
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for from, to := range names {
				rename(r.Requests, from, to)
				rename(r.Limits, from, to)
				if limit, ok := r.Limits[to]; ok {
					setMissing(&r.Requests, to, limit)
				}
			}
		}
	}
	for from, to := range names {
		rename(pod.Spec.Overhead, from, to)
	}
}

// rename moves an amount to another resource, in place of what that had; cpu is counted in thousandths there.
func rename(list corev1.ResourceList, from, to corev1.ResourceName) {
	quantity, ok := list[from]
	if !ok {
		return
	}
	if from == corev1.ResourceCPU {
		quantity = *resource.NewQuantity(quantity.MilliValue(), resource.DecimalSI)
	}
	list[to] = quantity
	delete(list, from)
}

// translateDevices has containers that ask for koordinator.sh/gpu ask for cores and memory of GPUs, and says on how
// many GPUs a share is. Init containers are left alone, as are resources of device plugins such as nvidia.com/gpu:
// ElasticQuota counts those under the name that the pod has.
func translateDevices(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		r := &pod.Spec.Containers[i].Resources
		if !asksForGPU(r) {
			continue
		}
		if gpu, ok := r.Requests[extension.ResourceGPU]; ok {
			percent := *resource.NewQuantity(gpu.Value(), resource.DecimalSI)
			setBoth(r, extension.ResourceGPUCore, percent)
			setBoth(r, extension.ResourceGPUMemoryRatio, percent)
			delete(r.Requests, extension.ResourceGPU)
			delete(r.Limits, extension.ResourceGPU)
		}
		if _, ok := r.Requests[extension.ResourceGPUShared]; !ok {
			setBoth(r, extension.ResourceGPUShared, *resource.NewQuantity(sharedGPUs(r), resource.DecimalSI))
		}
	}
}

func asksForGPU(r *corev1.ResourceRequirements) bool {
	for _, name := range []corev1.ResourceName{
		extension.ResourceGPU, extension.ResourceGPUCore, extension.ResourceGPUMemory,
		extension.ResourceGPUMemoryRatio, extension.ResourceGPUShared,
	} {
		_, requested := r.Requests[name]
		_, limited := r.Limits[name]
		if requested || limited {
			return true
		}
	}
	return false
}

// sharedGPUs is one GPU, or as many as a share of whole GPUs has. With cores alone koord-manager divides the memory
// ratio, which is absent then, and gets none.
func sharedGPUs(r *corev1.ResourceRequirements) int64 {
	ratio, byRatio := r.Requests[extension.ResourceGPUMemoryRatio]
	cores, byCores := r.Requests[extension.ResourceGPUCore]
	switch {
	case byRatio && wholeGPUs(ratio):
		return ratio.Value() / 100
	case !byRatio && byCores && wholeGPUs(cores):
		return 0
	default:
		return 1
	}
}

func wholeGPUs(percent resource.Quantity) bool {
	return percent.Value() > 100 && percent.Value()%100 == 0
}

func setBoth(r *corev1.ResourceRequirements, name corev1.ResourceName, quantity resource.Quantity) {
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	if r.Limits == nil {
		r.Limits = corev1.ResourceList{}
	}
	r.Requests[name], r.Limits[name] = quantity, quantity
}

// koordScheduler does what koord-scheduler v1.8.0 does to pods as it reads them (pkg/util/transformer), as far as
// resources go.
func (c *Creation) koordScheduler(pod *corev1.Pod) {
	renameAll(pod, extension.DeprecatedBatchResourcesMapper)
	renameAll(pod, extension.DeprecatedDeviceResourcesMapper)
	if !c.Gates.ReplaceResources {
		return
	}
	erase, replace := extension.GetPodReplaceResourcesConfig(pod)
	for _, list := range amountsOf(pod) {
		for _, name := range erase {
			delete(list, name)
		}
	}
	renameAll(pod, replace)
}

// renameAll renames where the new name is not there yet. Names that build on each other are taken in sorted order;
// koord-scheduler has no certain one.
func renameAll(pod *corev1.Pod, names map[corev1.ResourceName]corev1.ResourceName) {
	for _, from := range slices.Sorted(maps.Keys(names)) {
		for _, list := range amountsOf(pod) {
			if _, ok := list[names[from]]; !ok {
				rename(list, from, names[from])
			}
		}
	}
}

// amountsOf are the requests and limits of all containers, and the overhead.
func amountsOf(pod *corev1.Pod) []corev1.ResourceList {
	lists := make([]corev1.ResourceList, 0, 2*(len(pod.Spec.InitContainers)+len(pod.Spec.Containers))+1)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			lists = append(lists, containers[i].Resources.Requests, containers[i].Resources.Limits)
		}
	}
	return append(lists, pod.Spec.Overhead)
}
