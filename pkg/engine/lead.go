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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

const listRetry = time.Second

// awaitLead waits for Lead and then asks the API server itself for all units, not a cache that may lag behind what the
// last leader wrote. Only then the engine decides (I1, I8).
func (e *Engine) awaitLead(ctx context.Context) {
	select {
	case <-e.lead:
	case <-ctx.Done():
		return
	}
	log, start := klog.FromContext(ctx), e.opts.Clock.Now()
	if !e.sources.awaitSync(ctx) {
		return
	}
	ask := func(f func()) error { return e.Ask(ctx, func(View) { f() }) }
	units, err := e.missedUnits(ctx, ask)
	for err != nil {
		log.Error(err, "Listing all queue units failed, nothing is admitted before it succeeds")
		if !e.sleep(ctx, listRetry) {
			return
		}
		units, err = e.missedUnits(ctx, ask)
	}
	e.box.call(func() { e.takeLead(units, start) })
}

// missedUnits reads what the API server has and this engine has not. ask runs a function in the engine's goroutine.
func (e *Engine) missedUnits(ctx context.Context, ask func(func()) error) ([]*objects.Unit, error) {
	return e.sources.missedUnits(ctx, func(page []metav1.PartialObjectMetadata) (names []types.NamespacedName, err error) {
		err = ask(func() { names = e.units.missing(page) })
		return names, err
	})
}

// load lets pods of admitted units pass, with the snapshot of this step: that of the last one may lack units.
func (e *Engine) load() {
	e.loaded = true
	e.opts.History.Begin(e.opts.Clock.Now())
	e.startup.noteSynced(e.opts.Clock.Now(), e.units.len(), len(e.queues))
}

// takeLead applies what was missed and lets the engine decide from this step on; start is when it was told to lead.
func (e *Engine) takeLead(units []*objects.Unit, start time.Time) {
	now := e.opts.Clock.Now()
	for _, u := range units {
		key := u.Key()
		rec := e.units.get(key)
		e.applyUnit(now, key, unitEvent{state: u})
		if rec == nil {
			e.ghosts[key] = 0
		}
	}
	e.leading = true
	e.opts.History.Lead()
	e.quotas.markAll()
	e.findMissingConsumers(now)
	e.pods.freeIdle(false)
	e.startup.noteDeciding(now, start, e.units.len(), len(e.queues))
}
