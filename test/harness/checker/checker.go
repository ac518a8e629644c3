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

// Package checker decides from the history of API objects alone whether the queue kept its promises: no quota
// passed on any level (I1), no job run without admission or twice (I3), nothing overtaken in a blocking queue
// (I4, I5), no job lost (I2). It knows nothing of the scheduler's memory and trusts no status that is a summary.
//
// Its input is what happened to quotas, units, pods and jobs in the order of their resource versions. One etcd
// counts them all, so the state after each event is one that the cluster really was in, and a promise that
// does not hold in it is broken. Package observer delivers them in that order.
package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Resources are amounts by resource name, in thousandths of the unit.
type Resources map[string]int64

func (r Resources) add(other Resources, sign int64) {
	for name, amount := range other {
		r[name] += sign * amount
	}
}

// Quota is an ElasticQuota.
type Quota struct {
	Name, Parent string
	// Max limits the resources that it names.
	Max Resources
}

// Unit is a QueueUnit.
type Unit struct {
	// Key is namespace/name.
	Key, UID     string
	Queue, Quota string
	Priority     int32
	Created      time.Time
	Request      Resources
	// Job is the UID of the consumer.
	Job string
	// Admitted: its status holds an admission. AdmittedAt is lastAllocateTime.
	Admitted   bool
	AdmittedAt time.Time
	Attempts   int64
	// Parked: it is not in its queue, for a reason that is its own.
	Parked bool
}

// Order is how a blocking queue orders its units.
type Order int

// The orders; units of the same age go by their UIDs.
const (
	// ByPriority, then by age: policy Block.
	ByPriority Order = iota
	// ByAge alone: policy FIFO.
	ByAge
)

// before says whether u goes before other.
func (u Unit) before(other Unit, order Order) bool {
	if order == ByPriority && u.Priority != other.Priority {
		return u.Priority > other.Priority
	}
	if !u.Created.Equal(other.Created) {
		return u.Created.Before(other.Created)
	}
	return u.UID < other.UID
}

// Pod is a pod of a job.
type Pod struct {
	UID, Name string
	// Job is the UID of the controlling job.
	Job   string
	Quota string
	// Request of the pod.
	Request                    Resources
	Bound, Terminal, Succeeded bool
}

// Job is a job of any kind.
type Job struct {
	UID, Name string
	// Pods is how many pods it has.
	Pods int
	// Deciding is how many of them have to succeed; when they have, the others may be taken away. 0 means all.
	Deciding         int
	Complete, Failed bool
}

// Event is one change. Object is a Quota, Unit, Pod or Job as it was after it, or before it when Deleted.
type Event struct {
	Version uint64
	Deleted bool
	Object  any
}

// Rule names a promise.
type Rule string

// The rules.
const (
	// QuotaPassed: pods bound and not ended ask for more than max of a level.
	QuotaPassed Rule = "QuotaPassed"
	// QuotaPromised: those pods together with what admitted units have not bound yet do.
	QuotaPromised Rule = "QuotaPromised"
	// Overtaken: in a blocking queue a unit was admitted while one before it, of the same quota, waited.
	Overtaken Rule = "Overtaken"
	// NotAdmitted: a pod was bound while the unit of its job held no admission.
	NotAdmitted Rule = "NotAdmitted"
	// RanTwice: more pods of a job were bound than it needs, or its unit was admitted more than once.
	RanTwice Rule = "RanTwice"
	// Lost: a job did not reach its end.
	Lost Rule = "Lost"
)

// Violation is a broken promise.
type Violation struct {
	Rule    Rule
	Subject string
	Message string
}

func (v Violation) String() string { return fmt.Sprintf("%s %s: %s", v.Rule, v.Subject, v.Message) }

// Times in API objects have a resolution of one second, and the scheduler decides a little before it writes and
// after it has read. So a unit counts as seen when it is decisionLag older than a decision, and two decisions
// within sameDecision of each other may have been made in either order.
const (
	decisionLag  = 2 * time.Second
	sameDecision = time.Second
)

