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

package main

import (
	_ "embed"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// scenario is the namespaces, priority classes, quotas and the shared queue of demo and playground.
//
//go:embed scenario.yaml
var scenario []byte

// stream is one kind of submitter in the scenario.
type stream struct {
	// namespace, queue and quota of its jobs. named: the job names its queue; else it is the default of the quota.
	namespace, queue, quota string
	named                   bool
	// weight is its share of all jobs.
	weight int
}

func streams() []stream {
	return []stream{
		{namespace: "research", queue: "team-research", quota: "team-research", weight: 3},
		{namespace: "platform", queue: "team-platform", quota: "team-platform", weight: 3},
		{namespace: "lab", queue: "shared-lab", quota: "employees", named: true, weight: 2},
		{namespace: "lab", queue: "shared-lab", quota: "interns", named: true, weight: 1},
	}
}

// queueNames are the queues of the scenario in the order of the table; quotaLevels the quotas to show for each,
// the leaves first.
func queueNames() []string { return []string{"team-research", "team-platform", "shared-lab"} }

func quotaLevels() map[string][]string {
	return map[string][]string{
		"team-research": {"team-research"},
		"team-platform": {"team-platform"},
		"shared-lab":    {"employees", "interns", "lab"},
	}
}

// blockingQueues are the queues in which nothing may be overtaken.
func blockingQueues() map[string]checker.Order {
	return map[string]checker.Order{"team-research": checker.ByPriority, "shared-lab": checker.ByAge}
}

const (
	// submitInterval is the mean time between two jobs: 300 of them come in about 70 seconds.
	submitInterval = 235 * time.Millisecond
	memoryPerCPU   = 2 << 30
)

// workload returns n jobs of mixed size, priority and run time; the same seed gives the same jobs.
func workload(n int, seed uint64) []*batchv1.Job {
	random := rand.New(rand.NewPCG(seed, seed))
	lots := weighted()
	jobs := make([]*batchv1.Job, 0, n)
	for i := range n {
		jobs = append(jobs, newJob(lots[random.IntN(len(lots))], i, random))
	}
	return jobs
}

// weighted has each stream as often as its weight says.
func weighted() (lots []stream) {
	for _, s := range streams() {
		for range s.weight {
			lots = append(lots, s)
		}
	}
	return lots
}

// submission is a job that will be submitted.
type submission struct {
	object   *unstructured.Unstructured
	resource schema.GroupVersionResource
	// pods that it has.
	pods int
	// of is its case in the scenario of checks.
	of *lifeCase
}

func submissionOf(job *batchv1.Job) (submission, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return submission{}, err
	}
	s := submission{
		object:   &unstructured.Unstructured{Object: object},
		resource: batchv1.SchemeGroupVersion.WithResource("jobs"),
		pods:     int(*job.Spec.Completions),
	}
	s.object.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	return s, nil
}

func newJob(s stream, i int, random *rand.Rand) *batchv1.Job {
	pods := 1 + random.Int32N(4)
	milliCPU := []int64{500, 1000, 1000, 2000}[random.IntN(4)]
	priority := []string{"low", "normal", "normal", "high"}[random.IntN(4)]
	runTime := time.Duration(2000+random.IntN(7000)) * time.Millisecond
	// Most people submit suspended, as the documentation advises; some forget.
	suspended := random.IntN(10) > 0
	job := plainJob(s.namespace, s.quota, fmt.Sprintf("%s-%04d", s.quota, i), pods, milliCPU, runTime)
	job.Spec.Suspend = &suspended
	job.Spec.Template.Spec.PriorityClassName = priority
	if s.named {
		job.Annotations = map[string]string{v1alpha1.QueueNameKey: s.queue}
	}
	return job
}

// plainJob is a Job whose pods run at the same time, for as long.
func plainJob(namespace, quota, name string, pods int32, milliCPU int64, runTime time.Duration) *batchv1.Job {
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

// schedulerName is the profile of scheduler-config.yaml.
const schedulerName = "koord-scheduler"
