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

// Package checker decides from the history of API objects alone whether the queue kept its promises:
//
//   - No quota is exceeded on any level (I1).
//   - No unit or job is lost (I2), and no job runs without admission or twice (I3).
//   - Nothing is overtaken in a blocking queue (I4, I5).
//   - No phase follows another illegally (I9).
//
// It does not know the scheduler's memory, and must not trust a status that is a summary.
//
// Its input is events of quotas, units, pods and jobs in the order of their resource versions, which package observer
// delivers. One etcd counts them all. So the state after each event is one that the cluster really had, and must keep
// every promise.
package checker

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// Event is one change. Object is a Quota, Unit, Pod or Job as it was after it, or before it when Deleted.
type Event struct {
	Version uint64
	Deleted bool
	Object  any
}

// Checker holds the state after the events so far. Not safe for concurrent use.
type Checker struct {
	// Unsaid, if set, exempts the order of two units: by was admitted while passed waited. A fault may have kept the
	// scheduler from seeing passed, or from writing its decision.
	Unsaid func(passed, by Unit) bool
	// Unanswered, if set, says that the answer to the creation of a pod at that time may have been lost. The job
	// controller takes such a pod for failed, and may create another before it sees the first. Kubernetes only promises to
	// start a pod at least once, so the job may have one pod too many.
	Unanswered func(created time.Time) bool
	// Again, if set, tells of a unit that it may be admitted more than once: it may lose its admission before its job has
	// run.
	Again func(unit Unit) bool

	blocking map[string]string

	quotas map[string]Quota
	units  map[string]Unit // by UID
	pods   map[string]Pod  // by UID
	jobs   map[string]Job  // by UID
	gone   map[string]bool // UIDs of jobs that were deleted
	unitOf map[string]string
	first  map[string]string // UID of a job -> UID of the first unit that it had
	// dequeued counts, by UID of a unit and attempt, how often it became Dequeued.
	dequeued map[string]int
	bound    map[string]map[string]Resources // job UID -> UIDs of pods that were ever bound -> request

	running   map[string]Resources // by quota: bound, not terminal
	promised  map[string]Resources // by quota: admitted, not bound yet
	share     map[string]Resources // part of each unit, by UID, in promised
	beyond    edges                // rule, quota and resource that are beyond max now
	tolerated map[string]int64     // by quota and resource: how far beyond max pods outside of the queue have taken it

	suspects   []suspect
	decided    decided
	violations []Violation
	alive      int
	peak       int
}

// New returns a Checker. blocking names the queues in which nothing may be overtaken, with their policies.
func New(blocking map[string]string) *Checker {
	return &Checker{
		blocking:  maps.Clone(blocking),
		quotas:    map[string]Quota{},
		units:     map[string]Unit{},
		pods:      map[string]Pod{},
		jobs:      map[string]Job{},
		gone:      map[string]bool{},
		unitOf:    map[string]string{},
		first:     map[string]string{},
		dequeued:  map[string]int{},
		bound:     map[string]map[string]Resources{},
		running:   map[string]Resources{},
		promised:  map[string]Resources{},
		share:     map[string]Resources{},
		beyond:    edges{},
		tolerated: map[string]int64{},
		decided:   decided{chose: map[string]time.Time{}},
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
		c.applyJob(object, e.Deleted)
	default:
		panic(fmt.Sprintf("checker: event of type %T", object))
	}
}

// Violations are the promises that were broken so far, each once.
func (c *Checker) Violations() []Violation { return slices.Clone(c.violations) }

// PeakPods is the greatest number of pods that existed at once and had not ended.
func (c *Checker) PeakPods() int { return c.peak }

// Standing is how far jobs and pods are that exist.
type Standing struct {
	Ended, Open int // jobs
	Waiting     int // pods without a node
	Running     int // pods on one that have not ended
}

// Over says whether no job and no pod has still to come to its end.
func (s Standing) Over() bool { return s.Open == 0 && s.Waiting == 0 && s.Running == 0 }

// Standing counts the jobs and pods that exist now.
func (c *Checker) Standing() (s Standing) {
	for uid, job := range c.jobs {
		switch {
		case c.gone[uid]:
		case job.Complete || job.Failed:
			s.Ended++
		default:
			s.Open++
		}
	}
	for _, pod := range c.pods {
		switch {
		case pod.Terminal:
		case pod.Bound:
			s.Running++
		default:
			s.Waiting++
		}
	}
	return s
}

