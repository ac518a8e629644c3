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
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// The quota tree of a store: every queue has the same share of its group. So the end of a unit admits exactly one other
// unit of the same queue.
const (
	standingGroups     = 5
	standingPerGroup   = 6
	standingQueues     = standingGroups * standingPerGroup
	standingClass      = "unit"
	standingCPU        = 1
	standingPriorities = 10
)

// store is a control plane of its own with a full cluster and many units that wait.
type store struct {
	*run
	label string
	held  *holdings
	// capacity is how many units can hold quota at once.
	capacity int
	random   *rand.Rand
	next     atomic.Int64 // number of the next unit
	failed   chan error
}

func standingWorkload(holding int) *workload.Workload {
	share := (holding + standingQueues - 1) / standingQueues
	cores := func(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }
	return &workload.Workload{
		Name: "standing", Groups: standingGroups, QueuesPerGroup: standingPerGroup, QueuePolicy: v1alpha1.PolicyPriority,
		Quota: workload.Quota{
			Min: cores(share / 2), Max: cores(share * standingPerGroup), GroupMax: cores(share * standingPerGroup),
		},
		Classes: []workload.Class{{Name: standingClass, Count: 1, CPU: cores(standingCPU)}},
	}
}

// openStore starts etcd and API server, creates quotas and queues, and watches. The caller closes the store.
func openStore(ctx context.Context, o *StandingOptions, label string, screen *screen) (_ *store, err error) {
	w := standingWorkload(o.Holding)
	if err := w.Validate(); err != nil {
		return nil, err
	}
	share := int(w.Quota.GroupMax.Value()) / standingPerGroup
	s := &store{
		run: &run{
			Options: Options{Workload: w, Setting: o.in(filepath.Join(o.Dir, label))},
			screen:  screen,
		},
		label: label, held: newHoldings(int(w.Quota.Max.Value()), int(w.Quota.GroupMax.Value()), standingPerGroup),
		capacity: share * standingQueues, random: rand.New(rand.NewPCG(uint64(o.Seed), 0)), failed: make(chan error, 1),
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.cp.Stop())
		}
	}()
	if err := s.cp.ApplyObjects(ctx, namespace(unitNamespace)); err != nil {
		return nil, err
	}
	if err := s.createQueues(ctx); err != nil {
		return nil, fmt.Errorf("create quotas and queues: %w", err)
	}
	version, err := s.client.version(ctx, unitsPath(unitNamespace))
	if err != nil {
		return nil, err
	}
	go func() { s.failed <- s.client.watchFrom(ctx, unitsPath(unitNamespace), version, s.held.take) }()
	return s, nil
}

func (s *store) line(format string, args ...any) {
	s.screen.line(s.label + ": " + fmt.Sprintf(format, args...))
}

// createUnit creates the next unit in a queue.
func (s *store) createUnit(ctx context.Context, queue int) error {
	index := int(s.next.Add(1))
	return s.client.create(ctx, unitsPath(unitNamespace),
		unitBody(standingName(queue, index), queueName(queue), int32(index%standingPriorities), fmt.Sprint(standingCPU)))
}

// endUnit writes what the controller writes when the job of a unit has succeeded.
func (s *store) endUnit(ctx context.Context, name string) error {
	return s.client.patchStatus(ctx, unitsPath(unitNamespace), name, finishedBody)
}

// fillUp creates units until so many wait in addition to those that can be admitted.
func (s *store) fillUp(ctx context.Context, waiting int) error {
	state := s.held.state()
	missing := s.capacity + waiting - (state.counts.created - state.counts.ended)
	if missing <= 0 {
		return nil
	}
	begin := time.Now()
	stop := s.screen.follow(ctx, func() counts { return s.held.state().counts }, s.capacity+waiting)
	defer stop()
	err := s.client.each(ctx, missing,
		func(ctx context.Context, i int) error { return s.createUnit(ctx, i%standingQueues) })
	if err != nil {
		return fmt.Errorf("create units: %w", err)
	}
	want := state.counts.created + missing
	if err := s.await(ctx, "the watch shows all units", func(now holdingsState) bool {
		return now.counts.created == want
	}); err != nil {
		return err
	}
	stop()
	s.line("%d units are created after %.1fs", missing, time.Since(begin).Seconds())
	return nil
}

