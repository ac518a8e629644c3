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
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// LatencyOptions say how the latency of single jobs is measured.
type LatencyOptions struct {
	Setting
	// Jobs of each variant, one after the other, the variants in turns; Warmup are as many before that are not counted.
	Jobs, Warmup int
	// Pods of each job.
	Pods int
	// RunTime of the pods; Gap from the binding of the last pod to the next job.
	RunTime, Gap time.Duration
	// Stock runs the unqueued variants alone, without plugin and controller.
	Stock bool
}

// latencyVariant is where its jobs are created and how.
type latencyVariant struct {
	name, namespace, quota string
	suspend                bool
}

func (v *latencyVariant) queued() bool { return v.namespace == unitNamespace }

// latencyVariants are the same job in the same quota, and once without a quota. ElasticQuota refuses pods of a quota
// that it has not counted yet, and such pods wait for their next turn.
var latencyVariants = []latencyVariant{
	{"unqueued", unqueuedNamespace, stageQuota, false},
	{"unqueued, no quota", unqueuedNamespace, "", false},
	{"queued", unitNamespace, stageQuota, true},
	{"queued, created unsuspended", unitNamespace, stageQuota, false},
}

const (
	// unqueuedNamespace is not selected by the configuration of managed jobs.
	unqueuedNamespace = "perf-unqueued"
	// unqueuedLabel takes a namespace out.
	unqueuedLabel = "jobqueue-perf/unqueued"
	stageQuota    = "team"
	// latencyTimeout bounds the wait for one job.
	latencyTimeout = time.Minute
)

// LatencyReport is about single jobs on a cluster that does nothing else. Times are those at which the watches of the
// runner delivered.
type LatencyReport struct {
	Scenario string `json:"scenario"`
	Jobs     int    `json:"jobs"`
	Pods     int    `json:"podsPerJob"`
	// Stock: plugin and controller took no part.
	Stock    bool             `json:"stock"`
	Seconds  float64          `json:"seconds"`
	Variants []LatencyVariant `json:"variants"`
	// Differences of each queued variant to each unqueued one, quantile by quantile.
	Differences []LatencyDifference `json:"differences"`
	// Requests are writes by who asked for them, with an audit log; per job of any variant.
	Requests []Requester `json:"requests,omitempty"`
	// Attempts of the scheduler, for pods of all variants.
	Attempts  Attempts        `json:"schedulingAttempts"`
	Processes []ProcessReport `json:"processes"`
	Machine
}

// LatencyVariant is one way to submit the job.
type LatencyVariant struct {
	Name string `json:"name"`
	// CreatedToBound is from the job being seen to its last pod being seen on a node.
	CreatedToBound workload.Times `json:"createdToBoundMs"`
	// Steps are what that consists of, each from the one before; they add up in every job, but not in their percentiles.
	Steps []LatencyStep `json:"steps"`
	// Raw are the latencies in the order of the jobs.
	Raw []float64 `json:"rawMs"`
}

// LatencyStep is one step; Raw has its times in the order of the jobs.
type LatencyStep struct {
	Name string         `json:"name"`
	Ms   workload.Times `json:"ms"`
	Raw  []float64      `json:"rawMs"`
}

// LatencyDifference is how much more a variant takes than another.
type LatencyDifference struct {
	Name string  `json:"name"`
	Than string  `json:"than"`
	P50  float64 `json:"p50Ms"`
	P95  float64 `json:"p95Ms"`
	P99  float64 `json:"p99Ms"`
}

// trace is when the steps of one job were seen.
type trace struct {
	queued                                    bool
	job, unit, admitted, resumed, pods, bound time.Time
	suspended                                 bool
	onNodes                                   map[types.UID]bool
}

// complete says whether every step was seen: watches deliver independently of each other.
func (x *trace) complete(pods int) bool {
	if len(x.onNodes) < pods || x.job.IsZero() {
		return false
	}
	return !x.queued || !x.unit.IsZero() && !x.admitted.IsZero() && !x.resumed.IsZero()
}

// steps are the times between which the steps lie.
func (x *trace) steps() []time.Time {
	if x.queued {
		return []time.Time{x.job, x.unit, x.admitted, x.resumed, x.pods, x.bound}
	}
	return []time.Time{x.job, x.pods, x.bound}
}

func stepNames(queued bool) []string {
	if queued {
		return []string{"unit created", "unit admitted", "job resumed", "last pod created", "last pod bound"}
	}
	return []string{"last pod created", "last pod bound"}
}

// tracer watches one job at a time.
type tracer struct {
	mu   sync.Mutex
	name string
	pods int
	now  trace
	done chan trace
}

// begin is called before the job is created.
func (t *tracer) begin(name string, pods int, queued bool) <-chan trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.name, t.pods, t.done = name, pods, make(chan trace, 1)
	t.now = trace{queued: queued, onNodes: map[types.UID]bool{}}
	return t.done
}

