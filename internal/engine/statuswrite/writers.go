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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

// Kind says what a write is for; it is a metric label.
type Kind string

const (
	Admit       Kind = "admit"
	Dequeue     Kind = "dequeue"
	Evict       Kind = "evict"
	Resize      Kind = "resize"
	Take        Kind = "take"
	Report      Kind = "report"
	QueueStatus Kind = "queueStatus"
)

// Writers number the writes and hand them out: to the pool, or to Options.Submit.
type Writers struct {
	pool   *pool // nil if somebody else takes the writes
	Submit func(*Write)
	ctx    context.Context // parent of all writes: they end with the process
	clock  clock.PassiveClock
	last   int64
	ready  []*Write
}

// Options is where writes go.
type Options struct {
	Client      rest.Interface
	Clock       clock.WithTicker
	Metrics     *metrics.Set
	Concurrency int
	Timeout     time.Duration
	Submit      func(*Write)
}

func New(o Options, settle func(Result)) *Writers {
	w := &Writers{Submit: o.Submit, ctx: context.Background(), clock: o.Clock}
	if w.Submit == nil {
		w.pool = newPool(o, settle)
		w.Submit = w.pool.submit
	}
	return w
}

// Start lets writes end with the context, and sends them.
func (w *Writers) Start(ctx context.Context, background *sync.WaitGroup) {
	w.ctx = ctx
	if w.pool != nil {
		background.Go(func() { w.pool.run(ctx) })
	}
}

// Unit makes a write of the status of a unit.
func (w *Writers) Unit(u *objects.Unit, kind Kind, status map[string]any, now time.Time) *Write {
	return w.write(Write{
		Kind: kind, resource: v1alpha1.QueueUnitResource, Base: u, status: status, Decided: now,
		Key: types.NamespacedName{Namespace: u.Namespace, Name: u.Name},
	})
}

// Queue makes a write of the status of a queue.
func (w *Writers) Queue(q *objects.Queue, status map[string]any, now time.Time) *Write {
	return w.write(Write{
		Kind: QueueStatus, resource: v1alpha1.QueueResource, status: status, Decided: now,
		Key: types.NamespacedName{Namespace: q.Namespace, Name: q.Name},
	})
}

func (w *Writers) write(next Write) *Write {
	w.last++
	next.ID, next.clock = w.last, w.clock
	next.ctx, next.Cancel = context.WithCancel(w.ctx) //nolint:gosec // the owner of the write cancels it
	return &next
}

// Later has a write handed out with the next flush: decisions go when the snapshot that withdraws them is published.
func (w *Writers) Later(next *Write) { w.ready = append(w.ready, next) }

func (w *Writers) Flush() {
	for _, next := range w.ready {
		w.Submit(next)
	}
	clear(w.ready)
	w.ready = w.ready[:0]
}

// Unsettled is the number of decisions whose outcome is unknown.
func (w *Writers) Unsettled() int {
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	return len(w.pool.attempts)
}
