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
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Whatever a tenant does, preemption promises this, as far as a leader knew when it decided:
//   - Nobody loses the guarantee of its quota to pods without a unit, and quota that a unit takes is not for such pods.
//   - A quota that took in vain waits before it takes again.

const (
	// vainPause is how long nobody takes for whom something was taken for nothing, at first.
	vainPause = 30 * time.Second
	// longestVain is the longest pause.
	longestVain = time.Hour
)

// takingCheck judges preemption.
type takingCheck struct {
	w        *world
	facts    *facts
	accounts *accounts
	// lost are the units for which somebody has lost what it held, until a pod of theirs is on a node.
	lost map[types.UID]*spoil
	// vain is what was taken for nothing in a row, by the quota for which it was. All tenants have one namespace.
	vain map[string]*inVain
	// useful is the version of the last pod on a node for which the quota took.
	useful map[string]int64
	// recorded are the holds that some unit has said to take back.
	recorded map[string]bool
}

func newTakingCheck(w *world, f *facts, a *accounts) *takingCheck {
	return &takingCheck{
		w: w, facts: f, accounts: a, lost: map[types.UID]*spoil{}, vain: map[string]*inVain{},
		useful: map[string]int64{}, recorded: map[string]bool{},
	}
}

// spoil of a unit that takes: for which quota, and the leader that made others lose it, since which version.
type spoil struct {
	key, quota string
	by         *replica
	rv         int64
	// held: it got it.
	held bool
}

// inVain is what was taken for nothing in a row, at last for a job.
type inVain struct {
	job   types.UID
	times int
	at    time.Time
	rv    int64
	by    *replica
}

// pause is how long nobody takes after the last time.
func (v *inVain) pause() time.Duration { return min(vainPause<<min(v.times-1, 10), longestVain) }

// onUnit notes what units take, get and give up.
func (c *takingCheck) onUnit(before *object, ch *change) {
	o := ch.after
	if c.facts.tainted[o.uid()] {
		delete(c.lost, o.uid())
		return
	}
	if hold := c.lostFor(ch); hold != "" {
		c.lostBy(hold, ch)
	}
	if s := c.lost[o.uid()]; s != nil {
		c.follow(s, ch)
	}
	if takes(o) && ch.by.decision != nil {
		if !takes(before) {
			c.takesAgain(ch)
		}
		c.takesBorrowed(before, ch)
		c.takesLower(before, ch)
	}
}

// lostFor is the hold, as units name what they take, that a unit loses by this change because somebody takes it.
func (c *takingCheck) lostFor(ch *change) string {
	if ch.by.decision == nil || !holds(ch.former()) || holds(ch.after) || c.facts.tainted[ch.after.uid()] {
		return ""
	}
	status := unitOf(ch.after).Status
	e := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionEvicted)
	if e == nil || e.Reason != string(unit.ReasonReclaimed) && e.Reason != string(unit.ReasonPreemptedInQueue) {
		return ""
	}
	return fmt.Sprintf("%s/%d", ch.after.uid(), status.Attempts)
}

// lostBy notes for whom a hold was lost, if that is one unit.
func (c *takingCheck) lostBy(hold string, ch *change) {
	var by []*object
	for _, o := range c.w.api.list(units) {
		if takes(o) && !setAside(unitOf(o)) && slices.Contains(unitOf(o).Status.Preemption.Holds, hold) {
			by = append(by, o)
		}
	}
	if len(by) == 1 && c.lost[by[0].uid()] == nil && !c.facts.tainted[by[0].uid()] {
		c.lost[by[0].uid()] = &spoil{key: by[0].key, quota: quotaLabel(by[0]), by: ch.by.decision.leader, rv: ch.rv}
	}
}

// follow a unit for which somebody has lost quota. If it stops taking before it holds that, pods of others may have
// stayed, which is not its fault. Quota that it gets later is not from its victims. A unit that is held stops taking
// for good, though its status says what it took.
func (c *takingCheck) follow(s *spoil, ch *change) {
	o := ch.after
	if holds(o) || takes(o) && !setAside(unitOf(o)) {
		if s.held = holds(o); s.held {
			c.runsOn(s, o)
		}
		return
	}
	if s.held {
		c.forNothing(s, o, ch)
	}
	delete(c.lost, o.uid())
}

