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
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// A job whose unit lost its quota to others is suspended at the end of its grace. It is suspended before if its owner
// or all its running pods have acknowledged (I15). The grace counts from the eviction, also under a new leader. If the
// job is admitted again before, its pods lose the notice. Quota of an evicted job counts while its pods are on nodes,
// which the check of I1 compares.

const (
	// usualDelay bounds the time of a write without faults. The lag of watches is added to it.
	usualDelay = 3 * time.Second
	// lookPause bounds the time between two looks at the pods of a job.
	lookPause = 6 * time.Second
)

// graceCheck judges how long jobs run that have lost their quota.
type graceCheck struct {
	w     *world
	facts *facts
	// evictions are the times of evictions, by unit and attempt.
	evictions map[string]metav1.Time
	// owed are the jobs that run without quota.
	owed map[types.UID]*debt
	// runs are the times since which pods run.
	runs map[types.UID]time.Time
	// counted are the jobs and evictions that are in the report.
	counted map[string]bool
}

func newGraceCheck(w *world, f *facts) *graceCheck {
	return &graceCheck{
		w: w, facts: f, evictions: map[string]metav1.Time{}, owed: map[types.UID]*debt{},
		runs: map[types.UID]time.Time{}, counted: map[string]bool{},
	}
}

// debt of a job that runs without quota.
type debt struct {
	kind kind
	key  string
	// began is the time since which it runs without quota, and end the time of its suspension. known is the time since
	// which end holds. At saved, checkpoints were complete.
	began, end, known, saved time.Time
	// unit lost its quota. It is lost if somebody has deleted it.
	unit types.UID
	lost bool
}

// evictionOf the unit of a job; nil if it has not lost its quota to others.
func (c *graceCheck) evictionOf(job *object) (*object, *metav1.Condition) {
	o := c.w.api.get(units, c.w.unitKeyOf(job))
	if o == nil || consumerOf(o) != job.uid() || c.w.bad(job) {
		return nil, nil
	}
	return o, c.facts.lostToOthers(o)
}

func isSuspended(job *object) bool {
	is, _ := nested(job, "spec")["suspend"].(bool)
	return is
}

func markedAs(job *object) bool { return job.u.GetAnnotations()[v1alpha1.AnnotationSuspendedBy] != "" }

// graceOfJob is the grace of a job, up to the bound of its queue. A deleted queue gives none.
func graceOfJob(job, queue *object) time.Duration {
	n, err := strconv.Atoi(job.u.GetAnnotations()[v1alpha1.AnnotationGrace])
	if err != nil || queue == nil {
		return 0
	}
	most := intOr(nested(queue, "spec", "preemption")["maxGraceSeconds"], 0)
	return time.Duration(min(int64(n), most)) * time.Second
}

func queueKeyOf(u *object) string {
	name := unitOf(u).Spec.Queue
	if e := unitOf(u).Status.Effective; e != nil && e.Queue != "" {
		name = e.Queue
	}
	return keyOf(v1alpha1.DefaultQueueNamespace, name)
}

// checkpointed says whether an object has acknowledged an eviction.
func checkpointed(o *object, evicted time.Time) bool {
	at, err := time.Parse(time.RFC3339, o.u.GetAnnotations()[v1alpha1.AnnotationCheckpointed])
	return err == nil && !at.Before(evicted)
}

// allSaved says whether the owner or all running pods of a job have acknowledged.
func (c *graceCheck) allSaved(job *object, evicted time.Time) bool {
	return checkpointed(job, evicted) || !slices.ContainsFunc(c.w.runningPodsOf(job.uid()), func(pod *object) bool {
		return !checkpointed(pod, evicted)
	})
}

