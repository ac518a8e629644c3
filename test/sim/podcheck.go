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

import "time"

// successorsGoAhead is how long a pod that is being deleted does not count, and a clock may differ.
const successorsGoAhead = 2*time.Minute + 2*mostSkew

// podCheck judges each pod that gets a node.
type podCheck struct {
	w        *world
	facts    *facts
	accounts *accounts
}

// beforeBind: no pod of a managed job gets a node without an admitted unit of that job (I3).
func (c *podCheck) beforeBind(o, job *object, d *decision) {
	if !c.managed(job, d) {
		return
	}
	if !c.facts.released(c.w.unitKeyOf(job), job.uid(), d.seen[units], holds) {
		c.w.violate("I3", "%s binds pod %s, and no unit of its job is admitted", d.leader.name, o.key)
		return
	}
	c.withinUnit(o, job, d)
}

// managed says whether a job was managed since the scheduler's last information: it has a quota. A JobSet has one all
// the time, on itself or on its templates.
func (c *podCheck) managed(job *object, d *decision) bool {
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

// withinUnit: the pods of a job on nodes ask for at most its held quota. One generation of successors of deleted pods
// is exempt (I1).
func (c *podCheck) withinUnit(o, job *object, d *decision) {
	key := c.w.unitKeyOf(job)
	most, sure := c.accounts.mostHeld(key, job.uid(), d)
	if !sure {
		return
	}
	request := requestsOf(&podOf(o).Spec)
	staying, leaving := request, amounts{}
	for _, other := range c.w.api.objects[pods] {
		pod := podOf(other)
		b := c.facts.boundAt[pod.UID]
		if pod.Spec.NodeName == "" || terminated(pod) || c.facts.standsFor(other) != job.uid() ||
			b.rv > max(d.seen[pods], d.leader.listed) && b.by != d.leader || c.facts.forgotten(d, other) {
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
