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
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// The replicas of scheduler and controller.
const (
	schedulerA  = controlplane.Scheduler
	schedulerB  = controlplane.Component("koord-scheduler-b")
	controllerA = controlplane.Controller
	controllerB = controlplane.Component("jobqueue-controller-b")
)

type kind string

const (
	// kill is kill -9, and a start some time later.
	kill kind = "kill"
	// pause is SIGSTOP, and SIGCONT some time later.
	pause kind = "pause"
)

// fault is one thing that is done to a process.
type fault struct {
	At        time.Duration // since the beginning
	Component controlplane.Component
	Kind      kind
	Hold      time.Duration // until it is started or resumed again
}

func (f fault) String() string {
	return fmt.Sprintf("%s %s for %s", f.Kind, f.Component, f.Hold.Round(100*time.Millisecond))
}

const (
	firstFault = 3 * time.Second
	// A fault comes this long after the one before, whether or not that is over.
	minGap, maxGap = 1500 * time.Millisecond, 9 * time.Second
	maxDown        = 4 * time.Second
	maxShortPause  = 5 * time.Second
	// maxPause is longer than a lease of leader election lives.
	maxPause = 30 * time.Second
	// recovery is what a process gets to start in before it is the target of the next fault.
	recovery = 5 * time.Second
)

// targets are what faults happen to, the likelier ones several times.
var targets = []controlplane.Component{
	schedulerA, schedulerA, schedulerA, schedulerB, schedulerB, schedulerB,
	controllerA, controllerA, controllerB, controllerB,
	controlplane.APIServer, controlplane.APIServer,
	controlplane.Etcd, controlplane.Etcd,
}

// faultPlan returns the faults of a run of that length; the same seed gives the same plan. All are over at its end.
func faultPlan(seed uint64, length time.Duration) []fault {
	random := rand.New(rand.NewPCG(seed, 2))
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(random.Int64N(int64(high-low)))
	}
	busy := map[controlplane.Component]time.Duration{}
	var plan []fault
	for at := firstFault; at < length; at += between(minGap, maxGap) {
		free := slices.DeleteFunc(slices.Clone(targets), func(c controlplane.Component) bool { return busy[c] > at })
		if len(free) == 0 {
			continue
		}
		f := fault{At: at, Component: free[random.IntN(len(free))], Kind: pause}
		switch n := random.IntN(20); {
		case n < 5:
			f.Kind = kill // and at once back
		case n < 10:
			f.Kind, f.Hold = kill, between(0, maxDown)
		case n < 15:
			f.Hold = between(time.Second, maxShortPause)
		default:
			f.Hold = between(maxShortPause, maxPause)
		}
		f.Hold = min(f.Hold, length-at)
		busy[f.Component] = at + f.Hold + recovery
		plan = append(plan, f)
	}
	return plan
}
