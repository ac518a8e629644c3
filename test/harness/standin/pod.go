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
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func running(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

func succeeded(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }

func failed(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed }

func ended(pod corev1.Pod) bool { return succeeded(pod) || failed(pod) }

func ready(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// pods are those in the namespace with the labels; with an owner, those that it controls.
func (b *base) pods(
	ctx context.Context, namespace string, labels map[string]string, owner metav1.Object,
) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := b.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(labels))
	if err != nil {
		return nil, err
	}
	if owner == nil {
		return list.Items, nil
	}
	var out []corev1.Pod
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], owner) {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}

// deletePods deletes those that are not being deleted yet.
func (b *base) deletePods(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if pods[i].DeletionTimestamp != nil {
			continue
		}
		if err := client.IgnoreNotFound(b.client.Delete(ctx, &pods[i])); err != nil {
			return err
		}
	}
	return nil
}

// newPod is the pod of a template. The template's own name and owners are nothing to its pods.
func newPod(namespace string, template *corev1.PodTemplateSpec, owners []metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Labels: template.Labels, Annotations: template.Annotations, OwnerReferences: owners,
		},
		Spec: template.Spec,
	}
}
