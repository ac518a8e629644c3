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

// Package measures exports metrics of the engine, and logs them: sums of queues and quotas, outcomes of writes, and the
// stages of a start. One decision depends on it: the limit for pods outside of the queue, which leaves room for
// outstanding quota.
package measures

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/waits"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// gaugeInterval is the least time between two updates of gauges.
const gaugeInterval = time.Second

// Gauges remembers exported values, so that only changes are set and only missing ones are deleted.
type Gauges struct {
	*env.Env
	core   *recovery.Core
	units  *unitbook.Book
	quotas *quotawatch.Observer
	at     time.Time // when the next update is due; zero for never
	last   time.Time
	levels map[string]bool // whose outstanding may have changed
	fresh  map[string]bool // leaf quotas for Options.Outstanding, which is told of their ancestors, too
	// queueExists says whether there is a Queue of this name.
	queueExists func(name string) bool
	// counts are the exported pairs of queue and quota, of this state. stray are the counts of pairs of which one does not
	// exist. Tenants can make up any names, so these are exported as one sum.
	counts map[[2]string]bool
	stray  map[[2]string]accounts.Counts
	sum    accounts.Counts
	of     *admission.State
	// outstanding that was exported, by level; told is what Options.Outstanding was given.
	outstanding map[string]resources.List
	told        map[string]told
	// victims of dry runs that were exported, by queue.
	victims map[string]int
	waits   *waits.Waits
	// OutstandingAt, if set, is Options.Outstanding.
	OutstandingAt func(quota string, outstanding, limit resources.List)
}

// told is the outstanding amount of a level, and its limit.
type told struct{ outstanding, limit resources.List }

func NewGauges(
	v *env.Env, c *recovery.Core, u *unitbook.Book, o *quotawatch.Observer, w *waits.Waits,
	queueExists func(name string) bool, outstanding func(string, resources.List, resources.List),
) *Gauges {
	return &Gauges{
		Env: v, core: c, units: u, quotas: o, waits: w, queueExists: queueExists, OutstandingAt: outstanding,
		levels: map[string]bool{}, fresh: map[string]bool{},
		counts: map[[2]string]bool{}, stray: map[[2]string]accounts.Counts{},
		outstanding: map[string]resources.List{}, told: map[string]told{},
	}
}

// Labels are the names of the queue and the quota of a unit, as far as they exist. Those of an admitted unit may be
// others by now, and made up.
func (g *Gauges) Labels(rec *unitbook.Record) (queue, quota string) {
	if g.queueExists(rec.Queue) {
		queue = rec.Queue
	}
	if g.quotas.Known(rec.Quota) {
		quota = rec.Quota
	}
	return queue, quota
}

// Mark says that something about a quota, and with it the counts, may have changed.
func (g *Gauges) Mark(now time.Time, quota string) {
	if quota != "" {
		g.levels[quota], g.fresh[quota] = true, true
	}
	if g.at.IsZero() {
		g.at = pace.Later(now, g.last.Add(gaugeInterval))
	}
}

// Next is when gauges are to be set; zero for never.
func (g *Gauges) Next() time.Time { return g.at }

// Reserves says whether jobs were last told to hold anything beyond their assigned pods.
func (g *Gauges) Reserves() bool { return len(g.told) > 0 }

// Measure reports outstanding amounts at once, because the scheduling of other pods depends on them, and sets gauges
// now and then.
func (g *Gauges) Measure(now time.Time) {
	g.core.Call("", func(s *admission.State) {
		for _, level := range s.Limits().Moved() {
			if _, holds := g.told[level]; holds {
				g.fresh[level] = true
			}
		}
	})
	for _, level := range g.quotas.WithAncestors(g.fresh) {
		g.tellOutstanding(level)
	}
	clear(g.fresh)
	if g.at.IsZero() || g.at.After(now) {
		return
	}
	g.at, g.last = time.Time{}, now.Add(g.measureQueues())
	g.measureCounts()
	for _, level := range g.quotas.WithAncestors(g.levels) {
		g.measureOutstanding(level)
	}
	clear(g.levels)
}