// Checker holds the state after the events so far. Not safe for concurrent use.
type Checker struct {
	// Unsaid, if set, tells of the admission of by while passed waited that nothing can be said about their order,
	// because what happened then may have kept the scheduler from seeing passed or from writing its decision.
	Unsaid func(passed, by Unit) bool
	// Spare, if set, tells how many pods the job may have had beyond those that it needs, because the job controller was
	// never told that one had been created.
	Spare func(job Job) int
	// Again, if set, tells of a unit that it may be admitted more than once: it may lose its admission before its job has
	// run.
	Again func(unit Unit) bool

	blocking map[string]Order

	quotas map[string]Quota
	units  map[string]Unit // by UID
	pods   map[string]Pod  // by UID
	jobs   map[string]Job  // by UID
	gone   map[string]bool // UIDs of jobs that were deleted
	unitOf map[string]string
	bound  map[string]map[string]Resources // job UID -> UIDs of pods that were ever bound -> request

	running   map[string]Resources // by quota: bound, not terminal
	promised  map[string]Resources // by quota: admitted, not bound yet
	share     map[string]Resources // what each unit, by UID, adds to promised
	beyond    map[string]bool      // rule, quota and resource that are beyond max now
	tolerated map[string]int64     // by quota and resource: how far beyond max pods outside of the queue have taken it

	suspects   []suspect
	violations []Violation
	alive      int
	peak       int
}

// suspect is an admission that passed a waiting unit, which was perhaps decided with it.
type suspect struct {
	passed string // UID of the unit that waited
	by     Unit
}

// New returns a Checker. blocking names the queues in which nothing may be overtaken.
func New(blocking map[string]Order) *Checker {
	return &Checker{
		blocking:  maps.Clone(blocking),
		quotas:    map[string]Quota{},
		units:     map[string]Unit{},
		pods:      map[string]Pod{},
		jobs:      map[string]Job{},
		gone:      map[string]bool{},
		unitOf:    map[string]string{},
		bound:     map[string]map[string]Resources{},
		running:   map[string]Resources{},
		promised:  map[string]Resources{},
		share:     map[string]Resources{},
		beyond:    map[string]bool{},
		tolerated: map[string]int64{},
	}
}

// Apply takes the next event; events must come in the order of their versions.
func (c *Checker) Apply(e Event) {
	switch object := e.Object.(type) {
	case Quota:
		c.applyQuota(object, e.Deleted)
	case Unit:
		c.applyUnit(object, e.Deleted)
	case Pod:
		c.applyPod(object, e.Deleted)
	case Job:
		if e.Deleted {
			c.gone[object.UID] = true
			return
		}
		c.jobs[object.UID] = object
	default:
		panic(fmt.Sprintf("checker: event of type %T", object))
	}
}

// Violations are the promises that were broken so far, each once.
func (c *Checker) Violations() []Violation { return slices.Clone(c.violations) }

// PeakPods is the greatest number of pods that existed at once and had not ended.
func (c *Checker) PeakPods() int { return c.peak }

// Finish says what only the end tells, beside Violations: units that were passed and never admitted, and for the
// jobs by UID that were submitted whether each ran to its end exactly once. done is the number of those.
func (c *Checker) Finish(submitted map[string]string) (done int, violations []Violation) {
	violations = c.Violations()
	for _, s := range c.suspects {
		violations = append(violations, c.overtaken(s, "is still waiting"))
	}
	for _, uid := range slices.Sorted(maps.Keys(submitted)) {
		problem := c.incomplete(uid)
		if problem == "" {
			done++
			continue
		}
		violations = append(violations, Violation{Lost, submitted[uid], problem})
	}
	return done, violations
}

// incomplete says what is missing to the end of a job, "" if nothing.
func (c *Checker) incomplete(uid string) string {
	job, ok := c.jobs[uid]
	switch {
	case !ok:
		return "was never seen"
	case job.Failed:
		return "failed"
	case !job.Complete:
		return "did not complete"
	}
	succeeded := 0
	for pod := range c.bound[uid] {
		if c.pods[pod].Succeeded {
			succeeded++
		}
	}
	if needed := cmp.Or(job.Deciding, job.Pods); succeeded < needed || succeeded > job.Pods+c.spare(job) {
		return fmt.Sprintf("is complete with %d of %d pods that succeeded", succeeded, needed)
	}
	return ""
}

