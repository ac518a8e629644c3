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

// Package runner runs a workload on a real control plane: etcd, API server and the rebuilt scheduler. It plays the
// users and the job controller: it creates quotas, queues and units, and finishes each admitted unit after its run
// time. With Jobs it plays only the users, and all other programs run.
package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/auditlog"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// Options of a run. Workload is required. Workers of Setting are for creating, and as many for finishing.
type Options struct {
	Setting
	Workload *workload.Workload
	// CeilingWrites are the creations, and then the status patches, that the write ceiling is measured with before and
	// after the run; 0 measures none.
	CeilingWrites int
	// Jobs creates real Jobs instead of units, which run as pods on KWOK's nodes: with controller, job controller and
	// KWOK.
	Jobs bool
	// Mutate, if set, changes the configuration of the scheduler.
	Mutate func(config map[string]any)
}

// stall is how long nothing may happen before the run is given up.
const stall = 2 * time.Minute

// Run carries the workload out and reports.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	screen := o.begin()
	r := &run{Options: o, units: o.Workload.Units(), screen: screen}
	defer r.screen.end()
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.cp.Stop()) }()
	ctx, cancel := r.guarded(ctx)
	defer cancel(nil)
	if err := r.all(ctx); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return r.report()
}

type run struct {
	Options
	screen *screen
	cp     *controlplane.ControlPlane
	client *client
	// controller writes the units, as the queue's controller does where there are jobs.
	controller *client
	units      []workload.Unit
	watch      *observer

	ceilings      []ceiling
	before, after reading
	// created is the reading that was made when the last unit had been created, nil for none.
	created *reading
	usage   []UsageReport
	// begin is when the clock starts.
	begin time.Time
	loads []string
}

// start brings up what the write ceiling is measured on.
func (r *run) start(ctx context.Context) error {
	w := r.Workload
	args := []string{}
	if r.Profile.wanted() {
		args = append(args, "--profiling=true")
	}
	o := controlplane.Options{
		Components: controlplane.Minimal(),
		// A node for each group, so that together they have what the groups may use. No pod ever runs on them.
		Nodes: w.Groups, NodeCPU: w.Quota.GroupMax.String(), APIServerArgs: args,
	}
	if r.Jobs {
		// Twice as many, so that what the quota allows also finds a node.
		o.Components, o.Nodes, o.NodePods = controlplane.Full(), 2*w.Groups, "10000"
	}
	return r.open(ctx, o)
}

// open starts the components with what a user installs. If it succeeds they are to be stopped.
func (r *run) open(ctx context.Context, o controlplane.Options) (err error) {
	r.noteLoad()
	o.Dir, o.Bin, o.Progress = r.Dir, r.Bin, r.screen.line
	if r.Audit && o.AuditPolicy == "" {
		o.AuditPolicy = auditlog.Writes
	}
	if r.cp, err = controlplane.Start(ctx, o); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.cp.Stop())
		}
	}()
	if err := r.cp.Install(ctx); err != nil {
		return fmt.Errorf("apply the manifests: %w", err)
	}
	if r.client, err = newClient(r.cp.RESTConfig(controlplane.Admin), r.Workers); err != nil {
		return err
	}
	r.controller, err = newClient(r.cp.RESTConfig(controlplane.ControllerIdentity), r.Workers)
	return err
}

// guarded cancels the context that it returns when a process ends that was not asked to.
func (r *run) guarded(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ctx.Done():
		case exit := <-r.cp.Exits():
			cancel(fmt.Errorf("%s ended: %w\n%s", exit.Component, exit.Err, r.cp.LogTail(exit.Component, 20)))
		}
	}()
	return ctx, cancel
}

