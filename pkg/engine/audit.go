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

package engine

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	// auditSettle is how long after the first look a suspicion is looked at again: what is only on its way has arrived.
	auditSettle = 5 * time.Second
	// auditRequestInterval bounds what a request from outside can cost.
	auditRequestInterval = time.Minute
	// auditChunk bounds the objects that one question to the engine's goroutine compares.
	auditChunk = 500
	// auditSuspects bounds the requests of the second look, auditKept the differences that are kept and logged.
	auditSuspects = 200
	auditKept     = 100
)

// DifferenceKind says what was compared with what.
type DifferenceKind string

const (
	// DifferenceLedger: a sum of the ledger and the same sum computed again from all units and pods.
	DifferenceLedger DifferenceKind = "ledger"
	// DifferenceUnit: what the engine knows of a unit, or what its core made of it, and the object in the API.
	DifferenceUnit DifferenceKind = "unit"
	// DifferenceQueue: the place of a unit and the one place where it belongs.
	DifferenceQueue DifferenceKind = "queue"
	// DifferencePod: what the engine knows of a pod and the scheduler's cache of the API.
	DifferencePod DifferenceKind = "pod"
	// DifferenceUsed: what the ledger takes to be counted in used, and Koordinator's used.
	DifferenceUsed DifferenceKind = "used"
)

var differenceKinds = []DifferenceKind{DifferenceLedger, DifferenceUnit, DifferenceQueue, DifferencePod, DifferenceUsed}

// Difference is one place where what the engine goes by is not what it should be.
type Difference struct {
	Kind DifferenceKind
	// Object is a unit or a pod (namespace/name), a quota or a queue; Field is what differs about it.
	Object, Field string
	// Engine is what the engine goes by, Source what the API, the rebuild or Koordinator say.
	Engine, Source string
}

// Audit is the result of a comparison of the engine's state with the API objects and with Koordinator's used (I1, I2,
// I7).
type Audit struct {
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

// audits keeps who asked for an audit and what the last one found.
type audits struct {
	requested chan struct{} // holds one token while an audit is asked for
	last      atomic.Pointer[Audit]
	asked     time.Time // when request had one made; belongs to the engine's goroutine
}

func newAudits() *audits { return &audits{requested: make(chan struct{}, 1)} }

// soon asks for an audit; while one is under way, for another after it.
func (a *audits) soon() {
	select {
	case a.requested <- struct{}{}:
	default:
	}
}

// request asks for an audit unless somebody did not long ago; then it says how long to wait.
func (a *audits) request(now time.Time) time.Duration {
	if wait := a.asked.Add(auditRequestInterval).Sub(now); wait > 0 && !a.asked.IsZero() {
		return wait
	}
	a.asked = now
	a.soon()
	return 0
}

func (a *audits) keep(result *Audit) { a.last.Store(result) }

// AuditSoon has Run make an audit at once; while one is under way, another after it. It returns at once.
func (e *Engine) AuditSoon() { e.audits.soon() }

// LastAudit returns the last result, nil before there is one.
func (e *Engine) LastAudit() *Audit { return e.audits.last.Load() }

// Audit compares the ledger and the queues with the API objects and Koordinator's used, reports every difference in the
// log and in a metric, and has the state rebuilt if there is any. It reads units page by page from the API server and
// asks the engine's goroutine in small portions.
func (e *Engine) Audit(ctx context.Context) (Audit, error) {
	ask := func(f func()) error { return e.Ask(ctx, func(View) { f() }) }
	return e.newAudit(ask, func() bool { return e.sleep(ctx, auditSettle) }).run(ctx)
}

func (e *Engine) newAudit(ask func(func()) error, settle func() bool) *audit {
	return &audit{
		env: e.env, audits: e.audits, units: e.units, pods: e.pods, quotas: e.quotas, core: e.core, sources: e.sources,
		resolve: e.resolve, relist: e.relist, ask: ask, settle: settle,
		kinds: map[DifferenceKind]int{}, listed: map[string]types.UID{},
	}
}

// runAudits makes an audit every interval while this process leads, and whenever one is requested.
func (e *Engine) runAudits(ctx context.Context) {
	if !e.sources.awaitSync(ctx) {
		return
	}
	var tick <-chan time.Time
	if interval := e.opts.Config.AuditInterval; interval > 0 {
		ticker := e.opts.Clock.NewTicker(interval)
		defer ticker.Stop()
		tick = ticker.C()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.audits.requested:
		case <-tick:
			select {
			case <-e.lead:
			default:
				continue // a standby decides nothing
			}
		}
		if _, err := e.Audit(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The state of admission could not be compared with the API")
		}
	}
}
