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
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	history "github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// ReclaimOptions are for a measurement of how owners of a min get it back, and at which cost. Pods have one core.
type ReclaimOptions struct {
	Setting
	// Borrowers are quotas whose Jobs, of Pods each, fill the cluster. Mixed has Jobs of 1 to 2*Pods-1 pods.
	Borrowers, Jobs, Pods int
	Mixed                 bool
	// Owners are quotas with three quarters of the cluster as their min. OwnerJobs, of OwnerPods each, are submitted one
	// after the other, Gap after the pods of the one before are bound.
	Owners, OwnerJobs, OwnerPods int
	Gap                          time.Duration
	// Settle is how long the Jobs of borrowers run before.
	Settle time.Duration
}

// ReclaimReport is how soon owners got their requests, and the pods that were killed for them. Times are by the clock
// of the runner, at the events of the store.
type ReclaimReport struct {
	Scenario        string  `json:"scenario"`
	ClusterCores    int     `json:"clusterCores"`
	Borrowers       int     `json:"borrowers"`
	BorrowerJobs    int     `json:"borrowerJobs"`
	Mixed           bool    `json:"mixed"`
	Owners          int     `json:"owners"`
	OwnerJobs       int     `json:"ownerJobs"`
	PodsPerOwnerJob int     `json:"podsPerOwnerJob"`
	Seconds         float64 `json:"seconds"`
	// SubmittedToBound is from before the creation of an owner's Job to its last pod being seen on a node.
	SubmittedToBound workload.Times `json:"submittedToBoundMs"`
	Raw              []float64      `json:"rawMs"`
	// Suspended counts evictions of borrowers. Killed is what they had running, Least a lower bound of that.
	Suspended int   `json:"suspended"`
	Killed    Taken `json:"killed"`
	Least     Taken `json:"least"`
	// Events of the store, in which no promise was broken.
	Events    int             `json:"events"`
	Processes []ProcessReport `json:"processes"`
	Machine
}

// Taken is what is killed. Work is what the pods had done.
type Taken struct {
	Pods      int     `json:"pods"`
	CoreHours float64 `json:"coreHours"`
}

func (t *Taken) add(pods int, coreSeconds float64) {
	t.Pods += pods
	t.CoreHours += coreSeconds / time.Hour.Seconds()
}

// victim is a job that may be killed: its pods of one core, and the core-seconds that they have done.
type victim struct {
	pods        int
	coreSeconds float64
}

// least is a lower bound of what has to be killed to free so many cores. Jobs of one size are killed whole, those with
// the least work first: that is exact. Of others a part may be killed, so that the bound is the shortage itself.
func least(short int, jobs []victim) (pods int, coreSeconds float64) {
	jobs = slices.SortedFunc(slices.Values(jobs), func(a, b victim) int {
		return cmp.Compare(a.coreSeconds*float64(b.pods), b.coreSeconds*float64(a.pods))
	})
	equal := !slices.ContainsFunc(jobs, func(v victim) bool { return v.pods != jobs[0].pods })
	for _, v := range jobs {
		if pods >= short {
			break
		}
		take := v.pods
		if !equal {
			take = min(take, short-pods)
		}
		pods += take
		coreSeconds += v.coreSeconds * float64(take) / float64(v.pods)
	}
	return pods, coreSeconds
}

// ledger has the running pods, as the store reports them, and the killed ones.
type ledger struct {
	mu     sync.Mutex
	checks *checker.Checker
	events int
	pods   map[string]onNode // by UID
	killed Taken
	// suspended counts units that lost what they held.
	suspended int
	changed   chan struct{} // takes one when a pod was bound
}

// onNode is a pod that was bound and has not ended.
type onNode struct {
	job   string
	since time.Time
}

func newLedger() *ledger {
	l := &ledger{checks: checker.New(nil), pods: map[string]onNode{}, changed: make(chan struct{}, 1)}
	l.checks.Again = func(u checker.Unit) bool { return isBorrower(u.Quota) }
	return l
}

