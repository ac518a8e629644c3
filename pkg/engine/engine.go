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
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// Engine owns the state of admission. Its exported methods are safe for concurrent use, but for Step, which belongs
// to one goroutine: that of Run, or that of a test or a simulator instead of it.
type Engine struct {
	opts    Options
	box     *mailbox
	view    atomic.Pointer[snapshot]
	sources sources
	writers *pool
	submit  func(*Write)
	// lead is closed by Lead.
	lead     chan struct{}
	leadOnce sync.Once
	// auditRequests holds one token while an audit is asked for.
	auditRequests chan struct{}
	lastAudit     atomic.Pointer[Audit]

	// All of the rest belongs to the goroutine of Step.
	log     klog.Logger
	ctx     context.Context //nolint:containedctx // parent of all writes: they end with the process
	core    admission.Config
	state   *admission.State
	leading bool
	loaded  bool // all units that existed at start are known
	units   map[string]*unitRecord
	// consumers are the first of the units of a job, each leads to the next; unlabelled the units whose quota follows from their namespace;
	// byClass those whose priority follows from a class, or from the cluster's default under "".
	consumers  map[types.UID]*unitRecord
	unlabelled keys
	byClass    map[string]keys
	unresolved keys           // units whose quota could not be asked for
	holders    keys           // units whose object holds quota
	ghosts     map[string]int // units that only the list at Lead had, and for how many resyncs the watch has passed them
	queues     map[string]*queueObject
	classes    map[string]*classObject
	jobs       map[jobKey]types.UID
	pods       pods
	quotas     quotaBook
	explains   map[string]explanation
	statuses   queueStatuses
	gauges     gauges
	startup    startup

	touched    latest[string, struct{}] // units whose place in the snapshot may have changed
	rejudged   latest[types.UID, struct{}]
	activate   latest[types.UID, struct{}] // pods to activate
	writes     []*Write
	nextWrite  int64
	sequence   int64 // of admissions
	rebuild    bool  // the core's state is not to be trusted and is built anew before the next decision
	rebuildWhy string
	poisoned   map[string]string // units that made the core panic
	suspects   map[string]bool   // units that were looked at in a panic, once
	// panics of the core in a row that nobody was to blame for; nothing is decided for longer and longer after each.
	panics      int
	retryAt     time.Time // something failed and is to be tried again
	decideAt    time.Time
	resyncAt    time.Time
	lastRebuild time.Time
	auditAsked  time.Time // when View.RequestAudit had one made
}

// ErrPanicked says that a question to the engine panicked.
var ErrPanicked = errors.New("engine: recovered from a panic")

type keys map[string]struct{}

// unitRecord is what the engine knows of one unit. There may be very many: what follows from the object is not kept, and
// what few of them have is elsewhere.
type unitRecord struct {
	object *unitObject
	// What the object resolved to when it was given to the core.
	queue, quota string
	invalid      admission.Reason
	priority     int32
	// managed: its consumer is of a managed kind; misnamed: and the unit of that consumer has another name.
	managed, misnamed bool
	// next is the next unit of the same consumer.
	next *unitRecord
	*activity
}

// activity is what was done about a unit.
type activity struct {
	// flight is the decision that is being written; unknown says that its outcome was reported to be.
	flight  *Write
	unknown bool
	// explaining is the last write of a reason.
	explaining *Write
	// seq is the place in the order of admissions, in which pods are activated; published says whether the snapshot has it.
	seq         int64
	published   bool
	publishedAt time.Time
	// differs are the differences between estimate and pods that were told.
	differs map[difference]bool
	// admittedAt is when this process saw the admission confirmed; zero if it did not.
	admittedAt time.Time
}

// noActivity is shared and never written.
var noActivity = &activity{}

// act returns the activity of the unit, to be changed.
func (rec *unitRecord) act() *activity {
	if rec.activity == noActivity {
		rec.activity = &activity{}
	}
	return rec.activity
}

// alone says that no other unit has the same consumer as this one, or that it has none.
func (e *Engine) alone(consumer types.UID) bool {
	first := e.consumers[consumer]
	return first == nil || first.next == nil
}

