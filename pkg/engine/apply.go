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
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// apply feeds the state with what came. Jobs come before units, so that a unit finds its job when both came together,
// and results after units: the core remembers what an object says during a write until the write is settled.
func (e *Engine) apply(now time.Time, b *batch) {
	if !e.retryAt.After(now) {
		e.retryAt = time.Time{}
		e.resolveAgain(now, e.units.unresolved())
	}
	for _, it := range b.jobs.items {
		e.applyJob(now, it.key, it.value)
	}
	for _, it := range b.classes.items {
		e.applyClass(now, it.key, it.value)
	}
	for _, it := range b.bounds.items {
		if e.priorities.SetBound(it.key, it.value) {
			e.resolveAgain(now, e.units.inNamespace(it.key))
		}
	}
	for _, it := range b.checks.items {
		e.applyCheck(now, it.key, it.value)
	}
	for _, it := range b.queues.items {
		e.applyQueue(now, it.key, it.value)
	}
	e.quotas.note(now, b.quotas.items, b.total)
	if b.mapping {
		e.remap(now)
	}
	for _, it := range b.units.items {
		e.applyUnit(now, it.key, it.value)
	}
	for _, it := range b.pods.items {
		e.pods.apply(now, it.value)
	}
	for _, it := range b.assigns.items {
		e.pods.assign(now, it.key, it.value)
	}
	for _, r := range b.results {
		e.applyResult(now, r)
	}
	if b.recheck {
		e.core.call("", func(s *admission.State) { s.Recheck(now) })
	}
	for _, f := range b.calls {
		f()
	}
	e.pods.retellElected(now)
}

func (e *Engine) applyJob(now time.Time, job owner.Name, ev jobEvent) {
	before, uid := e.jobs[job], ev.uid
	if before != "" && before != uid {
		e.kinship.Forget(before)
	}
	if uid != "" {
		moved, marked := e.kinship.Set(uid, ev.owner), e.kinship.Mark(uid, ev.marked)
		if moved || marked {
			e.pods.retell(now, e.kinship.Family(uid))
		}
	}
	if before == uid {
		return
	}
	if before != "" {
		delete(e.jobs, job)
		e.forgetPast(job, before)
		e.setConsumer(now, job, before, false)
	}
	if uid != "" {
		e.jobs[job] = uid
		e.setConsumer(now, job, uid, true)
	}
}

func (e *Engine) setConsumer(now time.Time, job owner.Name, uid types.UID, live bool) {
	c := job.Consumer(string(uid))
	e.core.call("", func(s *admission.State) { s.SetConsumer(now, c, live) })
}

func (e *Engine) applyClass(now time.Time, name string, class *objects.Class) {
	changed, byDefault := e.priorities.SetClass(name, class)
	if !changed {
		return
	}
	e.resolveAgain(now, e.units.ofClass(name, byDefault))
	for _, queue := range sortedKeys(e.queues) {
		if q := e.queues[queue]; q.Class == name {
			e.pushQueue(now, q)
		}
	}
}

// applyCheck takes an AdmissionCheck; nil is none. Queues that name it may be open now, or not any more.
func (e *Engine) applyCheck(now time.Time, name string, check *objects.Check) {
	e.checks.set(name, check)
	e.opts.Witness.Check(name)
	for _, key := range e.units.holders() {
		if rec := e.units.get(key); rec.object.Updates.AskedBy(name) {
			e.feed(now, rec)
			e.pods.lookAgain(rec.object)
		}
	}
	for _, queue := range sortedKeys(e.queues) {
		if q := e.queues[queue]; q.Asks(name) {
			e.statuses.mark(now, queue)
			e.pushQueue(now, q)
		}
	}
}

func (e *Engine) applyQueue(now time.Time, name string, q *objects.Queue) {
	e.queueNames.set(name, q != nil)
	if (q == nil) != (e.queues[name] == nil) {
		e.gauges.recount(now)
	}
	if q == nil {
		delete(e.queues, name)
		e.statuses.forget(name)
		e.waits.QueueGone(name)
		e.core.call("", func(s *admission.State) { s.DeleteQueue(now, name) })
		return
	}
	if have := e.queues[name]; have == nil || have.UID != q.UID {
		e.statuses.forget(name)
	}
	e.opts.countUnreadable(q.Panicked)
	e.queues[name] = q
	e.waits.SetQueue(name, q.WaitObjective)
	e.gauges.mark(now, "")
	e.statuses.mark(now, name)
	e.pushQueue(now, q)
}

// countUnreadable counts a panic while an object was read, which happened in the goroutine of an informer.
func (o *Options) countUnreadable(panicked bool) {
	if panicked {
		o.Metrics.Inc(metrics.PanicsTotal, "decode")
	}
}

func (e *Engine) pushQueue(now time.Time, q *objects.Queue) {
	spec := q.Spec
	if q.Class != "" {
		spec.Priority = e.priorities.Of(q.Class)
	}
	spec.Fault = e.checks.faultOf(q)
	spec.AdmissionChecks = e.checks.resolved(q.Spec.AdmissionChecks, &e.opts.Config)
	e.core.call("", func(s *admission.State) { s.UpsertQueue(now, spec) })
}

// remap asks for the quotas of units and pods again: which ones there are, or which one a namespace has, changed.
func (e *Engine) remap(now time.Time) {
	e.resolveAgain(now, e.units.unlabelled())
	e.pods.remap(now)
}