// runsOn: pods of a former attempt may be on nodes when their unit gets quota again, or the leader may think so.
func (c *takingCheck) runsOn(s *spoil, o *object) {
	for _, pod := range c.w.api.list(pods) {
		if podOf(pod).Spec.NodeName != "" && c.facts.standsFor(pod) == consumerOf(o) &&
			(!terminated(podOf(pod)) || pod.rv > s.by.seenOf(pods)) {
			c.spent(pod)
		}
	}
}

// goes: a unit that has taken is deleted.
func (c *takingCheck) goes(ch *change) {
	if s := c.lost[ch.before.uid()]; s != nil {
		c.forNothing(s, ch.before, ch)
	}
	delete(c.lost, ch.before.uid())
}

// forNothing: others have lost what they held, and no pod of the unit was on a node.
func (c *takingCheck) forNothing(s *spoil, o *object, ch *change) {
	if c.w.lease.holder != s.by {
		return // another leader does not know what was for nothing
	}
	c.w.countFault("taken for nothing")
	if c.useful[s.quota] > s.by.seenOf(pods) {
		return // the leader may hear later that what another unit took was not for nothing
	}
	v := c.vain[s.quota]
	if v == nil || v.by != s.by {
		v = &inVain{by: s.by}
		c.vain[s.quota] = v
	}
	if v.times > 0 && ch.at.Before(v.at.Add(v.pause()+2*mostSkew)) {
		return // the taking is older, as of another unit of a gang group
	}
	v.job, v.times, v.at, v.rv = consumerOf(o), v.times+1, ch.at, ch.rv
}

// spent: a pod is on a node. If its unit went while the pod was on its way, the leader may hear of the pod first.
func (c *takingCheck) spent(pod *object) {
	job := c.facts.standsFor(pod)
	maps.DeleteFunc(c.vain, func(_ string, v *inVain) bool { return v.job == job && v.rv > v.by.seenOf(units) })
	for uid, s := range c.lost {
		if o := c.w.api.get(units, s.key); o != nil && o.uid() == uid && consumerOf(o) == job {
			delete(c.lost, uid)
			delete(c.vain, s.quota)
			c.useful[s.quota] = pod.rv
		}
	}
}

// takesAgain: who has taken for nothing waits, each time for longer (I12).
func (c *takingCheck) takesAgain(ch *change) {
	d := ch.by.decision
	v := c.vain[quotaLabel(ch.after)]
	if v == nil || v.by != d.leader || v.rv > d.seen[units] {
		return
	}
	if d.at.Before(v.at.Add(v.pause() - 2*mostSkew)) {
		c.w.violate("I12", "unit %s takes at %s, and what its quota took was for nothing %d times, at last at %s", ch.key,
			d.at.UTC(), v.times, v.at.UTC())
	}
}

// takesBorrowed: units lose what the units of their quota hold above its min, and nothing for pods without a unit
// (I14). Those of a gang group lose it together, if one of them does.
func (c *takingCheck) takesBorrowed(before *object, ch *change) {
	d := ch.by.decision
	var known []string
	if takes(before) {
		known = unitOf(before).Status.Preemption.Holds
	}
	mine := c.accounts.path(c.accounts.chargedTo(ch.after))
	if len(mine) == 0 || !c.accounts.stableTree(d) || c.accounts.minsAreScaled(d) {
		return
	}
	held, gangsTaken, within := c.accounts.heldByUnits(d), map[string]bool{}, map[*object]string{}
	for _, o := range c.w.api.list(units) {
		hold := fmt.Sprintf("%s/%d", o.uid(), unitOf(o).Status.Attempts)
		if slices.Contains(known, hold) || !slices.Contains(unitOf(ch.after).Status.Preemption.Holds, hold) || !holds(o) {
			continue
		}
		if level := c.withinMin(o, mine, held, d); level != "" {
			within[o] = level
		} else {
			gangsTaken[gangGroupOf(o)] = true
		}
	}
	for _, o := range c.w.api.list(units) {
		if level, group := within[o], gangGroupOf(o); level != "" && (group == "" || !gangsTaken[group]) {
			c.w.violate("I14", "unit %s takes from %s, and units of quota %s hold %s of its min %s", ch.key, o.key, level,
				held[level].of(heldOf(o)), c.accounts.smallestMin(level, d.seen[quotas]))
		}
	}
}