// onChange looks at the job that a change is about.
func (c *graceCheck) onChange(ch *change) {
	o := cmp.Or(ch.after, ch.before)
	switch ch.kind {
	case queues:
		for _, uid := range slices.Sorted(maps.Keys(c.owed)) {
			c.owing(uid)
		}
	case units:
		if ch.after != nil {
			c.evictedOnce(ch)
		}
		if uid := consumerOf(o); uid != "" {
			if job := c.facts.consumer(o); job != nil {
				c.owes(job)
			}
			c.owing(uid)
		}
	case pods:
		if ch.after != nil && podOf(o).Status.Phase == corev1.PodRunning && c.runs[o.uid()].IsZero() {
			c.runs[o.uid()] = c.w.loop.now
		}
		if job := c.w.topOf(o); job != nil && job != o {
			c.told(job, ch)
			c.owing(job.uid())
		}
	case jobKind, jobSets:
		if owner(o) == nil {
			c.suspended(ch)
			c.owes(o)
			c.owing(o.uid())
		}
	default:
	}
}

// evictedOnce: the end of a grace counts from the eviction, and no later write moves that (I15).
func (c *graceCheck) evictedOnce(ch *change) {
	e := c.facts.lostToOthers(ch.after)
	if e == nil {
		return
	}
	attempt := fmt.Sprintf("%s/%d", ch.after.uid(), unitOf(ch.after).Status.Attempts)
	if first, known := c.evictions[attempt]; !known {
		c.evictions[attempt] = e.LastTransitionTime
	} else if !first.Equal(&e.LastTransitionTime) {
		c.w.violate("I15", "unit %s was evicted at %s, and %s has made that %s", ch.key, first.UTC(), ch.by.role,
			e.LastTransitionTime.UTC())
	}
}

// told: the notice of a pod is the end of the grace of its job, as far as its controller can know (I15).
func (c *graceCheck) told(job *object, ch *change) {
	notice, m := noticeIn(ch.after), c.w.managers[ch.by.process]
	if m == nil || ch.after == nil || notice == "" || notice == noticeIn(ch.before) || c.w.bad(job) {
		return
	}
	u, e := c.evictionOf(job)
	if e == nil {
		if u == nil || !c.facts.tainted[u.uid()] {
			c.w.violate("I15", "%s told pod %s that it is suspended, and its job was not evicted", m.name, ch.key)
		}
		return
	}
	queue := m.caches[queues].store[queueKeyOf(u)]
	isEnd := func(of *object) bool {
		return of != nil && e.LastTransitionTime.Add(graceOfJob(of, queue)).UTC().Format(time.RFC3339) == notice
	}
	if !isEnd(job) && !isEnd(m.caches[job.kind].store[job.key]) {
		c.w.violate("I15", "%s told pod %s that it is suspended at %s, after an eviction at %s", m.name, ch.key, notice,
			e.LastTransitionTime.UTC())
	}
	c.count("noticed", job, e)
}

// count a job once per eviction.
func (c *graceCheck) count(what string, job *object, e *metav1.Condition) {
	if key := fmt.Sprintf("%s %s %s", what, job.uid(), e.LastTransitionTime); !c.counted[key] {
		c.counted[key] = true
		c.w.countFault(what)
	}
}

// suspended: a controller does not end a grace before its time (I15).
func (c *graceCheck) suspended(ch *change) {
	m := c.w.managers[ch.by.process]
	if m == nil || ch.before == nil || ch.after == nil || isSuspended(ch.before) || !isSuspended(ch.after) {
		return
	}
	u, e := c.evictionOf(ch.after)
	if e == nil || markedAs(ch.before) {
		return // somebody has resumed what was suspended since
	}
	evicted := e.LastTransitionTime.Time
	grace := graceOfJob(ch.before, m.caches[queues].store[queueKeyOf(u)])
	switch now := m.clock.Now(); {
	case c.allSaved(ch.before, evicted):
		if grace > 0 && now.Before(evicted.Add(grace)) {
			c.count("acknowledged", ch.after, e)
		}
	case now.Before(evicted.Add(grace)):
		c.w.violate("I15", "%s suspended job %s at %s, which was evicted at %s and has a grace of %s", m.name, ch.key,
			now.UTC(), evicted.UTC(), grace)
	case grace > 0:
		c.count("grace over", ch.after, e)
		c.warned(ch.after)
	}
}

