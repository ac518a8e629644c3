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
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/inspection"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

// round is one run of the victim and the hostile tenant on a cluster of its own.
type round struct {
	options
	// managed: the objects of the hostile tenant are; without it nothing reads them, see baseline.go.
	managed bool
	cp      *controlplane.ControlPlane
	dyn     dynamic.Interface
	kube    kubernetes.Interface
	say     func(format string, args ...any)

	victim   *worker
	honest   *worker
	tenant   *tenant
	history  *history
	observer *observer.Observer
	watch    *watch
}

type result struct {
	requests   map[string]count
	perMinute  float64
	victimJobs int
	gap        time.Duration
	done       int
	states     int
	peak       map[string]int64
	restarts   int
	evictions  map[string]int // by whose and why
	byAlias    int            // states in which a job that an alias queued held quota
	violations []checker.Violation
}

// play starts a cluster, has both tenants use it, and judges.
func play(ctx context.Context, o options, dir string, managed bool, actions []action) (_ *result, err error) {
	r := &round{options: o, managed: managed}
	name, begin := "unmanaged", time.Now()
	if managed {
		name = "managed"
	}
	r.say = func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%9s %5.0fs  %s\n", name, time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
	if err := r.start(ctx, filepath.Join(dir, name)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.cp.Stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go r.observer.Run(ctx)
	go r.watch.run(ctx)
	if err := r.awaitTenancy(ctx); err != nil {
		return nil, err
	}
	return r.run(ctx, actions)
}

// start brings the cluster up: everything as shipped, and the tenancy policies enforced.
func (r *round) start(ctx context.Context, dir string) (err error) {
	r.cp, err = controlplane.Start(ctx, controlplane.Options{
		Dir: dir, Components: controlplane.Full(), Nodes: r.nodes,
		// The ResourceQuota of the hostile namespace needs its controller; the flag adds to those that run anyway.
		ControllerManagerArgs: []string{"--controllers=resourcequota-controller"},
		Progress:              func(message string) { r.say("%s", message) },
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.cp.Stop())
		}
	}()
	if err := r.connect(); err != nil {
		return err
	}
	if err := r.install(ctx); err != nil {
		return err
	}
	if err := r.cp.StartScheduler(ctx, controlplane.SchedulerOptions{Mutate: auditOften}); err != nil {
		return err
	}
	return r.cp.StartController(ctx, controlplane.ControllerOptions{})
}

// auditOften has the scheduler compare its state with the API objects while it is attacked.
func auditOften(config map[string]any) {
	for _, profile := range config["profiles"].([]any) {
		for _, plugin := range profile.(map[string]any)["pluginConfig"].([]any) {
			if plugin := plugin.(map[string]any); plugin["name"] == "JobQueue" {
				plugin["args"].(map[string]any)["auditInterval"] = "15s"
			}
		}
	}
}

func (r *round) connect() (err error) {
	config := r.cp.RESTConfig(controlplane.Admin)
	if r.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if r.dyn, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	r.victim, r.honest = newWorker(r.kube, victimLoad), newWorker(r.kube, honestLoad)
	if r.tenant, err = newTenant(config, r.managed, r.victim.uid); err != nil {
		return err
	}
	r.history = newHistory(r.victim, r.honest, r.managed)
	r.watch = newWatch(r.cp)
	r.observer, err = observer.New(r.cp.URL(controlplane.Etcd), r.history.note)
	return err
}

func (r *round) install(ctx context.Context) error {
	if err := r.cp.Install(ctx); err != nil {
		return fmt.Errorf("apply the manifests: %w", err)
	}
	if err := r.cp.Apply(ctx, scenario); err != nil {
		return fmt.Errorf("apply the scenario: %w", err)
	}
	if r.managed {
		return nil
	}
	return leaveHostileUnmanaged(ctx, r.cp, r.dyn)
}

