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
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/priorities"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// Engine owns the state of admission and joins the parts that work on it. Its exported methods are safe for concurrent
// use; all else belongs to one goroutine: that of Run, or that of a Driver.
type Engine struct {
	*env
	box     *mailbox
	sources *sources
	writers *writers
	audits  *audits
	// lead is closed by Lead.
	lead     chan struct{}
	leadOnce sync.Once

	core      *core
	quotas    *observer
	units     *records
	pods      *pods
	publisher *publisher
	statuses  *queueStatuses
	gauges    *gauges
	reports   reports
	reasons   pace.Reasons
	checks    *admissionChecks
	// priorities are those of classes, and what namespaces allow.
	priorities *priorities.Book
	queues     map[string]*objects.Queue
	// queueNames are those of queues, in order.
	queueNames names
	jobs       map[owner.Name]types.UID
	pasts      pasts
	kinship    *kinship.Jobs
	ghosts     map[string]int // units that only the list at Lead had, and for how many resyncs the watch has passed them
	startup    startup

	leading  bool
	loaded   bool // all units that existed at start are known
	pace     pace.Decisions
	retryAt  time.Time // something failed and must be tried again
	resyncAt time.Time
}

// ErrPanicked says that a question to the engine panicked.
var ErrPanicked = errors.New("engine: recovered from a panic")

// New makes an engine and registers its handlers with the given informers; it starts nothing and decides nothing.
// A shared informer may deliver what it has before New returns.
func New(o Options) (*Engine, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	v, kin := newEnv(o), kinship.New()
	e := &Engine{
		env: v, box: newMailbox(), audits: newAudits(), lead: make(chan struct{}),
		core: newCore(v), kinship: kin, publisher: newPublisher(),
		reports: reports{}, reasons: pace.NewReasons(v.opts.Config.ReasonsPerSecond, o.Clock.Now()),
		priorities: priorities.NewBook(), checks: newAdmissionChecks(o.Config.AdmissionChecksOff),
		queues: map[string]*objects.Queue{}, queueNames: newNames(), jobs: map[owner.Name]types.UID{}, pasts: pasts{},
		ghosts: map[string]int{}, startup: startup{env: v, begun: o.Clock.Now()}, pace: pace.NewDecisions(o.Clock.Since),
	}
	e.units = newRecords(v.kindOf, e.core.standsFor, v.unitNamedBy, kin)
	e.sources = &sources{env: v, box: e.box}
	e.writers = newWriters(&v.opts, e.Settle)
	e.quotas = newObserver(v, e.retryIn)
	exists := func(name string) bool { return e.queues[name] != nil }
	e.gauges = newGauges(v, e.core, e.units, e.quotas, exists)
	e.statuses = newQueueStatuses(v, e.core, e.checks, e.writers, exists)
	e.pods = &pods{
		env: v, index: newPodIndex(), core: e.core, units: e.units, quotas: e.quotas, gauges: e.gauges,
		publisher: e.publisher, kinship: kin,
	}
	return e, e.sources.connect()
}

// Sink is where the quota hook and its informers report to.
func (e *Engine) Sink() QuotaSink { return sink{e.box, e.env} }

// Snapshot returns the newest snapshot.
func (e *Engine) Snapshot() Snapshot { return e.publisher.newest() }

// Settle takes the result of an attempt of a write.
func (e *Engine) Settle(r Result) { e.box.put(func(b *batch) { b.results = append(b.results, r) }) }

// Recheck says that what a check of an extension depends on has changed: all that waits is looked at again.
func (e *Engine) Recheck() { e.box.put(func(b *batch) { b.recheck = true }) }

// Lead makes the engine decide and write from now on, as soon as it has read all units consistently. It returns at
// once. There is no way back: a process that lost its lease ends.
func (e *Engine) Lead() { e.leadOnce.Do(func() { close(e.lead) }) }

// Run feeds the state until the context ends. It decides nothing before Lead.
func (e *Engine) Run(ctx context.Context) {
	e.log = klog.FromContext(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	e.sources.start(ctx, &background, e.load, e.kindsListed)
	e.writers.start(ctx, &background)
	background.Go(func() { e.awaitLead(ctx) })
	background.Go(func() { e.runAudits(ctx) })
	for ctx.Err() == nil {
		e.wait(ctx, e.step())
	}
}

// wait until the mailbox has something, or the time has come, or the context ends. A zero time never comes.
func (e *Engine) wait(ctx context.Context, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := e.opts.Clock.NewTimer(max(until.Sub(e.opts.Clock.Now()), 0))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-e.box.signal:
	case <-due:
	case <-e.box.soon:
		timer := e.opts.Clock.NewTimer(e.gather())
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-e.box.signal:
		case <-due:
		case <-timer.C():
		}
	}
}

// gather is how long news that can only take room away wait for others of their kind.
func (e *Engine) gather() time.Duration {
	if !e.gauges.reserves() {
		return e.opts.Config.GatherUnreserved
	}
	return e.opts.Config.Gather
}

// step does all that there is to do now and returns when it wants to be called again though the mailbox stays empty;
// zero means never. What comes while decisions pause is applied, published and activated all the same.
func (e *Engine) step() time.Time {
	now := e.opts.Clock.Now()
	b := e.box.drain()
	busy := !b.empty() || e.due(now)
	if busy {
		e.apply(now, &b)
		e.resync(now)
		if e.core.sound() {
			e.quotas.markDemand(e.core)
		}
		e.observe(now)
		e.applyReleases(now)
		e.healState(now)
		if e.leading && e.core.sound() && e.pace.Ready(now) {
			e.decide(now)
		}
		e.publish()
		e.handOut(now)
		e.activatePods(now)
		if e.core.sound() {
			e.gauges.measure(now)
		}
		e.opts.Metrics.Observe(metrics.CycleDurationSeconds, e.opts.Clock.Since(now).Seconds())
	}
	return e.nextWake()
}

func (e *Engine) due(now time.Time) bool {
	at := e.nextWake()
	return !at.IsZero() && !at.After(now)
}

func (e *Engine) nextWake() time.Time {
	at := pace.Earliest(e.retryAt, e.resyncAt, e.quotas.next(e.gather()), e.gauges.next())
	if e.leading {
		at = pace.Earliest(at, e.statuses.next(), e.reports.next(), e.reasons.Next())
		if e.core.sound() {
			at = pace.Earliest(at, e.pace.Next())
		}
	}
	return at
}

// retryIn has a failed part of a step tried again.
func (e *Engine) retryIn(now time.Time, d time.Duration) {
	e.retryAt = pace.Earliest(e.retryAt, now.Add(d))
}

// observe reads the quotas that changed.
func (e *Engine) observe(now time.Time) {
	gone, changed := e.quotas.observe(now, e.core)
	for _, name := range gone {
		e.gauges.mark(now, name)
		e.opts.Metrics.ForgetCounted("quota", name)
	}
	if changed {
		e.remap(now)
		e.gauges.recount(now)
	}
}

// Ask runs f in the engine's goroutine and waits for it. The View is valid until f returns. If the context ends before
// the engine comes to it f is not run. It may still run when Ask returns the error of the context: f must hand over
// what it answers in a way that allows for that.
func (e *Engine) Ask(ctx context.Context, f func(View)) error {
	done := make(chan bool, 1)
	e.box.call(func() {
		if ctx.Err() == nil {
			done <- e.guard("ask", func() { f(View{e}) })
		}
	})
	select {
	case ok := <-done:
		if !ok {
			return ErrPanicked
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
