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
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/cases"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane/binaries"
)

type demoFlags struct {
	clusterFlags
	jobs  int
	seed  uint64
	keep  bool
	limit time.Duration
	kinds bool
	// scenario is the name of what is shown.
	scenario string
	shows    demonstration
}

// complete sets what the scenario says, unless a flag says otherwise.
func (f *demoFlags) complete(changed func(flag string) bool) error {
	if f.kinds && !changed("scenario") {
		f.scenario = scenarioKinds
	}
	var err error
	if f.shows, err = demonstrationOf(f.scenario); err != nil {
		return err
	}
	if f.scenario == scenarioKinds && !changed("jobs") {
		f.jobs = mixedJobs
	}
	if of := f.shows.cases; of != nil {
		if changed("jobs") || changed("seed") {
			return fmt.Errorf("--jobs and --seed are not for --scenario=%s: its jobs are always the same", f.scenario)
		}
		if of.Nodes > 0 && !changed("nodes") {
			f.nodes = of.Nodes
		}
	}
	if f.kinds != (f.scenario == scenarioKinds) && f.kinds {
		return fmt.Errorf("--kinds is --scenario=%s, and not %s", scenarioKinds, f.scenario)
	}
	if f.jobs < 1 {
		return errors.New("--jobs must be at least 1")
	}
	return nil
}

