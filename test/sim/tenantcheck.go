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
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// The actions of a tenant must break none of the other checks, and these in addition:
//   - Pods of a job on nodes are at most those that its unit holds, and one generation of successors of deleted pods.
//   - Pods that a job leaves behind keep its place in its queue.
//   - A job that has to wait has to wait whatever becomes of its unit.

// successorsGoAhead is how long a pod that is being deleted does not count, and a clock may differ.
const successorsGoAhead = 2*time.Minute + 2*mostSkew

// place of a unit in a queue and quota.
type place struct{ queue, quota string }

// wait is until when a job has to wait, as a leader had written into a unit that went.
type wait struct {
	until time.Time
	gone  int64 // version at which the unit went
	by    *replica
}

// deeds are what the checks of a tenant remember.
type deeds struct {
	// heldIn is the last place of a unit with quota, by its key. goneAt is the version at which the unit was deleted, and
	// goneSeen the version of pods that each scheduler had seen then.
	heldIn   map[string]place
	goneAt   map[string]int64
	goneSeen map[string]map[*replica]int64
	// firm units were admitted as non-preemptible.
	firm map[types.UID]bool
	// putOff are the leaders that wrote until when units wait, waits what jobs brought along from units that went.
	putOff map[types.UID]*replica
	waits  map[types.UID]wait
}

func newDeeds() deeds {
	return deeds{
		heldIn: map[string]place{}, goneAt: map[string]int64{},
		goneSeen: map[string]map[*replica]int64{}, firm: map[types.UID]bool{},
		putOff: map[types.UID]*replica{}, waits: map[types.UID]wait{},
	}
}

func (c *checker) noteUnit(before *object, ch *change) {
	u, uid := unitOf(ch.after), ch.after.uid()
	if holds(ch.after) && !c.tainted[uid] {
		if !holds(before) {
			c.firm[uid] = !preemptible(ch.after)
		}
		c.heldIn[ch.key] = place{queue: u.Spec.Queue, quota: quotaLabel(ch.after)}
	}
	if ch.by == byUser && before != nil &&
		!reflect.DeepEqual(before.u.Object["spec"], ch.after.u.Object["spec"]) {
		delete(c.waits, consumerOf(ch.after)) // somebody who may write units has it tried again
	}
	if r := u.Status.RequeueState; r != nil && r.RequeueAt != nil && ch.by.decision != nil {
		if was := requeueAt(before); !was.Equal(r.RequeueAt.Time) {
			c.putOff[uid] = ch.by.decision.leader
		}
	}
}

func requeueAt(o *object) time.Time {
	if o == nil || unitOf(o).Status.RequeueState == nil || unitOf(o).Status.RequeueState.RequeueAt == nil {
		return time.Time{}
	}
	return unitOf(o).Status.RequeueState.RequeueAt.Time
}

// noteGone keeps what a unit said that goes.
func (c *checker) noteGone(ch *change) {
	o := ch.before
	c.goneAt[ch.key], c.goneSeen[ch.key] = ch.rv, map[*replica]int64{}
	for _, r := range c.w.schedulers {
		if r.alive {
			c.goneSeen[ch.key][r] = r.seenOf(pods)
		}
	}
	by := c.putOff[o.uid()]
	if consumerOf(o) != "" && unitOf(o).Status.Phase == v1alpha1.PhaseTimeoutBackoff && by != nil && !c.tainted[o.uid()] {
		c.waits[consumerOf(o)] = wait{until: requeueAt(o), gone: ch.rv, by: by}
	}
}

// stillWaits: a unit begins with what its job had to wait for, as long as the leader is the one that said so (I9).
func (c *checker) stillWaits(ch *change) {
	w, ok := c.waits[consumerOf(ch.after)]
	if !ok || ch.by.decision == nil || ch.by.decision.leader != w.by || c.tainted[ch.after.uid()] {
		return
	}
	if at := c.w.latest(ch.by.process); w.until.After(at) {
		c.w.violate("I9", "unit %s was admitted at %s, and its job has to wait until %s, as the unit before it said",
			ch.key, at, w.until)
	}
}

// remnants are places of pods whose units hold nothing any more, by unit. Only those count that a leader must know,
// because the pods and the rest of the unit agree on the place.
func (c *checker) remnants(d *decision) map[string]place {
	left := map[string]place{}
	for _, o := range c.w.api.objects[pods] {
		key := podOf(o).Annotations[v1alpha1.AnnotationRelatedQueueUnit]
		was, known := c.heldIn[key]
		if !known || !c.remains(d, o, was.quota) || !c.leftOver(o, key, was) {
			continue
		}
		if gone := c.goneAt[key]; gone > 0 &&
			(d.leader.listed >= gone || c.boundAt[podOf(o).UID].rv > c.goneSeen[key][d.leader]) {
			was.queue = "" // deleted before the leader listed, or saw the pod on a node
		}
		if left[key].queue == "" {
			left[key] = was
		}
	}
	return left
}

