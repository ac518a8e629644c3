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
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// admissionCheck judges each admission: who may be admitted (I3, I9), whether it fits (I1), and who is first (I4, I5).
type admissionCheck struct {
	w        *world
	facts    *facts
	accounts *accounts
	// attempts that were admitted, by unit.
	attempts map[string]bool
	// setBack are jobs whose unit was deleted during a back-off or a deactivation, with the end of that time. Their next
	// unit begins with it before its object says so.
	setBack map[types.UID]time.Time
	// putOff are the leaders that wrote until when units wait, waits what jobs brought along from units that went.
	putOff map[types.UID]*replica
	waits  map[types.UID]wait
}

func newAdmissionCheck(w *world, f *facts, a *accounts) *admissionCheck {
	return &admissionCheck{
		w: w, facts: f, accounts: a, attempts: map[string]bool{}, setBack: map[types.UID]time.Time{},
		putOff: map[types.UID]*replica{}, waits: map[types.UID]wait{},
	}
}

// onUnit notes until when a job waits, and judges an admission.
func (c *admissionCheck) onUnit(before *object, ch *change) {
	u, uid := unitOf(ch.after), ch.after.uid()
	if ch.by == byUser && before != nil &&
		!reflect.DeepEqual(before.u.Object["spec"], ch.after.u.Object["spec"]) {
		delete(c.waits, consumerOf(ch.after)) // somebody who may write units has it tried again
	}
	if r := u.Status.RequeueState; r != nil && r.RequeueAt != nil && ch.by.decision != nil {
		if was := requeueAt(before); !was.Equal(r.RequeueAt.Time) {
			c.putOff[uid] = ch.by.decision.leader
		}
	}
	if ch.admits(before) {
		c.admitted(before, ch)
	}
}

// admits says that a scheduler admits a unit.
func (ch *change) admits(before *object) bool {
	return ch.by.role == roleScheduler && !rulebook.Holds(phaseOf(before)) && rulebook.Holds(phaseOf(ch.after))
}

// goes keeps what counts against the job of a unit that is deleted.
func (c *admissionCheck) goes(ch *change) {
	u, job := unitOf(ch.before), consumerOf(ch.before)
	until := requeueAt(ch.before)
	if deactivation(u) != nil || u.Spec.Active != nil {
		until = c.w.loop.now.Add(24 * time.Hour) // for longer than a plan
	}
	if until.After(c.setBack[job]) {
		c.setBack[job] = until
	}
	by := c.putOff[u.UID]
	if job != "" && u.Status.Phase == v1alpha1.PhaseTimeoutBackoff && by != nil && !c.facts.tainted[u.UID] {
		c.waits[job] = wait{until: requeueAt(ch.before), by: by}
	}
}

// wait is until when a job has to wait, as a leader had written into a unit that went.
type wait struct {
	until time.Time
	by    *replica
}

func requeueAt(o *object) time.Time {
	if o == nil || unitOf(o).Status.RequeueState == nil || unitOf(o).Status.RequeueState.RequeueAt == nil {
		return time.Time{}
	}
	return unitOf(o).Status.RequeueState.RequeueAt.Time
}

// admitted checks one admission by a scheduler.
func (c *admissionCheck) admitted(before *object, ch *change) {
	c.w.report.Admissions++
	u := unitOf(ch.after)
	var attempts int64
	if before != nil {
		attempts = unitOf(before).Status.Attempts
	}
	if u.Status.Attempts != attempts+1 {
		c.w.violate("I3", "unit %s was admitted with attempt %d after %d", ch.key, u.Status.Attempts, attempts)
	}
	attempt := fmt.Sprintf("%s/%d", u.UID, u.Status.Attempts)
	if c.attempts[attempt] {
		c.w.violate("I3", "unit %s was admitted twice with attempt %d", ch.key, u.Status.Attempts)
	}
	c.attempts[attempt] = true
	for _, o := range c.w.api.list(units) {
		if o.key != ch.key && holds(o) && consumerOf(o) != "" && consumerOf(o) == consumerOf(ch.after) {
			c.w.violate("I3", "unit %s was admitted, and unit %s of the same job holds quota already", ch.key, o.key)
		}
	}
	if held, asked := heldOf(ch.after), c.asksInSize(ch.after); held != asked {
		c.w.violate("I10", "unit %s asks for %s and was admitted with %s", ch.key, asked, held)
	}
	c.patiently(before, ch)
	c.stillWaits(ch)
	if ch.by.decision == nil {
		return
	}
	c.precondition(ch)
	c.capacity(ch)
	c.bounds(ch)
	c.order(ch)
}