// all are the steps in their order.
func (r *run) all(ctx context.Context) error {
	if err := r.cp.ApplyObjects(ctx, namespace(unitNamespace), namespace(ceilingNamespace)); err != nil {
		return err
	}
	if err := r.measureCeiling(ctx, "before"); err != nil {
		return err
	}
	if err := r.createQueues(ctx); err != nil {
		return fmt.Errorf("create quotas and queues: %w", err)
	}
	if err := r.play(ctx); err != nil {
		return err
	}
	r.noteLoad()
	for _, c := range []controlplane.Component{
		controlplane.Controller, controlplane.Scheduler, controlplane.ControllerManager, controlplane.KWOK,
	} {
		if r.cp.PID(c) == 0 {
			continue
		}
		if err := r.cp.StopComponent(c); err != nil {
			return err
		}
	}
	return r.measureCeiling(ctx, "after")
}

// play creates units, waits until they have ended, and reads what it took.
func (r *run) play(ctx context.Context) (err error) {
	r.watch, err = newObserver(r.Workload, r.units, r.Jobs)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 3)
	if r.Jobs {
		go func() { failed <- r.client.watch(watching, jobsPath(unitNamespace), r.watch.takeJob) }()
	}
	go func() { failed <- r.client.watch(watching, unitsPath(unitNamespace), r.watch.takeUnit) }()
	if err := r.startQueue(ctx); err != nil {
		return err
	}
	if r.Profile.wanted() {
		go r.profile(ctx, "", controlplane.APIServer, controlplane.Scheduler)
	}
	created := make(chan reading, 1)
	go func() { failed <- r.generate(watching, created) }()
	sampled := make(chan []UsageReport)
	go func() {
		all, admitted := r.sampleUsage(watching)
		sampled <- usageReports(r.begin, r.before.spent, all, admitted)
	}()
	if err = r.await(ctx, failed); err == nil {
		r.after = r.readAtRest(ctx)
	}
	stop()
	r.usage = <-sampled
	if err != nil {
		return err
	}
	select {
	case x := <-created:
		if r.created = &x; x.err != nil {
			return x.err
		}
	default: // ended before
	}
	return r.after.err
}

// startQueue starts what is measured, and the clock.
func (r *run) startQueue(ctx context.Context) error {
	err := r.cp.StartScheduler(ctx, controlplane.SchedulerOptions{Mutate: func(config map[string]any) {
		r.Profile.open(config)
		if r.Mutate != nil {
			r.Mutate(config)
		}
	}})
	if err != nil {
		return err
	}
	if r.Jobs {
		if err := r.cp.StartController(ctx, controlplane.ControllerOptions{}); err != nil {
			return err
		}
	}
	if err := r.warmUp(ctx); err != nil {
		return err
	}
	r.before = r.read()
	r.begin = time.Now()
	return r.before.err
}

// await waits until the last unit has ended.
func (r *run) await(ctx context.Context, failed <-chan error) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	last, changed := counts{}, time.Now()
	for {
		select {
		case <-r.watch.done:
			return nil
		case err := <-failed:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		now := r.watch.counts()
		if now != last {
			last, changed = now, time.Now()
		}
		r.screen.progress(time.Since(r.begin), now, len(r.units))
		if time.Since(changed) > stall {
			return fmt.Errorf("nothing has happened for %s: of %d units %d were created, %d admitted, %d have ended; "+
				"end of the scheduler's log:\n%s",
				stall, len(r.units), now.created, now.admitted, now.ended, r.cp.LogTail(controlplane.Scheduler, 20))
		}
	}
}

func (r *run) noteLoad() { r.loads = append(r.loads, loadAverage()) }

func (r *run) versions() map[string]string {
	bin := r.Bin
	if bin == "" {
		root, err := controlplane.RepositoryRoot()
		if err != nil {
			return nil
		}
		bin = filepath.Join(root, "bin")
	}
	versions := map[string]string{"go": runtime.Version()}
	addModules(versions, filepath.Join(bin, "koord-scheduler"), "github.com/koordinator-sh/koordinator",
		"k8s.io/kubernetes")
	addModules(versions, filepath.Join(bin, "jobqueue-controlplane"), "go.etcd.io/etcd/server/v3")
	return versions
}
