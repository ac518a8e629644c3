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
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// accounts of quotas: their limits, and their use. Each amount is the greatest or least one since the state that a
// scheduler had seen at its decision.
type accounts struct {
	w     *world
	facts *facts
}

// use of a quota: all of it, the part that is non-preemptible, and the units that hold any of it.
type use struct {
	all, nonPreemptible amounts
	jobs                int64
}

func (u *use) add(o use) {
	u.all, u.nonPreemptible = u.all.plus(o.all, 1), u.nonPreemptible.plus(o.nonPreemptible, 1)
	u.jobs += o.jobs
}

// place of a unit in a queue and quota.
type place struct{ queue, quota string }

// charge is where a unit holds quota: its key and a quota. A unit that was made again may have held another one before.
type charge struct{ key, quota string }

// heldOf a unit is the amount in its object. An adopted unit without an amount holds exactly the use of its pods, until
// a leader has written an amount.
func heldOf(o *object) (sum amounts) {
	u := unitOf(o)
	for i := range u.Status.Admissions {
		sum = sum.plus(amountsOf(u.Status.Admissions[i].Resources, amounts{}), 1)
	}
	if sum == (amounts{}) && rulebook.Holds(phaseOf(o)) && u.Annotations[v1alpha1.AnnotationAdopted] == "" {
		return askedBy(u)
	}
	return sum
}

// unrecorded says of a unit that was adopted that nobody has written yet what it holds.
func unrecorded(o *object) bool {
	u := unitOf(o)
	return u.Annotations[v1alpha1.AnnotationAdopted] != "" && len(u.Status.Admissions) == 0
}

// chargedTo is the quota that something is charged to. A unit that holds quota stays where it got it, whatever quota it
// names since.
func (a *accounts) chargedTo(o *object) string {
	name := quotaLabel(o)
	if o.kind == units && holds(o) {
		if at := unitOf(o).Status.Effective; at != nil && at.Quota != "" {
			name = at.Quota
		}
	}
	if name != "" && a.w.api.get(quotas, keyOf(quotaNamespace, name)) != nil {
		return name
	}
	return ""
}

// path lists a quota and its parents, as far as they exist.
func (a *accounts) path(leaf string) (path []string) {
	for at := leaf; at != root && at != "" && len(path) < 10; {
		o := a.w.api.get(quotas, keyOf(quotaNamespace, at))
		if o == nil {
			break
		}
		path = append(path, at)
		at = parentOf(o)
	}
	return path
}

// common is the lowest level at or above both; empty if there is none.
func (a *accounts) common(one, other string) string {
	path := a.path(other)
	for _, level := range a.path(one) {
		if slices.Contains(path, level) {
			return level
		}
	}
	return ""
}

// stableTree says whether no quota came, went or moved since the scheduler's news.
func (a *accounts) stableTree(d *decision) bool {
	for _, ch := range a.w.api.since(quotas, d.seen[quotas]) {
		if ch.before == nil || ch.after == nil || parentOf(ch.before) != parentOf(ch.after) {
			return false
		}
	}
	return true
}

// largest limits of a quota since a version: its max, its min, and the number of jobs.
func (a *accounts) largest(name string, since int64) (use, bool) {
	key := keyOf(quotaNamespace, name)
	o := a.w.api.get(quotas, key)
	if o == nil {
		return use{}, false
	}
	most := limitsOf(o)
	for _, ch := range a.w.api.since(quotas, since) {
		if ch.key == key && ch.before != nil {
			was := limitsOf(ch.before)
			most.all, most.nonPreemptible = most.all.each(was.all, greatest),
				most.nonPreemptible.each(was.nonPreemptible, greatest)
			most.jobs = max(most.jobs, was.jobs)
		}
	}
	return most, true
}

func limitsOf(o *object) use {
	q := quotaOf(o)
	limits := use{
		all: amountsOf(q.Spec.Max, unlimited()), nonPreemptible: amountsOf(q.Spec.Min, unlimited()), jobs: math.MaxInt64,
	}
	if n, err := strconv.ParseInt(q.Annotations[v1alpha1.AnnotationMaxJobs], 10, 64); err == nil {
		limits.jobs = n
	}
	return limits
}

// smallestMin of a quota since a version. It promises nothing of what it does not name.
func (a *accounts) smallestMin(name string, since int64) amounts {
	key := keyOf(quotaNamespace, name)
	promised := amountsOf(quotaOf(a.w.api.get(quotas, key)).Spec.Min, amounts{})
	for _, ch := range a.w.api.since(quotas, since) {
		if ch.key == key && ch.before != nil {
			promised = promised.each(amountsOf(quotaOf(ch.before).Spec.Min, amounts{}), least)
		}
	}
	return promised
}

