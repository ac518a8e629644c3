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

// Package quotawatch asks the live quotas what they use and may use, and remembers the answers. Quotas about which
// there is news are asked before the next decision, and once more a little later.
package quotawatch

import (
	"maps"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// totalSettles is how long after the last change of the cluster total all quotas are observed once more. ElasticQuota
// learns of nodes in a goroutine of its own, and no hook says when it has.
const totalSettles = time.Second

// Observer asks Quotas and remembers what they answered.
type Observer struct {
	*env.Env
	source Quotas
	// retry has the engine come back.
	retry      func(now time.Time, in time.Duration)
	Last       map[string]admission.Quota // the last observation of each level that exists
	LevelNames ordered.Names              // of those levels, in order
	// Dirty levels are observed before the next decision; all means every one.
	Dirty map[string]bool
	all   bool
	// complete says that all quotas were observed at least once.
	complete bool
	trails   pace.Trails
	// broken: a question panicked; none is asked before that time.
	broken time.Time
}

func New(
	v *env.Env, source Quotas, trailing time.Duration, retry func(time.Time, time.Duration),
) *Observer {
	return &Observer{
		Env: v, source: source, retry: retry, all: true,
		Last: map[string]admission.Quota{}, LevelNames: ordered.NewNames(), Dirty: map[string]bool{},
		trails: pace.NewTrails(trailing, totalSettles),
	}
}

// ask puts a question to Quotas and says whether it was answered. After a panic nothing is asked for a second.
func (o *Observer) ask(question func(Quotas)) bool {
	now := o.Clock.Now()
	if now.Before(o.broken) {
		return false
	}
	if o.Guard("quotas", func() { question(o.source) }) {
		return true
	}
	o.broken = now.Add(time.Second)
	o.retry(now, time.Second)
	return false
}

// Resolve asks which leaf quota pods with these labels are charged to, and says whether there was an answer.
func (o *Observer) Resolve(namespace string, labels map[string]string) (quota string, ok bool) {
	ok = o.ask(func(q Quotas) { quota = q.Resolve(namespace, labels) })
	return quota, ok
}

// Charged is the quota that Koordinator charges to where it found this one: the default quota if it does not exist.
func (o *Observer) Charged(quota string) string {
	if !o.Known(quota) && o.complete {
		return DefaultQuota
	}
	return quota
}

func (o *Observer) Known(level string) bool {
	_, ok := o.Last[level]
	return ok
}

// Levels that exist, sorted.
func (o *Observer) Levels() []string { return slices.Sorted(maps.Keys(o.Last)) }

func (o *Observer) MaxOf(level string) resources.List { return o.Last[level].Max }

// WithAncestors are these quotas and all levels above them, sorted.
func (o *Observer) WithAncestors(quotas map[string]bool) []string {
	levels := map[string]bool{}
	for name := range quotas {
		for at := name; at != "" && !levels[at]; at = o.Last[at].Parent {
			levels[at] = true
		}
	}
	return slices.Sorted(maps.Keys(levels))
}

// Mark has a level observed before the next decision, markAll every one.
func (o *Observer) Mark(level string) { o.Dirty[level] = true }

func (o *Observer) MarkAll() { o.all = true }

// Note marks quotas dirty, now and once more a little later. The hook reports before used moves, so the first
// observation may still see the former state.
func (o *Observer) Note(now time.Time, urgent, lazy []string, all bool) {
	for _, name := range urgent {
		o.Mark(name)
	}
	for _, name := range lazy {
		o.Mark(name)
	}
	o.all = o.all || all
	o.trails.Note(now, urgent, lazy, all)
}

// Next is the time of the next observation without an event; zero for never. Gathered quotas wait as long as their
// events.
func (o *Observer) Next(gather time.Duration) time.Time { return o.trails.Next(gather) }

// MarkDemand marks quotas whose demand beyond pods has changed, if runtime is the limit. Demand that became a pod
// belongs to the requested amount from the same step on.
func (o *Observer) MarkDemand(c *recovery.Core) {
	c.Call("", func(s *admission.State) {
		for _, quota := range s.Accounts().DirtyDemand() {
			if o.Last[quota].Shared {
				o.Mark(quota)
			}
		}
	})
}

// Observe reads the dirty quotas into the core. It returns the quotas that are gone, and whether any appeared or
// disappeared. The mailbox was drained before, so the ledger has moved every reported pod before used is read. A pod in
// between counts twice for a moment and never zero times.
func (o *Observer) Observe(now time.Time, c *recovery.Core) (gone []string, changed bool) {
	names, all := o.trails.Due(now)
	for _, name := range names {
		o.Mark(name)
	}
	o.all = o.all || all
	// ElasticQuota may hear of a node later than any of the times at which its total was to be read again (I1).
	if !o.all {
		o.ask(func(q Quotas) { o.all = q.TotalMoved() })
	}
	if len(o.Dirty) == 0 && !o.all {
		return nil, false
	}
	var found []admission.Quota
	if !o.ask(func(q Quotas) { found, gone = q.Observe(o.names(q)) }) {
		return nil, false // the quotas stay dirty
	}
	changed = o.take(now, c, found, gone)
	o.complete = o.complete || o.all
	clear(o.Dirty)
	o.all = false
	return gone, changed
}

// names lists the dirty quotas. If everything must be observed, it lists all quotas and those that were there before.
func (o *Observer) names(q Quotas) []string {
	names := slices.Sorted(maps.Keys(o.Dirty))
	if o.all {
		names = append(names, q.All()...)
		for name, level := range o.Last {
			if level.Parent != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

func (o *Observer) take(now time.Time, c *recovery.Core, found []admission.Quota, gone []string) (changed bool) {
	for _, name := range gone {
		changed = changed || o.Known(name)
		delete(o.Last, name)
		o.LevelNames.Set(name, false)
		c.Call("", func(s *admission.State) { s.DeleteQuota(now, name) })
	}
	for _, q := range found {
		changed = changed || !o.Known(q.Name)
		o.Last[q.Name] = q
		o.LevelNames.Set(q.Name, true)
		c.Call("", func(s *admission.State) { s.SetQuota(now, q) })
	}
	return changed
}

// Tell gives the core the last observation of every quota; a caller that does not trust it marks the quotas dirty.
func (o *Observer) Tell(now time.Time, c *recovery.Core) {
	for _, name := range o.Levels() {
		c.Call("", func(s *admission.State) { s.SetQuota(now, o.Last[name]) })
	}
}

// Peek observes all levels for somebody else than the core.
func (o *Observer) Peek() (found []admission.Quota, ok bool) {
	ok = o.ask(func(q Quotas) { found, _ = q.Observe(o.Levels()) })
	if ok {
		// The core has not seen it, and a total that moved is told until it is observed.
		o.all = true
	}
	return found, ok
}
