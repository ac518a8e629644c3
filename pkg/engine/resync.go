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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// resync is the net below all events: everything is observed, and every pod of an admitted job that is not on a node
// is activated.
func (e *Engine) resync(now time.Time) {
	if now.Before(e.resyncAt) {
		return
	}
	first := e.resyncAt.IsZero()
	e.resyncAt = now.Add(e.opts.Config.ResyncInterval)
	e.quotas.markAll()
	if first {
		return
	}
	e.opts.Metrics.Inc(metrics.ResyncsTotal)
	e.resolveAgain(now, e.units.unlabelled())
	e.pods.settle(now)
	e.dropGhosts(now)
	e.findMissingConsumers(now)
	e.pods.freeIdle(true)
}

// dropGhosts forgets units that the list at Lead had and that no watch ever spoke of: they were deleted in between. A
// watch that has not come to the version of the unit only hangs, however long, and the unit may hold quota (I1, I7).
// One that has come to it has an interval to hand over what it knows.
func (e *Engine) dropGhosts(now time.Time) {
	for _, key := range sortedKeys(e.ghosts) {
		rec := e.units.get(key)
		if rec != nil && e.sources.watchIsBefore(rec.object.ResourceVersion) {
			e.ghosts[key] = 0
			continue
		}
		if e.ghosts[key]++; e.ghosts[key] < 2 {
			continue
		}
		delete(e.ghosts, key)
		if rec != nil && !e.sources.hasUnit(key) {
			e.forgetUnit(now, key, rec)
		}
	}
}

// findMissingConsumers tells the core of units that hold quota for a job that is not there: of such a job no watch
// ever speaks.
func (e *Engine) findMissingConsumers(now time.Time) {
	if !e.leading {
		return
	}
	for _, key := range e.units.holders() {
		rec := e.units.get(key)
		if !rec.managed || e.sources.kinds.Load().unlisted(rec.object.Consumer.Kind) {
			continue
		}
		live := false
		e.core.call(key, func(s *admission.State) {
			if live = s.Live(rec.object.Consumer); !live {
				s.SetConsumer(now, rec.object.Consumer, false)
			}
		})
		if !live {
			e.touch(now, key, rec)
		}
	}
}
