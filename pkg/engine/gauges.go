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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// gaugeInterval is the least time between two updates of gauges.
const gaugeInterval = time.Second

// gauges remembers what was exported, so that only what changed is set and what is gone is deleted.
type gauges struct {
	*env
	core   *core
	units  *records
	quotas *observer
	at     time.Time // when the next update is due; zero for never
	last   time.Time
	levels map[string]bool // whose outstanding may have changed
	fresh  map[string]bool // leaf quotas for Options.Outstanding, which is told of their ancestors, too
	// queueExists says whether there is a Queue of this name.
	queueExists func(name string) bool
	// counts are the pairs of queue and quota that were exported, of this state. stray are the counts of the pairs of
	// which one does not exist: tenants make up names as they like, so these are exported as one sum.
	counts map[[2]string]bool
	stray  map[[2]string]accounts.Counts
	sum    accounts.Counts
	of     *admission.State
	// outstanding that was exported, by level; told is what Options.Outstanding was given.
	outstanding map[string]resources.List
	told        map[string]told
	// victims of dry runs that were exported, by queue.
	victims map[string]int
}

// told is what is outstanding of a level, and what it is measured against.
type told struct{ outstanding, limit resources.List }

func newGauges(v *env, c *core, u *records, o *observer, queueExists func(name string) bool) *gauges {
	return &gauges{
		env: v, core: c, units: u, quotas: o, queueExists: queueExists,
		levels: map[string]bool{}, fresh: map[string]bool{},
		counts: map[[2]string]bool{}, stray: map[[2]string]accounts.Counts{},
		outstanding: map[string]resources.List{}, told: map[string]told{},
	}
}

// labels are the names of the queue and the quota of a unit, as far as they exist. Those of an admitted unit may be
// others by now, and made up.
func (g *gauges) labels(rec *unitRecord) (queue, quota string) {
	if g.queueExists(rec.queue) {
		queue = rec.queue
	}
	if g.quotas.known(rec.quota) {
		quota = rec.quota
	}
	return queue, quota
}

// mark says that something about a quota, and with it the counts, may have changed.
func (g *gauges) mark(now time.Time, quota string) {
	if quota != "" {
		g.levels[quota], g.fresh[quota] = true, true
	}
	if g.at.IsZero() {
		g.at = pace.Later(now, g.last.Add(gaugeInterval))
	}
}

// next is when gauges are to be set; zero for never.
func (g *gauges) next() time.Time { return g.at }

// reserves says whether jobs were last told to hold anything beyond their assigned pods.
func (g *gauges) reserves() bool { return len(g.told) > 0 }

// measure tells what is outstanding, and of what, at once, because the scheduling of other pods depends on it, and sets
// gauges now and then.
func (g *gauges) measure(now time.Time) {
	g.core.call("", func(s *admission.State) {
		for _, level := range admission.MovedLimits(s) {
			if _, holds := g.told[level]; holds {
				g.fresh[level] = true
			}
		}
	})
	for _, level := range g.quotas.withAncestors(g.fresh) {
		g.tellOutstanding(level)
	}
	clear(g.fresh)
	if g.at.IsZero() || g.at.After(now) {
		return
	}
	g.at, g.last = time.Time{}, now.Add(g.measureQueues())
	g.measureCounts()
	for _, level := range g.quotas.withAncestors(g.levels) {
		g.measureOutstanding(level)
	}
	clear(g.levels)
}

func (g *gauges) tellOutstanding(level string) {
	if g.opts.Outstanding == nil {
		return
	}
	var now told
	g.core.call("", func(s *admission.State) {
		now.outstanding = admission.ReservedAt(s, level)
		_, now.limit = admission.LimitOf(s, level)
	})
	if former := g.told[level]; now.outstanding.Equal(former.outstanding) &&
		(now.outstanding.IsZero() || now.limit.Same(former.limit)) {
		return
	}
	if g.guard("quotas", func() { g.opts.Outstanding(level, now.outstanding, now.limit) }) {
		if g.told[level] = now; now.outstanding.IsZero() {
			delete(g.told, level)
		}
	}
}

// recount has all counts exported again: a queue or quota came or went.
func (g *gauges) recount(now time.Time) {
	g.of = nil
	g.mark(now, "")
}

func (g *gauges) measureCounts() {
	var changed []accounts.Counts
	g.core.call("", func(s *admission.State) {
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

func (g *gauges) export(c accounts.Counts) {
	pair, empty := [2]string{c.Queue, c.Quota}, c.Pending+c.Admitted+c.Parked == 0
	switch {
	case !g.queueExists(c.Queue) || !g.quotas.known(c.Quota):
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

func (g *gauges) set(pair [2]string, c accounts.Counts) {
	g.counts[pair] = true
	g.opts.Metrics.Set(metrics.PendingUnits, float64(c.Pending), pair[0], pair[1])
	g.opts.Metrics.Set(metrics.AdmittedUnits, float64(c.Admitted), pair[0], pair[1])
	g.opts.Metrics.Set(metrics.ParkedUnits, float64(c.Parked), pair[0], pair[1])
}

func (g *gauges) forgetAllCounts() {
	for pair := range g.counts {
		g.forgetCounts(pair)
	}
	clear(g.stray)
	g.sum = accounts.Counts{}
}

func (g *gauges) forgetCounts(pair [2]string) {
	if !g.counts[pair] {
		return
	}
	delete(g.counts, pair)
	for _, name := range []metrics.Name{metrics.PendingUnits, metrics.AdmittedUnits, metrics.ParkedUnits} {
		g.opts.Metrics.Forget(name, pair[0], pair[1])
	}
}

// measureQueues says for how long gauges rest, so that they take a hundredth of the time.
func (g *gauges) measureQueues() time.Duration {
	begun, former := g.opts.Clock.Now(), g.victims
	g.core.call("", func(s *admission.State) {
		g.victims = admission.Victims(s)
		g.waits.Measure(s.Line, g.units.waitsSince)
	})
	g.opts.Metrics.Replace(metrics.DryRunVictims, former, g.victims)
	return 100 * g.opts.Clock.Since(begun)
}

func (g *gauges) measureOutstanding(level string) {
	var list resources.List
	if g.quotas.known(level) {
		g.core.call("", func(s *admission.State) { list = s.Holdings().Read(level).Outstanding().List() })
		list = list.Mask(g.quotas.maxOf(level)) // not of resources that a tenant made up
	}
	for _, item := range g.outstanding[level].Items() {
		if _, still := list.Get(item.Name); !still {
			g.opts.Metrics.Forget(metrics.LedgerOutstanding, level, item.Name)
		}
	}
	for _, item := range list.Items() {
		g.opts.Metrics.Set(metrics.LedgerOutstanding, float64(item.Amount), level, item.Name)
	}
	if list.Len() == 0 {
		delete(g.outstanding, level)
		return
	}
	g.outstanding[level] = list
}
