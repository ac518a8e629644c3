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
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-base/metrics/testutil"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// InterferenceOptions of a comparison of pod scheduling with and without the plugin. All numbers but Gated and Paced
// are required. Profiles are of the scheduler, in the last round.
type InterferenceOptions struct {
	Setting
	Nodes int
	// Pods are scheduled in each run; Paced of them come before the others, PacedPerSecond of them a second.
	Pods, Paced, PacedPerSecond int
	// Groups of QueuesPerGroup queues each, every one with its own ElasticQuota, of which all pods are.
	Groups, QueuesPerGroup int
	// Units wait, and of those that have a Job the pods exist, Gated in all and PodsPerJob of each. They ask for Shapes
	// different amounts.
	Units, Gated, PodsPerJob, Shapes int
	// Rounds is how often every variant is measured.
	Rounds int
}

// variant is one side of a comparison. All variants run the same binary on the same objects. Loaded variants also have
// the pending units, their Jobs and the gated pods. If the plugin is off, Kubernetes' own scheduling gates hold those
// pods, so both sides have the same number of held pods.
type variant struct {
	name           string
	plugin, loaded bool
}

var (
	variantOff       = variant{name: "off"}
	variantIdle      = variant{name: "idle", plugin: true}
	variantOffLoaded = variant{name: "off, loaded", loaded: true}
	variantWaiting   = variant{name: "waiting", plugin: true, loaded: true}
)

const (
	// podCPU is what a pod asks for, in thousandths.
	podCPU = 100
	// warmPods are scheduled before anything is measured, at each load.
	warmPods = 500
	// schedulerQPS is a limit that nothing reaches: with the shipped one, 500, a fast machine would measure the limit.
	schedulerQPS = 5000
)

// sizes are amounts of cpu, in thousandths.
type sizes struct {
	// leaf is the max of every quota. One unit of each queue holds so much of it that the others wait and that what is
	// free is enough for the pods.
	leaf int64
	// held is what that unit asks for.
	held int64
}

func (o *InterferenceOptions) sizes() sizes {
	perQuota := int64((o.Pods+o.queues()-1)/o.queues()+1) * podCPU
	return sizes{leaf: 4 * perQuota, held: 2 * perQuota}
}

// request of pending unit i. It exceeds the free amount while another unit holds quota, and fits alone.
func (s sizes) request(i, shapes int) string {
	free := s.leaf - s.held
	return milli(free + 1 + (s.leaf-free-1)*int64(i%shapes)/int64(shapes))
}

func milli(amount int64) string {
	return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
}

func (o *InterferenceOptions) queues() int { return o.Groups * o.QueuesPerGroup }

func (o *InterferenceOptions) jobs() int {
	if o.Gated == 0 {
		return 0
	}
	return (o.Gated + o.PodsPerJob - 1) / o.PodsPerJob
}

func (o *InterferenceOptions) validate() error {
	for name, n := range map[string]int{
		"nodes": o.Nodes, "pods": o.Pods, "groups": o.Groups, "queues per group": o.QueuesPerGroup,
		"pods per job": o.PodsPerJob, "shapes": o.Shapes, "rounds": o.Rounds, "paced per second": o.PacedPerSecond,
	} {
		if n < 1 {
			return fmt.Errorf("%s: must be at least 1", name)
		}
	}
	switch {
	case o.Gated < 0 || o.Paced < 0 || o.Units < 1:
		return errors.New("gated and paced pods must not be negative, and one unit has to wait")
	case o.Paced >= o.Pods-1:
		return fmt.Errorf("of %d pods %d are paced: at least two must come at once", o.Pods, o.Paced)
	case o.jobs() > o.Units:
		return fmt.Errorf("%d gated pods are of %d jobs, but %d units wait", o.Gated, o.jobs(), o.Units)
	}
	return nil
}

type interference struct {
	*stage
	o     InterferenceOptions
	sizes sizes
	jobs  []string // UIDs
	// started counts runs, for their names.
	started int
	runs    []InterferenceRun
}