// warned: all running pods of a job had a notice before its grace was over, if there was time for that (I15).
func (c *graceCheck) warned(job *object) {
	d := c.owed[job.uid()]
	if d == nil || job.u.GetAnnotations()[annotationOwner] == "unnotices" {
		return
	}
	for _, pod := range c.w.runningPodsOf(job.uid()) {
		since := d.began
		if at := c.runs[pod.uid()]; since.Before(at) {
			since = at
		}
		if noticeIn(pod) == "" && c.w.loop.now.After(c.calm(since.Add(lookPause))) {
			c.w.violate("I15", "job %s is suspended at the end of its grace, and pod %s was not told", job.key, pod.key)
		}
	}
}

// owes begins the debt of a job that runs without quota.
func (c *graceCheck) owes(job *object) {
	if u, e := c.evictionOf(job); e != nil && runs(job) && c.owed[job.uid()] == nil {
		c.owed[job.uid()] = &debt{kind: job.kind, key: job.key, unit: u.uid(), began: c.w.loop.now}
	}
}

func runs(job *object) bool { return !isSuspended(job) && !ended(job) && !beingDeleted(job) }

// owing: until when a job may run. It is looked at again when that is over.
func (c *graceCheck) owing(uid types.UID) {
	d := c.owed[uid]
	if d == nil {
		return
	}
	job := c.w.api.get(d.kind, d.key)
	if job == nil || job.uid() != uid {
		delete(c.owed, uid)
		return
	}
	u, e := c.evictionOf(job)
	if runs(job) && c.lose(d, uid) {
		return
	}
	if e == nil || !runs(job) {
		delete(c.owed, uid)
		c.repaid(job)
		return
	}
	now, end := c.w.loop.now, e.LastTransitionTime.Add(graceOfJob(job, c.w.api.get(queues, queueKeyOf(u))))
	switch {
	case !c.allSaved(job, e.LastTransitionTime.Time):
		d.saved = time.Time{}
	case d.saved.IsZero():
		d.saved = now
	}
	if !d.saved.IsZero() && d.saved.Before(end) {
		end = d.saved
	}
	if markedAs(job) { // the job was suspended, and somebody has resumed it
		end = e.LastTransitionTime.Time
	}
	if !d.end.Equal(end) {
		d.end, d.known = end, now
		c.w.loop.at(c.due(d), func() { c.overdue(uid, d) })
	}
}

// lose: a job is suspended soon if its unit was deleted in its grace. Controllers remember the eviction until they
// start again, so nothing is expected after a disturbance.
func (c *graceCheck) lose(d *debt, job types.UID) bool {
	if u := c.w.api.get(units, c.w.unitKeyOf(c.w.api.get(d.kind, d.key))); u != nil && u.uid() == d.unit ||
		c.w.disturbed.After(d.began) || c.w.loop.now.Before(d.began.Add(time.Second+4*c.w.plan.Lag)) {
		return false
	}
	if !d.lost {
		d.lost, d.end, d.known = true, c.w.loop.now, c.w.loop.now
		c.w.countFault("unit lost in its grace")
		c.w.loop.at(c.due(d), func() { c.overdue(job, d) })
	}
	return true
}

// repaid counts how a debt ended without a suspension.
func (c *graceCheck) repaid(job *object) {
	u := c.w.api.get(units, c.w.unitKeyOf(job))
	switch {
	case ended(job):
		c.w.countFault("ended in its grace")
	case u != nil && consumerOf(u) == job.uid() && rulebook.Releases(phaseOf(u)) && runs(job):
		c.w.countFault("admitted in its grace")
		c.withdrawn(job, u.uid(), unitOf(u).Status.Attempts, c.w.loop.now)
	}
}

