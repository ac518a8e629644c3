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
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// checker compares all writes with the invariants, from API objects alone. Facts that a process could not know at its
// decision count with any value between then and now. The checker takes nothing else from the process.
type checker struct {
	w *world
	deeds
	debts
	spoils
	// tainted units had their status written by a person; heldBy says who made a unit hold quota.
	tainted map[types.UID]bool
	heldBy  map[types.UID]writer
	heldAt  map[types.UID]int64
	// attempts that were admitted, by unit.
	attempts map[string]bool
	boundAt  map[types.UID]binding
	// turned is when a quota was made or deleted, the last one of its name.
	turned map[string]int64
	looked int
	// setBack are jobs whose unit was deleted during a back-off or a deactivation, with the end of that time. Their next
	// unit begins with it before its object says so.
	setBack map[types.UID]time.Time
	// wholes are the numbers of pods that their owners gave to jobs.
	wholes map[types.UID]int64
	// recorded are the holds that some unit has said to take back.
	recorded map[string]bool
	// writes of this second, by process and object.
	second time.Time
	writes map[string]int
}

type binding struct {
	rv        int64
	by        *replica
	uncounted bool
}

func newChecker(w *world) *checker {
	return &checker{
		w: w, deeds: newDeeds(), debts: newDebts(), spoils: newSpoils(), tainted: map[types.UID]bool{},
		heldBy: map[types.UID]writer{}, heldAt: map[types.UID]int64{},
		attempts: map[string]bool{}, boundAt: map[types.UID]binding{}, turned: map[string]int64{},
		writes: map[string]int{},
		wholes: map[types.UID]int64{}, recorded: map[string]bool{}, setBack: map[types.UID]time.Time{},
	}
}

func phaseOf(o *object) unit.Phase {
	if o == nil {
		return unit.PhaseNone
	}
	return unit.Phase(unitOf(o).Status.Phase)
}

// holds: a phase of another version that holds something is taken to hold it, and to let its job's pods go.
func holds(o *object) bool {
	if o == nil {
		return false
	}
	phase := phaseOf(o)
	return rulebook.Holds(phase) || !rulebook.Waits(phase) && !rulebook.Over(phase) && len(unitOf(o).Status.Admissions) > 0
}

func (c *checker) onChange(ch *change) {
	defer c.onGrace(ch)
	switch ch.kind {
	case units:
		c.onUnit(ch)
	case jobKind, jobSets:
		c.onJob(ch)
	case quotas:
		if ch.before == nil || ch.after == nil {
			c.turned[cmp.Or(ch.after, ch.before).u.GetName()] = ch.rv
		}
	case pods:
		if ch.after != nil && podOf(ch.after).Spec.NodeName != "" &&
			(ch.before == nil || podOf(ch.before).Spec.NodeName == "") {
			c.w.report.Binds++
			b := binding{rv: ch.rv}
			if ch.by.decision != nil {
				b.by, b.uncounted = ch.by.decision.leader, ch.by.decision.uncounted
			}
			c.boundAt[ch.after.uid()] = b
			c.spent(ch.after)
		}
	default:
	}
}

func (c *checker) onUnit(ch *change) {
	if ch.after == nil {
		c.unitGoes(ch.before)
		c.noteGone(ch)
		c.goes(ch)
		return
	}
	uid := ch.after.uid()
	before := ch.before
	if before != nil && before.uid() != uid {
		before = nil
	}
	if ch.before == nil && ch.by.role == roleController {
		if job := c.consumer(ch.after); job != nil && owner(job) != nil {
			c.w.violate("I3", "%s queued job %s, which is a part of %s", ch.by.process, job.key, owner(job).Name)
		}
	}
	was, is := phaseOf(before), phaseOf(ch.after)
	if !rulebook.Holds(was) && rulebook.Holds(is) {
		c.heldBy[uid], c.heldAt[uid] = ch.by, ch.rv
	}
	c.writtenStatus(before, ch)
	c.noteUnit(before, ch)
	c.onChecks(before, ch)
	c.onReclaim(before, ch)
	c.onForesight(before, ch)
	c.onSpoils(before, ch)
	c.loses(before, ch)
	if ch.by.role == roleScheduler && !rulebook.Holds(was) && rulebook.Holds(is) {
		c.admitted(before, ch)
	}
}