// Interfere compares the scheduling of pods with and without the plugin, and with units and gated pods that wait.
func Interfere(ctx context.Context, o InterferenceOptions) (_ *InterferenceReport, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	screen := o.begin()
	defer screen.end()
	x := &interference{o: o, sizes: o.sizes()}
	options := Options{Setting: o.Setting, Workload: &workload.Workload{
		Groups: o.Groups, QueuesPerGroup: o.QueuesPerGroup, QueuePolicy: v1alpha1.PolicyPriority,
		Quota: workload.Quota{
			Min:      resource.MustParse(milli(x.sizes.leaf / 4)),
			Max:      resource.MustParse(milli(x.sizes.leaf)),
			GroupMax: resource.MustParse(milli(x.sizes.leaf * int64(o.QueuesPerGroup))),
		},
	}}
	// The nodes have twice what all quotas may use, so that scheduling is not about finding the last free node.
	perNode := max(8000, 2*x.sizes.leaf*int64(o.queues())/int64(o.Nodes))
	if x.stage, err = openStage(ctx, screen, options, controlplane.Options{
		Components: controlplane.Minimal(), Nodes: o.Nodes, NodeCPU: milli(perNode), NodeMemory: "1Ti",
		APIServerArgs: []string{"--delete-collection-workers=16"},
	}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.cp.Stop()) }()
	ctx, cancel := x.guarded(ctx)
	defer cancel(nil)
	if err := x.all(ctx); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return x.report(), nil
}

// all measures the variants without load in turns, and then those with load. Creating and deleting units between runs
// would take longer than all runs. So each variant is compared with its twin without plugin in the same store.
func (x *interference) all(ctx context.Context) error {
	x.screen.line(fmt.Sprintf("%d nodes are created", x.o.Nodes))
	if err := x.createQueues(ctx); err != nil {
		return fmt.Errorf("create quotas and queues: %w", err)
	}
	if err := x.turns(ctx, variantOff, variantIdle); err != nil {
		return err
	}
	if err := x.createUnits(ctx); err != nil {
		return fmt.Errorf("create units: %w", err)
	}
	return x.turns(ctx, variantOffLoaded, variantWaiting)
}

// turns measures two variants, each first in every other round. So a steady drift, as of the size of the store, affects
// both.
func (x *interference) turns(ctx context.Context, a, b variant) error {
	// The first run on a load pays for caches that the others find. With the plugin it has one unit of each queue
	// admitted.
	if err := x.once(ctx, b, -1); err != nil {
		return err
	}
	for round := range x.o.Rounds {
		order := []variant{a, b}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, v := range order {
			if err := x.once(ctx, v, round); err != nil {
				return fmt.Errorf("round %d of %q: %w", round+1, v.name, err)
			}
		}
	}
	return nil
}

// once starts the scheduler, measures one variant and takes its pods away again. Round -1 warms up only.
func (x *interference) once(ctx context.Context, v variant, round int) error {
	x.started++
	name := fmt.Sprintf("perf-%d", x.started)
	if err := x.cp.ApplyObjects(ctx, namespace(name)); err != nil {
		return err
	}
	if v.loaded {
		if err := x.createGated(ctx, !v.plugin); err != nil {
			return fmt.Errorf("create gated pods: %w", err)
		}
	}
	err := x.cp.StartScheduler(ctx, controlplane.SchedulerOptions{Mutate: func(config map[string]any) {
		config["clientConnection"] = map[string]any{
			"kubeconfig": x.cp.Kubeconfig(controlplane.SchedulerIdentity), "qps": schedulerQPS, "burst": schedulerQPS,
		}
		x.Profile.open(config)
		if !v.plugin {
			controlplane.WithoutJobQueue(config)
		}
	}})
	if err != nil {
		return err
	}
	if err := x.settle(ctx, v); err != nil {
		return err
	}
	if err := x.measure(ctx, v, round, name); err != nil {
		return err
	}
	if err := x.cp.StopComponent(controlplane.Scheduler); err != nil {
		return err
	}
	return errors.Join(x.deletePods(ctx, name), x.deletePods(ctx, unitNamespace))
}

