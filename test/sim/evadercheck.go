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
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// Whatever a tenant does, preemption promises this, as far as a leader knew when it decided:
//   - Nobody loses the guarantee of its quota to pods without a unit, and quota that a unit takes is not for such pods.
//   - A quota that took in vain waits before it takes again.
//   - A job that loses its admission stops.

const (
	// vainPause is how long nobody takes for whom something was taken for nothing, at first.
	vainPause = 30 * time.Second
	// longestVain is the longest pause.
	longestVain = time.Hour
)

// spoils are what the checks of preemption remember.
type spoils struct {
	// lost are the units for which somebody has lost what it held, until a pod of theirs is on a node.
	lost map[types.UID]*spoil
	// vain is what was taken for nothing in a row, by the quota for which it was. All tenants have one namespace.
	vain map[string]*inVain
	// useful is the version of the last pod on a node for which the quota took.
	useful map[string]int64
}

// spoil of a unit that takes: for which quota, and the leader that had others lose it, first with this version.
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

func newSpoils() spoils {
	return spoils{lost: map[types.UID]*spoil{}, vain: map[string]*inVain{}, useful: map[string]int64{}}
}

// lostFor is the hold, as units name what they take, that a unit loses by this change because somebody takes it.
func (c *checker) lostFor(ch *change) string {
	if ch.by.decision == nil || ch.before == nil || ch.before.uid() != ch.after.uid() || !holds(ch.before) ||
		holds(ch.after) || c.tainted[ch.after.uid()] {
		return ""
	}
	status := unitOf(ch.after).Status
	e := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionEvicted)
	if e == nil || e.Reason != string(unit.ReasonReclaimed) && e.Reason != string(unit.ReasonPreemptedInQueue) {
		return ""
	}
	return fmt.Sprintf("%s/%d", ch.after.uid(), status.Attempts)
}

