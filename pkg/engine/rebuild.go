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

package engine

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// healState rebuilds the core's state from the objects, after a panic in it or when it was found to differ; nothing is
// decided before that. Decisions in flight count as held until they are settled: they may be applied.
func (e *Engine) healState(now time.Time) {
	if e.core.sound() {
		return
	}
	if wait := e.core.waits(now); wait > 0 {
		e.retryIn(now, wait)
		return
	}
	cause := e.core.renew(now)
	for _, job := range sortedJobs(e.jobs) {
		e.setConsumer(now, job, e.jobs[job], true)
	}
	for _, name := range sortedKeys(e.queues) {
		e.pushQueue(now, e.queues[name])
	}
	units := e.units.keys()
	for _, key := range units {
		rec := e.units.get(key)
		c := e.resolve(rec.object)
		e.units.resolved(rec, &c)
		if rec.flight != nil {
			rec.flight.decision.hold(&c)
		}
		e.core.call(key, func(s *admission.State) { s.UpsertUnit(now, c) })
		e.touch(now, key, rec)
	}
	e.pods.forgetTold()
	e.pods.retellAll(now)
	e.quotas.tell(now, e.core)
	if !e.leading && e.core.sound() {
		e.core.recovered() // a standby does not decide
	}
	e.opts.Metrics.Inc(metrics.StateRebuildsTotal, cause)
	e.log.Info("Rebuilt the state of admission", "cause", cause, "queueUnits", len(units))
}

// holdRequest makes a unit hold its request, for writes before or after which the unit holds it.
func holdRequest(c *unit.Unit, attempt int64) {
	c.Phase, c.Held, c.Attempts = unit.PhaseDequeued, c.Request, max(attempt, c.Attempts)
}

func sortedJobs(jobs map[owner.Name]types.UID) []owner.Name {
	return slices.SortedFunc(maps.Keys(jobs), owner.Name.Compare)
}

// relist takes lists for what there is, and has the core's state rebuilt in this step. The list of pods counts if
// Options.Pods is set.
func (e *Engine) relist(units []*objects.Unit, version string, pods []*corev1.Pod) {
	now := e.opts.Clock.Now()
	listed := make(map[string]struct{}, len(units))
	for _, u := range units {
		key := u.Key()
		listed[key] = struct{}{}
		e.applyUnit(now, key, unitEvent{state: u})
	}
	for _, key := range e.units.keys() {
		rec := e.units.get(key)
		if _, ok := listed[key]; !ok && !versionAfter(rec.object.ResourceVersion, version) {
			e.forgetUnit(now, key, rec)
		}
	}
	if e.opts.Pods != nil {
		e.pods.relist(now, pods, e.opts.podExists)
	}
	e.core.discard(rebuildDifference)
	e.quotas.markAll()
	e.retryIn(now, 0)
}

// podExists asks the scheduler's cache. A pod of which it cannot say so exists.
func (o *Options) podExists(pod *corev1.Pod) bool {
	obj, exists, err := o.Pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
	if err != nil {
		return true
	}
	now, ok := obj.(*corev1.Pod)
	return exists && (!ok || now.UID == pod.UID)
}
