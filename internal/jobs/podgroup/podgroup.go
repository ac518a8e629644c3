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

// Package podgroup reads pods without an owner as jobs.
package podgroup

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

// Pods without an owner have no job that a unit could stand for. Pods of one group are read as one job: PodGroup makes
// an object of them, which the descriptor in kinds/pod.yaml describes. A pod without a group is a group of its own.

const (
	// LabelName and AnnotationPodGroupTotal are Kueue's: the group of a pod, and how many pods it has.
	LabelName       = "kueue.x-k8s.io/pod-group-name"
	AnnotationTotal = "kueue.x-k8s.io/pod-group-total-count"

	// mostPodsOfGroup bounds what a group may say that it has.
	mostPodsOfGroup = 100_000
)

// NameOf is the group of a pod, which has the name of the pod where that is in none.
func NameOf(pod metav1.Object) string {
	if name := pod.GetLabels()[LabelName]; name != "" {
		return name
	}
	return pod.GetName()
}

// Of is the job of the pods of one group, nil without pods. Pods of the same shape are one pod set. A group can have
// the name of a pod outside of groups. Then the older of both is the job: otherwise the pod would end the group.
func Of(named []*corev1.Pod) (*unstructured.Unstructured, error) {
	if len(named) == 0 {
		return nil, nil
	}
	pods := slices.SortedFunc(slices.Values(named), func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	first := pods[0]
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return pod.Labels[LabelName] != first.Labels[LabelName] })
	group := &unstructured.Unstructured{Object: map[string]any{}}
	group.SetGroupVersionKind(jobkind.PodKind)
	group.SetNamespace(first.Namespace)
	group.SetName(NameOf(first))
	group.SetUID(first.UID)
	group.SetCreationTimestamp(first.CreationTimestamp)
	group.SetLabels(first.Labels)
	annotations := maps.Clone(first.Annotations)
	for _, ours := range []string{
		v1alpha1.AnnotationSuspendedBy, v1alpha1.AnnotationTemplateAdditions, v1alpha1.AnnotationWholeCounts,
	} {
		delete(annotations, ours) // no pod has them of us
	}
	group.SetAnnotations(annotations)
	sets, readySets, err := podSetsOfGroup(pods)
	if err != nil {
		return nil, err
	}
	group.Object["spec"] = map[string]any{
		"first": first.Name, "total": totalOf(first), "pods": sets,
	}
	status := statusOfGroup(pods)
	status["sets"], status["strangers"] = readySets, int64(len(named)-len(pods))
	group.Object["status"] = status
	return group, nil
}

// totalOf is the final number of pods of a group. An unreadable number is more than there can be.
func totalOf(pod *corev1.Pod) int64 {
	if pod.Labels[LabelName] == "" {
		return 1
	}
	total, err := strconv.ParseInt(pod.Annotations[AnnotationTotal], 10, 32)
	if err != nil || total < 1 || total > mostPodsOfGroup {
		return mostPodsOfGroup + 1
	}
	return total
}

func statusOfGroup(pods []*corev1.Pod) map[string]any {
	n := map[string]int64{"pods": int64(len(pods)), "active": 0, "bound": 0, "ready": 0, "succeeded": 0, "failed": 0}
	for _, pod := range pods {
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			n["succeeded"]++
			continue
		case corev1.PodFailed:
			n["failed"]++
			continue
		default:
			n["active"]++
		}
		if pod.Spec.NodeName != "" {
			n["bound"]++
		}
		if pod.Status.Phase == corev1.PodRunning {
			n["ready"]++
		}
	}
	status := make(map[string]any, len(n))
	for key, value := range n {
		status[key] = value
	}
	return status
}

// podSetsOfGroup are the pods that have not ended, by their shape, and how many of them are ready.
func podSetsOfGroup(pods []*corev1.Pod) (list, ready []any, err error) {
	type set struct {
		shape    string
		count    int64
		ready    int64
		template map[string]any
	}
	var sets []*set
	for _, pod := range pods {
		template, err := templateOf(pod)
		if err != nil {
			return nil, nil, err
		}
		text, err := json.Marshal(template)
		if err != nil {
			return nil, nil, err
		}
		sum := sha256.Sum256(text)
		shape := hex.EncodeToString(sum[:4])
		i := slices.IndexFunc(sets, func(s *set) bool { return s.shape == shape })
		if i < 0 {
			i = len(sets)
			sets = append(sets, &set{shape: shape, template: template})
		}
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			sets[i].count++
		}
		if pod.Status.Phase == corev1.PodRunning {
			sets[i].ready++
		}
	}
	slices.SortFunc(sets, func(a, b *set) int { return cmp.Compare(a.shape, b.shape) })
	for _, s := range sets {
		name := "pods"
		if len(sets) > 1 {
			name += "-" + s.shape
		}
		list = append(list, map[string]any{"name": name, "count": s.count, "template": s.template})
		ready = append(ready, map[string]any{"name": name, "count": s.ready})
	}
	return list, ready, nil
}

// templateOf is the part of a pod that scheduling needs, without its own node and the volume of its token.
func templateOf(pod *corev1.Pod) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labelsOfGroup(pod.Labels)}, Spec: pod.Spec,
	})
	if err != nil {
		return nil, err
	}
	fields = podtemplate.ForScheduling(fields)
	spec, _ := fields["spec"].(map[string]any)
	delete(spec, "nodeName")
	volumes, _ := spec["volumes"].([]any)
	volumes = slices.DeleteFunc(volumes, func(volume any) bool {
		v, _ := volume.(map[string]any)
		return len(v) < 2 // only its name is left
	})
	if spec["volumes"] = volumes; len(volumes) == 0 {
		delete(spec, "volumes")
	}
	return fields, nil
}

// labelsOfGroup are those that count: others may tell the pods of a group from each other.
func labelsOfGroup(labels map[string]string) map[string]string {
	kept := map[string]string{}
	for _, key := range append([]string{v1alpha1.QueueNameKey, v1alpha1.LabelPreemptible}, v1alpha1.QuotaLabels[:]...) {
		if value := labels[key]; value != "" {
			kept[key] = value
		}
	}
	return kept
}

// Compact is a pod with what is read of it. Of a pod that is not queued, it has only what says that the pod exists.
func Compact(pod *corev1.Pod, queued bool) *corev1.Pod {
	compact := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}}
	if !queued {
		return compact
	}
	compact.Labels, compact.CreationTimestamp = pod.Labels, pod.CreationTimestamp
	compact.DeletionTimestamp = pod.DeletionTimestamp
	annotations := map[string]any{}
	for key, value := range pod.Annotations {
		annotations[key] = value
	}
	kept := map[string]any{"annotations": annotations}
	podtemplate.ReduceAnnotations(kept)
	compact.Annotations = jobkind.StringMap(kept["annotations"])
	if total, ok := pod.Annotations[AnnotationTotal]; ok {
		compact.Annotations = withText(compact.Annotations, AnnotationTotal, total)
	}
	if template, err := templateOf(pod); err == nil {
		spec, _ := template["spec"].(map[string]any)
		// The spec was written from a pod a moment ago, so the conversion cannot fail.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &compact.Spec)
	}
	compact.Spec.NodeName = pod.Spec.NodeName
	compact.Status.Phase = pod.Status.Phase
	return compact
}

func withText(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