// writtenStatus judges what our processes made of a status, as long as nobody else has written to it (I9).
func (c *checker) writtenStatus(before *object, ch *change) {
	if before == nil || reflect.DeepEqual(before.u.Object["status"], ch.after.u.Object["status"]) {
		return
	}
	uid := ch.after.uid()
	if ch.by.role == roleChecks {
		return
	}
	if ch.by.role != roleScheduler && ch.by.role != roleController {
		c.tainted[uid] = true
	}
	if c.tainted[uid] {
		return
	}
	if was, is := phaseOf(before), phaseOf(ch.after); was != is && !rulebook.Follows(was, is, ch.by.role) {
		c.w.violate("I9", "%s changed unit %s from %q to %q", ch.by.process, ch.key, was, is)
	}
	err := unitcondition.Unlawful(unitOf(before).Status.Conditions, unitOf(ch.after).Status.Conditions,
		unit.Writer(ch.by.role))
	if err != nil {
		c.w.violate("I9", "%s changed a condition of unit %s: %v", ch.by.process, ch.key, err)
	}
	c.conditions(ch.after)
}

// conditions that contradict the phase or each other (I9).
func (c *checker) conditions(o *object) {
	u := unitOf(o)
	is := func(kind string) bool { return meta.IsStatusConditionTrue(u.Status.Conditions, kind) }
	phase := phaseOf(o)
	switch {
	case rulebook.Holds(phase) && !is(v1alpha1.ConditionQuotaReserved),
		!rulebook.Holds(phase) && (is(v1alpha1.ConditionQuotaReserved) || is(v1alpha1.ConditionAdmitted)),
		rulebook.Over(phase) != is(v1alpha1.ConditionFinished),
		is(v1alpha1.ConditionAdmitted) && is(v1alpha1.ConditionEvicted):
		var list []string
		for _, cond := range u.Status.Conditions {
			list = append(list, cond.Type+"="+string(cond.Status))
		}
		c.w.violate("I9", "unit %s in phase %q has conditions %v", o.key, phase, list)
	}
}

