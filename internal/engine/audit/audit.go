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

// Package audit compares the state of the engine with the API and with Koordinator's used. If they differ, it has the
// state built again (I1, I2, I7). A difference that may be on its way in a watch gets a second look.
package audit

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/managed"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/podbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

const (
	// SettleTime is how long after the first look a suspicion is looked at again: what is only on its way has arrived.
	SettleTime = 5 * time.Second
	// auditRequestInterval bounds what a request from outside can cost.
	auditRequestInterval = time.Minute
	// auditChunk bounds the objects that one question to the engine's goroutine compares.
	auditChunk = 500
	// auditSuspects bounds the requests of the second look, auditKept the differences that are kept and logged.
	auditSuspects = 200
	auditKept     = 100
)

// DifferenceKind names the two sides of a comparison.
type DifferenceKind string

const (
	// DifferenceLedger: a sum of the ledger and the same sum computed again from all units and pods.
	DifferenceLedger DifferenceKind = "ledger"
	// DifferenceUnit: the knowledge of the engine or its core about a unit, and the object in the API.
	DifferenceUnit DifferenceKind = "unit"
	// DifferenceQueue: the place of a unit and the one place where it belongs.
	DifferenceQueue DifferenceKind = "queue"
	// DifferencePod: what the engine knows of a pod and the scheduler's cache of the API.
	DifferencePod DifferenceKind = "pod"
	// DifferenceUsed: what the ledger takes to be counted in used, and Koordinator's used.
	DifferenceUsed DifferenceKind = "used"
)

var differenceKinds = []DifferenceKind{DifferenceLedger, DifferenceUnit, DifferenceQueue, DifferencePod, DifferenceUsed}

// Difference is one fact about which the engine and the expectation disagree.
type Difference struct {
	Kind DifferenceKind
	// Object is a unit or a pod (namespace/name), a quota or a queue; Field is what differs about it.
	Object, Field string
	// Engine is the value of the engine, and Source that of the API, the rebuild or Koordinator.
	Engine, Source string
}

// Result of a comparison of the engine's state with the API objects and with Koordinator's used (I1, I2,
// I7).
type Result struct {
	At   time.Time
	Took time.Duration
	// Units and Pods that were compared, and levels of the quota tree.
	Units, Pods, Levels int
	// Found is the number of differences; Differences the first of them.
	Found       int
	Differences []Difference
	// Rebuilt says that the state was rebuilt because of them.
	Rebuilt bool
}

// Parts are the state of the engine, and the sources that an audit compares it with.
type Parts struct {
	*env.Env
	Units   *unitbook.Book
	Pods    *podbook.Book
	Quotas  *quotawatch.Observer
	Core    *recovery.Core
	Sources *intake.Sources
	Managed *managed.Kinds
	// Client reads units, and PodCache is the cache of pods of the scheduler; nil if there is none.
	Client   rest.Interface
	PodCache cache.SharedIndexInformer
	// Resolve makes the core's view of a unit.
	Resolve func(*objects.Unit) unit.Unit
	// Relist takes lists for what there is, and has the state built again from them.
	Relist func(units []*objects.Unit, version string, pods []*corev1.Pod)
}

// Auditor makes audits one after another, and keeps what the last one found.
type Auditor struct {
	parts     Parts
	requested chan struct{} // holds one token while an audit is asked for
	last      atomic.Pointer[Result]
	asked     time.Time // when request had one made; belongs to the engine's goroutine
}

// New makes an auditor; it starts nothing.
func New(parts Parts) *Auditor {
	return &Auditor{parts: parts, requested: make(chan struct{}, 1)}
}

// Soon asks for an audit; while one is under way, for another after it.
func (a *Auditor) Soon() {
	select {
	case a.requested <- struct{}{}:
	default:
	}
}

// Request asks for an audit unless somebody did not long ago; then it says how long to wait.
func (a *Auditor) Request(now time.Time) time.Duration {
	if wait := a.asked.Add(auditRequestInterval).Sub(now); wait > 0 && !a.asked.IsZero() {
		return wait
	}
	a.asked = now
	a.Soon()
	return 0
}

// Last returns the last result, nil before there is one.
func (a *Auditor) Last() *Result { return a.last.Load() }

// Run makes an audit. It compares the ledger and the queues with the API objects and Koordinator's used. It reports
// every difference in the log and in a metric, and has the state built again if there is any. It reads units page by
// page from the API server. ask runs a function in the engine's goroutine, in small portions. settle waits until news
// have arrived, and says whether it could.
func (a *Auditor) Run(ctx context.Context, ask func(func()) error, settle func() bool) (Result, error) {
	run := &audit{
		Parts: a.parts, auditor: a, ask: ask, settle: settle, kinds: map[DifferenceKind]int{}, listed: map[string]types.UID{},
	}
	return run.run(ctx)
}

// Settle waits for as long as news take to arrive at most, and says whether the context lasted.
func (a *Auditor) Settle(ctx context.Context) bool { return a.parts.Sleep(ctx, SettleTime) }

// Loop makes an audit every interval while this process leads, and whenever one is requested, until the context ends.
// Zero is no interval.
func (a *Auditor) Loop(ctx context.Context, interval time.Duration, leads <-chan struct{}, audit func() error) {
	if !a.parts.Sources.AwaitSync(ctx) {
		return
	}
	var tick <-chan time.Time
	if interval > 0 {
		ticker := a.parts.Clock.NewTicker(interval)
		defer ticker.Stop()
		tick = ticker.C()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.requested:
		case <-tick:
			select {
			case <-leads:
			default:
				continue // a standby decides nothing
			}
		}
		if err := audit(); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The state of admission could not be compared with the API")
		}
	}
}
