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
	"slices"
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

// worker is a tenant who does honest work. While it works it keeps its queue filled: as many jobs run as its quota
// takes, and as many wait. So what it gets done in a time is given by its quota and by how long each admission takes.
type worker struct {
	client kubernetes.Interface
	load

	mu       sync.Mutex
	jobs     map[string]string    // UID -> namespace/name
	finished map[string]time.Time // UID -> when it was seen to be complete
	last     string               // UID of the last one
	made     int
}

// load is what a worker has to do.
type load struct {
	namespace, quota string
	cores            int64 // of each job
	atOnce           int   // jobs that run and wait
	runs             func(i int) time.Duration
	// waves: it works for the first part of each wave, and then lends what it has.
	waves bool
}

// victimLoad fills a quota of 10 cores, and another 10 jobs wait.
var victimLoad = load{
	namespace: victimNamespace, quota: victimQuota, cores: 1, atOnce: 20, runs: victimRuns, waves: true}

// honestLoad is enough to borrow all that there is. A job is long enough that some have to end early for each wave.
var honestLoad = load{
	namespace: honestNamespace, quota: hostileQuota, cores: 2, atOnce: 8,
	runs: func(int) time.Duration { return 8 * time.Second }}

// Of each wave the victim submits for the first part. After that, what waits and runs takes some 8 seconds, and the
// rest is long enough for others to borrow all of its quota.
const (
	wave       = 30 * time.Second
	waveSubmit = 16 * time.Second
)

// victimRuns is the run time of a job of the victim: about four seconds, varied so that jobs do not end together.
func victimRuns(i int) time.Duration {
	const least, step, steps, stride = 3200 * time.Millisecond, 200 * time.Millisecond, 9, 4
	return least + time.Duration(i*stride%steps)*step
}

func newWorker(client kubernetes.Interface, l load) *worker {
	return &worker{client: client, load: l, jobs: map[string]string{}, finished: map[string]time.Time{}}
}

// next wave, or now in the part of a wave in which the worker submits.
func (l *load) next(begin, now time.Time) time.Time {
	if since := now.Sub(begin); l.waves && since%wave >= waveSubmit {
		return begin.Add(since.Truncate(wave) + wave)
	}
	return now
}

// run submits until the end, and then waits until all its jobs are done or the patience is over.
func (v *worker) run(ctx context.Context, begin, end time.Time, patience time.Duration) {
	var group sync.WaitGroup
	defer group.Wait()
	for range v.atOnce {
		group.Go(func() {
			for ctx.Err() == nil {
				at := v.load.next(begin, time.Now())
				if !at.Before(end) || !controlplane.Sleep(ctx, time.Until(at)) {
					return
				}
				uid := v.submit(ctx)
				v.await(ctx, uid, end.Add(patience))
			}
		})
	}
}

// await polls what the history tells, until the job is done.
func (v *worker) await(ctx context.Context, uid string, until time.Time) {
	const pace = 20 * time.Millisecond
	for !v.done(uid) && time.Now().Before(until) {
		if !controlplane.Sleep(ctx, pace) {
			return
		}
	}
}

// submit creates a job and returns its UID, "" if ctx ended.
func (v *worker) submit(ctx context.Context) string {
	const pace = 200 * time.Millisecond
	v.mu.Lock()
	v.made++
	job := v.job(v.made)
	v.mu.Unlock()
	for ctx.Err() == nil {
		created, err := v.client.BatchV1().Jobs(v.namespace).Create(ctx, job, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			created, err = v.client.BatchV1().Jobs(v.namespace).Get(ctx, job.Name, metav1.GetOptions{})
		}
		if err == nil {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.jobs[string(created.UID)] = v.namespace + "/" + job.Name
			v.last = string(created.UID)
			return v.last
		}
		controlplane.Sleep(ctx, pace)
	}
	return ""
}

func (l *load) job(i int) *batchv1.Job {
	labels := map[string]string{v1alpha1.LabelQuotaName: l.quota}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: fmt.Sprintf("work-%05d", i), Labels: labels},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](0), Suspend: ptr.To(true),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: labels, Annotations: map[string]string{controlplane.RunTimeAnnotation: l.runs(i).String()},
				},
				Spec: corev1.PodSpec{
					SchedulerName: "koord-scheduler", RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name: "main", Image: "example.invalid/work",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU:    *resource.NewQuantity(l.cores, resource.DecimalSI),
							corev1.ResourceMemory: resource.MustParse("1Gi"),
						}},
					}},
				},
			},
		},
	}
}

// note takes a state of a job of its namespace.
func (v *worker) note(job *batchv1.Job, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.finished[string(job.UID)]; !known && job.Status.Succeeded > 0 && job.Status.CompletionTime != nil {
		v.finished[string(job.UID)] = at
	}
}

func (v *worker) done(uid string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, done := v.finished[uid]
	return done
}

// uid of its last job.
func (v *worker) uid() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == "" {
		return nobodysUID
	}
	return v.last
}

// longestGap is the longest time within from and to in which no job ended. Rests between waves do not count. The first
// wave begins at begin.
func (v *worker) longestGap(begin, from, to time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	times := []time.Time{from, to}
	for at := begin; v.waves && at.Before(to); at = at.Add(wave) {
		if at.After(from) {
			times = append(times, at)
		}
	}
	for _, at := range v.finished {
		if at.After(from) && at.Before(to) {
			times = append(times, at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	var longest time.Duration
	for i := range times[1:] {
		longest = max(longest, times[i+1].Sub(times[i]))
	}
	return longest
}

// perMinute is how many jobs were done from one time to another.
func (v *worker) perMinute(from, to time.Time) float64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, at := range v.finished {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return float64(n) / to.Sub(from).Minutes()
}