// note takes what was seen of an object of this job.
func (t *tracer) note(job string, f func(*trace)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if job != t.name || job == "" {
		return
	}
	f(&t.now)
	if t.now.complete(t.pods) {
		t.done <- t.now
		t.name = ""
	}
}

func first(at *time.Time, now time.Time) {
	if at.IsZero() {
		*at = now
	}
}

func (t *tracer) takeJob(_ watch.EventType, job *batchv1.Job, now time.Time) {
	t.note(job.Name, func(x *trace) {
		first(&x.job, now)
		switch suspended := job.Spec.Suspend != nil && *job.Spec.Suspend; {
		case suspended:
			x.suspended = true
		case x.suspended:
			first(&x.resumed, now)
		}
	})
}

func (t *tracer) takeUnit(_ watch.EventType, o runtime.Object, now time.Time) {
	unit, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	t.note(unit.GetName(), func(x *trace) {
		first(&x.unit, now)
		if phase, _, _ := unstructured.NestedString(unit.Object, "status", "phase"); phase != "" &&
			phase != string(v1alpha1.PhaseEnqueued) {
			first(&x.admitted, now)
		}
	})
}

func (t *tracer) takePod(e watch.EventType, pod *corev1.Pod, now time.Time) {
	t.note(pod.Labels[batchv1.JobNameLabel], func(x *trace) {
		if e == watch.Added {
			x.pods = now
		}
		if pod.Spec.NodeName != "" && !x.onNodes[pod.UID] {
			x.onNodes[pod.UID] = true
			x.bound = now
		}
	})
}

// Latency measures how long a job on an idle cluster takes until its pods are bound, with and without the queue.
func Latency(ctx context.Context, o LatencyOptions) (_ *LatencyReport, err error) {
	screen := o.begin()
	defer screen.end()
	// Cores for all pods at once, should none of them end before the last one is bound.
	variants := latencyVariants
	if o.Stock {
		variants = slices.DeleteFunc(slices.Clone(variants), func(v latencyVariant) bool { return v.queued() })
	}
	cores := int64(len(variants) * (o.Jobs + o.Warmup) * o.Pods)
	const nodes = 10
	s, err := startStage(ctx, screen, stageOptions{
		Options: Options{Setting: o.Setting}, quota: stageQuota, cores: cores,
		nodes: nodes, nodeCores: 2 * (int(cores)/nodes + o.Pods),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.cp.Stop()) }()
	ctx, cancel := s.guarded(ctx)
	defer cancel(nil)
	l := &latency{stage: s, LatencyOptions: o, variants: variants, taken: make([][]trace, len(variants))}
	if err := l.all(ctx); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return l.report()
}

type latency struct {
	*stage
	LatencyOptions
	variants []latencyVariant
	tracer   tracer
	failed   chan error
	began    time.Time
	// attempts before and after
	attempts [2]Attempts
	taken    [][]trace // by variant
}

func (l *latency) all(ctx context.Context) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := l.follow(watching); err != nil {
		return err
	}
	for i := -l.Warmup; i < l.Jobs; i++ {
		if i == 0 {
			if l.before = l.read(); l.before.err != nil {
				return l.before.err
			}
			var err error
			if l.attempts[0], err = l.readAttempts(ctx); err != nil {
				return err
			}
			l.began = time.Now()
		}
		for v := range l.variants {
			x, err := l.one(ctx, v, i)
			if err != nil {
				return err
			}
			if i >= 0 {
				l.taken[v] = append(l.taken[v], x)
			}
			l.screen.status(fmt.Sprintf("%d of %d jobs of each variant; the last one was bound after %d ms (%s)",
				max(i+1, 0), l.Jobs, x.bound.Sub(x.job).Milliseconds(), l.variants[v].name))
			controlplane.Sleep(ctx, l.Gap)
		}
	}
	l.after = l.read()
	l.noteLoad()
	var err error
	l.attempts[1], err = l.readAttempts(ctx)
	return errors.Join(l.after.err, err)
}

// prepare takes one namespace out of the queue, then starts scheduler and controller.
func (l *latency) prepare(ctx context.Context) error {
	out := namespace(unqueuedNamespace)
	out.SetLabels(map[string]string{unqueuedLabel: "true"})
	managed := fmt.Sprintf("namespaceSelector:\n  matchExpressions:\n  - {key: %s, operator: DoesNotExist}\n",
		unqueuedLabel)
	err := l.cp.ApplyObjects(ctx, out, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": managedjobs.ConfigMap, "namespace": v1alpha1.DefaultQueueNamespace},
		"data":     map[string]any{managedjobs.Key: managed},
	}})
	if err != nil {
		return err
	}
	if l.Stock {
		return l.cp.StartScheduler(ctx, controlplane.SchedulerOptions{Mutate: controlplane.WithoutJobQueue})
	}
	if err := l.cp.StartScheduler(ctx, controlplane.SchedulerOptions{}); err != nil {
		return err
	}
	return l.cp.StartController(ctx, controlplane.ControllerOptions{})
}

