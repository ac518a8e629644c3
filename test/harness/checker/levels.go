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

package checker

import (
	"fmt"
	"iter"
	"maps"
	"strings"
)

// Use is the use of a resource in a quota and those below it. running is that of bound pods, promised the outstanding
// quota of admitted units, and limit the max.
func (c *Checker) Use(quota, resource string) (running, promised, limit int64) {
	return c.under(c.running, quota, resource), c.under(c.promised, quota, resource), c.quotas[quota].Max[resource]
}

// Levels are a quota and those above it.
func (c *Checker) Levels(quota string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for steps := 0; quota != "" && steps <= len(c.quotas); steps++ {
			level, ok := c.quotas[quota]
			if !ok || !yield(quota) {
				return
			}
			quota = level.Parent
		}
	}
}

// updateShare recomputes the promised amount of a unit: its request less the part that its pods use.
func (c *Checker) updateShare(uid, quota string) {
	c.level(c.promised, quota).add(c.share[uid], -1)
	delete(c.share, uid)
	unit, ok := c.units[uid]
	if !ok || !unit.Admitted {
		return
	}
	rest := maps.Clone(unit.Request)
	for _, request := range c.occupied(unit.Job) {
		rest.add(request, -1)
	}
	for name, amount := range rest {
		rest[name] = max(0, amount)
	}
	c.share[uid] = rest
	c.level(c.promised, quota).add(rest, 1)
}

func (c *Checker) level(of map[string]Resources, quota string) Resources {
	if of[quota] == nil {
		of[quota] = Resources{}
	}
	return of[quota]
}

// causer is who may have made levels pass their max.
type causer int

const (
	// nobody broke a promise.
	nobody causer = iota
	// aStranger is a pod outside of the queue. ElasticQuota compares it with its own quota only; above, it must leave
	// what is promised to admitted units; see tolerate.
	aStranger
	theQueue
)

// checkLevels compares a quota and all levels above it with their max, and reports what has just passed it.
func (c *Checker) checkLevels(quota string, by causer) {
	for name := range c.Levels(quota) {
		for resource, limit := range c.quotas[name].Max {
			running := c.under(c.running, name, resource)
			promised := running + c.under(c.promised, name, resource)
			if promised <= limit {
				delete(c.tolerated, name+"/"+resource)
			}
			own := by == theQueue || by == aStranger && name == quota
			c.compare(QuotaPassed, name, resource, running, limit, own)
			c.compare(QuotaPromised, name, resource, promised, limit, own || by == aStranger)
		}
	}
}

// tolerate records levels above the quota of a foreign pod that the pod fills beyond max, if the promised amount there
// was in use. Running pods used it, or existing pods that may have been assumed before. Bindings are written
// concurrently, so their order in the store differs from that of the scheduler's decisions.
func (c *Checker) tolerate(pod Pod) {
	for name := range c.Levels(c.quotas[pod.Quota].Parent) {
		for resource, limit := range c.quotas[name].Max {
			rest := c.under(c.promised, name, resource)
			beyond := c.under(c.running, name, resource) + rest - limit
			if beyond > 0 && rest <= c.unbound(name, resource) {
				c.tolerated[name+"/"+resource] = beyond
			}
		}
	}
}

// unbound sums what pods of jobs ask for at a level and below that have no node yet.
func (c *Checker) unbound(quota, resource string) (sum int64) {
	for _, pod := range c.pods {
		if pod.Job != "" && !pod.Bound && !pod.Terminal && c.isUnder(pod.Quota, quota) {
			sum += pod.Request[resource]
		}
	}
	return sum
}

func (c *Checker) compare(rule Rule, quota, resource string, amount, limit int64, report bool) {
	key := strings.Join([]string{string(rule), quota, resource}, "/")
	if c.beyond.begins(key, amount > limit+c.tolerated[quota+"/"+resource]) && report {
		c.report(rule, quota, "%s %s of max %s", resource, milli(amount), milli(limit))
	}
}

func milli(amount int64) string { return fmt.Sprintf("%g", float64(amount)/1000) }

// under sums a resource over a quota and everything below it.
func (c *Checker) under(of map[string]Resources, quota, resource string) int64 {
	var sum int64
	for leaf, amounts := range of {
		if c.isUnder(leaf, quota) {
			sum += amounts[resource]
		}
	}
	return sum
}

func (c *Checker) isUnder(leaf, quota string) bool {
	for level := range c.Levels(leaf) {
		if level == quota {
			return true
		}
	}
	return false
}
