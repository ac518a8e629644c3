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
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/auditlog"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// JobsOptions say how it is measured what a queue of real Jobs does to its API server. Pods have one core.
type JobsOptions struct {
	Setting
	// Jobs that are created at once, of 1, 4 and 16 pods; Cores that their quota has.
	Jobs, Cores int
	// RunTime of the pods on average: those of a job run for two thirds, all or four thirds of it.
	RunTime time.Duration
	// PerSecond bounds the creations per second; 0 is only bounded by the workers.
	PerSecond int
}

// jobSizes are the pods of twenty jobs: 16 of one pod, 3 of 4 and 1 of 16.
var jobSizes = [20]int{1, 1, 1, 4, 1, 1, 1, 1, 4, 1, 16, 1, 1, 1, 1, 4, 1, 1, 1, 1}

func podsOfJob(i int) int { return jobSizes[i%len(jobSizes)] }

func (o *JobsOptions) runTimeOf(i int) time.Duration {
	return o.RunTime * time.Duration(2+i%3) / 3
}

// asked is how many pods the jobs ask for, and for how long these take all cores if none is ever idle.
func (o *JobsOptions) asked() (pods int, ideal time.Duration) {
	work := time.Duration(0)
	for i := range o.Jobs {
		pods += podsOfJob(i)
		work += o.runTimeOf(i) * time.Duration(podsOfJob(i))
	}
	return pods, work / time.Duration(o.Cores)
}

// Jobs creates the same Jobs twice, the first time where no queue is.
func Jobs(ctx context.Context, o JobsOptions) (_ *JobsReport, err error) {
	screen := o.begin()
	defer screen.end()
	o.Audit = true
	const nodes = 10
	s, err := openStage(ctx, screen, Options{Setting: o.Setting}, controlplane.Options{
		// Twice the cores, as it is quota that is short here.
		Components: controlplane.Full(), Nodes: nodes, NodeCPU: fmt.Sprint(2*o.Cores/nodes + 1), NodePods: "10000",
		AuditPolicy: auditlog.WritesAndWatches,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.cp.Stop()) }()
	ctx, cancel := s.guarded(ctx)
	defer cancel(nil)
	j := &jobsRun{stage: s, JobsOptions: o, seen: newJobsSeen(), failed: make(chan error, 2)}
	if err := j.all(ctx); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return j.report(ctx)
}

type jobsRun struct {
	*stage
	JobsOptions
	seen   *jobsSeen
	failed chan error
	// creates are how long the calls took, without the queue and with it.
	creates [2][]time.Duration
	// closed counts watches by resource, before the Jobs without a queue, before those with it, when these are created,
	// and at the end.
	closed       [4]map[string]int
	began, ended time.Time
}

func (j *jobsRun) all(ctx context.Context) (err error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := j.followJobs(watching, j.failed, j.seen.takeJob); err != nil {
		return err
	}
	if err := j.followPods(watching, j.failed, j.seen.takePod); err != nil {
		return err
	}
	if j.closed[0], err = j.readClosed(ctx); err != nil {
		return err
	}
	if j.creates[0], err = j.without(ctx); err != nil {
		return err
	}
	if err := j.prepare(ctx); err != nil {
		return err
	}
	if j.closed[1], err = j.readClosed(ctx); err != nil {
		return err
	}
	if j.before = j.readAtRest(ctx); j.before.err != nil {
		return j.before.err
	}
	j.began = time.Now()
	if j.creates[1], err = j.create(ctx, unitNamespace, j.Jobs); err != nil {
		return err
	}
	if j.closed[2], err = j.readClosed(ctx); err != nil {
		return err
	}
	j.screen.line(fmt.Sprintf("all Jobs are created after %.1f s", time.Since(j.began).Seconds()))
	if err := j.await(ctx); err != nil {
		return err
	}
	j.ended = time.Now()
	j.after = j.readAtRest(ctx)
	j.after.at = time.Now() // the audit log ends with the last write
	j.noteLoad()
	j.closed[3], err = j.readClosed(ctx)
	return errors.Join(j.after.err, err)
}

// without creates the Jobs where nobody takes them up: they stay suspended. Scheduler and controller have not begun.
func (j *jobsRun) without(ctx context.Context) ([]time.Duration, error) {
	const warmUp = 50 // calls that are not counted
	if err := j.cp.ApplyObjects(ctx, namespace(unqueuedNamespace)); err != nil {
		return nil, err
	}
	if _, err := j.create(ctx, unqueuedNamespace, warmUp); err != nil {
		return nil, err
	}
	if err := j.deleteAll(ctx); err != nil {
		return nil, err
	}
	took, err := j.create(ctx, unqueuedNamespace, j.Jobs)
	if err != nil {
		return nil, err
	}
	j.screen.line("the Jobs are created without a queue")
	return took, j.deleteAll(ctx)
}

// deleteAll deletes the Jobs of the namespace without a queue, and waits until they are gone.
func (j *jobsRun) deleteAll(ctx context.Context) error {
	path := jobsPath(unqueuedNamespace)
	begin := time.Now()
	err := j.client.writes.Delete().AbsPath(path).Param("propagationPolicy", "Background").Do(ctx).Error()
	for err == nil && time.Since(begin) < stall {
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		var raw []byte
		if raw, err = j.client.streams.Get().AbsPath(path).Param("limit", "1").DoRaw(ctx); err == nil {
			err = json.Unmarshal(raw, &list)
		}
		if err == nil && len(list.Items) == 0 {
			// Remaining work of the job controller and the garbage collector is not measured.
			controlplane.Sleep(ctx, settled)
			return ctx.Err()
		}
		controlplane.Sleep(ctx, time.Second)
	}
	return errors.Join(err, fmt.Errorf("the Jobs of %s are not deleted", unqueuedNamespace))
}