// Units are those that exist.
func (c *Checker) Units() iter.Seq[Unit] { return maps.Values(c.units) }

// UnitFor is the unit of a job by its UID, empty if there is none.
func (c *Checker) UnitFor(job string) Unit { return c.units[c.unitOf[job]] }

// Job is the last state of a job by its UID.
func (c *Checker) Job(uid string) Job { return c.jobs[uid] }

// Named are the UIDs of all jobs that ever had the name, sorted.
func (c *Checker) Named(name string) (uids []string) {
	for uid, job := range c.jobs {
		if job.Name == name {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// Bound counts the pods of all jobs of a name that were ever bound. spare is the number that may exist in addition,
// because their creation went unanswered.
func (c *Checker) Bound(name string) (pods, spare int) {
	for _, uid := range c.Named(name) {
		pods, spare = pods+len(c.bound[uid]), spare+c.spare(uid)
	}
	return pods, spare
}

// Finish adds violations that only the end shows: units that were passed and never admitted, and jobs that did not run
// exactly once. submitted has the jobs by UID. done is the number of good ones.
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
	if needed := cmp.Or(job.Deciding, job.Pods); succeeded < needed ||
		succeeded > job.Pods && succeeded > job.Pods+c.spare(uid) {
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
	// A max below the present use breaks no promise: only later admissions do. The present excess is recorded without a
	// report.
	c.quotas[quota.Name] = quota
	for name := range c.quotas {
		c.checkLevels(name, nobody)
	}
}

func (c *Checker) applyUnit(unit Unit, deleted bool) {
	old, existed := c.units[unit.UID]
	c.judgeUnit(unit, old, existed, deleted)
	if deleted {
		delete(c.units, unit.UID)
		if c.unitOf[unit.Job] == unit.UID {
			delete(c.unitOf, unit.Job)
		}
		c.clear(unit.UID)
		delete(c.decided.chose, unit.UID)
		c.updateShare(unit.UID, old.Quota)
		return
	}
	c.units[unit.UID] = unit
	c.decided.see(unit)
	if c.standsFor(unit) {
		c.unitOf[unit.Job] = unit.UID
	}
	if unit.Attempts > 1 && (!existed || old.Attempts <= 1) && !c.again(unit) {
		c.report(RanTwice, unit.Key, "was admitted %d times", unit.Attempts)
	}
	if unit.Parked {
		c.clear(unit.UID)
	}
	if unit.Admitted && !old.Admitted {
		c.settle(unit)
		c.suspect(unit)
		delete(c.decided.chose, unit.UID)
	}
	c.updateShare(unit.UID, unit.Quota)
	c.checkLevels(unit.Quota, theQueue)
}

// standsFor says that the unit names a job, and not one of another namespace.
func (c *Checker) standsFor(unit Unit) bool {
	namespace, _, _ := strings.Cut(unit.Key, "/")
	of, _, named := strings.Cut(c.jobs[unit.Job].Name, "/")
	return unit.Job != "" && (!named || of == namespace)
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
		pod.UID, pod.Terminal = cmp.Or(old.UID, pod.UID), true
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

// bind takes note of a pod that has just been bound.
func (c *Checker) bind(pod Pod) {
	if pod.Job == "" {
		return
	}
	if c.bound[pod.Job] == nil {
		c.bound[pod.Job] = map[string]Resources{}
	}
	c.bound[pod.Job][pod.UID] = pod.Request
	bound := 0
	for range c.occupied(pod.Job) {
		bound++
	}
	if job, ok := c.jobs[pod.Job]; ok && bound > job.Pods && bound > job.Pods+c.spare(pod.Job) {
		c.report(RanTwice, job.Name, "%d pods were bound, it needs %d", bound, job.Pods)
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

// occupied are the pods of a job that were ever bound, with their requests. Pods that ended with a lost admission are
// left out.
func (c *Checker) occupied(job string) iter.Seq2[string, Resources] {
	again := c.again(c.UnitFor(job))
	return func(yield func(string, Resources) bool) {
		for uid, request := range c.bound[job] {
			if pod := c.pods[uid]; (!again || !pod.Terminal || pod.Succeeded) && !yield(uid, request) {
				return
			}
		}
	}
}

// spare counts the pods of a job whose creation may have gone unanswered.
func (c *Checker) spare(job string) (n int) {
	for _, pod := range c.pods {
		if pod.Job == job && c.Unanswered != nil && c.Unanswered(pod.Created) {
			n++
		}
	}
	return n
}