// remains: a pod is on a node, and known to be charged to a quota.
func (c *checker) remains(d *decision, o *object, quota string) bool {
	pod := podOf(o)
	return pod.Spec.NodeName != "" && !terminated(pod) && quotaLabel(o) == quota && o.rv <= d.seen[pods] &&
		c.counts(d, o) && c.turned[quota] <= c.boundAt[pod.UID].rv
}

// leftOver: no unit holds quota for a pod, or one whose job is gone, and nothing says that its place was another.
func (c *checker) leftOver(pod *object, key string, was place) bool {
	if u := c.w.api.get(units, key); u != nil {
		held := holds(u) && !c.orphaned(u)
		if held || quotaLabel(u) != was.quota || unitOf(u).Spec.Queue != was.queue {
			return false
		}
	}
	job := c.w.topOf(pod)
	return job == nil || job == pod || c.w.unitKeyOf(job) == key
}

// bounds of a queue count the places of units that hold quota, and those that pods of others keep (I1).
func (c *checker) bounds(ch *change) {
	d, name := ch.by.decision, unitOf(ch.after).Spec.Queue
	key := keyOf(v1alpha1.DefaultQueueNamespace, name)
	o := c.w.api.get(queues, key)
	if o == nil || !c.unchanged(queues, key, d.seen[queues], 0) {
		return
	}
	spec := nested(o, "spec")
	if spec["maxAdmitted"] == nil && spec["perNamespace"] == nil {
		return
	}
	n := int64(0)
	for _, other := range c.w.api.list(units) {
		if holds(other) && !c.orphaned(other) && unitOf(other).Spec.Queue == name && c.knownToHold(d, other) {
			n++
		}
	}
	for _, p := range c.remnants(d) {
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

// withinUnit: the pods of a job on nodes ask for at most its held quota. One generation of successors of deleted pods
// is exempt (I1).
func (c *checker) withinUnit(o, job *object, d *decision) {
	key := c.w.unitKeyOf(job)
	most, sure := c.mostHeld(key, job.uid(), d)
	if !sure {
		return
	}
	request := requestsOf(&podOf(o).Spec)
	staying, leaving := request, amounts{}
	for _, other := range c.w.api.objects[pods] {
		pod := podOf(other)
		b := c.boundAt[pod.UID]
		if pod.Spec.NodeName == "" || terminated(pod) || c.standsFor(other) != job.uid() ||
			b.rv > max(d.seen[pods], d.leader.listed) && b.by != d.leader || c.forgotten(d, other) {
			continue // the scheduler does not know of it, or its quota went and came again
		}
		if at := pod.DeletionTimestamp; at != nil && c.w.loop.now.Before(at.Add(successorsGoAhead-graceOf(pod))) {
			leaving = leaving.plus(requestsOf(&pod.Spec), 1)
			continue
		}
		staying = staying.plus(requestsOf(&pod.Spec), 1)
	}
	again := leaving.plus(most, -1).each(amounts{}, greatest)
	for i, n := range staying.plus(again, 1) {
		if request[i] > 0 && n > most[i] {
			c.w.violate("I1", "%s binds pod %s, and of its job are %s on nodes and %s that go, of %s", d.leader.name, o.key,
				staying, leaving, most)
			return
		}
	}
}

// mostHeld is the greatest amount that the unit of a job has held since the scheduler's last information. A release
// counts after its confirmation. sure is false if a person wrote the amount, or nobody has yet.
func (c *checker) mostHeld(key string, job types.UID, d *decision) (most amounts, sure bool) {
	sure = true
	look := func(o *object) {
		if o != nil && consumerOf(o) == job && holds(o) {
			most = most.each(heldOf(o), greatest)
			sure = sure && !c.tainted[o.uid()] && !unrecorded(o)
		}
	}
	look(c.w.api.get(units, key))
	for _, ch := range slices.Backward(c.w.api.history[units]) {
		news := ch.rv > d.seen[units]
		if !news && ch.at.Before(d.at.Add(-c.w.plan.Deadline)) {
			break
		}
		if ch.key == key && (news || ch.by.decision != nil && ch.by.decision.leader == d.leader) {
			look(ch.before)
			look(ch.after)
		}
	}
	return most, sure
}

// heartbeat: what nobody watches does not hold quota for longer than its queue waits for a sign of life (I7).
func (c *checker) heartbeat(o *object) {
	q := c.w.api.get(queues, keyOf(v1alpha1.DefaultQueueNamespace, unitOf(o).Spec.Queue))
	if q == nil || intOr(nested(q, "spec")["heartbeatTimeoutSeconds"], 0) == 0 || !holds(o) || c.tainted[o.uid()] {
		return
	}
	if at := unitOf(o).Status.LastAllocateTime; at != nil && c.w.loop.now.Sub(at.Time) > heartbeat+2*mostSkew {
		c.w.violate("I7", "unit %s holds quota since %s, and nobody has given a heartbeat", o.key, at)
	}
}