// settled is how long the cluster is left alone before something is measured.
const settled = 5 * time.Second

// prepare creates the quota and starts scheduler and controller.
func (j *jobsRun) prepare(ctx context.Context) error {
	amount := map[string]any{"cpu": fmt.Sprint(j.Cores)}
	err := j.cp.ApplyObjects(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
		"metadata": map[string]any{"name": stageQuota, "namespace": unitNamespace, "labels": map[string]any{
			v1alpha1.LabelQuotaParent:                   "koordinator-root-quota",
			"quota.scheduling.koordinator.sh/is-parent": "false",
		}},
		"spec": map[string]any{"min": amount, "max": amount},
	}})
	if err != nil {
		return err
	}
	if err := j.cp.StartScheduler(ctx, controlplane.SchedulerOptions{}); err != nil {
		return err
	}
	if err := j.cp.StartController(ctx, controlplane.ControllerOptions{}); err != nil {
		return err
	}
	controlplane.Sleep(ctx, settled)
	return ctx.Err()
}

// create creates the first n Jobs and returns how long each call took.
func (j *jobsRun) create(ctx context.Context, in string, n int) ([]time.Duration, error) {
	took, begin := make([]time.Duration, n), time.Now()
	err := j.client.each(ctx, n, func(ctx context.Context, i int) error {
		if j.PerSecond > 0 {
			at := begin.Add(time.Duration(i) * time.Second / time.Duration(j.PerSecond))
			if !controlplane.Sleep(ctx, time.Until(at)) {
				return ctx.Err()
			}
		}
		job := jobSpec{
			name: jobName(i), quota: stageQuota, suspend: true, pods: podsOfJob(i), cpu: "1", runTime: j.runTimeOf(i),
		}
		body, begun := job.body(), time.Now()
		err := j.client.create(ctx, jobsPath(in), body)
		took[i] = time.Since(begun)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create Jobs: %w", err)
	}
	return took, nil
}

// await waits until all jobs have ended.
func (j *jobsRun) await(ctx context.Context) error {
	last, changed := [3]int{}, time.Now()
	for {
		now := j.seen.counts()
		if now[2] == j.Jobs {
			return nil
		}
		if now != last {
			last, changed = now, time.Now()
		}
		j.screen.status(fmt.Sprintf("%4.0f s: %d Jobs resumed, %d have all pods bound, %d of %d have ended",
			time.Since(j.began).Seconds(), now[0], now[1], now[2], j.Jobs))
		if time.Since(changed) > stall {
			return fmt.Errorf("nothing has happened for %s: of %d Jobs %d were resumed and %d have ended; "+
				"end of the scheduler's log:\n%s", stall, j.Jobs, now[0], now[2], j.cp.LogTail(controlplane.Scheduler, 20))
		}
		select {
		case err := <-j.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// jobsSeen is what the watches of the runner have told of Jobs and their pods.
type jobsSeen struct {
	mu   sync.Mutex
	jobs map[string]*jobSeen
	pods map[types.UID]bool // says whether it is bound
	// resumed, bound and over count jobs.
	resumed, bound, over int
	lastOver             time.Time
}

type jobSeen struct {
	pods, onNodes           int
	created, resumed, bound time.Time
	suspended, over         bool
}

func newJobsSeen() *jobsSeen {
	return &jobsSeen{jobs: map[string]*jobSeen{}, pods: map[types.UID]bool{}}
}

// counts are the jobs that were resumed, that have all pods bound, and that have ended.
func (s *jobsSeen) counts() [3]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return [3]int{s.resumed, s.bound, s.over}
}

func (s *jobsSeen) of(name string) *jobSeen {
	if s.jobs[name] == nil {
		s.jobs[name] = &jobSeen{}
	}
	return s.jobs[name]
}

func (s *jobsSeen) takeJob(_ watch.EventType, job *batchv1.Job, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if job.Namespace == unqueuedNamespace {
		return
	}
	x := s.of(job.Name)
	first(&x.created, now)
	if job.Spec.Parallelism != nil {
		x.pods = int(*job.Spec.Parallelism)
	}
	switch suspended := job.Spec.Suspend != nil && *job.Spec.Suspend; {
	case suspended:
		x.suspended = true
	case x.suspended && x.resumed.IsZero():
		x.resumed = now
		s.resumed++
	}
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && !x.over && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			x.over, s.lastOver = true, now
			s.over++
		}
	}
	s.noteBound(x, now)
}

func (s *jobsSeen) takePod(_ watch.EventType, pod *corev1.Pod, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := pod.Labels[batchv1.JobNameLabel]
	if name == "" {
		return
	}
	bound := s.pods[pod.UID]
	s.pods[pod.UID] = bound || pod.Spec.NodeName != ""
	if !bound && pod.Spec.NodeName != "" {
		x := s.of(name)
		x.onNodes++
		s.noteBound(x, now)
	}
}

// noteBound is called with either watch: they deliver independently of each other.
func (s *jobsSeen) noteBound(x *jobSeen, now time.Time) {
	if x.bound.IsZero() && x.pods > 0 && x.onNodes >= x.pods {
		x.bound = now
		s.bound++
	}
}
