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

package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// SavingsOptions say how it is measured what the queue saves.
type SavingsOptions struct {
	Setting
	// Variants in their order: names of SavingsVariants.
	Variants []string
	// Jobs that are submitted, PerSecond of them at most, and Capacity, the number of them that fit the quota at once.
	Jobs, PerSecond, Capacity int
	// Pods of each job; RunTime of each pod.
	Pods    int
	RunTime time.Duration
	// Fill bounds the time in which the jobs are submitted and all that does not run comes to wait. Window is how long the
	// rest is watched, from the submission of the late job on.
	Fill, Window time.Duration
	// Preempt lets the late job take the place of others where ElasticQuota and the scheduler do that.
	Preempt bool
}

// SavingsVariants are ways to submit the same jobs.
var SavingsVariants = map[string]SavingsVariant{
	"queue":       {Queue: true, Suspend: true},
	"unsuspended": {Queue: true},
	"none":        {},
}

// SavingsVariant is one way.
type SavingsVariant struct {
	// Queue: plugin and controller take part. Suspend: jobs are created suspended.
	Queue, Suspend bool
}

// Savings runs the variants one after the other, each on a control plane of its own.
func Savings(ctx context.Context, o SavingsOptions) (*SavingsReport, error) {
	screen := o.begin()
	defer screen.end()
	x := &SavingsReport{
		Scenario: "savings", Jobs: o.Jobs, Pods: o.Pods, Capacity: o.Capacity, JobsPerSecond: o.PerSecond,
		RunTimeSeconds: o.RunTime.Seconds(), WindowSeconds: o.Window.Seconds(), Cores: goruntime.NumCPU(),
	}
	for _, name := range o.Variants {
		if _, ok := SavingsVariants[name]; !ok {
			return nil, fmt.Errorf("no variant %q", name)
		}
	}
	for _, name := range o.Variants {
		screen.line("variant " + name)
		v, err := savingsOf(ctx, screen, o, name)
		if err != nil {
			return nil, fmt.Errorf("variant %s: %w", name, err)
		}
		x.Versions = v.versions
		x.Variants = append(x.Variants, v)
	}
	return x, nil
}

func savingsOf(ctx context.Context, screen *screen, o SavingsOptions, name string) (_ *VariantReport, err error) {
	const nodes = 20
	cores := o.Capacity * o.Pods
	s, err := startStage(ctx, screen, stageOptions{
		Options: Options{Setting: o.in(filepath.Join(o.Dir, name))},
		quota:   stageQuota, cores: int64(cores), nodes: nodes, nodeCores: 2*cores/nodes + 1,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.cp.Stop()) }()
	ctx, cancel := s.guarded(ctx)
	defer cancel(nil)
	v := &savings{
		stage: s, SavingsOptions: o, SavingsVariant: SavingsVariants[name], name: name,
		failed: make(chan error, 2), census: newCensus(),
	}
	if err := v.all(ctx); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return v.report(), nil
}

// savings is one variant that is being measured.
type savings struct {
	*stage
	SavingsOptions
	SavingsVariant
	name   string
	census *census
	failed chan error
	// idle, full and end are readings before the first job, when the late job is submitted, and at the end.
	idle, full, end savingsReading
	waited          bool
	began, late     time.Time
	samples         []Sample
}

// savingsReading is all that is counted at one moment.
type savingsReading struct {
	reading
	attempts Attempts
	requests map[string]int
	store    StoreSize
	tally    tally
}

// lateJob is submitted when all others wait.
const (
	lateJob   = "late"
	lateClass = "late"
)

