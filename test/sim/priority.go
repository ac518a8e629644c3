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

package sim

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// A namespace bounds the priority with which its jobs take what others of their quota hold.

func (g *generator) priorityBounds(d dice) {
	for range 1 + d.IntN(4) {
		g.add(d.between(0, g.plan.Length*3/4), "max-priority", team, "value",
			pick(d, []string{"", "0", "1", "2", "1000", "-1", "99999999999", "x"}))
	}
}

func setMaxPriority(w *world, s Step) {
	w.countFault("bound of priority")
	w.annotate(namespaces, s.On, v1alpha1.AnnotationMaxPriority, s.Args["value"])
}

// takesLower: a unit takes from units of its own quota only with a greater priority, as far as their namespace allows
// it (I4). The lowest priority of a gang group counts: one of it takes less, and may lose to a priority below its own.
func (c *takingCheck) takesLower(before *object, ch *change) {
	d := ch.by.decision
	var known []string
	if takes(before) {
		known = unitOf(before).Status.Preemption.Holds
	}
	allowed := c.greatestBound(d)
	mine := min(c.mostPriority(ch.after, d), allowed)
	for _, o := range c.w.api.list(units) {
		hold := fmt.Sprintf("%s/%d", o.uid(), unitOf(o).Status.Attempts)
		if slices.Contains(known, hold) || !slices.Contains(unitOf(ch.after).Status.Preemption.Holds, hold) ||
			c.accounts.chargedTo(o) != c.accounts.chargedTo(ch.after) || !c.facts.unchanged(units, o.key, d.seen[units], 0) ||
			unitOf(o).Annotations[v1alpha1.AnnotationGangGroup] != "" {
			continue
		}
		c.w.countFault("taken in its quota")
		if its := priority(unitOf(o)); mine <= its {
			c.w.violate("I4", "unit %s takes from %s of its quota: priorities %d, bounded by %d, and %d", ch.key, o.key,
				priority(unitOf(ch.after)), allowed, its)
		}
	}
}

// greatestBound of priority that a decision may have known.
func (c *takingCheck) greatestBound(d *decision) int32 {
	allowed := boundOf(c.w.api.get(namespaces, team))
	for _, ch := range c.w.api.since(namespaces, d.seen[namespaces]) {
		if ch.key == team && ch.before != nil {
			allowed = max(allowed, boundOf(ch.before))
		}
	}
	return allowed
}

// boundOf priority in a namespace: 0 if it says none that fits 32 bits.
func boundOf(namespace *object) int32 {
	if namespace == nil {
		return 0
	}
	n, err := strconv.ParseInt(namespace.u.GetAnnotations()[v1alpha1.AnnotationMaxPriority], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// mostPriority of a unit that a decision may have known.
func (c *takingCheck) mostPriority(o *object, d *decision) int32 {
	most := priority(unitOf(o))
	for _, ch := range c.w.api.since(units, d.seen[units]) {
		if ch.key == o.key && ch.before != nil {
			most = max(most, priority(unitOf(ch.before)))
		}
	}
	return most
}
