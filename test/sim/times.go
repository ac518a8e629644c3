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
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Time-outs and execution times. A queue has short ones for a while. So jobs lose their admission during all other
// faults, are tried again, and are deactivated in the end. When the world heals the times go, and people reactivate the
// units.

// times are of a step of a plan.
func (g *generator) times(d dice) {
	defer g.with(d)()
	seconds := func() string { return strconv.Itoa(pick(g.dice, []int{0, 1, 3, 8})) }
	for range 1 + g.IntN(3) {
		pairs := []string{
			"pods-ready", seconds(), "recovery", seconds(), "unbound", seconds(), "idle", seconds(), "execution",
			strconv.Itoa(pick(g.dice, []int{0, 4, 12})),
		}
		if g.chance(50) {
			pairs = append(pairs, "backoff-limit", strconv.Itoa(g.IntN(2)))
		}
		if g.chance(30) {
			pairs = append(pairs, "on-suspend", "Requeue")
		}
		g.add(g.when(), "times", pick(g.dice, leaves), pairs...)
	}
	for range g.IntN(3) {
		g.add(g.when(), "limit", pick(g.dice, g.jobs), "seconds", strconv.Itoa(2+g.IntN(10)))
	}
}

// setTimes of a queue, if there is one.
func setTimes(w *world, s Step) {
	key := keyOf(v1alpha1.DefaultQueueNamespace, s.On)
	if w.api.get(queues, key) == nil {
		return
	}
	w.countFault("times")
	w.api.edit(byAdmin, queues, key, false, func(u *unstructured.Unstructured) {
		spec := mapAt(u.Object, "spec")
		spec["timeouts"] = map[string]any{
			"podsReadySeconds": s.number("pods-ready", 0), "recoverySeconds": s.number("recovery", 0),
			"unboundSeconds": s.number("unbound", 0), "idleReservationSeconds": s.number("idle", 0),
		}
		if n := s.number("execution", 0); n > 0 {
			spec["executionTime"] = map[string]any{"maximumSeconds": n}
		}
		if policy := s.Args["on-suspend"]; policy != "" {
			spec["onOwnerSuspend"] = policy
		}
		if s.Args["backoff-limit"] != "" {
			spec["backoffLimit"] = s.number("backoff-limit", 0)
		}
	})
}

// withoutTimes is a queue as it was before.
func withoutTimes(spec map[string]any) {
	for _, field := range []string{
		"timeouts", "executionTime", "backoffLimit", "onOwnerSuspend", "maxAdmitted", "perNamespace",
	} {
		delete(spec, field)
	}
}

func limitJob(w *world, s Step) {
	w.annotate(jobKindOf(s.On), keyOf(team, s.On), v1alpha1.AnnotationMaxExecutionTime, s.Args["seconds"])
}

// activateAll makes active what is inactive, or is about to be made so.
func (w *world) activateAll() {
	for _, o := range w.api.list(units) {
		w.api.edit(byUser, units, o.key, false, func(u *unstructured.Unstructured) {
			if activate(u); deactivation(unitOf(o)) != nil {
				mapAt(u.Object, "spec")["active"] = true
			}
		})
	}
}

// deactivation is the cause for which a unit has to be deactivated, and is not yet.
func deactivation(u *v1alpha1.QueueUnit) *metav1.Condition {
	c := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionDeactivationTarget)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != u.Generation {
		return nil
	}
	return c
}

// patiently: no unit is admitted that has to be deactivated, or waits for its time.
func (c *admissionCheck) patiently(before *object, ch *change) {
	if before == nil || c.facts.tainted[before.uid()] {
		return
	}
	u := unitOf(before)
	if d := deactivation(u); d != nil {
		c.w.violate("I9", "unit %s was admitted, which is to be made inactive: %s", ch.key, d.Reason)
	}
	at := c.w.latest(ch.by.process)
	if r := u.Status.RequeueState; u.Status.Phase == v1alpha1.PhaseTimeoutBackoff && r != nil && r.RequeueAt.After(at) {
		c.w.violate("I9", "unit %s was admitted at %s, and has to wait until %s", ch.key, at, r.RequeueAt)
	}
}

// latest is what the clock of a process may say now, or may have said in the meantime.
func (w *world) latest(name string) time.Time {
	return w.loop.now.Add(max(w.skews[name], 0) + mostSkew)
}

// mostSkew is by how much a clock may be ahead.
const mostSkew = 10 * time.Second
