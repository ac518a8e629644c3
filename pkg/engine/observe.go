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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// quotaBook is what the engine remembers of the quotas.
type quotaBook struct {
	known map[string]bool            // levels that exist
	last  map[string]admission.Quota // the last observation of each
	// dirty levels are observed before the next decision; all means every one.
	dirty map[string]bool
	all   bool
	// observed says that all quotas were observed at least once.
	observed bool
	// demands that could not be told.
	demands map[string]bool
	// trail and lazyTrail are what is observed once more, each in the order of time; lazyTrail follows gathered news.
	trail, lazyTrail []trailing
	// settle is when all are observed once more after the cluster total changed.
	settle time.Time
	// broken: a question panicked; none is asked before that time.
	broken time.Time
}

// trailing observes quotas once more, in the first step some time after a change. What was gathered causes a step of its
// own only when it has waited as long as its news.
type trailing struct {
	at    time.Time
	names []string
	all   bool
}

func newQuotaBook() quotaBook {
	return quotaBook{
		known: map[string]bool{}, last: map[string]admission.Quota{}, dirty: map[string]bool{}, demands: map[string]bool{},
	}
}

// nextTrail is when quotas are observed again without anything having changed; zero for never.
func (e *Engine) nextTrail() time.Time {
	q := &e.quotas
	at := q.settle
	if len(q.trail) > 0 {
		at = earliest(at, q.trail[0].at)
	}
	if len(q.lazyTrail) > 0 {
		at = earliest(at, q.lazyTrail[0].at.Add(e.gather()))
	}
	return at
}

// askQuotas asks a question of Quotas and says whether it was answered. After a panic nothing is asked for a second.
func (e *Engine) askQuotas(question func()) bool {
	now := e.opts.Clock.Now()
	if now.Before(e.quotas.broken) {
		return false
	}
	if e.guard("quotas", question) {
		return true
	}
	e.quotas.broken = now.Add(time.Second)
	e.retryIn(now, time.Second)
	return false
}

// noteQuotas marks quotas dirty, now and once more a little later: the hook speaks before used moves, so what is
// observed now may still be the state before the change.
func (e *Engine) noteQuotas(now time.Time, names []entry[string, urgency], all bool) {
	if len(names) == 0 && !all {
		return
	}
	again := trailing{at: now.Add(e.opts.Config.TrailingCheck), all: all}
	lazy := trailing{at: again.at}
	for _, it := range names {
		e.quotas.dirty[it.key] = true
		if it.value == newsUrgent {
			again.names = append(again.names, it.key)
		} else {
			lazy.names = append(lazy.names, it.key)
		}
	}
	e.quotas.all = e.quotas.all || all
	if len(again.names) > 0 || all {
		e.quotas.trail = append(e.quotas.trail, again)
	}
	if len(lazy.names) > 0 {
		e.quotas.lazyTrail = append(e.quotas.lazyTrail, lazy)
	}
	if all {
		e.quotas.settle = now.Add(e.opts.Config.TotalSettles)
	}
}

// tellDemand tells the quotas what waiting jobs ask for; limits that follow from it belong to this step.
func (e *Engine) tellDemand() {
	var changed []string
	e.inCore("", func() { changed = e.state.DirtyDemand() })
	for _, quota := range changed {
		e.quotas.demands[quota] = true
	}
	if len(e.quotas.demands) == 0 {
		return
	}
	for _, quota := range sortedKeys(e.quotas.demands) {
		moved := false
		if e.askQuotas(func() { moved = e.opts.Quotas.SetDemand(quota, e.state.Demand(quota)) }) {
			delete(e.quotas.demands, quota)
		}
		if moved {
			e.quotas.dirty[quota] = true
		}
	}
}

// observe reads what is dirty. It comes after the mailbox was drained: what the hook reported has moved in the ledger
// before used is read, so a pod in between is counted twice for a moment and never zero times.
func (e *Engine) observe(now time.Time) {
	e.quotas.trail = e.quotas.follow(now, e.quotas.trail)
	e.quotas.lazyTrail = e.quotas.follow(now, e.quotas.lazyTrail)
	if settle := e.quotas.settle; !settle.IsZero() && !settle.After(now) {
		e.quotas.all, e.quotas.settle = true, time.Time{}
	}
	// ElasticQuota may hear of a node later than any of the times at which its total was to be read again (I1).
	if !e.quotas.all {
		e.askQuotas(func() { e.quotas.all = e.opts.Quotas.TotalMoved() })
	}
	if len(e.quotas.dirty) == 0 && !e.quotas.all {
		return
	}
	var found []admission.Quota
	var gone []string
	if !e.askQuotas(func() { found, gone = e.opts.Quotas.Observe(e.observedNames()) }) {
		return // they stay dirty
	}
	changed := e.takeObservation(now, found, gone)
	if e.quotas.all {
		e.quotas.observed = true
	}
	clear(e.quotas.dirty)
	e.quotas.all = false
	if changed {
		e.resolveAgain(now, e.unlabelled)
		e.remapPods(now)
	}
}