func newDemoCommand() *cobra.Command {
	f := &demoFlags{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run jobs through three queues on a real control plane and check every promise while it runs",
		Long: `Starts etcd, kube-apiserver, kube-controller-manager, KWOK nodes, the rebuilt koord-scheduler and
jobqueue-controller, each with an identity of its own and only the shipped RBAC, and applies the shipped manifests.
Two departments have a quota and a queue each (policies Block and Priority), and employees and interns of a lab share
one queue (policy FIFO) under two quotas. More jobs than fit are submitted at a real pace.

While it runs, a table shows the queues, and checks read the history of the objects in the store alone:
  - at no moment do bound pods, or they and what was promised to admitted jobs, pass max of a quota on any level
  - in the blocking queues nothing is admitted before a job that is ahead of it in the same quota
  - no pod is bound before its job is admitted, and every job runs to its end exactly once
The exit code is 0 only if all of that holds for all jobs.

With --scenario=kinds, or --kinds, the jobs are of eleven kinds: Jobs, and those of training-operator, JobSet,
Kubeflow's trainer, KubeRay (the real ones) and spark-operator (played by a stand-in). All checks are the same, and the
summary has a table of the kinds. The operators are compiled for minutes when they are built for the first time.

With --scenario=checks a few jobs share one quota, and each case of them lives another life: behind an admission check
that is slow, one that has them tried again, one that rejects them, one that does not answer in time; with pods that no
node is good enough for; and with room for some of their pods only. The checks are answered in this process, by a
controller made with pkg/admissioncheck. Quota and admission are checked as above, and the summary says of each case
what happened and whether its promise was kept. What a time-out has suspended is tried again after a minute.

With --scenario=reclaim a team borrows the whole cluster of six nodes. Then the owner of half of it submits jobs within
its min. The scheduler suspends as many borrowers as the owner needs, and they run again later. The summary says how
long the owner waited for its pods to be on nodes, and how many borrowers were suspended and resumed.

Ctrl-C ends every process that was started.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(cmd.Flags().Changed); err != nil {
				return err
			}
			return runDemo(cmd.Context(), f)
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&f.jobs, "jobs", 300,
		fmt.Sprintf("number of jobs to submit, about four per second; with --kinds %d, and somewhat slower", mixedJobs))
	cmd.Flags().StringVar(&f.scenario, "scenario", scenarioQueues,
		"what to show:"+listed("\n", demonstrations())+"\n")
	cmd.Flags().BoolVar(&f.kinds, "kinds", false, "the same as --scenario=kinds")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of sizes, priorities and run times: the same seed gives the same jobs")
	cmd.Flags().BoolVar(&f.keep, "keep", false, "keep the work directory (store, kubeconfigs, logs) after success, too")
	cmd.Flags().DurationVar(&f.limit, "limit", 5*time.Minute,
		"give up on jobs that have not ended this long after the last one was submitted")
	return cmd
}

func runDemo(ctx context.Context, f *demoFlags) (err error) {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	s := screen.New(f.noColor)
	var others []binaries.Binary
	if f.scenario == scenarioKinds {
		others = append(binaries.Operators(), binaries.StandIn())
	}
	if err := build(ctx, s, root, others...); err != nil {
		return err
	}
	dir, err := f.newDir(root, "demo")
	if err != nil {
		return err
	}
	defer func() { f.leave(s, dir, err == nil || ctx.Err() != nil) }()
	begin := time.Now()
	cp, err := startCluster(ctx, s, f.clusterFlags, dir, &f.shows)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	client, err := kubernetes.NewForConfig(cp.RESTConfig(controlplane.Admin))
	if err != nil {
		return err
	}
	d := &demo{
		flags: f, screen: s, cp: cp, client: client.RESTClient(), view: f.shows.newView(), begin: time.Now(),
		forecasts: forecasts{},
	}
	if d.jobs, err = f.shows.jobs(f.jobs, f.seed); err != nil {
		return err
	}
	page, err := startPage(ctx, cp)
	if err != nil {
		return err
	}
	s.Printf("\nLook at it in a browser: %s\n", page)
	if err := d.run(ctx); err != nil {
		return err
	}
	return d.conclude(time.Since(begin))
}

func (f *demoFlags) announce(jobs int) string {
	if f.shows.cases != nil {
		return fmt.Sprintf("Submitting %d jobs", jobs)
	}
	return fmt.Sprintf("Submitting %d jobs with seed %d", jobs, f.seed)
}

// leave removes the work directory of a demo that went well or was interrupted, and says where it is otherwise.
func (f *demoFlags) leave(s screen.Screen, dir string, dispensable bool) {
	if dispensable && !f.keep && f.dir == "" {
		_ = os.RemoveAll(dir)
		return
	}
	s.Printf("\nLogs: %s\n", filepath.Join(dir, "logs"))
}

type demo struct {
	flags  *demoFlags
	screen screen.Screen
	cp     *controlplane.ControlPlane
	client rest.Interface // of an administrator
	view   *view
	begin  time.Time
	jobs   []cases.Submission
	// places that the aggregated API showed last, and what it said of them.
	places    map[string][]place
	forecasts forecasts

	table *screen.Block
	next  time.Time // when the table is shown again where that is not in place
}

// Intervals of the table.
const (
	boardInterval      = time.Second
	plainBoardInterval = 10 * time.Second
)

// run submits the jobs and shows the table until all of them have ended.
func (d *demo) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := d.view.watch(ctx, d.cp.URL(controlplane.Etcd)); err != nil {
		return fmt.Errorf("watch the store: %w", err)
	}
	var running <-chan error
	if of := d.flags.shows.cases; of != nil && of.Start != nil {
		var err error
		if running, err = of.Start(ctx, d.cp); err != nil {
			return err
		}
	}
	d.screen.Printf("\n%s\n\n", d.screen.Bold(d.flags.announce(len(d.jobs))))
	submitted := make(chan error, 1)
	go func() { submitted <- d.submit(ctx) }()

	d.table, d.next = screen.NewBlock(d.screen), time.Now()
	ticker := time.NewTicker(boardInterval)
	defer ticker.Stop()
	var giveUp <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case exit := <-d.cp.Exits():
			return fmt.Errorf("%s ended: %w; its log is %s", exit.Component, exit.Err, exit.Log)
		case err := <-submitted:
			if err != nil {
				return err
			}
			giveUp = time.After(d.flags.limit)
		case err := <-running:
			return fmt.Errorf("what the scenario runs ended: %w", err)
		case <-giveUp:
			return d.settle(ctx) // the verdict counts what is lost
		case now := <-ticker.C:
			if all, err := d.tick(ctx, now); err != nil {
				return err
			} else if all {
				return d.settle(ctx)
			}
		}
	}
}

// tick shows the table, and says whether all jobs have ended.
func (d *demo) tick(ctx context.Context, now time.Time) (all bool, err error) {
	if d.view.nowDue() {
		if err := d.flags.shows.cases.Do(ctx, d.cp); err != nil {
			return false, err
		}
	}
	if d.flags.shows.cases == nil {
		d.places = visiblePlaces(ctx, d.client)
		d.forecasts.askNext(ctx, d.client, now, d.places)
	}
	all = d.view.ended() == len(d.jobs)
	if d.screen.Terminal || all || !now.Before(d.next) {
		d.next = now.Add(plainBoardInterval)
		d.table.Show(d.board(now).lines(d.screen))
	}
	return all, nil
}

func (d *demo) board(now time.Time) board {
	b := d.view.board(now, d.places)
	b.elapsed, b.total, b.violations = now.Sub(d.begin), len(d.jobs), d.view.violations()
	return b
}

// settle waits until the checks have seen all that happened.
func (d *demo) settle(ctx context.Context) error {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.view.store.CaughtUp(ctx)
}

// submit creates the jobs, at random times around a steady pace as people do.
func (d *demo) submit(ctx context.Context) error {
	client, err := dynamic.NewForConfig(d.cp.RESTConfig(controlplane.Admin))
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(d.flags.seed, 1))
	for _, job := range d.jobs {
		if err := d.turn(ctx, job.Of); err != nil {
			return err
		}
		// The clock of a wait begins before the request.
		now := time.Now()
		created, err := client.Resource(job.Resource).Namespace(job.Object.GetNamespace()).
			Create(ctx, job.Object, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("submit %s: %w", job.Object.GetName(), err)
		}
		d.view.submitted(created, job.Of, now)
		if !controlplane.Sleep(ctx, time.Duration(random.Int64N(int64(2*d.flags.shows.interval)))) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// turn waits until it is time for the jobs of a case.
func (d *demo) turn(ctx context.Context, of *cases.Case) error {
	const often = 50 * time.Millisecond
	for giveUp := time.Now().Add(d.flags.limit); !d.view.turn(of); {
		if time.Now().After(giveUp) {
			return fmt.Errorf("the jobs that come first were not on nodes within %s", d.flags.limit)
		}
		if !controlplane.Sleep(ctx, often) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// conclude prints the summary; the error says what did not hold.
func (d *demo) conclude(took time.Duration) error {
	v := verdict{submitted: len(d.jobs), waits: d.view.waits(), took: took}
	v.done, v.peak, v.events, v.violations = d.view.verdict()
	v.kinds, v.forecasts = d.view.kindResults(), d.forecasts.judge(d.view.admissions())
	for _, job := range d.jobs {
		v.allPods += job.Pods
		if job.Of != nil && job.Of.Refused {
			v.refused++
		}
	}
	v.cases = d.view.caseVerdict(v.once())
	for _, line := range summary(d.screen, v) {
		d.screen.Printf("%s\n", line)
	}
	if err := v.err(); err != nil {
		return err
	}
	d.screen.Printf("\n%s\n", d.screen.Style("32;1", "All promises held."))
	return nil
}