// withinMin finds, on the path of a unit up to another path, a level whose units hold at most its min. It is empty if
// there is none, or if nothing is known of the unit.
func (c *takingCheck) withinMin(o *object, mine []string, held map[string]amounts, d *decision) string {
	if c.facts.tainted[o.uid()] || c.accounts.chargedTo(o) == mine[0] {
		return ""
	}
	for _, level := range c.accounts.path(c.accounts.chargedTo(o)) {
		if slices.Contains(mine, level) {
			return ""
		}
		if sum := held[level].of(heldOf(o)); sum.within(c.accounts.smallestMin(level, d.seen[quotas])) {
			return level
		}
	}
	return ""
}

// keptForTakers: from the first loss on, what a unit takes is not for pods without a unit, on any level (I4).
func (c *takingCheck) keptForTakers(pod *object, d *decision) {
	request := requestsOf(&podOf(pod).Spec)
	for _, uid := range slices.Sorted(maps.Keys(c.lost)) {
		s := c.lost[uid]
		o := c.w.api.get(units, s.key)
		if o == nil || o.uid() != uid || s.by != d.leader || s.rv > d.seen[units] || d.pending[s.key] > 0 ||
			!c.accounts.stableTree(d) || !c.takesFor(o) {
			continue
		}
		c.w.countFault("bound while somebody takes")
		byLevel, total := c.accounts.useByLevel(d)
		leaving, leavingAll := c.leaves(o)
		asks, its := leastOf(unitOf(o)), c.accounts.path(quotaLabel(o))
		for _, level := range c.accounts.path(c.accounts.chargedTo(pod)) {
			limit, known := c.accounts.largest(level, d.seen[quotas])
			if !known || byLevel[level] == nil || !slices.Contains(its, level) {
				continue
			}
			sum := byLevel[level].all.plus(request, 1).plus(asks, 1).plus(leaving[level], -1).of(request)
			c.leftFor(o, pod, level, sum, limit.all)
		}
		sum := total.all.plus(request, 1).plus(asks, 1).plus(leavingAll, -1).of(request)
		c.leftFor(o, pod, root, sum, c.accounts.totalSince(d.seen[nodes], greatest))
	}
}

// takesFor says that a unit takes for a job that exists. A unit without a quota or a job takes nothing.
func (c *takingCheck) takesFor(o *object) bool {
	return takes(o) && !c.w.bad(o) && c.accounts.chargedTo(o) != "" && !c.facts.orphaned(o)
}

func (c *takingCheck) leftFor(taker, pod *object, level string, sum, limit amounts) {
	if !sum.within(limit) {
		c.w.violate("I4", "pod %s without a unit binds while unit %s takes: with both %s has %s of %s", pod.key, taker.key,
			level, sum, limit)
	}
}

// leaves is the amount that will be given back at each level, and in all. It has the holds that a unit takes, and pods
// whose unit holds nothing.
func (c *takingCheck) leaves(taker *object) (byLevel map[string]amounts, all amounts) {
	byLevel = map[string]amounts{}
	add := func(o *object, amount amounts) {
		all = all.plus(amount, 1)
		for _, level := range c.accounts.path(c.accounts.chargedTo(o)) {
			byLevel[level] = byLevel[level].plus(amount, 1)
		}
	}
	for _, o := range c.w.api.list(units) {
		hold := fmt.Sprintf("%s/%d", o.uid(), unitOf(o).Status.Attempts)
		if holds(o) && slices.Contains(unitOf(taker).Status.Preemption.Holds, hold) {
			add(o, heldOf(o))
		}
	}
	for _, o := range c.w.api.list(pods) {
		pod := podOf(o)
		key := pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit]
		if pod.Spec.NodeName != "" && (pod.DeletionTimestamp != nil || key != "" && !holds(c.w.api.get(units, key))) {
			add(o, requestsOf(&pod.Spec))
		}
	}
	return byLevel, all
}

func gangGroupOf(o *object) string { return unitOf(o).Annotations[v1alpha1.AnnotationGangGroup] }
