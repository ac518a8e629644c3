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
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// group is one kind of submitter.
type group struct {
	namespace, quota string
	// queue, if set, is named by its jobs.
	queue  string
	weight int
}

var groups = []group{
	{namespace: "research", quota: "research", weight: 3},
	{namespace: "platform", quota: "platform", weight: 3},
	{namespace: "lab", quota: "employees", queue: "shared-lab", weight: 2},
	{namespace: "lab", quota: "interns", queue: "shared-lab", weight: 1},
	{namespace: "services", quota: "services", weight: 2},
}

// blockingQueues are the queues in which nothing may be overtaken.
var blockingQueues = map[string]string{"research": "Block", "shared-lab": "FIFO"}

// action is what a user does at a time.
type action struct {
	at time.Duration
	// job to create, or plain pod.
	job *batchv1.Job
	pod *corev1.Pod
	// deleteAfter, if not zero, is when the user deletes it again.
	deleteAfter time.Duration
}

// stream returns what users do in a run of that length; the same seed gives the same.
func stream(seed uint64, length, interval time.Duration) []action {
	random := rand.New(rand.NewPCG(seed, 3))
	var lots []group
	for _, g := range groups {
		for range g.weight {
			lots = append(lots, g)
		}
	}
	var actions []action
	for at := time.Duration(0); at < length; at += time.Duration(random.Int64N(int64(2 * interval))) {
		g := lots[random.IntN(len(lots))]
		a := action{at: at}
		switch n := random.IntN(20); {
		case n < 2: // deleted again only by the one who made it, as nothing ends it
			a.pod = plainPod(g, len(actions), random)
			a.deleteAfter = between(random, 2*time.Second, 10*time.Second)
		case n < 4:
			a.job = newJob(g, len(actions), random)
			a.deleteAfter = between(random, 0, 10*time.Second)
		default:
			a.job = newJob(g, len(actions), random)
		}
		actions = append(actions, a)
	}
	return actions
}

func between(random *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(random.Int64N(int64(high-low)))
}

func template(g group, random *rand.Rand, milliCPU int64) corev1.PodTemplateSpec {
	const memoryPerCPU = 2 << 30
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{v1alpha1.LabelQuotaName: g.quota},
			Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			SchedulerName:     "koord-scheduler",
			PriorityClassName: []string{"low", "normal", "normal", "high"}[random.IntN(4)],
			RestartPolicy:     corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name:  "main",
				Image: "example.invalid/work",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
					corev1.ResourceMemory: *resource.NewQuantity(milliCPU*memoryPerCPU/1000, resource.BinarySI),
				}},
			}},
		},
	}
}

func plainPod(g group, i int, random *rand.Rand) *corev1.Pod {
	t := template(g, random, 1000)
	t.Name, t.Namespace = fmt.Sprintf("plain-%05d", i), g.namespace
	return &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
}

func newJob(g group, i int, random *rand.Rand) *batchv1.Job {
	pods := 1 + random.Int32N(4)
	name := fmt.Sprintf("%s-%05d", g.quota, i)
	t := template(g, random, []int64{500, 1000, 1000, 2000}[random.IntN(4)])
	t.Annotations[controlplane.RunTimeAnnotation] = between(random, time.Second, 4*time.Second).
		Round(time.Millisecond).String()
	if pods > 1 && random.IntN(3) == 0 {
		t.Annotations["gang.scheduling.koordinator.sh/name"] = name
		t.Annotations["gang.scheduling.koordinator.sh/min-available"] = fmt.Sprint(pods)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: g.namespace,
			Labels:      map[string]string{v1alpha1.LabelQuotaName: g.quota},
			Annotations: map[string]string{},
		},
		Spec: batchv1.JobSpec{
			Parallelism: &pods, Completions: &pods, BackoffLimit: ptr.To[int32](0),
			Suspend:  ptr.To(random.IntN(4) > 0),
			Template: t,
		},
	}
	if g.queue != "" {
		job.Annotations[v1alpha1.QueueNameKey] = g.queue
	}
	return job
}

// users carry actions out, each as long as it takes: what the API server does not answer is tried again.
type users struct {
	client kubernetes.Interface

	mu        sync.Mutex
	submitted map[string]bool // namespace/name of jobs that exist or existed
	deleted   map[string]bool // of those, the ones that their user deletes
	pods      int
}

func newUsers(client kubernetes.Interface) *users {
	return &users{client: client, submitted: map[string]bool{}, deleted: map[string]bool{}}
}

// run returns when all actions are done, or when ctx ends.
func (u *users) run(ctx context.Context, begin time.Time, actions []action) {
	var group sync.WaitGroup
	defer group.Wait()
	for _, a := range actions {
		if !controlplane.Sleep(ctx, time.Until(begin.Add(a.at))) {
			return
		}
		group.Go(func() { u.act(ctx, a) })
	}
}

func (u *users) act(ctx context.Context, a action) {
	if a.pod != nil {
		pods := u.client.CoreV1().Pods(a.pod.Namespace)
		u.insist(ctx, func(ctx context.Context) error {
			_, err := pods.Create(ctx, a.pod, metav1.CreateOptions{})
			return err
		})
		u.mu.Lock()
		u.pods++
		u.mu.Unlock()
		controlplane.Sleep(ctx, a.deleteAfter)
		u.insist(ctx, func(ctx context.Context) error { return pods.Delete(ctx, a.pod.Name, metav1.DeleteOptions{}) })
		return
	}
	jobs, key := u.client.BatchV1().Jobs(a.job.Namespace), a.job.Namespace+"/"+a.job.Name
	u.insist(ctx, func(ctx context.Context) error {
		_, err := jobs.Create(ctx, a.job, metav1.CreateOptions{})
		return err
	})
	u.mu.Lock()
	u.submitted[key] = true
	u.deleted[key] = a.deleteAfter > 0
	u.mu.Unlock()
	if a.deleteAfter > 0 {
		controlplane.Sleep(ctx, a.deleteAfter)
		background := metav1.DeletePropagationBackground
		u.insist(ctx, func(ctx context.Context) error {
			return jobs.Delete(ctx, a.job.Name, metav1.DeleteOptions{PropagationPolicy: &background})
		})
	}
}

// insist repeats a request until it is done, by this or by an earlier attempt whose answer was lost.
func (u *users) insist(ctx context.Context, request func(context.Context) error) {
	const patience, pace = 5 * time.Second, 500 * time.Millisecond
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, patience)
		err := request(attempt)
		cancel()
		if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			return
		}
		controlplane.Sleep(ctx, pace)
	}
}

func (u *users) counts() (jobs, deleted, pods int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, gone := range u.deleted {
		if gone {
			deleted++
		}
	}
	return len(u.submitted), deleted, u.pods
}