func (v *savings) all(ctx context.Context) error {
	if err := v.prepare(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var sampling sync.WaitGroup
	defer sampling.Wait()
	defer stop()
	if err := v.followJobs(watching, v.failed, v.census.takeJob); err != nil {
		return err
	}
	if err := v.followPods(watching, v.failed, v.census.takePod); err != nil {
		return err
	}
	var err error
	if v.idle, err = v.readAll(ctx); err != nil {
		return err
	}
	v.began = time.Now()
	sampling.Go(func() { v.sample(watching) })
	if err := v.fill(ctx); err != nil {
		return err
	}
	if v.full, err = v.readAll(ctx); err != nil {
		return err
	}
	if err := v.window(ctx); err != nil {
		return err
	}
	v.noteLoad()
	v.end, err = v.readAll(ctx)
	return err
}

func (v *savings) prepare(ctx context.Context) error {
	policy := corev1.PreemptNever
	if v.Preempt {
		policy = corev1.PreemptLowerPriority
	}
	err := v.cp.ApplyObjects(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
		"metadata": map[string]any{"name": lateClass}, "value": int64(1000), "preemptionPolicy": string(policy),
	}})
	if err != nil {
		return err
	}
	if !v.Queue {
		return v.cp.StartScheduler(ctx, controlplane.SchedulerOptions{Mutate: controlplane.WithoutJobQueue})
	}
	if err := v.cp.StartScheduler(ctx, controlplane.SchedulerOptions{}); err != nil {
		return err
	}
	return v.cp.StartController(ctx, controlplane.ControllerOptions{})
}

func (v *savings) create(ctx context.Context, name, class string) error {
	job := jobSpec{
		name: name, quota: stageQuota, suspend: v.Suspend, pods: v.Pods, cpu: "1", runTime: v.RunTime, priorityClass: class,
	}
	// Without the queue the API server may be too busy to answer in time.
	busy := func(err error) bool {
		return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
			apierrors.IsInternalError(err)
	}
	err := retry.OnError(retry.DefaultBackoff, busy,
		func() error { return v.client.create(ctx, jobsPath(unitNamespace), job.body()) })
	if apierrors.IsAlreadyExists(err) {
		return nil // the answer to the first request was lost
	}
	return err
}

// fill submits the jobs and waits until each has its unit, or without the queue its pods; no longer than Fill.
func (v *savings) fill(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, v.Fill)
	defer cancel()
	err := v.client.each(bounded, v.Jobs, func(ctx context.Context, i int) error {
		if !controlplane.Sleep(ctx, time.Until(v.began.Add(time.Duration(i)*time.Second/time.Duration(v.PerSecond)))) {
			return ctx.Err()
		}
		return v.create(ctx, fmt.Sprintf("job-%06d", i), "")
	})
	if err != nil && bounded.Err() == nil {
		return fmt.Errorf("submit jobs: %w", err)
	}
	v.screen.line(fmt.Sprintf("%d jobs are submitted after %.0f s", v.census.tally().Submitted,
		time.Since(v.began).Seconds()))
	for bounded.Err() == nil && !v.waited {
		if err := v.failure(ctx); err != nil {
			return err
		}
		if v.waited, err = v.allWait(bounded); err != nil && bounded.Err() == nil {
			return err
		}
		controlplane.Sleep(bounded, time.Second)
	}
	return ctx.Err()
}

// allWait says whether the cluster has taken in all jobs.
func (v *savings) allWait(ctx context.Context) (bool, error) {
	if !v.Queue {
		return v.census.tally().PodsCreated >= v.Jobs*v.Pods, nil
	}
	units, err := v.client.count(ctx, unitsPath(unitNamespace))
	return units >= v.Jobs, err
}

// window submits the late job and lets time pass.
func (v *savings) window(ctx context.Context) error {
	v.late = time.Now()
	if err := v.create(ctx, lateJob, lateClass); err != nil {
		return fmt.Errorf("submit the late job: %w", err)
	}
	v.screen.line(fmt.Sprintf("the late job is submitted after %.0f s; the window of %s begins",
		time.Since(v.began).Seconds(), v.Window))
	for time.Since(v.late) < v.Window {
		if err := v.failure(ctx); err != nil {
			return err
		}
		controlplane.Sleep(ctx, time.Second)
	}
	return ctx.Err()
}

