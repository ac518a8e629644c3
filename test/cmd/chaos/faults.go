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
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// injector carries out the plan on processes, and restarts those that ended by themselves, as a kubelet would.
type injector struct {
	cp    *controlplane.ControlPlane
	begin time.Time
	group sync.WaitGroup

	mu       sync.Mutex
	lanes    map[controlplane.Component]*sync.Mutex
	byKind   map[string]int
	exits    map[string]int
	skipped  int
	restarts int
	last     string
	outages  []outage
	problems []string
	kwok     int // its restarts
}

// outage is a time in which a component did not do its work.
type outage struct {
	component  controlplane.Component
	begin, end time.Time
}

func newInjector(cp *controlplane.ControlPlane) *injector {
	return &injector{
		cp: cp, begin: time.Now(),
		lanes:  map[controlplane.Component]*sync.Mutex{},
		byKind: map[string]int{}, exits: map[string]int{},
	}
}

// lane serialises what is done to one component.
func (i *injector) lane(c controlplane.Component) *sync.Mutex {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lanes[c] == nil {
		i.lanes[c] = &sync.Mutex{}
	}
	return i.lanes[c]
}

// run carries the plan out and returns when all of its faults are over. When ctx ends it ends what is going on early;
// nothing is left paused.
func (i *injector) run(ctx context.Context, plan []fault) {
	for _, f := range plan {
		if !controlplane.Sleep(ctx, time.Until(i.begin.Add(f.At))) {
			break
		}
		i.group.Go(func() { i.inject(ctx, f) })
	}
	i.group.Wait()
}

func (i *injector) inject(ctx context.Context, f fault) {
	lane := i.lane(f.Component)
	if !lane.TryLock() {
		// The process is still starting after the last fault.
		i.mu.Lock()
		i.skipped++
		i.mu.Unlock()
		return
	}
	defer lane.Unlock()
	if !i.cp.Running(f.Component) {
		i.mu.Lock()
		i.skipped++
		i.mu.Unlock()
		return
	}
	i.mu.Lock()
	i.byKind[fmt.Sprintf("%s %s", f.Kind, f.Component)]++
	i.last = fmt.Sprintf("%s (at %s)", f, time.Since(i.begin).Round(time.Second))
	i.mu.Unlock()
	begin := time.Now()
	var err error
	if f.Kind == kill {
		err = i.cp.Kill(f.Component)
		controlplane.Sleep(ctx, f.Hold)
		i.restart(ctx, f.Component)
	} else {
		err = i.cp.Pause(f.Component)
		controlplane.Sleep(ctx, f.Hold)
		_ = i.cp.Resume(f.Component) // the process may have ended
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		i.problems = append(i.problems, fmt.Sprintf("%s: %v", f, err))
	}
	i.outages = append(i.outages, outage{f.Component, begin, time.Now()})
}

// restart starts a component until it works, or until ctx ends. The API server does not come up while etcd is away.
func (i *injector) restart(ctx context.Context, c controlplane.Component) {
	for {
		err := i.cp.Restart(ctx, c)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			i.mu.Lock()
			i.problems = append(i.problems, fmt.Sprintf("%s did not come back: %v", c, err))
			i.mu.Unlock()
			return
		}
		controlplane.Sleep(ctx, time.Second)
	}
}

// kubelets restarts KWOK, until ctx ends, if a pod has waited for it for too long. KWOK gives up on a pod when the API
// server answers that etcd is away. A kubelet does not, so this is no fault of the system.
func (i *injector) kubelets(ctx context.Context, stuck func(time.Duration) bool) {
	const patience, pace = 15 * time.Second, 30 * time.Second
	for controlplane.Sleep(ctx, time.Second) {
		if !stuck(patience) {
			continue
		}
		i.mu.Lock()
		i.kwok++
		i.mu.Unlock()
		lane := i.lane(controlplane.KWOK)
		lane.Lock()
		_ = i.cp.Kill(controlplane.KWOK)
		i.restart(ctx, controlplane.KWOK)
		lane.Unlock()
		controlplane.Sleep(ctx, pace)
	}
}

// machine is what an outage is of when something answers late that nothing was done to.
const machine controlplane.Component = "machine"

// probe records as outages the times in which an answer was slow, until ctx ends. On a busy machine the scheduler may
// have missed objects, as after a fault.
func (i *injector) probe(ctx context.Context, ask func(context.Context) error) {
	const pace, tardy, patience = 250 * time.Millisecond, 500 * time.Millisecond, 10 * time.Second
	for controlplane.Sleep(ctx, pace) {
		begin := time.Now()
		attempt, cancel := context.WithTimeout(ctx, patience)
		err := ask(attempt)
		cancel()
		if end := time.Now(); err != nil || end.Sub(begin) > tardy {
			i.mu.Lock()
			i.outages = append(i.outages, outage{machine, begin, end})
			i.mu.Unlock()
		}
	}
}

// supervise starts components that end by themselves again, until ctx ends: koord-scheduler and the controller end when
// they lose their lease.
func (i *injector) supervise(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case exit := <-i.cp.Exits():
			now := time.Now()
			i.mu.Lock()
			i.exits[string(exit.Component)]++
			i.mu.Unlock()
			group.Go(func() {
				controlplane.Sleep(ctx, time.Second)
				lane := i.lane(exit.Component)
				lane.Lock()
				defer lane.Unlock()
				if ctx.Err() == nil && !i.cp.Running(exit.Component) {
					i.restart(ctx, exit.Component)
				}
				i.mu.Lock()
				i.restarts++
				i.outages = append(i.outages, outage{exit.Component, now, time.Now()})
				i.mu.Unlock()
			})
		}
	}
}

// calmBefore and calmAfter are how long everything must have worked around an admission for its order to be judged.
// Before it, new objects have been seen. After it, decisions have been written.
const (
	calmBefore = 5 * time.Second
	calmAfter  = 3 * time.Second
)

// disturbed says whether at that time the scheduler may have lacked news, or its decisions may have been lost. Clients
// come back to an API server that was away with a backoff that grows with the time that it was.
func disturbed(outages []outage, at time.Time) bool {
	for _, o := range outages {
		end := o.end
		if o.component == controlplane.APIServer || o.component == controlplane.Etcd {
			end = end.Add(o.end.Sub(o.begin)).Add(calmBefore)
		}
		if at.Add(calmAfter).After(o.begin) && at.Add(-calmBefore).Before(end) {
			return true
		}
	}
	return false
}

// unanswered says whether the answer to what was created at that time may have been lost. Times in API objects have a
// resolution of one second.
func unanswered(outages []outage, created time.Time) bool {
	const lag = 5 * time.Second
	return slices.ContainsFunc(outages, func(o outage) bool {
		return (o.component == controlplane.APIServer || o.component == controlplane.Etcd) &&
			created.After(o.begin.Add(-lag)) && created.Before(o.end.Add(lag))
	})
}
