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

// Command chaos tests the whole system under faults, on a real local control plane. While users submit jobs, it kills
// and pauses scheduler, controller, API server and etcd in an order that follows from a seed. Then it heals everything
// and waits until all jobs are done.
//
// The store's history, the API and the audit log must show that every promise was kept. Every job ran exactly once, no
// quota was exceeded, the order was kept, and nothing was left behind.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/auditlog"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/inspection"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/program"

	_ "embed"
)

// scenario is the namespaces, priority classes, quotas and the shared queue.
//
//go:embed scenario.yaml
var scenario []byte

type options struct {
	duration, interval, limit time.Duration
	seed                      uint64
	nodes                     int
	dir                       string
	json, keep                bool
}

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "how long jobs are submitted and faults happen")
	flag.DurationVar(&o.interval, "interval", 500*time.Millisecond, "mean time between two submissions")
	flag.DurationVar(&o.limit, "limit", 5*time.Minute,
		"give up when for this long after the last fault no further job has ended")
	flag.Uint64Var(&o.seed, "seed", 1, "of faults, jobs and users: the same seed gives the same plan")
	flag.IntVar(&o.nodes, "nodes", 10, "number of nodes, of 8 cores each")
	flag.StringVar(&o.dir, "dir", "", "work directory; must be empty or absent (default: a new one in _artifacts/)")
	flag.BoolVar(&o.json, "json", false, "print the summary as JSON, and nothing else, on standard output")
	flag.BoolVar(&o.keep, "keep", false, "keep the work directory after success, too")
	flag.Parse()
	program.Main(func(ctx context.Context) (violated bool, err error) {
		s, err := run(ctx, o)
		if err != nil {
			return false, err
		}
		if violated = len(s.Violations) > 0; o.json {
			return violated, json.NewEncoder(os.Stdout).Encode(s)
		}
		s.print(os.Stdout)
		return violated, nil
	})
}

// run returns a summary, unless the run itself did not work.
func run(ctx context.Context, o options) (_ *summary, err error) {
	dir, err := controlplane.WorkDir(o.dir, "chaos")
	if err != nil {
		return nil, err
	}
	var s *summary
	var c *chaos
	defer func() {
		fine := err == nil && len(s.Violations) == 0
		if (fine || ctx.Err() != nil) && !o.keep && o.dir == "" {
			_ = os.RemoveAll(dir)
			return
		}
		if c != nil {
			c.explain(os.Stderr)
		}
		fmt.Fprintf(os.Stderr, "logs, history, audit log and store are in %s\n", dir)
	}()
	c, err = start(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.cp.Stop()) }()
	s, err = c.run(ctx)
	return s, err
}

type chaos struct {
	options
	cp        *controlplane.ControlPlane
	history   *history
	observer  *observer.Observer // fills the history
	injector  *injector
	users     *users
	kube      kubernetes.Interface
	scheduler inspection.Scheduler
	log       string // path of the written history
	begin     time.Time
}

// say prints one line about the progress.
func (c *chaos) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%5.0fs  %s\n", time.Since(c.begin).Seconds(), fmt.Sprintf(format, args...))
}

// unboundTimeout is when jobs are tried again of which no pod comes on a node. Koordinator can leave the pods of a gang
// pending if the scheduler is killed while it binds them. With the minute of back-off it is well below options.limit.
const unboundTimeout = 2 * time.Minute

// start brings everything up: two replicas each of scheduler and controller, as shipped but for that.
func start(ctx context.Context, o options, dir string) (_ *chaos, err error) {
	c := &chaos{options: o, begin: time.Now(), log: filepath.Join(dir, "history.log")}
	// The directory of the control plane itself must be empty.
	c.cp, err = controlplane.Start(ctx, controlplane.Options{
		Dir: filepath.Join(dir, "cluster"), Components: controlplane.Full(), Nodes: o.nodes, AuditPolicy: auditlog.Decisions,
		Progress: func(message string) { c.say("%s", message) },
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.cp.Stop())
		}
	}()
	if err := c.connect(); err != nil {
		return nil, err
	}
	if err := c.cp.Install(ctx); err != nil {
		return nil, fmt.Errorf("apply the manifests: %w", err)
	}
	if err := c.cp.Apply(ctx, scenario); err != nil {
		return nil, fmt.Errorf("apply the scenario: %w", err)
	}
	for _, name := range []controlplane.Component{schedulerA, schedulerB} {
		if err := c.cp.StartScheduler(ctx, controlplane.SchedulerOptions{
			Name: name, LeaderElect: true, NoWait: true,
			Mutate: func(config map[string]any) {
				controlplane.JobQueueArgs(config)["unboundTimeout"] = unboundTimeout.String()
			},
		}); err != nil {
			return nil, err
		}
		// The first one leads, so that what a seed does to it is done to the leader.
		if err := c.awaitLeader(ctx); err != nil {
			return nil, err
		}
	}
	for _, name := range []controlplane.Component{controllerA, controllerB} {
		if err := c.cp.StartController(ctx, controlplane.ControllerOptions{
			Name: name, LeaderElect: true, NoWait: true,
		}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *chaos) connect() (err error) {
	if c.kube, err = kubernetes.NewForConfig(c.cp.RESTConfig(controlplane.Admin)); err != nil {
		return err
	}
	c.users = newUsers(c.kube)
	c.scheduler = inspection.Scheduler{
		ControlPlane: c.cp, Replicas: []controlplane.Component{schedulerA, schedulerB},
	}
	c.injector = newInjector(c.cp)
	c.history = newHistory()
	c.observer, err = observer.New(c.cp.URL(controlplane.Etcd), c.history.note)
	return err
}

func (c *chaos) awaitLeader(ctx context.Context) error {
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if l := c.scheduler.Leader(ctx); l != "" {
			c.say("%s leads", l)
			return nil
		}
		if !controlplane.Sleep(ctx, 200*time.Millisecond) {
			return fmt.Errorf("no scheduler leads after %s: %s", patience, c.cp.LogTail(schedulerA, 10))
		}
	}
}