func (c *Checker) report(rule Rule, subject, format string, args ...any) {
	c.violations = append(c.violations, Violation{rule, subject, fmt.Sprintf(format, args...)})
}

func (c *Checker) applyQuota(quota Quota, deleted bool) {
	if deleted {
		delete(c.quotas, quota.Name)
		return
	}
	// A max that is lowered below what runs breaks no promise: only what is admitted from then on does. What
	// is beyond it now is noted without a report.
	c.quotas[quota.Name] = quota
	for name := range c.quotas {
		c.checkLevels(name, nobody)
	}
}

func (c *Checker) applyUnit(unit Unit, deleted bool) {
	old, existed := c.units[unit.UID]
	if deleted {
		delete(c.units, unit.UID)
		if c.unitOf[unit.Job] == unit.UID {
			delete(c.unitOf, unit.Job)
		}
		c.clear(unit.UID)
		c.updateShare(unit.UID, old.Quota)
		return
	}
	c.units[unit.UID] = unit
	if unit.Job != "" {
		c.unitOf[unit.Job] = unit.UID
	}
	if unit.Attempts > 1 && (!existed || old.Attempts <= 1) && (c.Again == nil || !c.Again(unit)) {
		c.report(RanTwice, unit.Key, "was admitted %d times", unit.Attempts)
	}
	if unit.Parked {
		c.clear(unit.UID)
	}
	if unit.Admitted && !old.Admitted {
		c.settle(unit)
		c.suspect(unit)
	}
	c.updateShare(unit.UID, unit.Quota)
	c.checkLevels(unit.Quota, theQueue)
}

// suspect notes every unit that the admission of unit passed.
func (c *Checker) suspect(unit Unit) {
	order, ok := c.blocking[unit.Queue]
	if !ok {
		return
	}
	if unit.AdmittedAt.IsZero() {
		c.report(Overtaken, unit.Key, "was admitted without a time, so that its order cannot be checked")
		return
	}
	for _, uid := range slices.Sorted(maps.Keys(c.units)) {
		waiting := c.units[uid]
		switch {
		case waiting.Queue != unit.Queue || waiting.Quota != unit.Quota,
			waiting.Admitted || waiting.Attempts > 0 || waiting.Parked,
			!waiting.before(unit, order),
			unit.AdmittedAt.Sub(waiting.Created) < decisionLag,
			c.Unsaid != nil && c.Unsaid(waiting, unit):
			continue
		}
		c.suspects = append(c.suspects, suspect{passed: uid, by: unit})
	}
}

// settle decides about the admissions that passed unit, now that it is admitted itself.
func (c *Checker) settle(unit Unit) {
	c.suspects = slices.DeleteFunc(c.suspects, func(s suspect) bool {
		if s.passed != unit.UID {
			return false
		}
		if late := unit.AdmittedAt.Sub(s.by.AdmittedAt); late > sameDecision {
			c.violations = append(c.violations, c.overtaken(s, fmt.Sprintf("was admitted %s later", late)))
		}
		return true
	})
}

// clear forgets the admissions that passed a unit which was not really in the queue.
func (c *Checker) clear(uid string) {
	c.suspects = slices.DeleteFunc(c.suspects, func(s suspect) bool { return s.passed == uid })
}

func (c *Checker) overtaken(s suspect, how string) Violation {
	waiting := c.units[s.passed]
	return Violation{Overtaken, s.by.Key, fmt.Sprintf(
		"priority %d was admitted in queue %s before %s, priority %d, which was created %s earlier and %s",
		s.by.Priority, s.by.Queue, waiting.Key, waiting.Priority, s.by.AdmittedAt.Sub(waiting.Created), how)}
}

