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

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
)

const listRetry = time.Second

// awaitLead waits for Lead and then reads all units from the API server, because a cache can be behind the writes of
// the last leader. Only then the engine decides (I1, I8).
func (e *Engine) awaitLead(ctx context.Context) {
	select {
	case <-e.lead:
	case <-ctx.Done():
		return
	}
	log, start := klog.FromContext(ctx), e.Clock.Now()
	if !e.sources.AwaitSync(ctx) {
		return
	}
	ask := func(f func()) error { return e.Ask(ctx, func(questions.View) { f() }) }
	units, err := e.missedUnits(ctx, ask)
	for err != nil {
		log.Error(err, "Listing all queue units failed, nothing is admitted before it succeeds")
		if !e.Sleep(ctx, listRetry) {
			return
		}
		units, err = e.missedUnits(ctx, ask)
	}
	e.box.Call(func() { e.takeLead(units, start) })
}

// missedUnits reads what the API server has and this engine has not. ask runs a function in the engine's goroutine.
func (e *Engine) missedUnits(ctx context.Context, ask func(func()) error) ([]*objects.Unit, error) {
	return e.sources.MissedUnits(ctx, func(page []metav1.PartialObjectMetadata) (names []types.NamespacedName, err error) {
		err = ask(func() { names = e.units.Missing(page) })
		return names, err
	})
}

// load lets pods of admitted units pass, with the snapshot of this step: that of the last one may lack units.
func (e *Engine) load() {
	e.loaded = true
	e.opts.History.Begin(e.Clock.Now())
	e.startup.NoteSynced(e.Clock.Now(), e.units.Len(), len(e.facts.queues))
}

// takeLead applies what was missed and lets the engine decide from this step on; start is when it was told to lead.
func (e *Engine) takeLead(units []*objects.Unit, start time.Time) {
	now := e.Clock.Now()
	for _, u := range units {
		key := u.Key()
		rec := e.units.Get(key)
		e.facts.applyUnit(now, key, mail.UnitEvent{State: u})
		if rec == nil {
			e.facts.ghosts[key] = 0
		}
	}
	e.leading = true
	e.opts.History.Lead()
	e.quotas.MarkAll()
	e.facts.findMissingConsumers(now)
	e.pods.Activation.FreeIdle(false)
	e.startup.NoteDeciding(now, start, e.units.Len(), len(e.facts.queues))
}
