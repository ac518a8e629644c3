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

package sim

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
)

// fault is what becomes of one write.
type fault string

const (
	faultNone        fault = ""
	faultLost        fault = "lost"        // F1: an error, and nothing was applied
	faultAmbiguous   fault = "ambiguous"   // F2: an error, and it was applied
	faultConflict    fault = "conflict"    // F3: somebody changed the object just before
	faultBusy        fault = "busy"        // F4: too many requests
	faultBroken      fault = "broken"      // F1: an internal error
	faultCrashBefore fault = "crashBefore" // F8
	faultCrashAfter  fault = "crashAfter"  // F8
)

// crashed unwinds what a process was doing when it died.
type crashed struct{}

// process is one run of a scheduler or controller. A restart is another process.
type process struct {
	world  *world
	role   string
	name   string
	run    int // of all runs of all processes, from 1 on
	alive  bool
	clock  *clocktesting.FakeClock
	skew   time.Duration
	dice   dice
	paused time.Time // the process does nothing before
	// got are the versions of units that it read from the API outside of its watches.
	got map[string]int64
	// cut: no request of it reaches the API before, nor does an answer.
	cut time.Time
}

func (w *world) newProcess(role, name string) *process {
	w.runs++
	p := &process{got: map[string]int64{}, world: w, role: role, name: name, run: w.runs, alive: true,
		dice: newDice(w.plan.Seed, fmt.Sprintf("%s/%d", name, w.runs))}
	p.skew = w.skews[name]
	p.clock = clocktesting.NewFakeClock(w.loop.now.Add(p.skew))
	return p
}

func (p *process) isAlive() bool { return p.alive }

// tick makes the clock of the process say what time it is. It is called before the process does anything.
func (p *process) tick() { p.clock.SetTime(p.world.loop.now.Add(p.skew)) }

// do runs f as the process, unless it is dead; if it is paused, when it goes on.
func (p *process) do(f func()) {
	switch {
	case !p.alive:
	case p.world.loop.now.Before(p.paused):
		p.world.loop.at(p.paused, func() { p.do(f) })
	default:
		p.tick()
		p.survive(f)
	}
}

// survive ends what the process was doing at the point where it crashed.
func (p *process) survive(f func()) {
	defer func() {
		if cause := recover(); cause != nil {
			if _, ok := cause.(crashed); !ok {
				panic(cause)
			}
		}
	}()
	f()
}

func (p *process) later(d time.Duration, f func()) {
	p.world.loop.after(d, func() { p.do(f) })
}

func timeout() error { return apierrors.NewTimeoutError("the request timed out", 0) }

// read says whether a read reaches the API.
func (p *process) read() error {
	if p.world.loop.now.Before(p.cut) || p.world.loop.now.Before(p.world.down) {
		return timeout()
	}
	return nil
}

// write sends one write through the faults. key is what is written.
func (p *process) write(ctx context.Context, k kind, key string, apply func() (*object, error)) (*object, error) {
	w := p.world
	w.countWrite(p)
	w.check.rest.paced(p, k, key)
	f := w.nextFault(p)
	if f == faultNone && ctx.Value(lateAnswer{}) != nil {
		f = faultAmbiguous
	}
	if p.read() != nil {
		f = faultLost
	}
	if f != faultNone && p.role == roleController {
		w.disturb(5 * time.Second) // after a crash it comes back by then
	}
	if f != faultNone {
		w.countFault(string(f))
		w.logf("fault %s of %s: %s %s", f, p.name, k, key)
	}
	switch f {
	case faultLost:
		return nil, timeout()
	case faultBusy:
		return nil, apierrors.NewTooManyRequests("slow down", 1)
	case faultBroken:
		return nil, apierrors.NewInternalError(fmt.Errorf("etcd has no leader"))
	case faultCrashBefore:
		p.crash()
		panic(crashed{})
	case faultConflict:
		w.touch(k, key)
	case faultNone, faultAmbiguous, faultCrashAfter:
	}
	o, err := apply()
	switch f {
	case faultAmbiguous:
		return nil, timeout()
	case faultCrashAfter:
		p.crash()
		panic(crashed{})
	default:
		return o, err
	}
}

// lateAnswer in a context: the answer comes after the client has given up.
type lateAnswer struct{}

func (p *process) crash() {
	if p.alive {
		p.alive = false
		p.world.logf("crash %s", p.name)
	}
}