// run submits, breaks, heals, waits and judges.
func (c *chaos) run(ctx context.Context) (*summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go c.observer.Run(ctx)
	go c.injector.supervise(ctx)
	go c.injector.kubelets(ctx, c.stuck)
	for _, ask := range c.questions() {
		go c.injector.probe(ctx, ask)
	}
	plan := faultPlan(c.seed, c.duration)
	actions := stream(c.seed, c.duration, c.interval)
	c.say("%d faults and %d submissions with seed %d in %s", len(plan), len(actions), c.seed, c.duration)
	submitted := make(chan struct{})
	c.injector.begin = time.Now()
	go func() {
		defer close(submitted)
		c.users.run(ctx, c.injector.begin, actions)
	}()
	progress, stopProgress := context.WithCancel(ctx)
	defer stopProgress()
	go c.progress(progress)
	// A process that cannot be started by then stays away, and the checks below report its effect.
	restarts, giveUp := context.WithTimeout(ctx, c.duration+c.limit)
	defer giveUp()
	c.injector.run(restarts, plan)
	controlplane.Sleep(ctx, time.Until(c.injector.begin.Add(c.duration)))
	c.say("healed after the last fault; waiting until all is done")
	healed := time.Now()
	c.awaitEnd(ctx, submitted)
	stopProgress()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return c.conclude(ctx, plan, time.Since(healed))
}

// questions are what is asked all the time, to know whether the machine is fast enough for their order to be judged.
func (c *chaos) questions() []func(context.Context) error {
	questions := []func(context.Context) error{func(ctx context.Context) error {
		_, err := c.kube.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	}}
	for _, name := range []controlplane.Component{schedulerA, schedulerB} {
		questions = append(questions, func(ctx context.Context) error {
			_, err := inspection.Get(ctx, c.cp.URL(name)+"/healthz")
			return err
		})
	}
	return questions
}

// awaitEnd waits until the users are done and all jobs and pods have ended, or nothing more comes, or ctx ends. How
// long it all takes says how fast the machine is.
func (c *chaos) awaitEnd(ctx context.Context, submitted <-chan struct{}) {
	select {
	case <-submitted:
	case <-time.After(c.limit):
		return
	case <-ctx.Done():
		return
	}
	const pace, patience = 500 * time.Millisecond, 30 * time.Second
	done, since := 0, time.Now()
	for time.Since(since) < c.limit {
		s := c.history.standing()
		if s.Ended != done {
			done, since = s.Ended, time.Now()
		}
		if s.Over() {
			attempt, cancel := context.WithTimeout(ctx, patience)
			err := c.observer.CaughtUp(attempt)
			cancel()
			if err == nil && c.history.standing().Over() {
				return
			}
		}
		if !controlplane.Sleep(ctx, pace) {
			return
		}
	}
}

// stuck says whether a pod has waited for its kubelet for so long, while the store was at work.
func (c *chaos) stuck(patience time.Duration) bool {
	const silence = 5 * time.Second // leases are written more often
	return time.Since(c.observer.Last()) <= silence && c.history.stuck(patience)
}

// progress prints a line every few seconds.
func (c *chaos) progress(ctx context.Context) {
	const pace = 5 * time.Second
	for controlplane.Sleep(ctx, pace) {
		s := c.history.standing()
		jobs, deleted, pods := c.users.counts()
		c.injector.mu.Lock()
		last, exits := c.injector.last, sum(c.injector.exits)
		faults := sum(c.injector.byKind)
		c.injector.mu.Unlock()
		c.say(
			"jobs: %d submitted, %d done, %d deleted; pods: %d on nodes, %d waiting, %d plain; %d faults, %d exits; last: %s",
			jobs, s.Ended, deleted, s.Running, s.Waiting, pods, faults, exits, last)
	}
}
