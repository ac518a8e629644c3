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
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	sparkAppLabel        = "sparkoperator.k8s.io/app-name"
	sparkSubmissionLabel = "sparkoperator.k8s.io/submission-id"
	sparkRoleLabel       = "spark-role"
	sparkExecutorLabel   = "spark-exec-id"

	sparkDriver   = "driver"
	sparkExecutor = "executor"

	mebibyte = 1 << 20
	// The least that Spark adds to the memory of a process, in MiB.
	sparkLeastOverhead = 384
)

// sparkPod is the pod of a driver or of an executor as spark-submit or the driver makes it, after the operator's
// webhook. Facts: "Running Spark on Kubernetes" in the documentation of Spark, and the webhook of spark-operator.
//
// What is computed by Spark wins over the template: requests, limits, image, labels of Spark.
func sparkPod(app *unstructured.Unstructured, role string) (*corev1.PodTemplateSpec, error) {
	spec := part(app.Object, "spec", role)
	template, err := decode[corev1.PodTemplateSpec](part(spec, "template"))
	if err != nil {
		return nil, err
	}
	if len(template.Spec.Containers) == 0 {
		template.Spec.Containers = []corev1.Container{{Name: "spark-kubernetes-" + role}}
	}
	first := &template.Spec.Containers[0]
	if image := textOr(text(app.Object, "spec", "image"), spec, "image"); image != "" {
		first.Image = image
	}
	if err := sparkResources(app, role, &first.Resources); err != nil {
		return nil, err
	}
	template.Labels = merged(template.Labels, app.GetLabels(), texts(spec, "labels"), map[string]string{
		sparkRoleLabel: role, sparkAppLabel: app.GetName(), "spark-app-name": app.GetName(),
		"sparkoperator.k8s.io/launched-by-spark-operator": "true",
		sparkSubmissionLabel:                              text(app.Object, "status", "submissionID"),
		"spark-app-selector":                              text(app.Object, "status", "sparkApplicationId"),
	})
	template.Annotations = merged(template.Annotations, texts(spec, "annotations"))
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if selector := merged(template.Spec.NodeSelector, texts(app.Object, "spec", "nodeSelector"),
		texts(spec, "nodeSelector")); len(selector) > 0 {
		template.Spec.NodeSelector = selector
	}
	return &template, sparkPlacement(app, spec, &template.Spec)
}

// sparkPlacement is what the webhook adds where the application says it.
func sparkPlacement(app *unstructured.Unstructured, spec map[string]any, pod *corev1.PodSpec) error {
	// The scheduler of the application goes before that of the role.
	if name := textOr(text(spec, "schedulerName"), app.Object, "spec", "batchScheduler"); name != "" {
		pod.SchedulerName = name
	}
	if name := text(spec, "priorityClassName"); name != "" {
		pod.PriorityClassName = name
	}
	if name := text(spec, "serviceAccount"); name != "" {
		pod.ServiceAccountName = name
	}
	more, err := decode[struct {
		Tolerations []corev1.Toleration
		Affinity    *corev1.Affinity
		Sidecars    []corev1.Container
	}](spec)
	if err != nil {
		return err
	}
	pod.Tolerations = append(pod.Tolerations, more.Tolerations...)
	pod.Containers = append(pod.Containers, more.Sidecars...)
	if more.Affinity != nil {
		pod.Affinity = more.Affinity
	}
	return nil
}

func sparkResources(app *unstructured.Unstructured, role string, into *corev1.ResourceRequirements) error {
	spec := part(app.Object, "spec", role)
	mebibytes, err := sparkMemory(app, spec)
	if err != nil {
		return err
	}
	memory := *resource.NewQuantity(mebibytes*mebibyte, resource.BinarySI)
	cpu, err := resource.ParseQuantity(textOr(itoa(numberOr(1, spec, "cores")), spec, "coreRequest"))
	if err != nil {
		return fmt.Errorf("coreRequest: %w", err)
	}
	if into.Requests == nil {
		into.Requests = corev1.ResourceList{}
	}
	if into.Limits == nil {
		into.Limits = corev1.ResourceList{}
	}
	into.Requests[corev1.ResourceCPU], into.Requests[corev1.ResourceMemory] = cpu, memory
	into.Limits[corev1.ResourceMemory] = memory
	if limit := text(spec, "coreLimit"); limit != "" {
		if into.Limits[corev1.ResourceCPU], err = resource.ParseQuantity(limit); err != nil {
			return fmt.Errorf("coreLimit: %w", err)
		}
	}
	if name := text(spec, "gpu", "name"); name != "" {
		gpus := *resource.NewQuantity(numberOr(0, spec, "gpu", "quantity"), resource.DecimalSI)
		// The API server takes a limit for the request that is not given.
		into.Limits[corev1.ResourceName(name)] = gpus
		into.Requests[corev1.ResourceName(name)] = gpus
	}
	return nil
}

// sparkMemory is what a pod asks for, in MiB: the memory of the process, and what it needs beside that.
func sparkMemory(app *unstructured.Unstructured, spec map[string]any) (int64, error) {
	memory, err := javaMebibytes(textOr("1g", spec, "memory"))
	if err != nil {
		return 0, fmt.Errorf("memory: %w", err)
	}
	if overhead := text(spec, "memoryOverhead"); overhead != "" {
		more, err := javaMebibytes(overhead)
		return memory + more, err
	}
	factor := 0.1
	if kind := text(app.Object, "spec", "type"); kind == "Python" || kind == "R" {
		factor = 0.4
	}
	if given := text(app.Object, "spec", "memoryOverheadFactor"); given != "" {
		if factor, err = strconv.ParseFloat(given, 64); err != nil {
			return 0, fmt.Errorf("memoryOverheadFactor: %w", err)
		}
	}
	return memory + max(int64(factor*float64(memory)), sparkLeastOverhead), nil
}

// javaMebibytes reads an amount as Java's tools do: 512m, 2g, 1tb; a bare number is MiB. Doubtful: spark-operator may
// refuse what Spark understands.
func javaMebibytes(amount string) (int64, error) {
	lower := strings.ToLower(strings.TrimSpace(amount))
	digits := strings.TrimRight(lower, "kmgtpib")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no amount of memory", amount)
	}
	switch unit := strings.TrimSuffix(strings.TrimSuffix(lower[len(digits):], "b"), "i"); unit {
	case "", "m":
		return n, nil
	case "k":
		return n >> 10, nil
	case "g":
		return n << 10, nil
	case "t":
		return n << 20, nil
	default:
		return 0, fmt.Errorf("%q is no amount of memory", amount)
	}
}

// sparkExecutors is the number that the driver asks for at its start.
func sparkExecutors(app *unstructured.Unstructured) int64 {
	instances, given := number(app.Object, "spec", "executor", "instances")
	dynamic := part(app.Object, "spec", "dynamicAllocation")
	if !flag(dynamic, "enabled") {
		if !given {
			return 1
		}
		return instances
	}
	return max(instances, numberOr(0, dynamic, "initialExecutors"), numberOr(0, dynamic, "minExecutors"))
}