// settle waits until the scheduler knows everything that waits, and scheduler and API server have nothing left to do.
func (x *interference) settle(ctx context.Context, v variant) error {
	const (
		interval = 500 * time.Millisecond
		quiet    = 4    // intervals
		little   = 0.06 // seconds of processor time in an interval
		// The queue says why units wait when they have waited for 5 s, also after a start.
		atLeast = 8 * time.Second
	)
	begin, calm, before := time.Now(), 0, 0.0
	state := "nothing is known of the scheduler yet"
	for {
		if !controlplane.Sleep(ctx, interval) {
			return ctx.Err()
		}
		if time.Since(begin) > stall {
			return fmt.Errorf("not at rest after %s: %s; end of its log:\n%s", stall, state,
				x.cp.LogTail(controlplane.Scheduler, 20))
		}
		now := 0.0
		for _, c := range []controlplane.Component{controlplane.Scheduler, controlplane.APIServer} {
			cpu, _, err := usage(x.cp.PID(c))
			if err != nil {
				return err
			}
			now += cpu
		}
		took := now - before
		before = now
		calm++
		if took > little {
			calm = 0
		}
		if calm < quiet || time.Since(begin) < atLeast {
			continue
		}
		var known bool
		var err error
		if known, state, err = x.loaded(ctx, v); err != nil {
			return err
		}
		if known {
			x.screen.line(fmt.Sprintf("%s: the scheduler is at rest %.1fs after its start: %s", v.name,
				time.Since(begin).Seconds(), state))
			return nil
		}
		calm = 0
	}
}

// loaded says whether the scheduler holds what it is meant to hold.
func (x *interference) loaded(ctx context.Context, v variant) (bool, string, error) {
	samples, err := x.schedulerMetrics(ctx, "scheduler_pending_pods")
	if err != nil {
		return false, "", err
	}
	gated, other := 0, 0
	for _, s := range samples["scheduler_pending_pods"] {
		if s.Metric["queue"] == "gated" {
			gated += int(s.Value)
		} else {
			other += int(s.Value)
		}
	}
	state := fmt.Sprintf("%d pods are gated, %d pending", gated, other)
	known := other == 0 && gated == 0
	if v.loaded {
		known = other == 0 && gated == x.o.Gated
	}
	if v.plugin {
		now := reading{queue: map[string]float64{}}
		if err := x.readScheduler(ctx, &now); err != nil {
			return false, "", err
		}
		waiting, admitted := int(now.queue["pending_units"]), int(now.queue["admitted_units"])
		state += fmt.Sprintf(", %d units wait, %d are admitted", waiting, admitted)
		if v.loaded {
			known = known && waiting == x.o.Units && admitted == x.o.queues()
		}
	}
	return known, state, nil
}