// precondition: a unit is admitted in the state that the scheduler had seen, without a change in between (I3).
func (c *admissionCheck) precondition(ch *change) {
	d := ch.by.decision
	for _, earlier := range c.w.api.since(units, max(d.seen[units], d.got[ch.key])) {
		if earlier.key == ch.key && earlier.rv < ch.rv &&
			(earlier.by.decision == nil || earlier.by.decision.leader != d.leader) {
			c.w.violate("I3", "unit %s was admitted by %s on a state that %s had changed", ch.key,
				ch.by.process, earlier.by.role)
		}
	}
}

// capacity compares, on each level, held quota and used amounts with the largest limit since the state that the
// scheduler had seen (I1). If the tree changed in that time, only the cluster total is compared. Above the leaf only
// the resources of the unit are compared. Of others too much can be in use, because a limit fell or a node disappeared.
func (c *admissionCheck) capacity(ch *change) {
	d := ch.by.decision
	takes := heldOf(ch.after)
	if takes == (amounts{}) {
		return
	}
	var path []string
	if c.accounts.stableTree(d) {
		path = c.accounts.path(quotaLabel(ch.after))
	}
	byLevel, total := c.accounts.useByLevel(d)
	for i, level := range path {
		limit, ok := c.accounts.largest(level, d.seen[quotas])
		used := byLevel[level]
		if !ok || used == nil {
			continue
		}
		if i > 0 {
			used.all, used.nonPreemptible = used.all.of(takes), used.nonPreemptible.of(takes)
		}
		if !used.all.within(limit.all) {
			c.w.violate("I1", "after the admission of %s by %s, quota %s has %s of %s", ch.key, ch.by.process,
				level, used.all, limit.all)
		}
		if !preemptible(ch.after) && !used.nonPreemptible.within(limit.nonPreemptible) {
			c.w.violate("I1", "after the admission of %s by %s, quota %s has %s of its min %s non-preemptible", ch.key,
				ch.by.process, level, used.nonPreemptible, limit.nonPreemptible)
		}
		if used.jobs > limit.jobs {
			c.w.violate("I1", "after the admission of %s by %s, quota %s has %d of %d jobs", ch.key, ch.by.process,
				level, used.jobs, limit.jobs)
		}
	}
	if most := c.accounts.totalSince(d.seen[nodes], greatest); !total.all.of(takes).within(most) {
		c.w.violate("I1", "after the admission of %s by %s, the cluster has %s of %s", ch.key, ch.by.process, total.all, most)
	}
}

// bounds of a queue count the places of units that hold quota, and those that pods of others keep (I1).
func (c *admissionCheck) bounds(ch *change) {
	d, name := ch.by.decision, unitOf(ch.after).Spec.Queue
	key := keyOf(v1alpha1.DefaultQueueNamespace, name)
	o := c.w.api.get(queues, key)
	if o == nil || !c.facts.unchanged(queues, key, d.seen[queues], 0) {
		return
	}
	spec := nested(o, "spec")
	if spec["maxAdmitted"] == nil && spec["perNamespace"] == nil {
		return
	}
	n := int64(0)
	for _, other := range c.w.api.list(units) {
		if holds(other) && !c.facts.orphaned(other) && unitOf(other).Spec.Queue == name && c.facts.knownToHold(d, other) {
			n++
		}
	}
	for _, p := range c.accounts.remnants(d) {
		if p.queue == name {
			n++
		}
	}
	most := min(intOr(spec["maxAdmitted"], n), intOr(mapAt(spec, "perNamespace")["maxAdmitted"], n))
	if n > most {
		c.w.violate("I1", "after the admission of %s by %s, %d of %d units have a place in queue %s", ch.key,
			ch.by.process, n, most, name)
	}
}

// order: a unit passes no smaller or equal unit of the same queue and quota that has a better position (I4, I5). That
// holds if the scheduler knew that the other one waits. A unit that takes back its own is exempt.
func (c *admissionCheck) order(ch *change) {
	d := ch.by.decision
	policy, stable := c.policy(unitOf(ch.after).Spec.Queue, d)
	if !stable || c.hasTaken(ch.before, d) || !c.facts.unchanged(units, ch.key, d.seen[units], ch.rv) {
		return
	}
	for _, o := range c.w.api.list(units) {
		if o.key == ch.key || !rulebook.Waits(phaseOf(o)) || !fitsWhere(o, ch.after) || c.facts.tainted[o.uid()] ||
			d.pending[o.key] > 0 || o.rv > d.seen[units] || !c.facts.unchanged(units, o.key, d.seen[units], 0) ||
			!c.eligible(o, d) || d.waitsForNodes(o) {
			continue
		}
		if invariant := rulebook.Ahead(policy, servedBy(o), servedBy(ch.after)); invariant != "" {
			c.w.violate(invariant, "%s admitted %s before %s, which asks for no more and is ahead in its queue",
				ch.by.process, ch.key, o.key)
		}
	}
}