func (v *savings) failure(ctx context.Context) error {
	select {
	case err := <-v.failed:
		return err
	default:
		return ctx.Err()
	}
}

// Sample is what there is at one moment.
type Sample struct {
	Seconds float64 `json:"seconds"`
	tally
}

// sample shows and keeps what there is.
func (v *savings) sample(ctx context.Context) {
	const every = 5
	for second := 0; controlplane.Sleep(ctx, time.Until(v.began.Add(time.Duration(second)*time.Second))); second++ {
		now := v.census.tally()
		v.screen.status(fmt.Sprintf("%s %4d s: %d of %d jobs submitted, %d finished; of %d have pods: %d pods, "+
			"%d of them on no node",
			v.name, second, now.Submitted, v.Jobs, now.Finished, now.JobsWithPods, now.ActivePods, now.UnboundPods))
		if second%every == 0 {
			v.samples = append(v.samples, Sample{Seconds: float64(second), tally: now})
		}
	}
}

// tally has present or greatest numbers.
type tally struct {
	Submitted int `json:"submitted"`
	Finished  int `json:"finished"`
	Failed    int `json:"failed"`
	// Pods exist. ActivePods have not ended, and UnboundPods of them are on no node.
	Pods        int `json:"pods"`
	ActivePods  int `json:"activePods"`
	UnboundPods int `json:"unboundPods"`
	// JobsWithPods have pods that have not ended.
	JobsWithPods int `json:"jobsWithPods"`
	PodsCreated  int `json:"podsCreated"`
}

// census counts jobs and pods as their watches tell of them.
type census struct {
	mu   sync.Mutex
	now  tally
	peak tally
	pods map[types.UID]podState
	jobs map[string]int // active pods
	over map[types.UID]bool
	// lateBound and lateRunning are when the first pod of the late job was seen so.
	lateBound, lateRunning time.Time
}

type podState struct{ active, bound bool }

func newCensus() *census {
	return &census{pods: map[types.UID]podState{}, jobs: map[string]int{}, over: map[types.UID]bool{}}
}

func (c *census) tally() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *census) takeJob(e watch.EventType, job *batchv1.Job, _ time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e == watch.Added && job.Name != lateJob {
		c.now.Submitted++
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue || c.over[job.UID] {
			continue
		}
		if condition.Type == batchv1.JobComplete {
			c.now.Finished++
			c.over[job.UID] = true
		}
		if condition.Type == batchv1.JobFailed {
			c.now.Failed++
			c.over[job.UID] = true
		}
	}
}

func (c *census) takePod(e watch.EventType, pod *corev1.Pod, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	job := pod.Labels[batchv1.JobNameLabel]
	before, known := c.pods[pod.UID]
	after := podState{
		active: pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed,
		bound:  pod.Spec.NodeName != "",
	}
	if e == watch.Deleted {
		after = podState{}
		delete(c.pods, pod.UID)
	} else {
		c.pods[pod.UID] = after
	}
	if !known {
		c.now.PodsCreated++
	}
	c.now.Pods = len(c.pods)
	c.now.ActivePods += count(after.active) - count(before.active)
	c.now.UnboundPods += count(after.active && !after.bound) - count(before.active && !before.bound)
	c.jobs[job] += count(after.active) - count(before.active)
	if c.jobs[job] == 0 {
		delete(c.jobs, job)
	}
	c.now.JobsWithPods = len(c.jobs)
	c.peak.Pods = max(c.peak.Pods, c.now.Pods)
	c.peak.ActivePods = max(c.peak.ActivePods, c.now.ActivePods)
	c.peak.UnboundPods = max(c.peak.UnboundPods, c.now.UnboundPods)
	c.peak.JobsWithPods = max(c.peak.JobsWithPods, c.now.JobsWithPods)
	if job == lateJob && after.bound {
		first(&c.lateBound, now)
		if pod.Status.Phase != corev1.PodPending {
			first(&c.lateRunning, now)
		}
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