func (x *interference) schedulerMetrics(ctx context.Context, prefix string) (testutil.Metrics, error) {
	response, err := fromProcess(ctx, x.cp.URL(controlplane.Scheduler)+"/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	return parseMetrics(response.Body, prefix)
}

// measure creates pods and waits until they are bound. First it creates some at a slow pace, which shows how long a pod
// waits for an idle scheduler. Then it creates all others at once, which shows how many are scheduled per second.
func (x *interference) measure(ctx context.Context, v variant, round int, namespace string) error {
	pods, paced := x.o.Pods, x.o.Paced
	if round < 0 {
		pods, paced = min(pods, warmPods), 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := newBindings(pods)
	path := podsPath(namespace)
	failed := make(chan error, 1)
	go func() {
		select {
		case err := <-failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	api := x.kube.CoreV1().Pods(namespace)
	if err := follow(ctx, failed, api.List, api.Watch, watch.take); err != nil {
		return err
	}
	create := func(ctx context.Context, i int) error {
		quota := queueName(i % x.o.queues())
		if i < paced {
			// ElasticQuota refuses, and tries again a second later, a pod that it is asked about before it has counted it.
			quota = ""
		}
		return x.client.create(ctx, path, podBody(podName(i), quota))
	}
	begin := time.Now()
	err := x.client.each(ctx, paced, func(ctx context.Context, i int) error {
		controlplane.Sleep(ctx, time.Until(begin.Add(time.Duration(i)*time.Second/time.Duration(x.o.PacedPerSecond))))
		return create(ctx, i)
	})
	if err == nil {
		err = x.await(ctx, watch, v, round, paced)
	}
	if err != nil {
		return err
	}
	before := x.read()
	if err := errors.Join(before.err, before.again(x.run)); err != nil {
		return err
	}
	profiled := make(chan struct{})
	go func() {
		defer close(profiled)
		if x.o.Profile.wanted() && round == x.o.Rounds-1 {
			x.profile(ctx, "-"+strings.ReplaceAll(v.name, ", ", "-"), controlplane.Scheduler)
		}
	}()
	go func() {
		if err := x.client.each(ctx, pods-paced, func(ctx context.Context, i int) error {
			return create(ctx, paced+i)
		}); err != nil {
			cancel(err)
		}
	}()
	if err := x.await(ctx, watch, v, round, pods); err != nil {
		return err
	}
	after := x.read()
	<-profiled
	if after.err != nil || round < 0 {
		return after.err
	}
	return x.note(ctx, v, round, before, after, watch.result())
}

// await waits until n pods are bound.
func (x *interference) await(ctx context.Context, watch *bindings, v variant, round, n int) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	last, changed := -1, time.Now()
	for {
		created, bound := watch.counts()
		if bound >= n {
			return nil
		}
		if bound != last {
			last, changed = bound, time.Now()
		}
		x.screen.status(fmt.Sprintf("%s, round %d of %d: %d of %d pods created, %d bound", v.name, round+1,
			x.o.Rounds, created, n, bound))
		if time.Since(changed) > stall {
			return fmt.Errorf("no pod was bound for %s: %d of %d are; end of the scheduler's log:\n%s", stall, bound, n,
				x.cp.LogTail(controlplane.Scheduler, 20))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// createUnits creates one unit for each queue that is admitted and stays, those that wait, and the Jobs of some of
// them.
func (x *interference) createUnits(ctx context.Context) error {
	begin := time.Now()
	path := unitsPath(unitNamespace)
	// Its priority is higher, so it goes first.
	err := x.client.each(ctx, x.o.queues(), func(ctx context.Context, i int) error {
		return x.client.create(ctx, path, unitBody(fmt.Sprintf("holds-%05d", i), queueName(i), 10, milli(x.sizes.held)))
	})
	if err != nil {
		return err
	}
	x.jobs = make([]string, x.o.jobs())
	created := make(chan struct{}, x.o.Units)
	defer close(created)
	err = x.client.each(ctx, x.o.Units, func(ctx context.Context, i int) error {
		created <- struct{}{}
		x.screen.status(fmt.Sprintf("%d of %d units created", len(created), x.o.Units))
		quota := queueName(i % x.o.queues())
		unit := unitObject(fmt.Sprintf("waits-%06d", i), quota, 0, x.sizes.request(i, x.o.Shapes))
		if i < len(x.jobs) {
			uid, err := x.createJob(ctx, i, quota)
			if err != nil {
				return err
			}
			x.jobs[i] = uid
			ownedByJob(unit, i, uid)
		}
		return x.client.create(ctx, path, encode(unit))
	})
	if err == nil {
		x.screen.line(fmt.Sprintf("%d units and %d Jobs are created after %.1fs", x.o.queues()+x.o.Units, len(x.jobs),
			time.Since(begin).Seconds()))
	}
	return err
}

func (x *interference) createJob(ctx context.Context, i int, quota string) (uid string, err error) {
	job := jobSpec{name: jobName(i), quota: quota, suspend: true, pods: x.o.PodsPerJob, cpu: milli(podCPU)}
	raw, err := x.client.writes.Post().AbsPath(jobsPath(unitNamespace)).SetHeader("Content-Type", "application/json").
		Body(job.body()).DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var created struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	err = json.Unmarshal(raw, &created)
	return created.Metadata.UID, err
}

// createGated creates the pods of Jobs that wait, with or without a gate of Kubernetes.
func (x *interference) createGated(ctx context.Context, gate bool) error {
	return x.client.each(ctx, x.o.Gated, func(ctx context.Context, i int) error {
		job := i / x.o.PodsPerJob
		x.screen.status(fmt.Sprintf("%d of %d gated pods created", i, x.o.Gated))
		return x.client.create(ctx, podsPath(unitNamespace),
			gatedPodBody(podName(i), queueName(job%x.o.queues()), job, x.jobs[job], gate))
	})
}

// deletePods deletes all pods of a namespace at once, with nobody who would end them.
func (x *interference) deletePods(ctx context.Context, namespace string) error {
	for {
		err := x.client.writes.Delete().AbsPath(podsPath(namespace)).Param("gracePeriodSeconds", "0").Do(ctx).Error()
		if err == nil || ctx.Err() != nil || !apierrors.IsTimeout(err) {
			return err
		}
	}
}