func (c *Checker) applyPod(pod Pod, deleted bool) {
	old, existed := c.pods[pod.UID]
	if existed && old.Bound && !old.Terminal {
		c.level(c.running, old.Quota).add(old.Request, -1)
	}
	if existed && !old.Terminal {
		c.alive--
	}
	if deleted {
		// Kept as ended, for the count of pods that succeeded.
		pod = old
		pod.UID, pod.Terminal = orElse(old.UID, pod.UID), true
	}
	c.pods[pod.UID] = pod
	if !pod.Terminal {
		c.alive++
		c.peak = max(c.peak, c.alive)
	}
	if pod.Bound && !pod.Terminal {
		c.level(c.running, pod.Quota).add(pod.Request, 1)
	}
	if pod.Bound && !old.Bound {
		c.bind(pod)
	}
	if pod.Job == "" {
		if pod.Bound && !old.Bound {
			c.tolerate(pod)
		}
		c.checkLevels(pod.Quota, aStranger)
	} else {
		c.checkLevels(pod.Quota, theQueue)
	}
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// bind takes note of a pod that has just been bound.
func (c *Checker) bind(pod Pod) {
	if pod.Job == "" {
		return
	}
	if c.bound[pod.Job] == nil {
		c.bound[pod.Job] = map[string]Resources{}
	}
	c.bound[pod.Job][pod.UID] = pod.Request
	if job, ok := c.jobs[pod.Job]; ok && len(c.bound[pod.Job]) > job.Pods+c.spare(job) {
		c.report(RanTwice, job.Name, "%d pods were bound, it needs %d", len(c.bound[pod.Job]), job.Pods)
	}
	uid, ok := c.unitOf[pod.Job]
	// A deleted job takes its unit with it, at times before its pods: one of them may be on its way to a node.
	if (!ok || !c.units[uid].Admitted) && !c.gone[pod.Job] {
		c.report(NotAdmitted, pod.Name, "was bound while its job was not admitted")
	}
	if ok {
		c.updateShare(uid, c.units[uid].Quota)
	}
}

func (c *Checker) spare(job Job) int {
	if c.Spare == nil {
		return 0
	}
	return c.Spare(job)
}

// updateShare computes anew what a unit adds to promised: its request less what its pods have taken up.
func (c *Checker) updateShare(uid, quota string) {
	c.level(c.promised, quota).add(c.share[uid], -1)
	delete(c.share, uid)
	unit, ok := c.units[uid]
	if !ok || !unit.Admitted {
		return
	}
	rest := maps.Clone(unit.Request)
	for _, request := range c.bound[unit.Job] {
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
	for name, steps := quota, 0; name != ""; steps++ {
		level, ok := c.quotas[name]
		if !ok || steps > len(c.quotas) {
			return
		}
		for resource, limit := range level.Max {
			running := c.under(c.running, name, resource)
			promised := running + c.under(c.promised, name, resource)
			if promised <= limit {
				delete(c.tolerated, name+"/"+resource)
			}
			own := by == theQueue || by == aStranger && name == quota
			c.compare(QuotaPassed, name, resource, running, limit, own)
			c.compare(QuotaPromised, name, resource, promised, limit, own || by == aStranger)
		}
		name = level.Parent
	}
}

// tolerate takes note of levels above the quota of a pod outside of the queue that it fills beyond max, if all that was
// promised there was taken: by pods that run, or by pods that exist and may have been assumed before it. Bindings are
// written one beside the other, and the store has them in another order than the scheduler decided.
func (c *Checker) tolerate(pod Pod) {
	for name, steps := c.quotas[pod.Quota].Parent, 0; name != "" && steps <= len(c.quotas); steps++ {
		level := c.quotas[name]
		for resource, limit := range level.Max {
			rest := c.under(c.promised, name, resource)
			beyond := c.under(c.running, name, resource) + rest - limit
			if beyond > 0 && rest <= c.unbound(name, resource) {
				c.tolerated[name+"/"+resource] = beyond
			}
		}
		name = level.Parent
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
	if amount <= limit+c.tolerated[quota+"/"+resource] {
		delete(c.beyond, key)
		return
	}
	if report && !c.beyond[key] {
		c.report(rule, quota, "%s %s of max %s", resource, milli(amount), milli(limit))
	}
	c.beyond[key] = true
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
	for steps := 0; leaf != "" && steps <= len(c.quotas); steps++ {
		if leaf == quota {
			return true
		}
		leaf = c.quotas[leaf].Parent
	}
	return false
}
