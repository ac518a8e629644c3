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
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Reclaim. Queues have their units take back what others borrow of a min, some from early on and some for a while.

func (g *generator) reclaims(d dice) {
	for range 1 + d.IntN(4) {
		policy := v1alpha1.PreemptAny
		if d.chance(20) {
			policy = v1alpha1.PreemptNever
		}
		within := v1alpha1.PreemptNever
		if d.chance(50) {
			within = v1alpha1.PreemptLowerPriority
		}
		g.add(g.plan.Length/8+d.between(0, g.plan.Length/2), "reclaim", pick(d, leaves), "policy", string(policy),
			"within", string(within))
	}
	if d.chance(70) {
		g.borrowers(d)
	}
}

// loans are jobs that borrow, from a time on, what the owner of much min asks for soon after. leaf is that of each job.
type loans struct {
	owner string
	at    time.Duration
	jobs  []string
	leaf  map[string]string
}

// borrowers fill the cluster with jobs of two quotas, before the owner of much min comes.
func (g *generator) borrowers(d dice) loans {
	owner, at := pick(d, leaves), d.between(5*time.Second, g.plan.Length/2)
	if owner == "c" {
		g.add(at, "quota", owner, append(g.more(), "min", "8000", "max", "10000")...)
	} else {
		g.add(at, "quota", "org", append(g.more(), "min", "12000", "max", "14000", "leaf", "false")...)
		g.add(at, "quota", owner, append(g.more(), "min", "8000", "max", "10000", "parent", "org")...)
	}
	g.add(at, "reclaim", owner, "policy", string(v1alpha1.PreemptAny))
	made := loans{owner: owner, at: at, leaf: map[string]string{}}
	for i, leaf := range slices.Concat(leaves, leaves, leaves, leaves) {
		name, from, run := fmt.Sprintf("loan%d", i), at, d.between(10*time.Second, 30*time.Second)
		if leaf == owner {
			name, from, run = fmt.Sprintf("owner%d", i), at+d.between(2*time.Second, 12*time.Second), d.between(0, 5*time.Second)
		} else {
			made.jobs, made.leaf[name] = append(made.jobs, name), leaf
		}
		g.add(from+d.between(0, time.Second), "job", name, "quota", leaf, "cpu", "1000", "pods", "3", "suspend", "true",
			"run", run.Truncate(time.Millisecond).String(), "priority", strconv.Itoa(d.IntN(3)))
		g.jobs = append(g.jobs, name)
	}
	return made
}

// setReclaim of a queue, if there is one.
func setReclaim(w *world, s Step) {
	if key := keyOf(v1alpha1.DefaultQueueNamespace, s.On); w.api.get(queues, key) != nil {
		w.countFault("reclaim")
		policy := map[string]any{"reclaim": s.Args["policy"]}
		if within := s.Args["within"]; within != "" {
			policy["withinQueue"] = within
		}
		w.api.edit(byAdmin, queues, key, false, func(u *unstructured.Unstructured) {
			spec := mapAt(u.Object, "spec")
			keepGrace(spec, map[string]any{"preemption": policy})
			spec["preemption"] = policy
		})
		for _, o := range w.api.list(queues) { // else nothing is taken for as long as a plan
			w.api.edit(byAdmin, queues, o.key, false, setMinRunTime(s.number("min-run", 0)))
		}
	}
}

func setMinRunTime(seconds int64) func(u *unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		spec := mapAt(u.Object, "spec")
		if spec["preemption"] == nil {
			spec["preemption"] = map[string]any{}
		}
		mapAt(spec, "preemption")["minRunTimeSeconds"] = seconds
	}
}

// takes says that a unit that waits takes back what others hold.
func takes(o *object) bool {
	if o == nil {
		return false
	}
	status := unitOf(o).Status
	return status.Preemption != nil && status.Preemption.Attempts == status.Attempts && len(status.Preemption.Holds) > 0
}

// onReclaim judges a reclaim: before a unit loses its quota, another one has recorded that it takes it (I3).
func (c *takingCheck) onReclaim(before *object, ch *change) {
	if p := unitOf(ch.after).Status.Preemption; p != nil {
		for _, hold := range p.Holds {
			c.recorded[hold] = true
		}
	}
	if ch.by.role != roleScheduler || !holds(before) || holds(ch.after) || c.facts.tainted[ch.after.uid()] {
		return
	}
	status := unitOf(ch.after).Status
	evicted := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionEvicted)
	if evicted == nil {
		return
	}
	switch unit.Reason(evicted.Reason) {
	case unit.ReasonReclaimed:
		c.w.countFault("reclaimed")
	case unit.ReasonPreemptedInQueue:
		c.w.countFault("preempted in queue")
	default:
		return
	}
	if hold := fmt.Sprintf("%s/%d", ch.after.uid(), status.Attempts); !c.recorded[hold] {
		c.w.violate("I3", "unit %s lost what it held, and no unit had said that it takes %s", ch.key, hold)
	}
}