// onSpoils notes what units take, get and give up.
func (c *checker) onSpoils(before *object, ch *change) {
	o := ch.after
	if c.tainted[o.uid()] {
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

// follow a unit for which somebody has lost quota. If it stops taking before it holds that, pods of others may have
// stayed, which is not its fault. Quota that it gets later is not from its victims. A unit that is held stops taking
// for good, though its status says what it took.
func (c *checker) follow(s *spoil, ch *change) {
	o := ch.after
	if holds(o) || takes(o) && !setAside(unitOf(o)) {
		s.held = holds(o)
		return
	}
	if s.held {
		c.forNothing(s, o, ch)
	}
	delete(c.lost, o.uid())
}

// goes: a unit that has taken is deleted.
func (c *checker) goes(ch *change) {
	if s := c.lost[ch.before.uid()]; s != nil {
		c.forNothing(s, ch.before, ch)
	}
	delete(c.lost, ch.before.uid())
}

// lostBy notes for whom a hold was lost, if that is one unit.
func (c *checker) lostBy(hold string, ch *change) {
	var by []*object
	for _, o := range c.w.api.list(units) {
		if takes(o) && !setAside(unitOf(o)) && slices.Contains(unitOf(o).Status.Preemption.Holds, hold) {
			by = append(by, o)
		}
	}
	if len(by) == 1 && c.lost[by[0].uid()] == nil && !c.tainted[by[0].uid()] {
		c.lost[by[0].uid()] = &spoil{key: by[0].key, quota: quotaLabel(by[0]), by: ch.by.decision.leader, rv: ch.rv}
	}
}

// forNothing: others have lost what they held, and no pod of the unit was on a node.
func (c *checker) forNothing(s *spoil, o *object, ch *change) {
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

// pause is how long nobody takes after the last time.
func (v *inVain) pause() time.Duration { return min(vainPause<<min(v.times-1, 10), longestVain) }

// spent: a pod is on a node. If its unit went while the pod was on its way, the leader may hear of the pod first.
func (c *checker) spent(pod *object) {
	job := c.standsFor(pod)
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
func (c *checker) takesAgain(ch *change) {
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
func (c *checker) takesBorrowed(before *object, ch *change) {
	d := ch.by.decision
	var known []string
	if takes(before) {
		known = unitOf(before).Status.Preemption.Holds
	}
	mine := c.path(c.chargedTo(ch.after))
	if len(mine) == 0 || !c.stableTree(d) || c.minsAreScaled(d) {
		return
	}
	held, gangsTaken, within := c.heldByUnits(d), map[string]bool{}, map[*object]string{}
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
				held[level].of(heldOf(o)), c.smallestMin(level, d.seen[quotas]))
		}
	}
}

// withinMin finds, on the path of a unit up to another path, a level whose units hold at most its min. It is empty if
// there is none, or if nothing is known of the unit.
func (c *checker) withinMin(o *object, mine []string, held map[string]amounts, d *decision) string {
	if c.tainted[o.uid()] || c.chargedTo(o) == mine[0] {
		return ""
	}
	for _, level := range c.path(c.chargedTo(o)) {
		if slices.Contains(mine, level) {
			return ""
		}
		if sum := held[level].of(heldOf(o)); sum.within(c.smallestMin(level, d.seen[quotas])) {
			return level
		}
	}
	return ""
}

func gangGroupOf(o *object) string { return unitOf(o).Annotations[v1alpha1.AnnotationGangGroup] }

// charge is where a unit holds quota: its key and a quota. A unit that was made again may have held another one before.
type charge struct{ key, quota string }

// heldByUnits is the most that units can hold at each level, with their pods, for any state that a decision may have
// known. It includes units to which the scheduler was giving quota then.
func (c *checker) heldByUnits(d *decision) map[string]amounts {
	most := map[charge]amounts{}
	look := func(o *object, amount amounts) {
		at := charge{o.key, c.chargedTo(o)}
		most[at] = most[at].each(amount, greatest)
	}
	for _, o := range c.w.api.list(units) {
		if holds(o) {
			look(o, heldOf(o))
		}
		if d.pending[o.key] > 0 || d.leader.flights[o.key] > 0 {
			look(o, askedBy(unitOf(o)))
		}
	}
	for _, ch := range slices.Backward(c.w.api.history[units]) {
		if ch.rv <= d.seen[units] && ch.at.Before(d.at.Add(-2*c.w.plan.Deadline)) {
			break
		}
		if ch.before != nil && holds(ch.before) {
			look(ch.before, heldOf(ch.before))
		}
	}
	// Deleted pods count in addition: the place of their successors is kept.
	onNodes, leaving := map[string]amounts{}, map[string]amounts{}
	for _, o := range c.w.api.list(pods) {
		pod := podOf(o)
		key := pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit]
		switch {
		case pod.Spec.NodeName == "":
		case pod.DeletionTimestamp != nil:
			leaving[key] = leaving[key].plus(requestsOf(&pod.Spec), 1)
		default:
			onNodes[key] = onNodes[key].plus(requestsOf(&pod.Spec), 1)
		}
	}
	sums := map[string]amounts{}
	for at, amount := range most {
		for _, level := range c.path(at.quota) {
			sums[level] = sums[level].plus(amount.each(onNodes[at.key], greatest), 1).plus(leaving[at.key], 1)
		}
	}
	return sums
}

// smallestMin of a quota since a version. It promises nothing of what it does not name.
func (c *checker) smallestMin(name string, since int64) amounts {
	key := keyOf(quotaNamespace, name)
	promised := amountsOf(quotaOf(c.w.api.get(quotas, key)).Spec.Min, amounts{})
	for _, ch := range c.w.api.since(quotas, since) {
		if ch.key == key && ch.before != nil {
			promised = promised.each(amountsOf(quotaOf(ch.before).Spec.Min, amounts{}), least)
		}
	}
	return promised
}

// minsAreScaled says that there may be less than all mins together, so that Koordinator promises less than they say.
func (c *checker) minsAreScaled(d *decision) bool {
	sums := map[string]amounts{}
	for _, o := range c.w.api.list(quotas) {
		sums[parentOf(o)] = sums[parentOf(o)].plus(amountsOf(quotaOf(o).Spec.Min, amounts{}), 1)
	}
	for parent, sum := range sums {
		if o := c.w.api.get(quotas, keyOf(quotaNamespace, parent)); o != nil {
			if !sum.within(amountsOf(quotaOf(o).Spec.Min, amounts{})) {
				return true
			}
		} else if !sum.within(c.totalSince(d.seen[nodes], least)) {
			return true
		}
	}
	return false
}

// keptForTakers: from the first loss on, what a unit takes is not for pods without a unit, on any level (I4).
func (c *checker) keptForTakers(pod *object, d *decision) {
	request := requestsOf(&podOf(pod).Spec)
	for _, uid := range slices.Sorted(maps.Keys(c.lost)) {
		s := c.lost[uid]
		o := c.w.api.get(units, s.key)
		if o == nil || o.uid() != uid || s.by != d.leader || s.rv > d.seen[units] || d.pending[s.key] > 0 ||
			!c.stableTree(d) || !c.takesFor(o) {
			continue
		}
		c.w.countFault("bound while somebody takes")
		byLevel, total := c.useByLevel(d)
		leaving, leavingAll := c.leaves(o)
		asks, its := leastOf(unitOf(o)), c.path(quotaLabel(o))
		for _, level := range c.path(c.chargedTo(pod)) {
			limit, known := c.largest(level, d.seen[quotas])
			if !known || byLevel[level] == nil || !slices.Contains(its, level) {
				continue
			}
			sum := byLevel[level].all.plus(request, 1).plus(asks, 1).plus(leaving[level], -1).of(request)
			c.leftFor(o, pod, level, sum, limit.all)
		}
		sum := total.all.plus(request, 1).plus(asks, 1).plus(leavingAll, -1).of(request)
		c.leftFor(o, pod, root, sum, c.totalSince(d.seen[nodes], greatest))
	}
}

// takesFor says that a unit takes for a job that exists. A unit without a quota or a job takes nothing.
func (c *checker) takesFor(o *object) bool {
	return takes(o) && !c.w.bad(o) && c.chargedTo(o) != "" && !c.orphaned(o)
}

func (c *checker) leftFor(taker, pod *object, level string, sum, limit amounts) {
	if !sum.within(limit) {
		c.w.violate("I4", "pod %s without a unit binds while unit %s takes: with both %s has %s of %s", pod.key, taker.key,
			level, sum, limit)
	}
}

// leaves is the amount that will be given back at each level, and in all. It has the holds that a unit takes, and pods
// whose unit holds nothing.
func (c *checker) leaves(taker *object) (byLevel map[string]amounts, all amounts) {
	byLevel = map[string]amounts{}
	add := func(o *object, amount amounts) {
		all = all.plus(amount, 1)
		for _, level := range c.path(c.chargedTo(o)) {
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

// loses: a released job is suspended soon after its unit loses its quota, whatever labels and owners it has by then
// (I15). A unit that loses quota to others can have a grace, which another check covers.
func (c *checker) loses(before *object, ch *change) {
	o := ch.after
	if before == nil || unitOf(o).Spec.ConsumerRef == nil || !holds(before) || !rulebook.Releases(phaseOf(before)) ||
		holds(o) || rulebook.Over(phaseOf(o)) || c.tainted[o.uid()] || c.lostToOthers(o) != nil {
		return
	}
	if job := c.consumer(o); job != nil && runs(job) && !c.w.bad(job) {
		c.w.countFault("lost while it runs")
		c.stillRuns(job, ch)
	}
}

// stillRuns looks again when a controller has done what it could.
func (c *checker) stillRuns(job *object, ch *change) {
	c.w.loop.at(c.calm(ch.at.Add(lookPause)), func() {
		now, u := c.w.api.get(job.kind, job.key), c.w.api.get(units, ch.key)
		stopped := slices.ContainsFunc(c.w.api.since(job.kind, ch.rv), func(later *change) bool {
			return later.key == job.key && later.after != nil && isSuspended(later.after)
		})
		switch {
		case stopped, now == nil, now.uid() != job.uid(), !runs(now), u == nil, u.uid() != ch.after.uid(), c.tainted[u.uid()],
			rulebook.Releases(phaseOf(u)), rulebook.Over(phaseOf(u)), c.lostToOthers(u) != nil:
		case c.w.loop.now.Before(c.calm(ch.at.Add(lookPause))):
			c.stillRuns(job, ch)
		default:
			c.w.violate("I15", "job %s runs, and its unit lost what it held at %s", job.key, ch.at.UTC())
		}
	})
}
