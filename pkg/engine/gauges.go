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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// gaugeInterval is the least time between two updates of gauges.
const gaugeInterval = time.Second

// gauges remembers what was exported, so that only what changed is set and what is gone is deleted.
type gauges struct {
	at     time.Time // when the next update is due; zero for never
	last   time.Time
	quotas map[string]bool // levels whose outstanding may have changed
	fresh  map[string]bool // leaf quotas for Options.Outstanding, which is told of their ancestors, too
	// counts are the pairs of queue and quota that were exported, of this state.
	counts map[[2]string]bool
	of     *admission.State
	// outstanding that was exported, by level; told is what Options.Outstanding was given.
	outstanding, told map[string]resources.List
}

func newGauges() gauges {
	return gauges{
		quotas: map[string]bool{}, fresh: map[string]bool{}, counts: map[[2]string]bool{},
		outstanding: map[string]resources.List{}, told: map[string]resources.List{},
	}
}

// mark says that something about a quota, and with it the counts, may have changed.
func (g *gauges) mark(now time.Time, quota string) {
	if quota != "" {
		g.quotas[quota], g.fresh[quota] = true, true
	}
	if g.at.IsZero() {
		g.at = maxTime(now, g.last.Add(gaugeInterval))
	}
}

// measure tells what is outstanding at once, because the scheduling of other pods depends on it, and sets gauges now
// and then.
func (e *Engine) measure(now time.Time) {
	g := &e.gauges
	for _, level := range e.withAncestors(g.fresh) {
		e.tellOutstanding(level)
	}
	clear(g.fresh)
	if g.at.IsZero() || g.at.After(now) {
		return
	}
	g.at, g.last = time.Time{}, now
	e.measureCounts()
	for _, level := range e.withAncestors(g.quotas) {
		e.measureOutstanding(level)
	}
	clear(g.quotas)
}

func (e *Engine) tellOutstanding(quota string) {
	if e.opts.Outstanding == nil {
		return
	}
	var list resources.List
	e.inCore("", func() { list = e.state.Outstanding(quota) })
	if list.Equal(e.gauges.told[quota]) {
		return
	}
	if e.guard("quotas", func() { e.opts.Outstanding(quota, list) }) {
		e.gauges.told[quota] = list
		if list.IsZero() {
			delete(e.gauges.told, quota)
		}
	}
}

func (e *Engine) measureCounts() {
	g := &e.gauges
	if g.of != e.state {
		// Another state speaks of all that it has, and of nothing else.
		g.of = e.state
		for pair := range g.counts {
			e.forgetCounts(pair)
		}
	}
	var changed []admission.QueueCounts
	e.inCore("", func() { changed = e.state.ChangedCounts() })
	for _, c := range changed {
		pair := [2]string{c.Queue, c.Quota}
		if c.Pending+c.Admitted+c.Parked == 0 {
			e.forgetCounts(pair)
			continue
		}
		g.counts[pair] = true
		e.opts.Metrics.Set(metrics.PendingUnits, float64(c.Pending), c.Queue, c.Quota)
		e.opts.Metrics.Set(metrics.AdmittedUnits, float64(c.Admitted), c.Queue, c.Quota)
		e.opts.Metrics.Set(metrics.ParkedUnits, float64(c.Parked), c.Queue, c.Quota)
	}
}

func (e *Engine) forgetCounts(pair [2]string) {
	delete(e.gauges.counts, pair)
	for _, name := range []metrics.Name{metrics.PendingUnits, metrics.AdmittedUnits, metrics.ParkedUnits} {
		e.opts.Metrics.Forget(name, pair[0], pair[1])
	}
}

// withAncestors are the quotas and all levels above them, sorted.
func (e *Engine) withAncestors(quotas map[string]bool) []string {
	levels := map[string]bool{}
	for name := range quotas {
		for at := name; at != "" && !levels[at]; at = e.quotas.last[at].Parent {
			levels[at] = true
		}
	}
	return sortedKeys(levels)
}

func (e *Engine) measureOutstanding(level string) {
	g, m := &e.gauges, e.opts.Metrics
	var list resources.List
	if e.quotas.known[level] {
		e.inCore("", func() { list = e.state.Outstanding(level) })
	}
	for _, item := range g.outstanding[level].Items() {
		if _, still := list.Get(item.Name); !still {
			m.Forget(metrics.LedgerOutstanding, level, item.Name)
		}
	}
	for _, item := range list.Items() {
		m.Set(metrics.LedgerOutstanding, float64(item.Amount), level, item.Name)
	}
	if list.Len() == 0 {
		delete(g.outstanding, level)
		return
	}
	g.outstanding[level] = list
}
