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
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/audit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/checks"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/gateview"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/managed"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/measures"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/podbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/priorities"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/queuestatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/waits"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
)

// Engine owns the state of admission and joins the parts that work on it. Its exported methods are safe for concurrent
// use; all else belongs to one goroutine: that of Run, or that of a Driver.
type Engine struct {
	*env.Env
	opts      Options
	box       *mail.Box
	sources   *intake.Sources
	core      *recovery.Core
	quotas    *quotawatch.Observer
	units     *unitbook.Book
	pods      *podbook.Book
	publisher *gateview.Publisher
	gauges    *measures.Gauges
	startup   *measures.Startup
	writers   *statuswrite.Writers
	facts     *facts
	decisions *decisions
	auditor   *audit.Auditor
	asked     questions.Asked
	// lead is closed by Lead.
	lead     chan struct{}
	leadOnce sync.Once

	leading  bool
	loaded   bool      // all units that existed at start are known
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
	v, kin := &env.Env{Clock: o.Clock, Metrics: o.Metrics, Log: klog.Background()}, kinship.New()
	e := &Engine{
		Env: v, opts: o, box: mail.New(), lead: make(chan struct{}), core: recovery.New(v, o.core()),
		startup: measures.NewStartup(v),
	}
	f := &facts{
		Env: v, opts: &e.opts, waits: waits.New(o.Metrics), managed: &managed.Kinds{}, core: e.core, kinship: kin,
		priorities: priorities.NewBook(),
		checks:     checks.NewBook(o.Config.AdmissionChecksOff, o.Config.CheckTimeout, o.Config.CheckTimeouts),
		queues:     map[string]*objects.Queue{}, queueNames: ordered.NewNames(),
		jobs: map[owner.Name]types.UID{}, pasts: pasts{}, ghosts: map[string]int{}, retry: e.retryIn,
	}
	f.managed.Store(o.Predicate)
	e.units = unitbook.New(f.managed.KindOf, e.core.StandsFor, f.managed.UnitNamedBy, kin)
	e.publisher = gateview.New(v, e.core, e.units, f.checks.Listed)
	e.sources = intake.New(v, o.from(f.waits.NamespaceGone), f.managed, e.box)
	e.writers = statuswrite.New(statuswrite.Options{
		Client: o.Client, Clock: o.Clock, Metrics: o.Metrics, Submit: o.Submit,
		Concurrency: o.Config.WriteConcurrency, Timeout: o.Config.WriteTimeout,
	}, e.Settle)
	e.quotas = quotawatch.New(v, o.Quotas, o.Config.TrailingCheck, e.retryIn)
	e.gauges = measures.NewGauges(v, e.core, e.units, e.quotas, f.waits, f.exists, o.Outstanding)
	e.pods = podbook.New(v, o.scheduler(), f.managed, e.core, e.units, e.quotas, e.publisher, kin, e.gauges.Mark)
	f.sources, f.quotas, f.units, f.pods = e.sources, e.quotas, e.units, e.pods
	f.publisher, f.gauges = e.publisher, e.gauges
	f.statuses = queuestatus.New(v, o.Config.StatusRefreshInterval, o.Config.ItemsInStatus,
		e.core, f.checks, e.writers, f.exists)
	d := &decisions{
		Env: v, facts: f, core: e.core, units: e.units, box: e.box, writers: e.writers, startup: e.startup,
		reports: reports{}, reasons: pace.NewReasons(o.Config.ReasonsPerSecond, o.Clock.Now()),
		tally: measures.NewTally(v, e.gauges, e.startup, f.waits), pace: pace.NewDecisions(o.Clock.Since),
	}
	f.answered = func(now time.Time, rec *unitbook.Record) { d.settle(now, rec, transition.Confirmed) }
	e.facts, e.decisions = f, d
	e.auditor = e.newAuditor()
	e.asked = questions.Asked{
		Clock: o.Clock, Leading: func() bool { return e.leading }, Loaded: func() bool { return e.loaded },
		Core: e.core, Auditor: e.auditor, Queues: f.queues, QueueNames: &f.queueNames, Units: e.units, Quotas: e.quotas,
		Priorities: f.priorities,
	}
	return e, e.sources.Connect()
}

