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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

// writers number the writes and hand them out: to the pool, or to Options.Submit.
type writers struct {
	pool   *pool // nil if somebody else takes the writes
	submit func(*Write)
	ctx    context.Context // parent of all writes: they end with the process
	clock  clock.PassiveClock
	last   int64
	ready  []*Write
}

func newWriters(o *Options, settle func(Result)) *writers {
	w := &writers{submit: o.Submit, ctx: context.Background(), clock: o.Clock}
	if w.submit == nil {
		w.pool = newPool(o, settle)
		w.submit = w.pool.submit
	}
	return w
}

// start lets writes end with the context, and sends them.
func (w *writers) start(ctx context.Context, background *sync.WaitGroup) {
	w.ctx = ctx
	if w.pool != nil {
		background.Go(func() { w.pool.run(ctx) })
	}
}

// unit makes a write of the status of a unit.
func (w *writers) unit(u *objects.Unit, kind writeKind, status map[string]any, now time.Time) *Write {
	return w.write(Write{
		kind: kind, resource: v1alpha1.QueueUnitResource, base: u, status: status, decided: now,
		key: types.NamespacedName{Namespace: u.Namespace, Name: u.Name},
	})
}

// queue makes a write of the status of a queue.
func (w *writers) queue(q *objects.Queue, status map[string]any, now time.Time) *Write {
	return w.write(Write{
		kind: writeQueueStatus, resource: v1alpha1.QueueResource, status: status, decided: now,
		key: types.NamespacedName{Namespace: q.Namespace, Name: q.Name},
	})
}

func (w *writers) write(next Write) *Write {
	w.last++
	next.id, next.clock = w.last, w.clock
	next.ctx, next.cancel = context.WithCancel(w.ctx)
	return &next
}

// later has a write handed out with the next flush: decisions go when the snapshot that withdraws them is published.
func (w *writers) later(next *Write) { w.ready = append(w.ready, next) }

func (w *writers) flush() {
	for _, next := range w.ready {
		w.submit(next)
	}
	clear(w.ready)
	w.ready = w.ready[:0]
}