// hasTaken: a unit took what it got, or another one of its gang group for all of them.
func (c *admissionCheck) hasTaken(o *object, d *decision) bool {
	if takes(o) {
		return true
	}
	group := gangGroupOf(o)
	with := func(other *object) bool {
		return group != "" && takes(other) && gangGroupOf(other) == group
	}
	return slices.ContainsFunc(c.w.api.list(units), with) ||
		slices.ContainsFunc(c.w.api.since(units, d.seen[units]), func(ch *change) bool { return with(ch.before) })
}

func (c *admissionCheck) policy(queue string, d *decision) (string, bool) {
	key := keyOf(v1alpha1.DefaultQueueNamespace, queue)
	o := c.w.api.get(queues, key)
	if o == nil || !c.facts.unchanged(queues, key, d.seen[queues], 0) {
		return "", false
	}
	policy, _ := nested(o, "spec")["queuePolicy"].(string)
	return policy, true
}

// eligible says whether only quota kept a pending unit from its admission.
func (c *admissionCheck) eligible(o *object, d *decision) bool {
	u := unitOf(o)
	if setAside(u) || u.Annotations[v1alpha1.AnnotationGangGroup] != "" || u.Spec.ConsumerRef == nil || c.w.bad(o) {
		return false
	}
	job := c.facts.consumer(o)
	if job == nil || ended(job) || beingDeleted(job) || c.isSetBack(job) {
		return false
	}
	rival := func(other *object) bool { // another unit stands for the job, or may
		return other.key != o.key && consumerOf(other) == job.uid() && !rulebook.Over(phaseOf(other))
	}
	if slices.ContainsFunc(c.w.api.list(units), rival) {
		return false
	}
	return c.facts.hasSeen(d, job)
}

func (c *admissionCheck) isSetBack(job *object) bool {
	return c.setBack[job.uid()].Add(mostSkew).After(c.w.loop.now)
}

// stillWaits: a unit begins with what its job had to wait for, as long as the leader is the one that said so (I9).
func (c *admissionCheck) stillWaits(ch *change) {
	w, ok := c.waits[consumerOf(ch.after)]
	if !ok || ch.by.decision == nil || ch.by.decision.leader != w.by || c.facts.tainted[ch.after.uid()] {
		return
	}
	if at := c.w.latest(ch.by.process); w.until.After(at) {
		c.w.violate("I9", "unit %s was admitted at %s, and its job has to wait until %s, as the unit before it said",
			ch.key, at, w.until)
	}
}

func setAside(u *v1alpha1.QueueUnit) bool {
	return u.Spec.Active != nil || u.Annotations[v1alpha1.AnnotationParkedReason] != "" ||
		u.Annotations[v1alpha1.AnnotationAdopted] != "" || u.Status.Phase == v1alpha1.PhaseTimeoutBackoff ||
		deactivation(u) != nil || slices.ContainsFunc(u.Status.AdmissionChecks, asksToWrite)
}

// asksToWrite says that what a check asked to write may be in the templates of the job. A unit that waits is not
// admitted before its controller has restored them.
func asksToWrite(c v1alpha1.AdmissionCheckState) bool { return len(c.PodSetUpdates) > 0 }

// fitsWhere says whether a would have fit where b was admitted.
func fitsWhere(a, b *object) bool {
	x, y := unitOf(a), unitOf(b)
	return x.Spec.Queue == y.Spec.Queue && quotaLabel(a) == quotaLabel(b) &&
		x.Labels[v1alpha1.LabelPreemptible] == y.Labels[v1alpha1.LabelPreemptible] &&
		leastOf(x).within(heldOf(b))
}

// servedBy is what the place of a unit in its queue depends on.
func servedBy(o *object) rulebook.Unit {
	u := unitOf(o)
	return rulebook.Unit{Priority: priority(u), Created: u.CreationTimestamp.Time, UID: string(u.UID)}
}

func priority(u *v1alpha1.QueueUnit) int32 {
	if u.Spec.Priority == nil {
		return 0
	}
	return *u.Spec.Priority
}
