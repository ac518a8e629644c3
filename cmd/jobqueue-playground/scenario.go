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

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/cases"
)

// scenario is the namespaces, priority classes, quotas and the shared queue of demo and playground. Nodes with GPUs and
// their quota are in examples/gpus.
//
//go:embed scenario.yaml
var scenario []byte

const (
	// gpuQuota is the quota of examples/gpus, and the name of its default Queue.
	gpuQuota = "gpus"
	// cardName is the resource of a whole card.
	cardName = "nvidia.com/gpu"
)

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
func queueNames() []string { return []string{"team-research", "team-platform", "shared-lab", gpuQuota} }

func quotaLevels() map[string][]string {
	return map[string][]string{
		"team-research": {"team-research"},
		"team-platform": {"team-platform"},
		"shared-lab":    {"employees", "interns", "lab"},
		gpuQuota:        {gpuQuota},
	}
}

// blockingQueues are the queues in which nothing may be overtaken.
func blockingQueues() map[string]string {
	return map[string]string{"team-research": "Block", "shared-lab": "FIFO"}
}

// submitInterval is the mean time between two jobs: 300 of them come in about 70 seconds.
const submitInterval = 235 * time.Millisecond

// workload returns n jobs of mixed size, priority and run time; the same seed gives the same jobs.
func workload(n int, seed uint64) ([]cases.Submission, error) {
	random := rand.New(rand.NewPCG(seed, seed))
	lots := append(weighted(), stream{namespace: "research", queue: gpuQuota, quota: gpuQuota})
	all := make([]cases.Submission, 0, n)
	for i := range n {
		next, err := cases.SubmissionOf(newJob(lots[random.IntN(len(lots))], i, random))
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return all, nil
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

func newJob(s stream, i int, random *rand.Rand) *batchv1.Job {
	pods := 1 + random.Int32N(4)
	milliCPU := []int64{500, 1000, 1000, 2000}[random.IntN(4)]
	priority := []string{"low", "normal", "normal", "high"}[random.IntN(4)]
	runTime := time.Duration(2000+random.IntN(7000)) * time.Millisecond
	// Most people submit suspended, as the documentation advises; some forget.
	suspended := random.IntN(10) > 0
	job := cases.PlainJob(s.namespace, s.quota, fmt.Sprintf("%s-%04d", s.quota, i), pods, milliCPU, runTime)
	job.Spec.Suspend = &suspended
	job.Spec.Template.Spec.PriorityClassName = priority
	if s.quota == gpuQuota {
		wantCards(&job.Spec.Template.Spec.Containers[0].Resources, i%2 == 0)
	}
	if s.named {
		job.Annotations = map[string]string{v1alpha1.QueueNameKey: s.queue}
	}
	return job
}

// wantCards has each pod ask for a whole card, or for half of one.
func wantCards(of *corev1.ResourceRequirements, whole bool) {
	cards := corev1.ResourceList{cardName: resource.MustParse("1")}
	if !whole {
		half := resource.MustParse("50")
		cards = corev1.ResourceList{"koordinator.sh/gpu-core": half, "koordinator.sh/gpu-memory-ratio": half}
	}
	maps.Copy(of.Requests, cards)
	of.Limits = cards
}
