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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/pace"
)

// observer asks Quotas and remembers what they answered.
type observer struct {
	*env
	// retry has the engine come back.
	retry      func(now time.Time, in time.Duration)
	last       map[string]admission.Quota // the last observation of each level that exists
	levelNames names                      // of those levels, in order
	// dirty levels are observed before the next decision; all means every one.
	dirty map[string]bool
	all   bool
	// complete says that all quotas were observed at least once.
	complete bool
	trails   pace.Trails
	// broken: a question panicked; none is asked before that time.
	broken time.Time
}

func newObserver(v *env, retry func(time.Time, time.Duration)) *observer {
	return &observer{
		env: v, retry: retry, all: true,
		last: map[string]admission.Quota{}, levelNames: newNames(), dirty: map[string]bool{},
		trails: pace.NewTrails(v.opts.Config.TrailingCheck, v.opts.Config.TotalSettles),
	}
}

// ask puts a question to Quotas and says whether it was answered. After a panic nothing is asked for a second.
func (o *observer) ask(question func(Quotas)) bool {
	now := o.opts.Clock.Now()
	if now.Before(o.broken) {
		return false
	}
	if o.guard("quotas", func() { question(o.opts.Quotas) }) {
		return true
	}
	o.broken = now.Add(time.Second)
	o.retry(now, time.Second)
	return false
}

// resolve asks which leaf quota pods with these labels are charged to, and says whether there was an answer.
func (o *observer) resolve(namespace string, labels map[string]string) (quota string, ok bool) {
	ok = o.ask(func(q Quotas) { quota = q.Resolve(namespace, labels) })
	return quota, ok
}

// charged is the quota that Koordinator charges to where it found this one: the default quota if it does not exist.
func (o *observer) charged(quota string) string {
	if !o.known(quota) && o.complete {
		return defaultQuota
	}
	return quota
}

func (o *observer) known(level string) bool {
	_, ok := o.last[level]
	return ok
}

// levels that exist, sorted.
func (o *observer) levels() []string { return sortedKeys(o.last) }

func (o *observer) maxOf(level string) resources.List { return o.last[level].Max }

// withAncestors are these quotas and all levels above them, sorted.
func (o *observer) withAncestors(quotas map[string]bool) []string {
	levels := map[string]bool{}
	for name := range quotas {
		for at := name; at != "" && !levels[at]; at = o.last[at].Parent {
			levels[at] = true
		}
	}
	return sortedKeys(levels)
}

// mark has a level observed before the next decision, markAll every one.
func (o *observer) mark(level string) { o.dirty[level] = true }

func (o *observer) markAll() { o.all = true }

// note marks quotas dirty, now and once more a little later: the hook speaks before used moves, so what is observed now
// may still be the state before the change.
func (o *observer) note(now time.Time, names []entry[string, urgency], all bool) {
	var urgent, lazy []string
	for _, it := range names {
		if o.mark(it.key); it.value == newsUrgent {
			urgent = append(urgent, it.key)
		} else {
			lazy = append(lazy, it.key)
		}
	}
	o.all = o.all || all
	o.trails.Note(now, urgent, lazy, all)
}

// next is when quotas are observed again without anything having changed; zero for never. What was gathered waits as
// long as its news.
func (o *observer) next(gather time.Duration) time.Time { return o.trails.Next(gather) }

// markDemand has quotas observed for which jobs ask for more or less beyond their pods than they did, where runtime is
// the limit: what became a pod is no longer demand, and belongs to what is requested from the same step on.
func (o *observer) markDemand(c *core) {
	c.call("", func(s *admission.State) {
		for _, quota := range s.Accounts().DirtyDemand() {
			if o.last[quota].Shared {
				o.mark(quota)
			}
		}
	})
}

// observe reads what is dirty, gives it to the core, and says which quotas are gone and whether any came or went. It
// comes after the mailbox was drained: what the hook reported has moved in the ledger before used is read, so a pod in
// between is counted twice for a moment and never zero times.
func (o *observer) observe(now time.Time, c *core) (gone []string, changed bool) {
	names, all := o.trails.Due(now)
	for _, name := range names {
		o.mark(name)
	}
	o.all = o.all || all
	// ElasticQuota may hear of a node later than any of the times at which its total was to be read again (I1).
	if !o.all {
		o.ask(func(q Quotas) { o.all = q.TotalMoved() })
	}
	if len(o.dirty) == 0 && !o.all {
		return nil, false
	}
	var found []admission.Quota
	if !o.ask(func(q Quotas) { found, gone = q.Observe(o.names(q)) }) {
		return nil, false // they stay dirty
	}
	changed = o.take(now, c, found, gone)
	o.complete = o.complete || o.all
	clear(o.dirty)
	o.all = false
	return gone, changed
}

// names lists the dirty quotas. If everything must be observed, it lists all quotas and those that were there before.
func (o *observer) names(q Quotas) []string {
	names := sortedKeys(o.dirty)
	if o.all {
		names = append(names, q.All()...)
		for name, level := range o.last {
			if level.Parent != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

func (o *observer) take(now time.Time, c *core, found []admission.Quota, gone []string) (changed bool) {
	for _, name := range gone {
		changed = changed || o.known(name)
		delete(o.last, name)
		o.levelNames.set(name, false)
		c.call("", func(s *admission.State) { s.DeleteQuota(now, name) })
	}
	for _, q := range found {
		changed = changed || !o.known(q.Name)
		o.last[q.Name] = q
		o.levelNames.set(q.Name, true)
		c.call("", func(s *admission.State) { s.SetQuota(now, q) })
	}
	return changed
}

// tell gives the core the last observation of every quota; a caller that does not trust it marks the quotas dirty.
func (o *observer) tell(now time.Time, c *core) {
	for _, name := range o.levels() {
		c.call("", func(s *admission.State) { s.SetQuota(now, o.last[name]) })
	}
}

// peek observes all levels for somebody else than the core.
func (o *observer) peek() (found []admission.Quota, ok bool) {
	ok = o.ask(func(q Quotas) { found, _ = q.Observe(o.levels()) })
	if ok {
		// The core has not seen it, and a total that moved is told until it is observed.
		o.all = true
	}
	return found, ok
}