// minsAreScaled says that there may be less than all mins together, so that Koordinator promises less than they say.
func (a *accounts) minsAreScaled(d *decision) bool {
	sums := map[string]amounts{}
	for _, o := range a.w.api.list(quotas) {
		sums[parentOf(o)] = sums[parentOf(o)].plus(amountsOf(quotaOf(o).Spec.Min, amounts{}), 1)
	}
	for parent, sum := range sums {
		if o := a.w.api.get(quotas, keyOf(quotaNamespace, parent)); o != nil {
			if !sum.within(amountsOf(quotaOf(o).Spec.Min, amounts{})) {
				return true
			}
		} else if !sum.within(a.totalSince(d.seen[nodes], least)) {
			return true
		}
	}
	return false
}

// totalSince is the greatest or least total of the nodes since a version.
func (a *accounts) totalSince(since int64, most func(a, b int64) int64) amounts {
	of := func(o *object) amounts { return amountsOf(nodeOf(o).Status.Allocatable, amounts{}) }
	var total amounts
	for _, o := range a.w.api.objects[nodes] {
		total = total.plus(of(o), 1)
	}
	found := total
	for _, ch := range slices.Backward(a.w.api.since(nodes, since)) {
		if ch.after != nil {
			total = total.plus(of(ch.after), -1)
		}
		if ch.before != nil {
			total = total.plus(of(ch.before), 1)
		}
		found = found.each(total, most)
	}
	return found
}

func (a *accounts) useByLevel(d *decision) (byLevel map[string]*use, total use) {
	leaves := a.use(d)
	byLevel = map[string]*use{}
	for _, leaf := range slices.Sorted(maps.Keys(leaves)) {
		total.add(*leaves[leaf])
		for _, at := range a.path(leaf) {
			if byLevel[at] == nil {
				byLevel[at] = &use{}
			}
			byLevel[at].add(*leaves[leaf])
		}
	}
	return byLevel, total
}

// use by leaf quota: pods on nodes, and what units hold beyond theirs. Left out is what the scheduler could not know
// and no scheduler did: holds that the controller or a person wrote after its last news.
func (a *accounts) use(d *decision) map[string]*use {
	uses := map[string]*use{}
	moved := a.movedSince(d)
	charge := func(o *object, amount amounts, jobs int64) {
		leaf := a.chargedTo(o)
		if o.kind == pods {
			for _, former := range moved[o.uid()] {
				leaf = a.common(leaf, former)
			}
		}
		if uses[leaf] == nil {
			uses[leaf] = &use{}
		}
		it := use{all: amount, jobs: jobs}
		// A unit that borrowed as preemptible does not draw on min, whatever its label is now.
		if !preemptible(o) && (o.kind == pods || a.facts.firm[o.uid()]) {
			it.nonPreemptible = amount
		}
		uses[leaf].add(it)
	}
	own := a.chargePods(d, charge)
	for _, o := range a.w.api.list(units) {
		if !holds(o) || a.facts.orphaned(o) || !a.facts.knownToHold(d, o) {
			continue
		}
		// Never more than it asks for now: the pods that are still to come bound what is held beyond those that are there.
		held := heldOf(o).each(askedByAdmitted(unitOf(o)), least)
		charge(o, held.plus(own[consumerOf(o)], -1).each(amounts{}, greatest), 1)
	}
	for _, p := range a.remnants(d) {
		if uses[p.quota] == nil {
			uses[p.quota] = &use{}
		}
		uses[p.quota].jobs++
	}
	return uses
}

// chargePods charges the use of pods. It returns, by job, the use that is part of held quota.
func (a *accounts) chargePods(d *decision, charge func(*object, amounts, int64)) map[types.UID]amounts {
	own := map[types.UID]amounts{}
	for _, o := range a.w.api.list(pods) {
		amount, uid := requestsOf(&podOf(o).Spec), a.facts.standsFor(o)
		switch {
		case a.facts.counts(d, o):
			charge(o, amount, 0)
		case !d.leader.left[o.uid()] || !a.facts.forgotten(d, o):
			continue
		}
		own[uid] = own[uid].plus(amount, 1)
	}
	return own
}