// await waits until what was seen is so; it gives up when nothing has changed for long.
func (s *store) await(ctx context.Context, what string, so func(holdingsState) bool) error {
	begin, last, changed := time.Now(), holdingsState{}, time.Now()
	for {
		now := s.held.state()
		if so(now) {
			return nil
		}
		if now != last {
			last, changed = now, time.Now()
		}
		if time.Since(changed) > stall {
			return fmt.Errorf("%s: %s: nothing has happened for %s; end of the scheduler's log:\n%s",
				s.label, what, stall, s.cp.LogTail(controlplane.Scheduler, 20))
		}
		s.screen.progress(time.Since(begin), now.counts, now.counts.created)
		select {
		case exit := <-s.cp.Exits():
			return fmt.Errorf("%s: %s ended: %w\n%s", s.label, exit.Component, exit.Err, s.cp.LogTail(exit.Component, 20))
		case err := <-s.failed:
			return fmt.Errorf("%s: %w", s.label, err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *store) awaitFull(ctx context.Context) error {
	return s.await(ctx, "the cluster is full", func(now holdingsState) bool { return now.held == s.capacity })
}

// admit starts the scheduler without leader election and waits until the cluster is full.
func (s *store) admit(ctx context.Context) error {
	begin := time.Now()
	if err := s.cp.StartScheduler(ctx, controlplane.SchedulerOptions{}); err != nil {
		return err
	}
	if err := s.awaitFull(ctx); err != nil {
		return err
	}
	state := s.held.state()
	s.line("%d units hold quota and %d wait, %.1fs after the start of the scheduler", state.held,
		state.counts.created-state.counts.ended-state.held, time.Since(begin).Seconds())
	return s.quiet(ctx, controlplane.Scheduler)
}

// setPolicy changes the policy of all queues, if it is another.
func (s *store) setPolicy(ctx context.Context, policy v1alpha1.QueuePolicy) error {
	if s.Workload.QueuePolicy == policy {
		return nil
	}
	s.Workload.QueuePolicy = policy
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"queuePolicy": policy}})
	if err != nil {
		return err
	}
	path := "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/namespaces/" + v1alpha1.DefaultQueueNamespace + "/queues"
	return s.client.each(ctx, standingQueues, func(ctx context.Context, i int) error {
		return s.client.writes.Patch(types.MergePatchType).AbsPath(path, queueName(i)).Body(body).Do(ctx).Error()
	})
}

// quiet waits until a scheduler and the API server have next to nothing to do, or a minute.
func (s *store) quiet(ctx context.Context, scheduler controlplane.Component) error {
	const (
		step, most, times = 500 * time.Millisecond, 0.05, 4
		patience          = time.Minute
	)
	busy := func() (float64, error) {
		sum := 0.0
		for _, c := range []controlplane.Component{scheduler, controlplane.APIServer} {
			cpu, _, err := usage(s.cp.PID(c))
			if err != nil {
				return 0, err
			}
			sum += cpu
		}
		return sum, nil
	}
	before, err := busy()
	begin := time.Now()
	for calm := 0; err == nil && calm < times && time.Since(begin) < patience; {
		if !controlplane.Sleep(ctx, step) {
			return ctx.Err()
		}
		var now float64
		now, err = busy()
		calm++
		if now-before > most*step.Seconds()*2 {
			calm = 0
		}
		before = now
	}
	return err
}

// check returns what was found to be wrong up to now, and how much in total.
func (s *store) check(ctx context.Context) ([]string, int, error) {
	all := int(s.next.Load())
	if err := s.await(ctx, "the watch shows all units", func(now holdingsState) bool {
		return now.counts.created == all
	}); err != nil {
		return nil, 0, err
	}
	return s.held.check(ctx, s.client)
}
