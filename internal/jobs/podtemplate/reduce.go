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

package podtemplate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// fields of an object that stay, by name; nil keeps a field whole. In a list each item is an object.
type fields map[string]fields

// schedulingFields are those of a pod template that say where its pods can run and what they take there. Others, such
// as env, commands and the content of volumes, may hold secrets, and nobody who schedules reads them.
var schedulingFields = fields{
	"metadata": {"labels": nil, "annotations": nil},
	"spec": {
		"affinity": nil, "hostNetwork": nil, "nodeName": nil, "nodeSelector": nil, "os": nil, "overhead": nil,
		"preemptionPolicy": nil, "priority": nil, "priorityClassName": nil, "resourceClaims": nil, "resources": nil,
		"runtimeClassName": nil, "schedulerName": nil, "schedulingGates": nil, "schedulingGroup": nil,
		"tolerations": nil, "topologySpreadConstraints": nil, "workloadRef": nil,
		"containers": containerFields, "initContainers": containerFields,
		"volumes": {
			"name": nil, "persistentVolumeClaim": nil, "ephemeral": nil,
			"awsElasticBlockStore": {"volumeID": nil}, "azureDisk": {"diskName": nil}, "gcePersistentDisk": {"pdName": nil},
		},
	},
}

var containerFields = fields{
	"name": nil, "resources": nil, "restartPolicy": nil,
	"ports": {"containerPort": nil, "hostIP": nil, "hostPort": nil, "protocol": nil},
}

// schedulingDomains are the domains, with all below them, of annotations that schedulers, autoscalers and admission
// checks read, and of other queue systems.
var schedulingDomains = []string{
	"koordinator.sh", "koord-queue", "scheduling.x-k8s.io", "scheduling.sigs.k8s.io", "autoscaling.x-k8s.io",
	"cluster-autoscaler.kubernetes.io", "kueue.x-k8s.io", "yunikorn.apache.org", "volcano.sh", "scheduling.k8s.io",
}

// Reduce returns the parts of a pod template, as JSON, that scheduling needs. These are requests, selectors, affinity,
// tolerations, topology, overhead, classes, host ports and the claims of volumes. A reduced template stays the same.
func Reduce(template []byte) ([]byte, error) {
	var whole map[string]any
	if err := json.Unmarshal(template, &whole); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return json.Marshal(ReduceValue(whole))
}

// Scheduled is a pod template with only the fields that decide where its pods can run and how much they use there. As
// in pods, a limit without a request is also the request. The pods are in no PodGroup of Kubernetes, because such a
// group would count them with the pods of the job. The error is ErrMalformed.
func Scheduled(template []byte) (pods corev1.PodTemplateSpec, err error) {
	reduced, err := Reduce(template)
	if err != nil {
		return pods, err
	}
	if err := DecodeInto(reduced, &pods); err != nil {
		return pods, err
	}
	pods.Spec.WorkloadRef = nil
	for _, containers := range [][]corev1.Container{pods.Spec.InitContainers, pods.Spec.Containers} {
		for i := range containers {
			askForLimits(&containers[i].Resources)
		}
	}
	return pods, nil
}

func askForLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, asked := r.Requests[name]; asked {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit
	}
}

// of an object. Another value in place of an object is dropped.
func (f fields) of(object map[string]any) map[string]any {
	kept := make(map[string]any, len(f))
	for name, below := range f {
		value, ok := object[name]
		if !ok {
			continue
		}
		switch v := value.(type) {
		case map[string]any:
			if below == nil {
				kept[name] = v
			} else {
				kept[name] = below.of(v)
			}
		case []any:
			kept[name] = below.each(v)
		default:
			if below == nil {
				kept[name] = v
			}
		}
	}
	return kept
}

func (f fields) each(list []any) []any {
	if f == nil {
		return list
	}
	kept := make([]any, 0, len(list))
	for _, item := range list {
		if object, ok := item.(map[string]any); ok {
			kept = append(kept, f.of(object))
		}
	}
	return kept
}

func ReduceAnnotations(metadata map[string]any) {
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return
	}
	kept := make(map[string]any, len(annotations))
	for key, value := range annotations {
		if forScheduling(key) {
			kept[key] = value
		}
	}
	if metadata["annotations"] = kept; len(kept) == 0 {
		delete(metadata, "annotations")
	}
}

func forScheduling(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(schedulingDomains, func(d string) bool {
		return domain == d || strings.HasSuffix(domain, "."+d)
	})
}

// ReduceValue is what scheduling needs of a template as it was decoded.
func ReduceValue(template any) any {
	whole, ok := template.(map[string]any)
	if !ok {
		return template
	}
	kept := ForScheduling(whole)
	if metadata, ok := kept["metadata"].(map[string]any); ok {
		ReduceAnnotations(metadata)
	}
	return kept
}

// endingFields are those of a pod template that say how its pods end.
var endingFields = fields{
	"metadata": {"finalizers": nil},
	"spec":     {"terminationGracePeriodSeconds": nil},
}

// QueuedValue is what the queue needs of a template as it was decoded: ReduceValue, and how the pods end.
func QueuedValue(template any) any {
	whole, ok := template.(map[string]any)
	if !ok {
		return template
	}
	kept := ReduceValue(template).(map[string]any)
	for part, ending := range endingFields.of(whole) {
		if fields, ok := ending.(map[string]any); ok && len(fields) > 0 {
			into, ok := kept[part].(map[string]any)
			if !ok {
				into = map[string]any{}
				kept[part] = into
			}
			for name, value := range fields {
				into[name] = value
			}
		}
	}
	return kept
}

// ForScheduling are the fields of a template that scheduling needs, with all annotations.
func ForScheduling(template map[string]any) map[string]any { return schedulingFields.of(template) }