func (g *Gauges) tellOutstanding(level string) {
	if g.OutstandingAt == nil {
		return
	}
	var now told
	g.core.Call("", func(s *admission.State) {
		now.outstanding = admission.ReservedAt(s, level)
		_, now.limit = s.Limits().LimitOf(level)
	})
	if former := g.told[level]; now.outstanding.Equal(former.outstanding) &&
		(now.outstanding.IsZero() || now.limit.Same(former.limit)) {
		return
	}
	if g.Guard("quotas", func() { g.OutstandingAt(level, now.outstanding, now.limit) }) {
		if g.told[level] = now; now.outstanding.IsZero() {
			delete(g.told, level)
		}
	}
}

// Recount has all counts exported again: a queue or quota came or went.
func (g *Gauges) Recount(now time.Time) {
	g.of = nil
	g.Mark(now, "")
}

func (g *Gauges) measureCounts() {
	var changed []accounts.Counts
	g.core.Call("", func(s *admission.State) {
		changed = s.Accounts().ChangedCounts()
		if g.of != s {
			g.of, changed = s, s.Accounts().Counts()
			g.forgetAllCounts()
		}
	})
	for _, c := range changed {
		g.export(c)
	}
	pair := [2]string{}
	if len(g.stray) == 0 {
		g.forgetCounts(pair)
		return
	}
	g.set(pair, g.sum)
}

func (g *Gauges) export(c accounts.Counts) {
	pair, empty := [2]string{c.Queue, c.Quota}, c.Pending+c.Admitted+c.Parked == 0
	switch {
	case !g.queueExists(c.Queue) || !g.quotas.Known(c.Quota):
		former := g.stray[pair]
		g.sum.Pending += c.Pending - former.Pending
		g.sum.Admitted += c.Admitted - former.Admitted
		g.sum.Parked += c.Parked - former.Parked
		if g.stray[pair] = c; empty {
			delete(g.stray, pair)
		}
	case empty:
		g.forgetCounts(pair)
	default:
		g.set(pair, c)
	}
}

func (g *Gauges) set(pair [2]string, c accounts.Counts) {
	g.counts[pair] = true
	g.Metrics.Set(metrics.PendingUnits, float64(c.Pending), pair[0], pair[1])
	g.Metrics.Set(metrics.AdmittedUnits, float64(c.Admitted), pair[0], pair[1])
	g.Metrics.Set(metrics.ParkedUnits, float64(c.Parked), pair[0], pair[1])
}

func (g *Gauges) forgetAllCounts() {
	for pair := range g.counts {
		g.forgetCounts(pair)
	}
	clear(g.stray)
	g.sum = accounts.Counts{}
}

func (g *Gauges) forgetCounts(pair [2]string) {
	if !g.counts[pair] {
		return
	}
	delete(g.counts, pair)
	for _, name := range []metrics.Name{metrics.PendingUnits, metrics.AdmittedUnits, metrics.ParkedUnits} {
		g.Metrics.Forget(name, pair[0], pair[1])
	}
}

// measureQueues says for how long gauges rest, so that they take a hundredth of the time.
func (g *Gauges) measureQueues() time.Duration {
	begun, former := g.Clock.Now(), g.victims
	g.core.Call("", func(s *admission.State) {
		g.victims = admission.Victims(s)
		g.waits.Measure(s.Line, g.units.WaitsSince)
	})
	g.Metrics.Replace(metrics.DryRunVictims, former, g.victims)
	return 100 * g.Clock.Since(begun)
}

func (g *Gauges) measureOutstanding(level string) {
	var list resources.List
	if g.quotas.Known(level) {
		g.core.Call("", func(s *admission.State) { list = s.Holdings().Read(level).Outstanding().List() })
		list = list.Mask(g.quotas.MaxOf(level)) // not of resources that a tenant made up
	}
	for _, item := range g.outstanding[level].Items() {
		if _, still := list.Get(item.Name); !still {
			g.Metrics.Forget(metrics.LedgerOutstanding, level, item.Name)
		}
	}
	for _, item := range list.Items() {
		g.Metrics.Set(metrics.LedgerOutstanding, float64(item.Amount), level, item.Name)
	}
	if list.Len() == 0 {
		delete(g.outstanding, level)
		return
	}
	g.outstanding[level] = list
}