// newAuditor compares the parts of this engine.
func (e *Engine) newAuditor() *audit.Auditor {
	return audit.New(audit.Parts{
		Env: e.Env, Units: e.units, Pods: e.pods, Quotas: e.quotas, Core: e.core, Sources: e.sources,
		Managed: e.facts.managed,
		Client:  e.opts.Client, PodCache: e.opts.Pods, Resolve: e.facts.resolve, Relist: e.facts.relist,
	})
}

// Sink is where the quota hook and its informers report to.
func (e *Engine) Sink() mail.QuotaSink { return mail.NewSink(e.box, e.facts.managed.Concerns) }

// Snapshot returns the newest snapshot.
func (e *Engine) Snapshot() *gateview.Snapshot { return e.publisher.Newest() }

// Settle takes the result of an attempt of a write.
func (e *Engine) Settle(r statuswrite.Result) {
	e.box.Put(func(b *mail.Batch) { b.Results = append(b.Results, r) })
}

// Recheck says that what a check of an extension depends on has changed: all that waits is looked at again.
func (e *Engine) Recheck() { e.box.Put(func(b *mail.Batch) { b.Recheck = true }) }

// AuditSoon has Run make an audit at once; while one is under way, another after it. It returns at once.
func (e *Engine) AuditSoon() { e.auditor.Soon() }

// LastAudit returns the last result, nil before there is one.
func (e *Engine) LastAudit() *audit.Result { return e.auditor.Last() }

// Audit compares the state with the API objects and Koordinator's used, and has it built again if they differ.
func (e *Engine) Audit(ctx context.Context) (audit.Result, error) {
	ask := func(f func()) error { return e.Ask(ctx, func(questions.View) { f() }) }
	return e.auditor.Run(ctx, ask, func() bool { return e.auditor.Settle(ctx) })
}

// Follow registers with the informers of a factory for what another configuration manages. The owner of the factory
// starts it, and calls Manage once the result of Follow is settled.
func (e *Engine) Follow(
	from metadatainformer.SharedInformerFactory, p *managedjobs.Predicate,
) (*intake.Following, error) {
	return e.sources.FollowJobs(from, p)
}

// Manage has another configuration hold, and done called when it does. Informers of the one before are not listened to
// any more.
func (e *Engine) Manage(next *intake.Following, done func()) {
	e.box.Call(func() {
		e.facts.manage(next)
		done()
	})
}

// Lead makes the engine decide and write from now on, as soon as it has read all units consistently. It returns at
// once. There is no way back: a process that lost its lease ends.
func (e *Engine) Lead() { e.leadOnce.Do(func() { close(e.lead) }) }

// Run feeds the state until the context ends. It decides nothing before Lead.
func (e *Engine) Run(ctx context.Context) {
	e.Log = klog.FromContext(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	e.sources.Start(ctx, &background, e.load, func() { e.facts.resolveAgain(e.Clock.Now(), e.units.Keys()) })
	e.writers.Start(ctx, &background)
	background.Go(func() { e.awaitLead(ctx) })
	background.Go(func() {
		e.auditor.Loop(ctx, e.opts.Config.AuditInterval, e.lead, func() error {
			_, err := e.Audit(ctx)
			return err
		})
	})
	for ctx.Err() == nil {
		e.wait(ctx, e.step())
	}
}

// wait until the mailbox has something, or the time has come, or the context ends. A zero time never comes.
func (e *Engine) wait(ctx context.Context, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := e.Clock.NewTimer(max(until.Sub(e.Clock.Now()), 0))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-e.box.Signal:
	case <-due:
	case <-e.box.Soon:
		timer := e.Clock.NewTimer(e.gather())
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-e.box.Signal:
		case <-due:
		case <-timer.C():
		}
	}
}

const (
	// gatherReserved is how long news that can only take room away from jobs wait for others of their kind. Everything
	// else causes a step at once, which takes them along.
	gatherReserved = 20 * time.Millisecond
	// gatherUnreserved is the same while nothing is reserved beyond what pods use: then no pod is measured against the
	// limits that these news move.
	gatherUnreserved = 200 * time.Millisecond
)

func (e *Engine) gather() time.Duration {
	if !e.gauges.Reserves() {
		return gatherUnreserved
	}
	return gatherReserved
}