func (l *ledger) take(change history.Change) error { return l.takeAt(time.Now(), change) }

func (l *ledger) takeAt(now time.Time, change history.Change) error {
	e, ok, err := change.Event()
	if !ok {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	switch o := e.Object.(type) {
	case checker.Unit:
		if was := l.checks.UnitFor(o.Job); was.UID == o.UID && was.Phase.Holds() && !o.Phase.Holds() && !o.Phase.Terminal() {
			l.suspended++
		}
	case checker.Pod:
		if p, ok := change.Object.(*corev1.Pod); ok {
			l.takePod(now, o, p.Labels[batchv1.JobNameLabel], change.Deleted)
		}
	}
	l.checks.Apply(e)
	return nil
}

// takePod counts a pod while it is on a node, and what it has done when it goes before its end.
func (l *ledger) takePod(now time.Time, pod checker.Pod, job string, deleted bool) {
	at, known := l.pods[pod.UID]
	switch over := deleted || pod.Terminal; {
	case over && known:
		if delete(l.pods, pod.UID); !pod.Succeeded && isBorrower(pod.Quota) {
			l.killed.add(1, now.Sub(at.since).Seconds())
		}
	case !over && !known && pod.Bound:
		l.pods[pod.UID] = onNode{job, now}
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
}

// running counts the pods of a job, and all, and lists the jobs of borrowers with what they have done by now.
func (l *ledger) running(now time.Time, job string) (own, all int, borrowers []victim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	jobs := map[string]victim{}
	for _, p := range l.pods {
		if p.job == job {
			own++
		}
		if isBorrower(p.job) {
			v := jobs[p.job]
			v.pods, v.coreSeconds = v.pods+1, v.coreSeconds+now.Sub(p.since).Seconds()
			jobs[p.job] = v
		}
	}
	for _, v := range jobs {
		borrowers = append(borrowers, v)
	}
	return own, len(l.pods), borrowers
}

// broken is an error for each promise that is broken.
func (l *ledger) broken() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.checks.Violations() {
		err = errors.Join(err, errors.New(v.String()))
	}
	return err
}

// Names of quotas, of which the names of their jobs are made.
const (
	borrowerName  = "borrower"
	ownerName     = "owner"
	reclaimParent = "reclaim"
)

func isBorrower(name string) bool { return strings.HasPrefix(name, borrowerName+"-") }

// podsOf the borrowers' job i.
func (o *ReclaimOptions) podsOf(i int) int {
	if !o.Mixed {
		return o.Pods
	}
	return 1 + i%(2*o.Pods-1)
}

// cores are as many as the jobs of borrowers have pods.
func (o *ReclaimOptions) cores() (n int) {
	for i := range o.Jobs {
		n += o.podsOf(i)
	}
	return n
}

// mins of a borrower and of an owner. Owners may not ask for more than theirs.
func (o *ReclaimOptions) mins() (borrower, owner int, err error) {
	cores := o.cores()
	borrower, owner = cores/4/o.Borrowers, cores*3/4/o.Owners
	if most := (o.OwnerJobs + o.Owners - 1) / o.Owners * o.OwnerPods; most > owner {
		err = fmt.Errorf("jobs of %d pods are submitted to an owner whose min is %d cores", most, owner)
	}
	return borrower, owner, err
}

// Reclaim measures how soon owners of a min get it back from jobs that borrow it.
func Reclaim(ctx context.Context, o ReclaimOptions) (_ *ReclaimReport, err error) {
	borrower, owner, err := o.mins()
	if err != nil {
		return nil, err
	}
	screen := o.begin()
	defer screen.end()
	const nodeCores = 8
	// Twice the cores, as it is quota that is short here.
	s, err := openStage(ctx, screen, Options{Setting: o.Setting}, controlplane.Options{
		Components: controlplane.Full(), Nodes: 2*o.cores()/nodeCores + 1, NodeCPU: fmt.Sprint(nodeCores), NodePods: "10000",
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.cp.Stop()) }()
	ctx, cancel := s.guarded(ctx)
	defer cancel(nil)
	r := &reclaim{stage: s, ReclaimOptions: o, ledger: newLedger()}
	if err := r.all(ctx, borrower, owner); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return r.report(), nil
}

type reclaim struct {
	*stage
	ReclaimOptions
	*ledger
	began, ended time.Time
	waits        []time.Duration
	bound        Taken // of what has to be killed
}

func (r *reclaim) all(ctx context.Context, borrower, owner int) error {
	store, err := history.New(r.cp.URL(controlplane.Etcd), r.take)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go store.Run(watching)
	if err := r.prepare(ctx, borrower, owner); err != nil {
		return err
	}
	if err := r.borrow(ctx); err != nil {
		return err
	}
	if r.before = r.read(); r.before.err != nil {
		return r.before.err
	}
	r.began = time.Now()
	for i := range r.OwnerJobs {
		if err := r.one(ctx, i); err != nil {
			return err
		}
		controlplane.Sleep(ctx, r.Gap)
	}
	r.ended = time.Now()
	r.after = r.read()
	r.noteLoad()
	bounded, cancel := context.WithTimeout(ctx, stall)
	defer cancel()
	return errors.Join(r.after.err, store.CaughtUp(bounded), r.broken())
}

// prepare creates quotas and queues, and starts scheduler and controller.
func (r *reclaim) prepare(ctx context.Context, borrower, owner int) error {
	all := fmt.Sprint(r.cores())
	err := r.client.create(ctx, quotasPath, quotaBody(reclaimParent, "", true, all, all))
	for i := range r.Borrowers {
		name := indexed(borrowerName, i)
		err = errors.Join(err,
			r.client.create(ctx, quotasPath, quotaBody(name, reclaimParent, false, fmt.Sprint(borrower), all)),
			r.client.create(ctx, queuesPath, queueBody(name, map[string]any{
				"queuePolicy": "Priority", "preemption": map[string]any{"minRunTimeSeconds": 0},
			})))
	}
	for i := range r.Owners {
		name := indexed(ownerName, i)
		err = errors.Join(err,
			r.client.create(ctx, quotasPath, quotaBody(name, reclaimParent, false, fmt.Sprint(owner), all)),
			r.client.create(ctx, queuesPath, queueBody(name, map[string]any{
				"queuePolicy": "Priority", "preemption": map[string]any{"reclaim": "Any"},
			})))
	}
	if err != nil {
		return err
	}
	if err := r.cp.StartScheduler(ctx, controlplane.SchedulerOptions{}); err != nil {
		return err
	}
	return r.cp.StartController(ctx, controlplane.ControllerOptions{})
}

func indexed(name string, i int) string { return fmt.Sprintf("%s-%d", name, i) }

// submit creates a Job that runs for longer than the measurement.
func (r *reclaim) submit(ctx context.Context, name, quota string, pods int) error {
	job := jobSpec{name: name, quota: quota, suspend: true, pods: pods, cpu: "1", runTime: 24 * time.Hour}
	return r.client.create(ctx, jobsPath(unitNamespace), job.body())
}

// borrow fills the cluster with jobs of borrowers, and has them run for a while.
func (r *reclaim) borrow(ctx context.Context) error {
	err := r.client.each(ctx, r.Jobs, func(ctx context.Context, i int) error {
		quota := indexed(borrowerName, i%r.Borrowers)
		return r.submit(ctx, indexed(quota, i), quota, r.podsOf(i))
	})
	if err != nil {
		return err
	}
	err = r.await(ctx, func() bool {
		_, all, _ := r.running(time.Now(), "")
		r.screen.status(fmt.Sprintf("%d of %d pods of borrowers run", all, r.cores()))
		return all == r.cores()
	})
	if err != nil {
		return fmt.Errorf("borrowers do not fill the cluster: %w", err)
	}
	r.screen.line(fmt.Sprintf("%d jobs of %d borrowers fill %d cores", r.Jobs, r.Borrowers, r.cores()))
	controlplane.Sleep(ctx, r.Settle)
	return ctx.Err()
}

// await waits until something holds. It is asked again whenever a pod was bound.
func (r *reclaim) await(ctx context.Context, holds func() bool) error {
	timer := time.NewTimer(stall)
	defer timer.Stop()
	for !holds() {
		select {
		case <-r.changed:
		case <-timer.C:
			return fmt.Errorf("not within %s; end of the scheduler's log:\n%s", stall,
				r.cp.LogTail(controlplane.Scheduler, 20))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// one submits a job of an owner and waits until its pods are bound.
func (r *reclaim) one(ctx context.Context, i int) error {
	quota := indexed(ownerName, i%r.Owners)
	name := indexed(quota, i)
	begin := time.Now()
	_, all, borrowers := r.running(begin, name)
	r.bound.add(least(r.OwnerPods-(r.cores()-all), borrowers))
	if err := r.submit(ctx, name, quota, r.OwnerPods); err != nil {
		return err
	}
	err := r.await(ctx, func() bool {
		own, _, _ := r.running(begin, name)
		return own == r.OwnerPods
	})
	if err != nil {
		return fmt.Errorf("pods of job %s of an owner are not bound: %w", name, err)
	}
	r.waits = append(r.waits, time.Since(begin))
	r.screen.status(fmt.Sprintf("%d of %d jobs of owners have their pods; the last one after %d ms", i+1, r.OwnerJobs,
		r.waits[i].Milliseconds()))
	return nil
}

func (r *reclaim) report() *ReclaimReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &ReclaimReport{
		Scenario: "reclaim", ClusterCores: r.cores(), Borrowers: r.Borrowers, BorrowerJobs: r.Jobs, Mixed: r.Mixed,
		Owners: r.Owners, OwnerJobs: r.OwnerJobs, PodsPerOwnerJob: r.OwnerPods, Seconds: r.ended.Sub(r.began).Seconds(),
		SubmittedToBound: workload.Summarize(r.waits), Suspended: r.suspended, Killed: r.killed, Least: r.bound,
		Events: r.events, Processes: r.processReports(), Machine: r.machine(),
	}
	for _, wait := range r.waits {
		x.Raw = append(x.Raw, round(1000*wait.Seconds(), 2))
	}
	return x
}

// Print writes the report as tables.
func (x *ReclaimReport) Print(out io.Writer) {
	fmt.Fprintf(out, "\n%d jobs of %d borrowers fill %d cores; %d owners submit %d jobs of %d pods, one after the other; "+
		"%.0f s; %d cores, load %s\n\n",
		x.BorrowerJobs, x.Borrowers, x.ClusterCores, x.Owners, x.OwnerJobs, x.PodsPerOwnerJob,
		x.Seconds, x.Cores, x.load())
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	m := x.SubmittedToBound
	fmt.Fprintf(t, "ms\tmean\tp50\tp95\tp99\tmax\n")
	fmt.Fprintf(t, "job of an owner submitted to all pods bound\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\n", m.Mean, m.P50, m.P95,
		m.P99, m.Max)
	_ = t.Flush()
	bound := "exact: all borrowers have jobs of one size"
	if x.Mixed {
		bound = "a lower bound: the cores that are short"
	}
	fmt.Fprintf(t, "\nkilled\tby reclaim\tthe least\ttimes\n")
	fmt.Fprintf(t, "pods\t%d\t%d\t%.2f\n", x.Killed.Pods, x.Least.Pods,
		over(float64(x.Killed.Pods), float64(x.Least.Pods)))
	fmt.Fprintf(t, "core-hours\t%.3f\t%.3f\t%.2f\n", x.Killed.CoreHours, x.Least.CoreHours,
		over(x.Killed.CoreHours, x.Least.CoreHours))
	_ = t.Flush()
	fmt.Fprintf(out, "the least is %s\n%d suspensions of borrowers; no promise was broken in %d events of the store\n\n",
		bound, x.Suspended, x.Events)
	printProcesses(out, x.Processes)
}

// over is a ratio, 0 if there is nothing to compare with.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
