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

package statuswrite

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/inflight"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
)

const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// leastWrites may always be in flight, however slow the API server is.
const leastWrites = 4

// pool sends writes with a bounded number of requests at once, which adapts to the latency of the API server. Decisions
// go first. Writes that only inform take at most half of the requests, so slow ones never delay an admission. While
// decisions are sent they take one.
//
// A decision with an unknown outcome is reported at once, and sent again with the same patch and resource version until
// the outcome is known. Only that distinguishes "not applied" from "not applied yet". Between attempts a write holds no
// worker.
type pool struct {
	client  rest.Interface
	clock   clock.WithTicker
	metrics *metrics.Set
	workers int
	// timeout of one request; DefaultWriteTimeout says what it must be shorter than.
	timeout time.Duration
	done    func(Result)

	mu       sync.Mutex
	wake     *sync.Cond
	high     []*Write
	low      []*Write
	lowBusy  int
	highBusy int
	limit    inflight.Limit
	stopped  bool
	attempts map[int64]int // of writes whose outcome is unknown
}

func newPool(o Options, done func(Result)) *pool {
	p := &pool{
		client: o.Client, clock: o.Clock, metrics: o.Metrics,
		workers: o.Concurrency, timeout: o.Timeout, done: done,
		attempts: map[int64]int{}, limit: inflight.NewLimit(leastWrites, o.Concurrency),
	}
	p.wake = sync.NewCond(&p.mu)
	return p
}

func (p *pool) submit(w *Write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.Decides() {
		p.high = append(p.high, w)
	} else {
		p.low = append(p.low, w)
	}
	p.wake.Signal()
}

// run blocks until the context ends and the last worker has stopped.
func (p *pool) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range p.workers {
		workers.Go(func() { p.work(ctx) })
	}
	<-ctx.Done()
	p.mu.Lock()
	p.stopped = true
	p.wake.Broadcast()
	p.mu.Unlock()
	workers.Wait()
}

func (p *pool) work(ctx context.Context) {
	for {
		w, ok := p.next()
		if !ok {
			return
		}
		p.send(ctx, w)
		p.release(w)
	}
}

// release gives the place of a write back.
func (p *pool) release(w *Write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.Decides() {
		p.highBusy--
	} else {
		p.lowBusy--
	}
	p.wake.Signal()
}

// ready is the list of writes whose first may go now; nil for none.
func (p *pool) ready() *[]*Write {
	switch {
	case len(p.high) > 0 && p.highBusy+p.lowBusy < p.limit.Writes():
		return &p.high
	case len(p.low) > 0 && p.lowBusy < p.limit.Reports(len(p.high)+p.highBusy > 0):
		return &p.low
	}
	return nil
}

func (p *pool) next() (*Write, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.stopped {
		from := p.ready()
		if from == nil {
			p.wake.Wait()
			continue
		}
		w := take(from)
		if w.Decides() {
			p.highBusy++
		} else {
			p.lowBusy++
		}
		if p.ready() != nil {
			p.wake.Signal() // the limit has grown, or more than one was submitted
		}
		return w, true
	}
	return nil, false
}

func take(list *[]*Write) *Write {
	w := (*list)[0]
	(*list)[0] = nil
	*list = (*list)[1:]
	return w
}

func (p *pool) send(ctx context.Context, w *Write) {
	if w.ctx.Err() != nil {
		p.forget(w)
		return // the unit is gone, or the process stops
	}
	request, cancel := context.WithTimeout(w.ctx, p.timeout)
	start := p.clock.Now()
	atOnce := p.busy()
	r := p.try(request, w)
	cancel()
	r.Took, r.AtOnce = p.clock.Since(start), atOnce
	p.learn(&r, start)
	p.metrics.Observe(metrics.StatusWriteSeconds, r.Took.Seconds(), string(w.Kind))
	p.count(r)
	if r.Outcome != transition.Unknown || !w.Decides() {
		r.final = true
		p.forget(w)
		p.done(r)
		return
	}
	n := p.attempted(w)
	if n == 1 {
		p.metrics.Inc(metrics.WriteUnknownTotal)
		klog.FromContext(ctx).V(2).Info("Outcome of a status write is unknown, it is sent again until it is known",
			"queueUnit", w.Key, "kind", w.Kind, "attempt", w.Attempt, "err", r.Err)
		p.done(r)
	}
	go p.again(w, max(backoff(n), r.retryAfter))
}

// learn adapts the number of writes in flight. A conflict took a second request, and so says nothing.
func (p *pool) learn(r *Result, begun time.Time) {
	if r.conflict {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit.Take(inflight.Answer{
		Kind: r.Write.resource.Resource, Begun: begun, Ended: begun.Add(r.Took), InFlight: r.AtOnce,
		Overloaded: r.Outcome == transition.Unknown || r.retryAfter > 0,
	})
}

// busy is how many writes are under way.
func (p *pool) busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.highBusy + p.lowBusy
}

// try turns a panic of the client into an unknown outcome.
func (p *pool) try(ctx context.Context, w *Write) (r Result) {
	defer func() {
		if cause := recover(); cause != nil {
			p.metrics.Inc(metrics.PanicsTotal, "write")
			klog.FromContext(ctx).Error(nil, "Recovered from a panic", "where", "write", "cause", cause)
			w.lost = p.clock.Now()
			r = Result{Write: w, Outcome: transition.Unknown}
		}
	}()
	return w.Do(ctx, p.client)
}

func (p *pool) again(w *Write, after time.Duration) {
	timer := p.clock.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C():
		p.submit(w)
	case <-w.ctx.Done():
		p.forget(w)
	}
}

func (p *pool) attempted(w *Write) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts[w.ID]++
	return p.attempts[w.ID]
}

func (p *pool) forget(w *Write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.attempts, w.ID)
}

// backoff before sending the n-th time again, with half of it random: many writes that failed together do not come
// back together.
func backoff(n int) time.Duration {
	d := min(minBackoff<<min(n-1, 10), maxBackoff)
	return d/2 + rand.N(d/2+1)
}

func (p *pool) count(r Result) {
	p.metrics.Inc(metrics.StatusWritesTotal, string(r.Write.Kind), LabelOf(r.Outcome))
	if r.conflict {
		p.metrics.Inc(metrics.WriteConflictsTotal)
	}
}

// LabelOf an outcome in metrics.
func LabelOf(o transition.Outcome) string {
	switch o {
	case transition.Confirmed:
		return "confirmed"
	case transition.Refuted:
		return "refuted"
	case transition.Refused:
		return "refused"
	default:
		return "unknown"
	}
}