func (l *latency) follow(ctx context.Context) error {
	l.failed = make(chan error, 3)
	if err := l.followJobs(ctx, l.failed, l.tracer.takeJob); err != nil {
		return err
	}
	if err := l.followPods(ctx, l.failed, l.tracer.takePod); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(l.cp.RESTConfig(controlplane.Admin))
	if err != nil {
		return err
	}
	units := client.Resource(v1alpha1.QueueUnitResource)
	list := func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		return units.List(ctx, o)
	}
	return follow(ctx, l.failed, list, units.Watch, l.tracer.takeUnit)
}

// one creates a job and waits until its pods are bound.
func (l *latency) one(ctx context.Context, v, i int) (trace, error) {
	variant := &l.variants[v]
	job := jobSpec{
		name: fmt.Sprintf("job-%d-%05d", v, i+l.Warmup), quota: variant.quota, suspend: variant.suspend,
		pods: l.Pods, cpu: "1", runTime: l.RunTime,
	}
	done := l.tracer.begin(job.name, l.Pods, variant.queued())
	if err := l.client.create(ctx, jobsPath(variant.namespace), job.body()); err != nil {
		return trace{}, err
	}
	timer := time.NewTimer(latencyTimeout)
	defer timer.Stop()
	select {
	case x := <-done:
		return x, nil
	case err := <-l.failed:
		return trace{}, err
	case <-timer.C:
		return trace{}, fmt.Errorf("job %s (%s) was not bound within %s; end of the scheduler's log:\n%s",
			job.name, variant.name, latencyTimeout, l.cp.LogTail(controlplane.Scheduler, 20))
	case <-ctx.Done():
		return trace{}, ctx.Err()
	}
}

func (l *latency) report() (*LatencyReport, error) {
	x := &LatencyReport{
		Scenario: "latency", Stock: l.Stock, Jobs: l.Jobs, Pods: l.Pods, Seconds: l.after.at.Sub(l.began).Seconds(),
		Attempts: l.attempts[1].since(l.attempts[0]), Processes: l.processReports(), Machine: l.machine(),
	}
	for v, traces := range l.taken {
		x.Variants = append(x.Variants, summarizeTraces(l.variants[v].name, traces))
	}
	for i, v := range x.Variants {
		for k, base := range x.Variants {
			if !l.variants[i].queued() || l.variants[k].queued() {
				continue
			}
			more, less := v.CreatedToBound, base.CreatedToBound
			x.Differences = append(x.Differences, LatencyDifference{
				Name: v.Name, Than: base.Name, P50: more.P50 - less.P50, P95: more.P95 - less.P95, P99: more.P99 - less.P99,
			})
		}
	}
	var err error
	x.Requests, err = l.audited(l.Jobs * len(l.variants))
	return x, err
}

func summarizeTraces(name string, traces []trace) LatencyVariant {
	v := LatencyVariant{Name: name}
	var all []time.Duration
	names := stepNames(traces[0].queued)
	steps := make([][]time.Duration, len(names))
	for i := range traces {
		at := traces[i].steps()
		for k := range names {
			steps[k] = append(steps[k], at[k+1].Sub(at[k]))
		}
		all = append(all, traces[i].bound.Sub(traces[i].job))
		v.Raw = append(v.Raw, round(1000*all[i].Seconds(), 2))
	}
	v.CreatedToBound = workload.Summarize(all)
	for k := range names {
		step := LatencyStep{Name: names[k], Ms: workload.Summarize(steps[k])}
		for _, d := range steps[k] {
			step.Raw = append(step.Raw, round(1000*d.Seconds(), 2))
		}
		v.Steps = append(v.Steps, step)
	}
	return v
}

// Print writes the report as tables.
func (x *LatencyReport) Print(out io.Writer) {
	fmt.Fprintf(out, "\n%d jobs of %d pods by each variant, one after the other, in turns; %.0f s; %d cores, load %s\n\n",
		x.Jobs, x.Pods, x.Seconds, x.Cores, x.load())
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "ms\tmean\tp50\tp95\tp99\tmax\n")
	line := func(name string, m workload.Times) {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\n", name, m.Mean, m.P50, m.P95, m.P99, m.Max)
	}
	for _, v := range x.Variants {
		line(v.Name+": job created to all pods bound", v.CreatedToBound)
		for _, s := range v.Steps {
			line("    "+s.Name, s.Ms)
		}
	}
	for _, d := range x.Differences {
		fmt.Fprintf(t, "(%s) - (%s)\t\t%.1f\t%.1f\t%.1f\t\n", d.Name, d.Than, d.P50, d.P95, d.P99)
	}
	_ = t.Flush()
	fmt.Fprintf(out, "\nattempts to schedule a pod: %s\n\n", &x.Attempts)
	printProcesses(out, x.Processes)
	printRequesters(out, x.Requests)
}
