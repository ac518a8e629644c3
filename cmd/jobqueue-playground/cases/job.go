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

package cases

import (
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// Submission is a job that will be submitted.
type Submission struct {
	Object   *unstructured.Unstructured
	Resource schema.GroupVersionResource
	// Pods that it has.
	Pods int
	// Of is its case, in a scenario that has cases.
	Of *Case
}

// SubmissionOf a Job.
func SubmissionOf(job *batchv1.Job) (Submission, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return Submission{}, err
	}
	s := Submission{
		Object:   &unstructured.Unstructured{Object: object},
		Resource: batchv1.SchemeGroupVersion.WithResource("jobs"),
		Pods:     int(*job.Spec.Completions),
	}
	s.Object.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	return s, nil
}

// PlainJob is a Job whose pods run at the same time, for as long.
func PlainJob(namespace, quota, name string, pods int32, milliCPU int64, runTime time.Duration) *batchv1.Job {
	labels := map[string]string{v1alpha1.LabelQuotaName: quota}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			Parallelism:  &pods,
			Completions:  &pods,
			BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      maps.Clone(labels),
					Annotations: map[string]string{controlplane.RunTimeAnnotation: runTime.String()},
				},
				Spec: corev1.PodSpec{
					SchedulerName: schedulerName,
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name:  "main",
						Image: "example.invalid/work",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
							corev1.ResourceMemory: *resource.NewQuantity(milliCPU*memoryPerCPU/1000, resource.BinarySI),
						}},
					}},
				},
			},
		},
	}
}

const (
	// schedulerName is the profile of scheduler-config.yaml.
	schedulerName = "koord-scheduler"
	memoryPerCPU  = 2 << 30
)
