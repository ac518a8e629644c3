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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// The least that Spark adds to the memory of a process, in MiB, and the part of that memory.
	sparkLeastOverhead, sparkOverhead = 384, 10
)

// sparkPod is the pod of a driver or of an executor as spark-submit or the driver makes it, after the operator's
// webhook. Facts: "Running Spark on Kubernetes" in the documentation of Spark, and the webhook of spark-operator.
func sparkPod(app *unstructured.Unstructured, role string) (*corev1.PodTemplateSpec, error) {
	spec := part(app.Object, "spec", role)
	memory, err := sparkMemory(spec)
	if err != nil {
		return nil, err
	}
	cpu, err := resource.ParseQuantity(textOr(itoa(numberOr(1, spec, "cores")), spec, "coreRequest"))
	if err != nil {
		return nil, fmt.Errorf("coreRequest: %w", err)
	}
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: merged(app.GetLabels(), texts(spec, "labels"), map[string]string{
				sparkRoleLabel: role, sparkAppLabel: app.GetName(), "spark-app-name": app.GetName(),
				"sparkoperator.k8s.io/launched-by-spark-operator": "true",
				sparkSubmissionLabel:                              text(app.Object, "status", "submissionID"),
				"spark-app-selector":                              text(app.Object, "status", "sparkApplicationId"),
			}),
			Annotations: merged(texts(spec, "annotations")),
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, SchedulerName: text(spec, "schedulerName"),
			PriorityClassName: text(spec, "priorityClassName"),
			Containers: []corev1.Container{{
				Name: "spark-kubernetes-" + role, Image: text(app.Object, "spec", "image"),
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: memory},
				},
			}},
		},
	}, nil
}

// sparkMemory is the request of a pod: the memory of the process, and the overhead.
func sparkMemory(spec map[string]any) (resource.Quantity, error) {
	memory, err := mebibytes(textOr("1024m", spec, "memory"))
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("memory: %w", err)
	}
	more := max(memory/sparkOverhead, sparkLeastOverhead)
	if overhead := text(spec, "memoryOverhead"); overhead != "" {
		if more, err = mebibytes(overhead); err != nil {
			return resource.Quantity{}, fmt.Errorf("memoryOverhead: %w", err)
		}
	}
	return *resource.NewQuantity((memory+more)*mebibyte, resource.BinarySI), nil
}

// mebibytes reads an amount as Java's tools do. Here it is in MiB.
func mebibytes(amount string) (int64, error) {
	return strconv.ParseInt(strings.TrimSuffix(amount, "m"), 10, 64)
}

// sparkExecutors is the number that the driver asks for until tasks wait. Facts: "Dynamic Resource Allocation" and
// "Configuration" in the documentation of Spark. With none at its start, the first task has it ask for one.
func sparkExecutors(app *unstructured.Unstructured) (int64, error) {
	properties := sparkProperties(app)
	if properties[sparkDynamic+"enabled"] != "true" {
		return sparkNumber(properties, "spark.executor.instances", 1)
	}
	least, err := sparkNumber(properties, sparkDynamic+"minExecutors", 0)
	if err != nil {
		return 0, err
	}
	first, err := sparkNumber(properties, sparkDynamic+"initialExecutors", least)
	if err != nil {
		return 0, err
	}
	instances, err := sparkNumber(properties, "spark.executor.instances", 0)
	return max(least, first, instances, 1), err
}

const sparkDynamic = "spark.dynamicAllocation."

// sparkProperties are those that the operator passes to spark-submit. Its fields come after sparkConf, and the last
// value of a property counts. Fact: the arguments that kubeflow/spark-operator builds.
func sparkProperties(app *unstructured.Unstructured) map[string]string {
	properties := merged(texts(app.Object, "spec", "sparkConf"))
	set := func(property string, path ...string) {
		if n, found, _ := unstructured.NestedInt64(app.Object, path...); found {
			properties[property] = itoa(n)
		}
	}
	set("spark.executor.instances", "spec", "executor", "instances")
	if flag(app.Object, "spec", "dynamicAllocation", "enabled") {
		properties[sparkDynamic+"enabled"] = "true"
		for _, name := range []string{"initialExecutors", "minExecutors", "maxExecutors"} {
			set(sparkDynamic+name, "spec", "dynamicAllocation", name)
		}
	}
	return properties
}

func sparkNumber(properties map[string]string, key string, absent int64) (int64, error) {
	text, found := properties[key]
	if !found {
		return absent, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	return n, nil
}
