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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/witness"
)

// Nodes. Some queues that take back have the check of placement as well: a scheduler asks for nodes before a unit
// takes. It is answered soon or late, yes or no, or never.

// nodesCheck is the check of placement.
const nodesCheck = "nodes"

// foreseenFor is for how long a scheduler believes a yes, noNodesMost for how long it lets a unit wait after a no.
const (
	foreseenFor = 30 * time.Second
	noNodesMost = 160 * time.Second
)

func (g *generator) nodeChecks(d dice) {
	for _, s := range g.plan.Steps {
		if s.Verb == "reclaim" && s.Args["policy"] != string(v1alpha1.PreemptNever) && d.chance(30) {
			g.add(s.At, "checks", s.On, "names", nodesCheck, "timeout", "8")
		}
	}
}

// placer answers what one run of a scheduler asks about nodes.
type placer struct {
	witness.Nobody
	r    *replica
	dice dice
}

// Foresee implements witness.Witness.
func (p *placer) Foresee(q witness.Question) {
	w := p.r.world
	w.countFault("foreseen")
	wait, yes := p.dice.between(0, 5*time.Second), p.dice.chance(60) || w.healed
	if p.dice.chance(10) && !w.healed {
		return // never
	}
	p.r.later(wait, func() {
		if yes {
			p.r.nodesFor[q.UID] = w.loop.now
		} else {
			p.r.noNodesFor[q.UID] = w.loop.now
		}
		q.Answer(yes, "no node has room")
		p.r.poke()
	})
}

// onForesight judges a unit that takes and whose queue asks for nodes first. The leader must have learned, not long
// ago, that the unit finds nodes (I3).
func (c *takingCheck) onForesight(before *object, ch *change) {
	d := ch.by.decision
	if d == nil || !takes(ch.after) || takes(before) || !slices.Contains(c.facts.asked(ch), nodesCheck) {
		return
	}
	at, said := d.leader.nodesFor[ch.after.uid()]
	if c.w.countFault("foreseen and taken"); !said || at.Add(foreseenFor).Before(d.at) {
		c.w.violate("I3", "unit %s takes what others hold, and nobody has said that it finds nodes then", ch.key)
	}
}

// waitsForNodes says of a unit that waits that it may not be in line, after a no to the leader.
func (d *decision) waitsForNodes(o *object) bool {
	at, said := d.leader.noNodesFor[o.uid()]
	return said && d.at.Before(at.Add(noNodesMost))
}