// due is when a job is suspended at the latest.
func (c *graceCheck) due(d *debt) time.Time {
	at := d.end
	if at.Before(d.known) {
		at = d.known
	}
	return c.calm(at.Add(lookPause))
}

// calm is a time by which controllers have done what they could do since another one.
func (c *graceCheck) calm(at time.Time) time.Time {
	if at.Before(c.w.disturbed) {
		at = c.w.disturbed
	}
	behind := time.Duration(0)
	for _, m := range c.w.managers {
		behind = max(behind, -m.skew)
	}
	return at.Add(usualDelay + 4*c.w.plan.Lag + behind)
}

// overdue: no job runs beyond its grace (I15).
func (c *graceCheck) overdue(uid types.UID, d *debt) {
	switch due := c.due(d); {
	case c.owed[uid] != d, d.lost && c.w.disturbed.After(d.began):
	case c.w.loop.now.Before(due):
		c.w.loop.at(due, func() { c.overdue(uid, d) })
	default:
		c.w.violate("I15", "job %s runs without quota, and had to be suspended at %s", d.key, d.end.UTC())
	}
}

// withdrawn: pods of a job that was admitted again lose their notice (I15).
func (c *graceCheck) withdrawn(job *object, uid types.UID, attempts int64, since time.Time) {
	c.w.loop.at(c.calm(since), func() {
		now, u := c.w.api.get(job.kind, job.key), c.w.api.get(units, c.w.unitKeyOf(job))
		switch {
		case now == nil || now.uid() != job.uid() || !runs(now), c.facts.tainted[uid],
			u == nil || u.uid() != uid || unitOf(u).Status.Attempts != attempts || !rulebook.Releases(phaseOf(u)):
		case c.w.loop.now.Before(c.calm(since)):
			c.withdrawn(job, uid, attempts, since)
		default:
			for _, pod := range c.w.runningPodsOf(job.uid()) {
				if notice := noticeIn(pod); notice != "" {
					c.w.violate("I15", "pod %s is told that it is suspended at %s, and its job was admitted again", pod.key, notice)
				}
			}
		}
	})
}

// loses: a released job is suspended soon after its unit loses its quota, whatever labels and owners it has by then
// (I15). A unit that loses quota to others can have a grace, which another check covers.
func (c *graceCheck) loses(before *object, ch *change) {
	o := ch.after
	if before == nil || unitOf(o).Spec.ConsumerRef == nil || !holds(before) || !rulebook.Releases(phaseOf(before)) ||
		holds(o) || rulebook.Over(phaseOf(o)) || c.facts.tainted[o.uid()] || c.facts.lostToOthers(o) != nil {
		return
	}
	if job := c.facts.consumer(o); job != nil && runs(job) && !c.w.bad(job) {
		c.w.countFault("lost while it runs")
		c.stillRuns(job, ch)
	}
}

// stillRuns looks again when a controller has done what it could.
func (c *graceCheck) stillRuns(job *object, ch *change) {
	c.w.loop.at(c.calm(ch.at.Add(lookPause)), func() {
		now, u := c.w.api.get(job.kind, job.key), c.w.api.get(units, ch.key)
		stopped := slices.ContainsFunc(c.w.api.since(job.kind, ch.rv), func(later *change) bool {
			return later.key == job.key && later.after != nil && isSuspended(later.after)
		})
		switch {
		case stopped, now == nil, now.uid() != job.uid(), !runs(now), u == nil, u.uid() != ch.after.uid(),
			c.facts.tainted[u.uid()], rulebook.Releases(phaseOf(u)), rulebook.Over(phaseOf(u)), c.facts.lostToOthers(u) != nil:
		case c.w.loop.now.Before(c.calm(ch.at.Add(lookPause))):
			c.stillRuns(job, ch)
		default:
			c.w.violate("I15", "job %s runs, and its unit lost what it held at %s", job.key, ch.at.UTC())
		}
	})
}