// awaitTenancy waits until the hostile tenant has exactly its rights.
func (r *round) awaitTenancy(ctx context.Context) error {
	const patience, pace = 30 * time.Second, 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, kind := range []string{jobKind, unitKind} {
		own, others := job("probe"), job("probe")
		if kind == unitKind {
			own, others = unit("probe"), unit("probe")
		} else {
			put(others, victimQuota, "spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName)
		}
		put(others, victimQuota, "metadata", "labels", v1alpha1.LabelQuotaName)
		path := r.tenant.pathOf(collection(kind, hostileNamespace)) + "?dryRun=All"
		for {
			mine, _ := r.tenant.send(ctx, http.MethodPost, path, "application/json", r.tenant.fill(encode(own)))
			theirs, _ := r.tenant.send(ctx, http.MethodPost, path, "application/json", r.tenant.fill(encode(others)))
			if mine == http.StatusCreated && theirs == http.StatusForbidden {
				break
			}
			if !controlplane.Sleep(ctx, pace) {
				return fmt.Errorf("%s of its own quota: %d, of the victim's: %d", kind, mine, theirs)
			}
		}
	}
	return nil
}

// run is the time that is measured, and what comes after it.
func (r *round) run(ctx context.Context, actions []action) (*result, error) {
	// The first jobs of the victim are all there at once, and the processes have just been started.
	const warmUp, patience = 5 * time.Second, 90 * time.Second
	begin := time.Now()
	end := begin.Add(warmUp + r.duration)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		r.victim.run(ctx, begin, end, patience)
	}()
	// Its remaining work ends after the hostile tenant has left.
	go r.honest.run(ctx, begin, end, 0)
	progress, stop := context.WithCancel(ctx)
	defer stop()
	go r.progress(progress)
	r.tenant.run(ctx, begin.Add(warmUp), actions)
	<-worked
	stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.say("the time is over and the victim waits for nothing more")
	return r.conclude(ctx, begin, begin.Add(warmUp), end)
}

// progress prints a line every few seconds.
func (r *round) progress(ctx context.Context) {
	const pace = 10 * time.Second
	last := time.Now()
	for controlplane.Sleep(ctx, pace) {
		peak, restarts, _, _ := r.watch.conclude()
		now := time.Now()
		r.say("objects: %d; victim: %.0f jobs a minute; peaks: scheduler %d MiB, controller %d MiB; restarts: %d",
			objects(r.tenant.counts()), r.victim.perMinute(last, now), peak["scheduler"]>>20, peak["controller"]>>20, restarts)
		last = now
	}
}

// conclude has the hostile tenant leave, and looks at what is left.
func (r *round) conclude(ctx context.Context, begin, from, to time.Time) (*result, error) {
	const patience = 2 * time.Minute
	s := &result{
		requests:  r.tenant.counts(),
		perMinute: r.victim.perMinute(from, to), gap: r.victim.longestGap(begin, from, to),
	}
	s.evictions, s.byAlias = r.history.evictions()
	var left []checker.Violation
	if r.managed {
		var err error
		if left, err = r.leave(ctx, patience); err != nil {
			return nil, err
		}
	}
	caughtUp, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.observer.CaughtUp(caughtUp); err != nil {
		return nil, err
	}
	peak, restarts, problems, tooMuch := r.watch.conclude()
	if len(problems) > 0 {
		return nil, fmt.Errorf("the control plane did not hold: %v", problems)
	}
	done, states, broken := r.history.judge()
	s.done, s.states, s.victimJobs = done, states, len(r.victim.jobs)
	s.peak, s.restarts = peak, restarts
	s.violations = slices.Concat(broken, left, tooMuch, starvation(s.gap),
		inspection.Panics(r.cp, controlplane.Scheduler, controlplane.Controller))
	return s, nil
}

// leave removes all that the two tenants have made, and returns what stays.
func (r *round) leave(ctx context.Context, patience time.Duration) ([]checker.Violation, error) {
	clear, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.tenant.clear(clear); err != nil {
		return nil, err
	}
	r.say("the hostile tenant has left")
	scheduler := inspection.Scheduler{
		ControlPlane: r.cp, Replicas: []controlplane.Component{controlplane.Scheduler},
	}
	left, err := scheduler.Settled(ctx, patience, r.history.left)
	if err != nil {
		return nil, fmt.Errorf("look at what is left: %w", err)
	}
	// The scheduler audits itself all the time during the attack.
	differs, err := scheduler.Audit(ctx, patience, true)
	return append(left, differs...), err
}