// admitted checks one admission by a scheduler.
func (c *checker) admitted(before *object, ch *change) {
	c.w.report.Admissions++
	if len(c.owed) > 0 {
		c.w.countFault("admission during a grace")
	}
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
			c.w.violate("I3", "unit %s was admitted beside %s for the same job", ch.key, o.key)
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
func (c *checker) precondition(ch *change) {
	d := ch.by.decision
	for _, earlier := range c.w.api.since(units, max(d.seen[units], d.got[ch.key])) {
		if earlier.key == ch.key && earlier.rv < ch.rv &&
			(earlier.by.decision == nil || earlier.by.decision.leader != d.leader) {
			c.w.violate("I3", "unit %s was admitted by %s on a state that %s had changed", ch.key,
				ch.by.process, earlier.by.role)
		}
	}
}

func consumerOf(o *object) types.UID {
	if ref := unitOf(o).Spec.ConsumerRef; ref != nil {
		return ref.UID
	}
	return ""
}

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

func quotaLabel(o *object) string { return o.u.GetLabels()[v1alpha1.LabelQuotaName] }

// chargedTo is the quota that something is charged to. A unit that holds quota stays where it got it, whatever quota it
// names since.
func (c *checker) chargedTo(o *object) string {
	name := quotaLabel(o)
	if o.kind == units && holds(o) {
		if at := unitOf(o).Status.Effective; at != nil && at.Quota != "" {
			name = at.Quota
		}
	}
	if name != "" && c.w.api.get(quotas, keyOf(quotaNamespace, name)) != nil {
		return name
	}
	return ""
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

// capacity compares, on each level, held quota and used amounts with the largest limit since the state that the
// scheduler had seen (I1). If the tree changed in that time, only the cluster total is compared. Above the leaf only
// the resources of the unit are compared. Of others too much can be in use, because a limit fell or a node disappeared.
func (c *checker) capacity(ch *change) {
	d := ch.by.decision
	takes := heldOf(ch.after)
	if takes == (amounts{}) {
		return
	}
	var path []string
	if c.stableTree(d) {
		path = c.path(quotaLabel(ch.after))
	}
	byLevel, total := c.useByLevel(d)
	for i, level := range path {
		limit, ok := c.largest(level, d.seen[quotas])
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
	if most := c.totalSince(d.seen[nodes], greatest); !total.all.of(takes).within(most) {
		c.w.violate("I1", "after the admission of %s by %s, the cluster has %s of %s", ch.key, ch.by.process, total.all, most)
	}
}

// path lists a quota and its parents, as far as they exist.
func (c *checker) path(leaf string) (path []string) {
	for at := leaf; at != root && at != "" && len(path) < 10; {
		o := c.w.api.get(quotas, keyOf(quotaNamespace, at))
		if o == nil {
			break
		}
		path = append(path, at)
		at = parentOf(o)
	}
	return path
}

func (c *checker) useByLevel(d *decision) (byLevel map[string]*use, total use) {
	leaves := c.use(d)
	byLevel = map[string]*use{}
	for _, leaf := range slices.Sorted(maps.Keys(leaves)) {
		total.add(*leaves[leaf])
		for _, at := range c.path(leaf) {
			if byLevel[at] == nil {
				byLevel[at] = &use{}
			}
			byLevel[at].add(*leaves[leaf])
		}
	}
	return byLevel, total
}

func preemptible(o *object) bool { return o.u.GetLabels()[v1alpha1.LabelPreemptible] != "false" }

// stableTree says whether no quota came, went or moved since the scheduler's news.
func (c *checker) stableTree(d *decision) bool {
	for _, ch := range c.w.api.since(quotas, d.seen[quotas]) {
		if ch.before == nil || ch.after == nil || parentOf(ch.before) != parentOf(ch.after) {
			return false
		}
	}
	return true
}

// use by leaf quota: pods on nodes, and what units hold beyond theirs. Left out is what the scheduler could not know
// and no scheduler did: holds that the controller or a person wrote after its last news.
func (c *checker) use(d *decision) map[string]*use {
	uses := map[string]*use{}
	moved := c.movedSince(d)
	charge := func(o *object, amount amounts, jobs int64) {
		leaf := c.chargedTo(o)
		if o.kind == pods {
			for _, former := range moved[o.uid()] {
				leaf = c.common(leaf, former)
			}
		}
		if uses[leaf] == nil {
			uses[leaf] = &use{}
		}
		it := use{all: amount, jobs: jobs}
		// A unit that borrowed as preemptible does not draw on min, whatever its label is now.
		if !preemptible(o) && (o.kind == pods || c.firm[o.uid()]) {
			it.nonPreemptible = amount
		}
		uses[leaf].add(it)
	}
	own := c.chargePods(d, charge)
	for _, o := range c.w.api.list(units) {
		if !holds(o) || c.orphaned(o) || !c.knownToHold(d, o) {
			continue
		}
		// Never more than it asks for now: the pods that are still to come bound what is held beyond those that are there.
		held := heldOf(o).each(askedByAdmitted(unitOf(o)), least)
		charge(o, held.plus(own[consumerOf(o)], -1).each(amounts{}, greatest), 1)
	}
	for _, p := range c.remnants(d) {
		if uses[p.quota] == nil {
			uses[p.quota] = &use{}
		}
		uses[p.quota].jobs++
	}
	return uses
}

// chargePods charges the use of pods. It returns, by job, the use that is part of held quota.
func (c *checker) chargePods(d *decision, charge func(*object, amounts, int64)) map[types.UID]amounts {
	own := map[types.UID]amounts{}
	for _, o := range c.w.api.list(pods) {
		amount, uid := requestsOf(&podOf(o).Spec), c.standsFor(o)
		switch {
		case c.counts(d, o):
			charge(o, amount, 0)
		case !d.leader.left[o.uid()] || !c.forgotten(d, o):
			continue
		}
		own[uid] = own[uid].plus(amount, 1)
	}
	return own
}

// movedSince are the former quotas of pods that have changed their quota since. One stream of the scheduler may have
// the change and another not yet, so such a pod counts in each of its quotas.
func (c *checker) movedSince(d *decision) map[types.UID][]string {
	former := map[types.UID][]string{}
	for _, ch := range c.w.api.since(pods, d.seen[pods]) {
		if ch.before != nil && ch.after != nil && quotaLabel(ch.before) != quotaLabel(ch.after) {
			former[ch.after.uid()] = append(former[ch.after.uid()], c.chargedTo(ch.before))
		}
	}
	return former
}

// common is the lowest level at or above both; empty if there is none.
func (c *checker) common(a, b string) string {
	path := c.path(b)
	for _, level := range c.path(a) {
		if slices.Contains(path, level) {
			return level
		}
	}
	return ""
}

// standsFor is the job whose unit counts a pod on a node: its own job. If that has no unit, because its owner created
// it again, it is the job of the unit that the pod names.
func (c *checker) standsFor(pod *object) types.UID {
	uid := types.UID("")
	if job := c.w.topOf(pod); job != nil {
		uid = job.uid()
	} else if ref := owner(pod); ref != nil {
		uid = ref.UID
	}
	of := func(u *object) bool { return consumerOf(u) == uid }
	if named := c.w.api.get(units, podOf(pod).Annotations[v1alpha1.AnnotationRelatedQueueUnit]); named != nil &&
		!slices.ContainsFunc(c.w.api.list(units), of) {
		return consumerOf(named)
	}
	return uid
}

// counts says whether a pod on a node is use that the decision had to know of.
func (c *checker) counts(d *decision, o *object) bool {
	pod := podOf(o)
	if pod.Spec.NodeName == "" || terminated(pod) {
		return false
	}
	b := c.boundAt[pod.UID]
	if b.rv > max(d.seen[pods], d.leader.listed) && b.by != d.leader {
		return false
	}
	// A pod that came after the decision is part of its unit, or is not the decision's fault. Reservations are protected
	// from other pods at the leaf only: ElasticQuota compares pods with neither a parent nor the cluster.
	if b.rv > d.version || b.uncounted && b.rv > d.seen[pods] {
		return false
	}
	return !c.forgotten(d, o)
}

// forgotten reports a pod that Koordinator does not know of. A quota begins with nothing used, and its end removes its
// used amount. Koordinator learns of earlier pods at their next event. A unit keeps its held quota until it gives that
// back.
func (c *checker) forgotten(d *decision, pod *object) bool {
	quota, heard := quotaLabel(pod), pod.rv
	for _, ch := range c.w.api.since(pods, d.seen[pods]) {
		if ch.key == pod.key && ch.before != nil && ch.before.uid() == pod.uid() {
			heard = ch.before.rv
			break
		}
	}
	return max(c.turned[quota], d.leader.turned[quota]) > heard
}

// knownToHold: a scheduler made a unit hold quota, or the decision's news have it.
func (c *checker) knownToHold(d *decision, unit *object) bool {
	return c.heldBy[unit.uid()].role == roleScheduler || c.heldAt[unit.uid()] <= d.seen[units]
}

// orphaned: a unit whose job is gone holds exactly the use of its pods, until it is collected.
func (c *checker) orphaned(o *object) bool {
	if ref := unitOf(o).Spec.ConsumerRef; ref == nil || ref.Kind == foreignKind {
		return false
	}
	job := c.consumer(o)
	return job == nil || beingDeleted(job)
}

// consumer is the job that a unit stands for; nil if it is gone.
func (c *checker) consumer(o *object) *object {
	ref := unitOf(o).Spec.ConsumerRef
	return c.w.jobOf(o.u.GetNamespace(), &metav1.OwnerReference{Kind: ref.Kind, Name: ref.Name, UID: ref.UID})
}

// largest limits of a quota since a version: its max, its min, and the number of jobs.
func (c *checker) largest(name string, since int64) (use, bool) {
	key := keyOf(quotaNamespace, name)
	o := c.w.api.get(quotas, key)
	if o == nil {
		return use{}, false
	}
	most := limitsOf(o)
	for _, ch := range c.w.api.since(quotas, since) {
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

// totalSince is the greatest or least total of the nodes since a version.
func (c *checker) totalSince(since int64, most func(a, b int64) int64) amounts {
	of := func(o *object) amounts { return amountsOf(nodeOf(o).Status.Allocatable, amounts{}) }
	var total amounts
	for _, o := range c.w.api.objects[nodes] {
		total = total.plus(of(o), 1)
	}
	found := total
	for _, ch := range slices.Backward(c.w.api.since(nodes, since)) {
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

// order: a unit passes no smaller or equal unit of the same queue and quota that has a better position (I4, I5). That
// holds if the scheduler knew that the other one waits. A unit that takes back its own is exempt.
func (c *checker) order(ch *change) {
	d := ch.by.decision
	policy, stable := c.policy(unitOf(ch.after).Spec.Queue, d)
	if !stable || c.hasTaken(ch.before, d) || !c.unchanged(units, ch.key, d.seen[units], ch.rv) {
		return
	}
	for _, o := range c.w.api.list(units) {
		if o.key == ch.key || !rulebook.Waits(phaseOf(o)) || !fitsWhere(o, ch.after) || c.tainted[o.uid()] ||
			d.pending[o.key] > 0 || o.rv > d.seen[units] || !c.unchanged(units, o.key, d.seen[units], 0) || !c.eligible(o, d) ||
			d.waitsForNodes(o) {
			continue
		}
		if invariant := rulebook.Ahead(policy, servedBy(o), servedBy(ch.after)); invariant != "" {
			c.w.violate(invariant, "%s admitted %s before %s, which waits for no more with a better place",
				ch.by.process, ch.key, o.key)
		}
	}
}

// hasTaken: a unit took what it got, or another one of its gang group for all of them.
func (c *checker) hasTaken(o *object, d *decision) bool {
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

func (c *checker) policy(queue string, d *decision) (string, bool) {
	key := keyOf(v1alpha1.DefaultQueueNamespace, queue)
	o := c.w.api.get(queues, key)
	if o == nil || !c.unchanged(queues, key, d.seen[queues], 0) {
		return "", false
	}
	policy, _ := nested(o, "spec")["queuePolicy"].(string)
	return policy, true
}

// unchanged says whether the spec and phase of an object stayed as they were since a version; change except is not
// counted.
func (c *checker) unchanged(k kind, key string, since, except int64) bool {
	for _, ch := range c.w.api.since(k, since) {
		if ch.key == key && ch.rv != except {
			if ch.before == nil || ch.after == nil ||
				!reflect.DeepEqual(ch.before.u.Object["spec"], ch.after.u.Object["spec"]) ||
				k == units && phaseOf(ch.before) != phaseOf(ch.after) {
				return false
			}
		}
	}
	return true
}

func setAside(u *v1alpha1.QueueUnit) bool {
	return u.Spec.Active != nil || u.Annotations[v1alpha1.AnnotationParkedReason] != "" ||
		u.Annotations[v1alpha1.AnnotationAdopted] != "" || u.Status.Phase == v1alpha1.PhaseTimeoutBackoff ||
		deactivation(u) != nil || slices.ContainsFunc(u.Status.AdmissionChecks, asksToWrite)
}

// asksToWrite says that what a check asked to write may be in the templates of the job. A unit that waits is not
// admitted before its controller has restored them.
func asksToWrite(c v1alpha1.AdmissionCheckState) bool { return len(c.PodSetUpdates) > 0 }

// unitGoes notes what counts against the job of a unit that is deleted.
func (c *checker) unitGoes(o *object) {
	u, job := unitOf(o), consumerOf(o)
	until := time.Time{}
	if r := u.Status.RequeueState; r != nil && r.RequeueAt != nil {
		until = r.RequeueAt.Time
	}
	if deactivation(u) != nil || u.Spec.Active != nil {
		until = c.w.loop.now.Add(24 * time.Hour) // for longer than a plan
	}
	if until.After(c.setBack[job]) {
		c.setBack[job] = until
	}
}

func (c *checker) isSetBack(job *object) bool {
	return c.setBack[job.uid()].Add(mostSkew).After(c.w.loop.now)
}

// eligible says whether only quota kept a pending unit from its admission.
func (c *checker) eligible(o *object, d *decision) bool {
	u := unitOf(o)
	if setAside(u) || u.Annotations[v1alpha1.AnnotationGangGroup] != "" || u.Spec.ConsumerRef == nil || c.w.bad(o) {
		return false
	}
	job := c.consumer(o)
	if job == nil || ended(job) || beingDeleted(job) || c.isSetBack(job) {
		return false
	}
	rival := func(other *object) bool { // another unit stands for the job, or may
		return other.key != o.key && consumerOf(other) == job.uid() && !rulebook.Over(phaseOf(other))
	}
	if slices.ContainsFunc(c.w.api.list(units), rival) {
		return false
	}
	return c.hasSeen(d, job)
}

// hasSeen says whether a scheduler knows of an object.
func (c *checker) hasSeen(d *decision, o *object) bool {
	made := func(ch *change) bool { return ch.key == o.key && (ch.before == nil || ch.before.uid() != o.uid()) }
	return !slices.ContainsFunc(c.w.api.since(o.kind, d.seen[o.kind]), made)
}

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

// onJob: the controller resumes a job only with an admitted unit of its own (I3), and at most with the held size (I1).
func (c *checker) onJob(ch *change) {
	c.onSize(ch)
	if ch.before == nil || ch.after == nil || ch.by.role != roleController {
		return
	}
	if ref := owner(ch.after); ref != nil {
		c.w.violate("I3", "%s wrote to job %s, which is a part of %s", ch.by.process, ch.key, ref.Name)
	}
	was, _ := nested(ch.before, "spec")["suspend"].(bool)
	is, _ := nested(ch.after, "spec")["suspend"].(bool)
	outside := ch.after.kind == jobKind && quotaLabel(ch.after) == "" // the job left its queue
	if m := c.w.managers[ch.by.process]; m != nil && was && !is && !outside {
		c.resumed(ch, m.caches[units].seen)
	}
}

// resumed: a controller that knows the units until a version resumes only jobs with an admission of their whole request
// (I1). Only controllers may have suspended such a job (I3).
func (c *checker) resumed(ch *change, since int64) {
	key := c.w.unitKeyOf(ch.after)
	before, after := ch.before.u.GetAnnotations(), ch.after.u.GetAnnotations()
	if stamp := after[v1alpha1.AnnotationResumed]; stamp != "" && stamp == before[v1alpha1.AnnotationResumed] &&
		before[v1alpha1.AnnotationSuspendedBy] == "" {
		c.w.violate("I3", "%s resumed job %s, which its owner had suspended", ch.by.process, ch.key)
	}
	if !c.released(key, ch.after.uid(), since, holds) {
		c.w.violate("I3", "%s resumed job %s, and no unit of it is admitted", ch.by.process, ch.key)
		return
	}
	asked := c.asksFor(ch.after)
	if !c.released(key, ch.after.uid(), since, func(o *object) bool { return unrecorded(o) || asked.within(heldOf(o)) }) {
		c.w.violate("I1", "%s resumed job %s, which asks for %s, and its unit holds less", ch.by.process, ch.key, asked)
	}
}

// released says whether at any time since a version the unit let this job go, and was as it has to be.
func (c *checker) released(key string, job types.UID, since int64, is func(o *object) bool) bool {
	lets := func(o *object) bool {
		return o != nil && consumerOf(o) == job && holds(o) && is(o) &&
			(rulebook.Releases(phaseOf(o)) || !rulebook.Holds(phaseOf(o)))
	}
	if lets(c.w.api.get(units, key)) {
		return true
	}
	for _, ch := range c.w.api.since(units, since) {
		if ch.key == key && (lets(ch.before) || lets(ch.after)) {
			return true
		}
	}
	return false
}

// beforeBind: no pod of a managed job gets a node without an admitted unit of that job (I3).
func (c *checker) beforeBind(o *object, d *decision) {
	job := c.w.topOf(o)
	if job == o && podOf(o).Annotations[v1alpha1.AnnotationRelatedQueueUnit] == "" {
		c.keptForTakers(o, d)
	}
	if job == nil || job == o || !c.managed(job, d) {
		return
	}
	if !c.released(c.w.unitKeyOf(job), job.uid(), d.seen[units], holds) {
		c.w.violate("I3", "%s binds pod %s, and no unit of its job is admitted", d.leader.name, o.key)
		return
	}
	c.withinUnit(o, job, d)
}

// places: each unit that a scheduler knows is in exactly one place of its engine, the one that its object says. The
// engine has no other units (I2).
func (c *checker) places(r *replica) {
	stream := r.seen[units][0]
	// With many units not after each change, so that the cost of a plan grows with their number and not its square.
	if c.looked++; len(stream.store) > 100 && c.looked%len(stream.store) != 0 {
		return
	}
	known, mismatches := r.engine.Places()
	for _, m := range c.w.variants.places(mismatches) {
		c.w.violate("I2", "%s: %s of unit %s is %q and should be %q", r.name, m.Field, m.Object, m.Have, m.Want)
	}
	for _, key := range slices.Sorted(maps.Keys(stream.store)) {
		// Reads and answers may be ahead of the watch.
		if o := c.w.api.get(units, key); known[key] == "" && o != nil && o.uid() == stream.store[key].uid() {
			c.w.violate("I2", "%s has lost unit %s", r.name, key)
		}
	}
	if len(stream.pending()) > 0 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if o := c.w.api.get(units, key); o == nil || o.uid() != known[key] {
			c.w.violate("I2", "%s keeps unit %s, which is gone", r.name, key)
		}
	}
}

// mostWrites is how often one run of a process may write one object within a second.
const mostWrites = 20

// managed says whether a job was managed since the scheduler's last information: it has a quota. A JobSet has one all
// the time, on itself or on its templates.
func (c *checker) managed(job *object, d *decision) bool {
	if job.kind == jobSets {
		return true
	}
	if quotaLabel(job) == "" {
		return false
	}
	for _, ch := range c.w.api.since(jobKind, d.seen[jobKind]) {
		if ch.key == job.key && (ch.before == nil || quotaLabel(ch.before) == "") {
			return false
		}
	}
	return true
}

// paced: what fails is not tried again without backoff, and two processes take no turns (I12).
func (c *checker) paced(p *process, k kind, key string) {
	if second := c.w.loop.now.Truncate(time.Second); !second.Equal(c.second) {
		c.second = second
		clear(c.writes)
	}
	object := fmt.Sprintf("%d %s %s", p.run, k, key)
	if c.writes[object]++; c.writes[object] == mostWrites+1 {
		c.w.violate("I12", "%s: more than %d writes of one object in a second: %s %s", p.name, mostWrites, k, key)
	}
}

// liveness: after the faults have ended, all jobs end (I6).
func (c *checker) liveness() {
	miscounted := c.miscounted()
	for _, job := range c.w.topJobs() {
		if ended(job) || c.w.bad(job) {
			continue
		}
		if len(miscounted) > 0 && c.w.lacksRoom(job) {
			c.w.report.Miscounts = miscounted
			c.w.logf("MISCOUNT %v: job %s waits", miscounted, job.key)
			continue
		}
		text := "it has no unit"
		if o := c.w.api.get(units, c.w.unitKeyOf(job)); o != nil {
			u := unitOf(o)
			text = fmt.Sprintf("its unit: phase %q, message %q, active %v", u.Status.Phase, u.Status.Message, u.Spec.Active)
			for _, cond := range u.Status.Conditions {
				text += fmt.Sprintf("; %s=%s %s %s", cond.Type, cond.Status, cond.Reason, cond.Message)
			}
		}
		for _, pod := range sorted(c.w.cluster.podsOf[job.uid()]) {
			text += fmt.Sprintf("; pod %s %s", pod.key, summary(pod))
		}
		c.w.violate("I6", "job %s has not ended %s after the faults: %s; %s", job.key, patience, summary(job), text)
	}
}

// lacksRoom says that a job waits to be admitted, or a pod of it for a node.
func (w *world) lacksRoom(job *object) bool {
	return jobs.Open(w.describes(job.kind), job.u).Suspended() || slices.ContainsFunc(sorted(w.cluster.podsOf[job.uid()]),
		func(o *object) bool { return podOf(o).Spec.NodeName == "" && !terminated(podOf(o)) })
}

// atRest: units and jobs are one to one, nothing is held, and every ledger equals its rebuild (I2, I7).
func (c *checker) atRest() {
	seen := map[types.UID]string{}
	for _, o := range c.w.api.list(units) {
		if c.w.bad(o) {
			continue
		}
		uid := consumerOf(o)
		if other := seen[uid]; other != "" && uid != "" {
			c.w.violate("I2", "units %s and %s stand for one job", other, o.key)
		}
		seen[uid] = o.key
		if !rulebook.Over(phaseOf(o)) {
			c.w.violate("I7", "unit %s is in phase %q, and all jobs have ended", o.key, phaseOf(o))
		}
		if len(unitOf(o).Status.Admissions) > 0 && !c.tainted[o.uid()] {
			c.w.violate("I7", "unit %s is over and holds %s", o.key, heldOf(o))
		}
	}
	delete(seen, "") // units for foreign consumers
	for _, o := range c.w.topJobs() {
		delete(seen, o.uid()) // a job that has ended gets no unit if somebody deletes it
	}
	for _, uid := range slices.Sorted(maps.Keys(seen)) {
		c.w.violate("I2", "unit %s has no job", seen[uid])
	}
	leaders := 0
	for _, name := range slices.Sorted(maps.Keys(c.w.schedulers)) {
		r := c.w.schedulers[name]
		if !r.alive {
			continue
		}
		if r.leading {
			leaders++
		}
		if differences := c.w.variants.verify(r.engine.Verify()); len(differences) > 0 {
			c.w.violate("I7", "%s: the ledger differs from its rebuild: %v", name, differences)
		}
	}
	if leaders != 1 {
		c.w.violate("I6", "%d schedulers lead", leaders)
	}
}