// New makes an engine and registers its handlers with the given informers; it starts nothing and decides nothing.
// A shared informer may deliver what it has before New returns.
func New(o Options) (*Engine, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	e := &Engine{
		opts: o, box: newMailbox(), lead: make(chan struct{}), auditRequests: make(chan struct{}, 1), ctx: context.Background(), log: klog.Background(),
		units: map[string]*unitRecord{}, consumers: map[types.UID]*unitRecord{}, unlabelled: keys{}, byClass: map[string]keys{},
		unresolved: keys{}, holders: keys{},
		ghosts: map[string]int{}, queues: map[string]*queueObject{}, classes: map[string]*classObject{},
		jobs: map[jobKey]types.UID{}, pods: newPods(), quotas: newQuotaBook(),
		explains: map[string]explanation{}, statuses: newQueueStatuses(), gauges: newGauges(),
		poisoned: map[string]string{}, suspects: map[string]bool{},
	}
	c := e.opts.Config
	e.core = admission.Config{ExplainAfter: c.ExplainAfter, ExplainEvery: c.ExplainEvery, RefusedBackoff: c.RefusedBackoff}
	e.state, e.startup.begun = e.newState(), o.Clock.Now()
	e.view.Store(newSnapshot())
	e.quotas.all = true
	e.submit = o.Submit
	if e.submit == nil {
		e.writers = newPool(&e.opts, e.Settle)
		e.submit = e.writers.submit
	}
	return e, e.connect()
}

func (e *Engine) newState() *admission.State { return admission.New(e.core) }

// Sink is where the quota hook and its informers report to.
func (e *Engine) Sink() QuotaSink { return sink{e.box, e.concerns} }

// Snapshot returns the newest snapshot.
func (e *Engine) Snapshot() Snapshot { return e.view.Load() }

// Settle takes the result of an attempt of a write.
func (e *Engine) Settle(r Result) { e.box.put(func(b *batch) { b.results = append(b.results, r) }) }

// Lead makes the engine decide and write from now on, as soon as it has read all units consistently. It returns at
// once. There is no way back: a process that lost its lease ends.
func (e *Engine) Lead() { e.leadOnce.Do(func() { close(e.lead) }) }

// Run feeds the state until the context ends. It decides nothing before Lead.
func (e *Engine) Run(ctx context.Context) {
	e.ctx, e.log = ctx, klog.FromContext(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	e.startSources(ctx, &background)
	if e.writers != nil {
		background.Go(func() { e.writers.run(ctx) })
	}
	background.Go(func() { e.awaitLead(ctx) })
	background.Go(func() { e.runAudits(ctx) })
	for ctx.Err() == nil {
		e.wait(ctx, e.Step())
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
	if len(e.gauges.told) == 0 {
		return e.opts.Config.GatherUnreserved
	}
	return e.opts.Config.Gather
}

// Step does all that there is to do now and returns when it wants to be called again though the mailbox stays empty;
// zero means never.
func (e *Engine) Step() time.Time {
	now := e.opts.Clock.Now()
	b := e.box.drain()
	busy := !b.empty() || e.due(now)
	if busy {
		e.apply(now, &b)
		e.resync(now)
		if !e.rebuild {
			e.tellDemand()
		}
		e.observe(now)
		e.applyReleases(now)
		e.healState(now)
		if e.leading && !e.rebuild {
			e.decide(now)
		}
		e.publish(now)
		e.handOut(now)
		e.activatePods(now)
		if !e.rebuild {
			e.measure(now)
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
	at := earliest(e.retryAt, e.resyncAt, e.nextTrail(), e.gauges.at)
	if e.leading {
		at = earliest(at, e.decideAt, e.statuses.next(), e.nextExplanation())
	}
	return at
}

// earliest of the times that are set.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// retryIn has a failed part of a step tried again.
func (e *Engine) retryIn(now time.Time, d time.Duration) { e.retryAt = earliest(e.retryAt, now.Add(d)) }

// guard runs f and says whether it returned. A panic in it is counted, logged and recovered: this process schedules
// the whole cluster.
func (e *Engine) guard(where string, f func()) (ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			ok = false
			e.opts.Metrics.Inc(metrics.PanicsTotal, where)
			e.log.Error(nil, "Recovered from a panic", "where", where, "cause", shorten(fmt.Sprint(cause)), "stack", string(debug.Stack()))
		}
	}()
	f()
	return true
}

// Ask runs f in the engine's goroutine and waits for it. The View is valid until f returns.
func (e *Engine) Ask(ctx context.Context, f func(View)) error {
	done := make(chan bool, 1)
	e.box.call(func() { done <- e.guard("ask", func() { f(View{e}) }) })
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

// Verify compares the ledger with its rebuild (I7). Audit compares more.
func (e *Engine) Verify(ctx context.Context) ([]admission.Difference, error) {
	found := make(chan []admission.Difference, 1)
	if err := e.Ask(ctx, func(View) { found <- e.state.Verify() }); err != nil {
		return nil, err
	}
	return <-found, nil
}
