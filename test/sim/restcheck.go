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

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// restCheck judges the processes as a whole: their memory, their pace, and what is left at the end.
type restCheck struct {
	w      *world
	facts  *facts
	looked int
	// writes of this second, by process and object.
	second time.Time
	writes map[string]int
}

// mostWrites is how often one run of a process may write one object within a second.
const mostWrites = 20

// paced: what fails is not tried again without backoff, and two processes take no turns (I12).
func (c *restCheck) paced(p *process, k kind, key string) {
	if second := c.w.loop.now.Truncate(time.Second); !second.Equal(c.second) {
		c.second = second
		clear(c.writes)
	}
	object := fmt.Sprintf("%d %s %s", p.run, k, key)
	if c.writes[object]++; c.writes[object] == mostWrites+1 {
		c.w.violate("I12", "%s: more than %d writes of one object in a second: %s %s", p.name, mostWrites, k, key)
	}
}

// places: each unit that a scheduler knows is in exactly one place of its engine, the one that its object says. The
// engine has no other units (I2).
func (c *restCheck) places(r *replica) {
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

// heartbeat: what nobody watches does not hold quota for longer than its queue waits for a sign of life (I7).
func (c *restCheck) heartbeat(o *object) {
	q := c.w.api.get(queues, keyOf(v1alpha1.DefaultQueueNamespace, unitOf(o).Spec.Queue))
	if q == nil || intOr(nested(q, "spec")["heartbeatTimeoutSeconds"], 0) == 0 || !holds(o) || c.facts.tainted[o.uid()] {
		return
	}
	if at := unitOf(o).Status.LastAllocateTime; at != nil && c.w.loop.now.Sub(at.Time) > heartbeat+2*mostSkew {
		c.w.violate("I7", "unit %s holds quota since %s, and nobody has given a heartbeat", o.key, at)
	}
}

// liveness: after the faults have ended, all jobs end (I6).
func (c *restCheck) liveness() {
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
func (c *restCheck) atRest() {
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
		if len(unitOf(o).Status.Admissions) > 0 && !c.facts.tainted[o.uid()] {
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
