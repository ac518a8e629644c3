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
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// publisher makes the snapshots that the scheduler's gate reads.
type publisher struct {
	view atomic.Pointer[snapshot]
	// Whose place in the snapshot may have changed.
	units     latest[string, struct{}]
	consumers latest[types.UID, struct{}]
	sequence  int64 // of admissions
}

func newPublisher() *publisher {
	p := &publisher{}
	p.view.Store(newSnapshot())
	return p
}

func (p *publisher) newest() *snapshot { return p.view.Load() }

// touch has a unit looked at again.
func (p *publisher) touch(key string, consumer types.UID) {
	p.units.put(key, struct{}{})
	if consumer != "" {
		p.consumers.put(consumer, struct{}{})
	}
}

// place is the next one in the order of admissions.
func (p *publisher) place() int64 {
	p.sequence++
	return p.sequence
}

// publish stores the next snapshot and returns the units that are new in it, in the order of their admissions.
func (p *publisher) publish(
	now time.Time, loaded bool, units *records, releases func(string, *unitRecord) bool,
) (fresh []*unitRecord) {
	next := *p.newest()
	if len(p.units.items)+len(p.consumers.items) == 0 && next.loaded == loaded {
		return nil
	}
	next.loaded = loaded
	for _, it := range p.units.items {
		rec := units.get(it.key)
		switch ok := rec != nil && releases(it.key, rec); {
		case ok && !rec.published:
			fresh = append(fresh, rec)
		case !ok:
			next.units = next.units.Delete(it.key)
			rec.withdraw()
		}
	}
	slices.SortFunc(fresh, func(a, b *unitRecord) int {
		return cmp.Or(a.object.allocated.Compare(b.object.allocated), cmp.Compare(a.seq, b.seq),
			strings.Compare(a.object.key(), b.object.key()))
	})
	for _, rec := range fresh {
		if rec.seq == 0 {
			rec.act().seq = p.place()
		}
		rec.act().published, rec.act().publishedAt = true, now
		next.units = next.units.Set(rec.object.key(), rec.object.consumerUID())
	}
	for _, it := range p.consumers.items {
		if known, published := units.published(it.key); known {
			next.consumers = next.consumers.Set(string(it.key), published)
		} else {
			next.consumers = next.consumers.Delete(string(it.key))
		}
	}
	p.units, p.consumers = latest[string, struct{}]{}, latest[types.UID, struct{}]{}
	p.view.Store(&next)
	return fresh
}

// publish makes the snapshot say what the core says of the units that were touched. It comes before pods are activated
// and before evictions are written: a pod passes only while its unit is admitted, confirmed (I3).
func (e *Engine) publish(now time.Time) {
	for _, rec := range e.publisher.publish(now, e.loaded, e.units, e.releases) {
		e.pods.free(rec)
	}
}

// releases says whether pods of the unit may go: no decision about it is in flight, the core has it as admitted, and
// its phase releases. An object that holds quota but is unreadable otherwise counts in the ledger, yet lets nobody
// pass.
func (e *Engine) releases(key string, rec *unitRecord) bool {
	if !e.core.sound() {
		// What the core says is worth nothing. Nobody comes in, and whose object lets its pods go stays in.
		return rec.published && rec.flight == nil && rec.object.phase.Releases()
	}
	ok := false
	e.core.call(key, func(s *admission.State) { ok = s.Releases(key) })
	return ok && rec.flight == nil
}
