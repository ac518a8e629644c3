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

package provisioning

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
)

const (
	// mostOfName is how much of the unit's name is in that of a request, which has 63 characters at most.
	mostOfName = 24
	// noImage stands where a template has none left. No pod is made of it.
	noImage = "none"
)

// requestName is that of the request for a reservation: of this unit, for one check, at one attempt.
func requestName(unit *v1alpha1.QueueUnit, check string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(unit.UID) + "/" + check))
	name := unit.Name[:min(len(unit.Name), mostOfName)]
	return fmt.Sprintf("%s-%016x-%d", strings.TrimRight(name, "-."), h.Sum64(), unit.Status.Attempts)
}

// templateName is that of the PodTemplate of a pod set, by its place in the unit.
func templateName(request string, set int) string { return fmt.Sprintf("%s-%d", request, set) }

// podSet is one that capacity is asked for.
type podSet struct {
	name     string
	template autoscalingv1.Reference
	count    int32
	pods     corev1.PodTemplateSpec
}

// podSetsOf are those that capacity is asked for: with pods still to come, and of a resource that is managed.
func podSetsOf(
	unit *v1alpha1.QueueUnit, config *v1beta1.ProvisioningRequestConfigSpec, request string,
) ([]podSet, error) {
	var sets []podSet
	for i := range unit.Spec.PodSets {
		set := &unit.Spec.PodSets[i]
		count := admissioncheck.Pods(unit, set)
		if count <= 0 {
			continue
		}
		pods, err := templateOf(set)
		if err != nil {
			return nil, fmt.Errorf("template of pod set %q: %w", set.Name, err)
		}
		if !uses(&pods.Spec, config.ManagedResources) {
			continue
		}
		sets = append(sets, podSet{
			name: set.Name, template: autoscalingv1.Reference{Name: templateName(request, i)}, count: count, pods: pods,
		})
	}
	return sets, nil
}

// templateOf is what the autoscaler reads of the pods. Nothing else is copied, whatever units hold.
func templateOf(set *v1alpha1.PodSet) (pods corev1.PodTemplateSpec, err error) {
	if pods, err = podtemplate.Scheduled(set.Template.Raw); err != nil {
		return pods, err
	}
	for _, containers := range [][]corev1.Container{pods.Spec.InitContainers, pods.Spec.Containers} {
		for i := range containers {
			containers[i].Image = noImage
		}
	}
	return pods, nil
}

// uses says whether pods ask for one of the resources; where none are named, all are meant.
func uses(pods *corev1.PodSpec, resources []corev1.ResourceName) bool {
	if len(resources) == 0 {
		return true
	}
	asks := func(c corev1.Container) bool {
		return slices.ContainsFunc(resources, func(name corev1.ResourceName) bool {
			_, asked := c.Resources.Requests[name]
			return asked
		})
	}
	return slices.ContainsFunc(pods.InitContainers, asks) || slices.ContainsFunc(pods.Containers, asks)
}

func newRequest(
	unit *v1alpha1.QueueUnit, name string, config *v1beta1.ProvisioningRequestConfigSpec, sets []podSet,
) *autoscalingv1.ProvisioningRequest {
	r := &autoscalingv1.ProvisioningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: unit.Namespace, Name: name, Labels: ownLabels(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "QueueUnit", Name: unit.Name, UID: unit.UID,
				Controller: ptr.To(true),
			}},
		},
		Spec: autoscalingv1.ProvisioningRequestSpec{ProvisioningClassName: config.ProvisioningClassName},
	}
	for i := range sets {
		r.Spec.PodSets = append(r.Spec.PodSets,
			autoscalingv1.PodSet{PodTemplateRef: sets[i].template, Count: sets[i].count})
	}
	for key, value := range config.Parameters {
		if r.Spec.Parameters == nil {
			r.Spec.Parameters = map[string]autoscalingv1.Parameter{}
		}
		r.Spec.Parameters[key] = autoscalingv1.Parameter(value)
	}
	return r
}

// newTemplate belongs to the request, and goes with it.
func newTemplate(request *autoscalingv1.ProvisioningRequest, set *podSet) *corev1.PodTemplate {
	return &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: request.Namespace, Name: set.template.Name, Labels: ownLabels(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: autoscalingv1.SchemeGroupVersion.String(), Kind: "ProvisioningRequest", Name: request.Name,
				UID: request.UID, Controller: ptr.To(true),
			}},
		},
		Template: set.pods,
	}
}

func ownLabels() map[string]string {
	return map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.CreatedByController}
}

// asksFor says whether a request asks for what it should.
func asksFor(have, want *autoscalingv1.ProvisioningRequestSpec) bool {
	return have.ProvisioningClassName == want.ProvisioningClassName && slices.Equal(have.PodSets, want.PodSets) &&
		maps.Equal(have.Parameters, want.Parameters)
}

// sameForScheduling says whether pods of both templates can run on the same nodes and use the same there. Defaults of
// the API server do not count as differences.
func sameForScheduling(have, want *corev1.PodTemplateSpec) bool {
	raw, err := json.Marshal(have)
	if err != nil {
		return false
	}
	reduced, err := templateOf(&v1alpha1.PodSet{Template: runtime.RawExtension{Raw: raw}})
	return err == nil && equality.Semantic.DeepEqual(completed(&reduced), completed(want))
}

// completed has the defaults of the API server for what templates keep.
func completed(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	template = template.DeepCopy()
	template.CreationTimestamp = metav1.Time{}
	pods := &template.Spec
	pods.SchedulerName = cmp.Or(pods.SchedulerName, corev1.DefaultSchedulerName)
	for _, containers := range [][]corev1.Container{pods.InitContainers, pods.Containers} {
		for i := range containers {
			for j := range containers[i].Ports {
				port := &containers[i].Ports[j]
				if port.Protocol = cmp.Or(port.Protocol, corev1.ProtocolTCP); pods.HostNetwork {
					port.HostPort = cmp.Or(port.HostPort, port.ContainerPort)
				}
			}
		}
	}
	for i := range pods.Volumes {
		if e := pods.Volumes[i].Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
			claim := &e.VolumeClaimTemplate.Spec
			claim.VolumeMode = ptr.To(ptr.Deref(claim.VolumeMode, corev1.PersistentVolumeFilesystem))
		}
	}
	return template
}