// movedSince are the former quotas of pods that have changed their quota since. One stream of the scheduler may have
// the change and another not yet, so such a pod counts in each of its quotas.
func (a *accounts) movedSince(d *decision) map[types.UID][]string {
	former := map[types.UID][]string{}
	for _, ch := range a.w.api.since(pods, d.seen[pods]) {
		if ch.before != nil && ch.after != nil && quotaLabel(ch.before) != quotaLabel(ch.after) {
			former[ch.after.uid()] = append(former[ch.after.uid()], a.chargedTo(ch.before))
		}
	}
	return former
}

// remnants are places of pods whose units hold nothing any more, by unit. Only those count that a leader must know,
// because the pods and the rest of the unit agree on the place.
func (a *accounts) remnants(d *decision) map[string]place {
	left := map[string]place{}
	for _, o := range a.w.api.objects[pods] {
		key := podOf(o).Annotations[v1alpha1.AnnotationRelatedQueueUnit]
		was, known := a.facts.heldIn[key]
		if !known || !a.remains(d, o, was.quota) || !a.leftOver(o, key, was) {
			continue
		}
		if gone := a.facts.goneAt[key]; gone > 0 &&
			(d.leader.listed >= gone || a.facts.boundAt[podOf(o).UID].rv > a.facts.goneSeen[key][d.leader]) {
			was.queue = "" // deleted before the leader listed, or saw the pod on a node
		}
		if left[key].queue == "" {
			left[key] = was
		}
	}
	return left
}

// remains: a pod is on a node, and known to be charged to a quota.
func (a *accounts) remains(d *decision, o *object, quota string) bool {
	pod := podOf(o)
	return pod.Spec.NodeName != "" && !terminated(pod) && quotaLabel(o) == quota && o.rv <= d.seen[pods] &&
		a.facts.counts(d, o) && a.facts.turned[quota] <= a.facts.boundAt[pod.UID].rv
}

// leftOver: no unit holds quota for a pod, or one whose job is gone, and nothing says that its place was another.
func (a *accounts) leftOver(pod *object, key string, was place) bool {
	if u := a.w.api.get(units, key); u != nil {
		held := holds(u) && !a.facts.orphaned(u)
		if held || quotaLabel(u) != was.quota || unitOf(u).Spec.Queue != was.queue {
			return false
		}
	}
	job := a.w.topOf(pod)
	return job == nil || job == pod || a.w.unitKeyOf(job) == key
}

// heldByUnits is the most that units can hold at each level, with their pods, for any state that a decision may have
// known. It includes units to which the scheduler was giving quota then.
func (a *accounts) heldByUnits(d *decision) map[string]amounts {
	most := map[charge]amounts{}
	look := func(o *object, amount amounts) {
		at := charge{o.key, a.chargedTo(o)}
		most[at] = most[at].each(amount, greatest)
	}
	for _, o := range a.w.api.list(units) {
		if holds(o) {
			look(o, heldOf(o))
		}
		if d.pending[o.key] > 0 || d.leader.flights[o.key] > 0 {
			look(o, askedBy(unitOf(o)))
		}
	}
	for _, ch := range slices.Backward(a.w.api.history[units]) {
		if ch.rv <= d.seen[units] && ch.at.Before(d.at.Add(-2*a.w.plan.Deadline)) {
			break
		}
		if ch.before != nil && holds(ch.before) {
			look(ch.before, heldOf(ch.before))
		}
	}
	// Deleted pods count in addition: the place of their successors is kept.
	onNodes, leaving := map[string]amounts{}, map[string]amounts{}
	for _, o := range a.w.api.list(pods) {
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
		for _, level := range a.path(at.quota) {
			sums[level] = sums[level].plus(amount.each(onNodes[at.key], greatest), 1).plus(leaving[at.key], 1)
		}
	}
	return sums
}

// mostHeld is the greatest amount that the unit of a job has held since the scheduler's last information. A release
// counts after its confirmation. sure is false if a person wrote the amount, or nobody has yet.
func (a *accounts) mostHeld(key string, job types.UID, d *decision) (most amounts, sure bool) {
	sure = true
	look := func(o *object) {
		if o != nil && consumerOf(o) == job && holds(o) {
			most = most.each(heldOf(o), greatest)
			sure = sure && !a.facts.tainted[o.uid()] && !unrecorded(o)
		}
	}
	look(a.w.api.get(units, key))
	for _, ch := range slices.Backward(a.w.api.history[units]) {
		news := ch.rv > d.seen[units]
		if !news && ch.at.Before(d.at.Add(-a.w.plan.Deadline)) {
			break
		}
		if ch.key == key && (news || ch.by.decision != nil && ch.by.decision.leader == d.leader) {
			look(ch.before)
			look(ch.after)
		}
	}
	return most, sure
}