// step does all work that is due, and returns when it must be called again if the mailbox stays empty. Zero means
// never. While decisions pause, all other parts still run.
//
// Each part relies on those before it:
//
//	apply          applies the drained messages. Later messages wait for the next step.
//	observe        reads the amounts that Koordinator counts as used, after the messages about pods were drained.
//	               So a pod on its way into used counts twice for a moment, and never zero times (I1).
//	applyReleases  removes the pods that ended between the two.
//	healState      rebuilds a state that a panic left half changed. Nothing is decided on such a state.
//	decide         sees all of that, and puts writes in flight.
//	publish        shows the gate what the decision takes back, before anybody writes it (I3).
//	handOut        sends the writes.
//	activatePods   comes after publish, so that an activated pod finds the snapshot that admits it.
//	measure        exports gauges. Nobody waits for them.
func (e *Engine) step() time.Time {
	now := e.Clock.Now()
	b := e.box.Drain()
	busy := !b.Empty() || e.due(now)
	if busy {
		e.apply(now, &b)
		e.resync(now)
		if e.core.Sound() {
			e.quotas.MarkDemand(e.core)
		}
		e.observe(now)
		e.pods.Release(now, e.box.AssignsWaiting())
		e.facts.heal(now, e.leading)
		if e.leading && e.core.Sound() && e.decisions.pace.Ready(now) {
			e.decisions.decide(now)
		}
		e.pods.Activation.Free(e.publisher.Publish(e.loaded, e.pods))
		e.decisions.handOut(now, e.leading)
		e.activatePods(now)
		if e.core.Sound() {
			e.gauges.Measure(now)
		}
		e.Metrics.Observe(metrics.CycleDurationSeconds, e.Clock.Since(now).Seconds())
	}
	return e.nextWake()
}

// apply takes what was drained: facts, results of writes, and then calls. Results come after units: the core remembers
// the object of a unit during a write until the write is settled.
func (e *Engine) apply(now time.Time, b *mail.Batch) {
	if !e.retryAt.After(now) {
		e.retryAt = time.Time{}
		e.facts.resolveAgain(now, e.units.Unresolved())
	}
	e.facts.take(now, b)
	for _, r := range b.Results {
		e.decisions.landed(now, r)
	}
	if b.Recheck {
		e.core.Call("", func(s *admission.State) { s.Recheck(now) })
	}
	for _, f := range b.Calls {
		f()
	}
	e.pods.RetellElected(now)
}

// resync is the net below all events: everything is observed, and every pod of an admitted job that is not on a node
// is activated.
func (e *Engine) resync(now time.Time) {
	if now.Before(e.resyncAt) {
		return
	}
	first := e.resyncAt.IsZero()
	e.resyncAt = now.Add(e.opts.Config.ResyncInterval)
	e.quotas.MarkAll()
	if !first {
		e.Metrics.Inc(metrics.ResyncsTotal)
		e.facts.again(now, e.leading)
	}
}

// activatePods hands pods over once this process leads.
func (e *Engine) activatePods(now time.Time) {
	if e.leading && !e.pods.Activation.HandOver() {
		e.retryIn(now, time.Second)
	}
}

func (e *Engine) due(now time.Time) bool {
	at := e.nextWake()
	return !at.IsZero() && !at.After(now)
}

func (e *Engine) nextWake() time.Time {
	at := pace.Earliest(e.retryAt, e.resyncAt, e.quotas.Next(e.gather()), e.gauges.Next())
	if e.leading {
		at = pace.Earliest(at, e.decisions.next())
	}
	return at
}

// retryIn has a failed part of a step tried again.
func (e *Engine) retryIn(now time.Time, d time.Duration) {
	e.retryAt = pace.Earliest(e.retryAt, now.Add(d))
}

// observe reads the quotas that changed.
func (e *Engine) observe(now time.Time) {
	gone, changed := e.quotas.Observe(now, e.core)
	for _, name := range gone {
		e.gauges.Mark(now, name)
		e.Metrics.ForgetCounted("quota", name)
	}
	if changed {
		e.facts.remap(now)
		e.gauges.Recount(now)
	}
}

// Ask runs f in the engine's goroutine and waits for it. The View is valid until f returns. If the context ends first,
// f is not run. f can still run when Ask returns the error of the context. So f must pass on its answer in a way that
// allows for that.
func (e *Engine) Ask(ctx context.Context, f func(questions.View)) error {
	done := make(chan bool, 1)
	e.box.Call(func() {
		if ctx.Err() == nil {
			done <- e.Guard("ask", func() { f(e.asked.View()) })
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
