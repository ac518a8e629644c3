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

package standin

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// workflowPodSpec is what both a workflow and a template of it may say about pods; the template's word goes first.
type workflowPodSpec struct {
	SchedulerName      string              `json:"schedulerName"`
	ServiceAccountName string              `json:"serviceAccountName"`
	PriorityClassName  string              `json:"priorityClassName"`
	NodeSelector       map[string]string   `json:"nodeSelector"`
	Affinity           *corev1.Affinity    `json:"affinity"`
	Tolerations        []corev1.Toleration `json:"tolerations"`
	PodSpecPatch       string              `json:"podSpecPatch"`

	// Of the workflow only.
	PodPriorityClassName string `json:"podPriorityClassName"`
}

// build makes the pod of a node. Beside the containers of the template there are Argo's own: init and wait, which ask
// for nothing. Doubtful: an installation may say what they ask for (executor in the configuration of the controller).
func (r *workflowRun) build(template map[string]any, node string) (*corev1.Pod, error) {
	containers, err := workflowContainers(template)
	if err != nil {
		return nil, err
	}
	inits, err := decode[struct{ InitContainers, Sidecars []corev1.Container }](template)
	if err != nil {
		return nil, err
	}
	metadata, spec := part(template, "metadata"), part(r.wf.Object, "spec")
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy:  corev1.RestartPolicyNever,
		InitContainers: append([]corev1.Container{{Name: "init", Image: "argoexec"}}, inits.InitContainers...),
		Containers:     slices.Concat([]corev1.Container{{Name: "wait", Image: "argoexec"}}, containers, inits.Sidecars),
	}}
	pod.Name, pod.Namespace = r.podName(node, text(template, "name")), r.wf.GetNamespace()
	pod.OwnerReferences = ownedBy(r.wf)
	pod.Labels = merged(texts(spec, "podMetadata", "labels"), texts(metadata, "labels"), map[string]string{
		workflowLabel: r.wf.GetName(), workflowCompletedLabel: "false",
	})
	pod.Annotations = merged(texts(spec, "podMetadata", "annotations"), texts(metadata, "annotations"), map[string]string{
		nodeNameAnnotation: node, "workflows.argoproj.io/node-id": r.nodeID(node),
	})
	return pod, r.place(pod, template)
}

// workflowContainers are those of a container, script or containerSet.
func workflowContainers(template map[string]any) ([]corev1.Container, error) {
	for _, kind := range []string{"container", "script"} {
		if part(template, kind) == nil {
			continue
		}
		container, err := decode[corev1.Container](part(template, kind))
		container.Name = "main"
		return []corev1.Container{container}, err
	}
	if set := part(template, "containerSet"); set != nil {
		return decode[[]corev1.Container](set["containers"])
	}
	return nil, errors.New("nobody here plays such a template")
}

func (r *workflowRun) place(pod *corev1.Pod, template map[string]any) error {
	whole, err := decode[workflowPodSpec](part(r.wf.Object, "spec"))
	if err != nil {
		return err
	}
	whole.PriorityClassName = whole.PodPriorityClassName
	own, err := decode[workflowPodSpec](template)
	if err != nil {
		return err
	}
	to := &pod.Spec
	for _, from := range []workflowPodSpec{whole, own} {
		first(&to.SchedulerName, from.SchedulerName)
		first(&to.ServiceAccountName, from.ServiceAccountName)
		first(&to.PriorityClassName, from.PriorityClassName)
		if len(from.NodeSelector) > 0 {
			to.NodeSelector = from.NodeSelector
		}
		if from.Affinity != nil {
			to.Affinity = from.Affinity
		}
		if len(from.Tolerations) > 0 {
			to.Tolerations = from.Tolerations
		}
	}
	for _, patch := range []string{whole.PodSpecPatch, own.PodSpecPatch} {
		if err := patchSpec(to, patch); err != nil {
			return err
		}
	}
	return nil
}

func first(to *string, from string) {
	if from != "" {
		*to = from
	}
}

// patchSpec applies a podSpecPatch, a strategic merge patch in YAML.
func patchSpec(spec *corev1.PodSpec, patch string) error {
	if patch == "" {
		return nil
	}
	change, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		return err
	}
	was, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	is, err := strategicpatch.StrategicMergePatch(was, change, corev1.PodSpec{})
	if err != nil {
		return err
	}
	*spec = corev1.PodSpec{}
	return json.Unmarshal(is, spec)
}

var taskName = regexp.MustCompile(`[A-Za-z0-9_-]+(\.Succeeded)?`)

// dependsOn are the tasks of a depends that must have succeeded.
func dependsOn(depends string) []string {
	var names []string
	for _, name := range taskName.FindAllString(depends, -1) {
		names = append(names, strings.TrimSuffix(name, ".Succeeded"))
	}
	return names
}