// follow marks dirty what is to be observed once more by now, and returns the rest.
func (q *quotaBook) follow(now time.Time, trail []trailing) []trailing {
	for len(trail) > 0 && !trail[0].at.After(now) {
		for _, name := range trail[0].names {
			q.dirty[name] = true
		}
		q.all = q.all || trail[0].all
		trail = trail[1:]
	}
	return trail
}

// observedNames lists the dirty quotas; all of them and those that were there when everything is to be observed.
func (e *Engine) observedNames() []string {
	names := sortedKeys(e.quotas.dirty)
	if e.quotas.all {
		names = append(names, e.opts.Quotas.All()...)
		for name := range e.quotas.known {
			if e.quotas.last[name].Parent != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

func (e *Engine) takeObservation(now time.Time, found []admission.Quota, gone []string) (changed bool) {
	for _, name := range gone {
		changed = changed || e.quotas.known[name]
		delete(e.quotas.known, name)
		delete(e.quotas.last, name)
		e.inCore("", func() { e.state.DeleteQuota(now, name) })
		e.gauges.mark(now, name)
	}
	for _, q := range found {
		changed = changed || !e.quotas.known[q.Name]
		e.quotas.known[q.Name] = true
		e.quotas.last[q.Name] = q
		e.inCore("", func() { e.state.SetQuota(now, q) })
	}
	return changed
}

// remapPods asks again for the quota of pods, which follows from which quotas there are until the hook says it.
func (e *Engine) remapPods(now time.Time) {
	for _, uid := range sortedKeys(e.pods.byUID) {
		if rec := e.pods.byUID[uid]; rec.unit != "" && rec.quota == "" {
			e.tellPod(now, rec)
		}
	}
}

// resync is the net below all events: everything is observed, and every pod of an admitted job that is not on a node
// is activated.
func (e *Engine) resync(now time.Time) {
	if now.Before(e.resyncAt) {
		return
	}
	first := e.resyncAt.IsZero()
	e.resyncAt = now.Add(e.opts.Config.ResyncInterval)
	e.quotas.all = true
	if first {
		return
	}
	e.opts.Metrics.Inc(metrics.ResyncsTotal)
	e.resolveAgain(now, e.unlabelled)
	e.settlePods(now)
	e.dropGhosts(now)
	e.findMissingConsumers(now)
	for _, uid := range sortedUIDs(e.pods.idle) {
		if rec := e.pods.byUID[uid]; rec != nil && e.mayGo(rec) {
			e.activate.put(uid, struct{}{})
		}
	}
}

// settlePods takes pods that have been on a node for a whole interval, and of which the hook never spoke, for counted:
// they are, or never will be.
func (e *Engine) settlePods(now time.Time) {
	for _, uid := range sortedUIDs(e.pods.unsettled) {
		rec := e.pods.byUID[uid]
		if rec == nil || rec.hooked {
			delete(e.pods.unsettled, uid)
			continue
		}
		if !rec.bound {
			rec.bound = true
			continue
		}
		rec.settled = true
		delete(e.pods.unsettled, uid)
		e.tellPod(now, rec)
	}
}

// dropGhosts forgets units that the list at Lead had and that no watch ever spoke of: they were deleted in between. A watch
// that has not come to the version of the unit only hangs, however long, and the unit may hold quota (I1, I7). One that
// has come to it has an interval to hand over what it knows.
func (e *Engine) dropGhosts(now time.Time) {
	for _, key := range sortedKeys(e.ghosts) {
		rec := e.units[key]
		if rec != nil && e.watchIsBefore(rec.object.ResourceVersion) {
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
	for _, key := range sortedKeys(e.holders) {
		rec := e.units[key]
		if !rec.managed || e.sources.kinds.unlisted(rec.object.consumer.Kind) {
			continue
		}
		live := false
		e.inCore(key, func() {
			if live = e.state.Live(rec.object.consumer.UID); !live {
				e.state.SetConsumer(now, rec.object.consumer, false)
			}
		})
		if !live {
			e.touch(now, key, rec)
		}
	}
}
