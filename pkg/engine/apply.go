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
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// apply feeds the state with what came. Jobs come before units, so that a unit finds its job when both came together,
// and results after units: what an object says meanwhile is remembered by the core until the write is settled.
func (e *Engine) apply(now time.Time, b *batch) {
	if !e.retryAt.After(now) {
		e.retryAt = time.Time{}
		e.resolveAgain(now, e.unresolved)
	}
	for _, it := range b.jobs.items {
		e.applyJob(now, it.key, it.value)
	}
	for _, it := range b.classes.items {
		e.applyClass(now, it.key, it.value)
	}
	for _, it := range b.queues.items {
		e.applyQueue(now, it.key, it.value)
	}
	e.noteQuotas(now, b.quotas.items, b.total)
	if b.mapping {
		e.resolveAgain(now, e.unlabelled)
		e.remapPods(now)
	}
	for _, it := range b.units.items {
		e.applyUnit(now, it.key, it.value)
	}
	for _, it := range b.pods.items {
		e.applyPod(now, it.value)
	}
	for _, it := range b.assigns.items {
		e.applyAssign(now, it.key, it.value)
	}
	for _, r := range b.results {
		e.applyResult(now, r)
	}
	for _, f := range b.calls {
		f()
	}
}

// inCore calls the core, about the unit of this key if it is not empty. When that panics its state can no longer be
// trusted and is built anew from the objects; a unit that caused it is parked from then on.
func (e *Engine) inCore(key string, f func()) {
	if !e.guard("core", f) {
		e.corePanicked(key)
	}
}

func (e *Engine) applyJob(now time.Time, key jobKey, uid types.UID) {
	before := e.jobs[key]
	if before == uid {
		return
	}
	if before != "" {
		delete(e.jobs, key)
		e.setConsumer(now, key, before, false)
	}
	if uid != "" {
		e.jobs[key] = uid
		e.setConsumer(now, key, uid, true)
	}
}

func (e *Engine) setConsumer(now time.Time, key jobKey, uid types.UID, live bool) {
	e.inCore("", func() {
		scope := key.scope.Value()
		e.state.SetConsumer(now, admission.Consumer{Kind: scope.kind, Namespace: scope.namespace, Name: key.name, UID: string(uid)}, live)
	})
}

func (e *Engine) applyClass(now time.Time, name string, class *classObject) {
	old := e.classes[name]
	if class == nil {
		delete(e.classes, name)
	} else {
		e.classes[name] = class
	}
	if old != nil && class != nil && old.value == class.value && old.globalDefault == class.globalDefault {
		return
	}
	dependents := []keys{e.byClass[name]}
	if (old != nil && old.globalDefault) || (class != nil && class.globalDefault) {
		dependents = dependents[:0]
		for _, some := range e.byClass {
			dependents = append(dependents, some)
		}
	}
	for _, some := range dependents {
		e.resolveAgain(now, some)
	}
	for _, queue := range sortedKeys(e.queues) {
		if q := e.queues[queue]; q.class == name {
			e.pushQueue(now, q)
		}
	}
}

// priorityOf a class; the cluster's default for "" and for a class that does not exist.
func (e *Engine) priorityOf(class string) int32 {
	if c := e.classes[class]; c != nil {
		return c.value
	}
	var best *classObject
	for _, c := range e.classes {
		// Kubernetes takes the lowest of several defaults.
		if c.globalDefault && (best == nil || c.value < best.value) {
			best = c
		}
	}
	if best == nil {
		return 0
	}
	return best.value
}

func (e *Engine) applyQueue(now time.Time, name string, q *queueObject) {
	e.statuses.mark(now, name)
	if q == nil {
		delete(e.queues, name)
		e.statuses.forget(name)
		e.inCore("", func() { e.state.DeleteQueue(now, name) })
		return
	}
	if have := e.queues[name]; have == nil || have.UID != q.UID {
		e.statuses.forget(name)
		e.statuses.mark(now, name)
	}
	e.countUnreadable(q.panicked)
	e.queues[name] = q
	e.pushQueue(now, q)
}

// countUnreadable counts a panic while an object was read, which happened in the goroutine of an informer.
func (e *Engine) countUnreadable(panicked bool) {
	if panicked {
		e.opts.Metrics.Inc(metrics.PanicsTotal, "decode")
	}
}

func (e *Engine) pushQueue(now time.Time, q *queueObject) {
	spec := q.spec
	if q.class != "" {
		spec.Priority = e.priorityOf(q.class)
	}
	e.inCore("", func() { e.state.UpsertQueue(now, spec) })
}

// applyUnit takes what a watch said about a unit. A state that is older than the one known is ignored: a watch may
// lag behind what our own writes returned (I3).
func (e *Engine) applyUnit(now time.Time, key string, ev unitEvent) {
	delete(e.ghosts, key)
	e.countUnreadable(ev.object != nil && ev.object.panicked)
	rec := e.units[key]
	switch {
	case ev.object == nil:
		// Another object of the name that is older than what went has gone before it: the mailbox keeps the last event alone.
		if rec != nil && (ev.last == nil || rec.object.UID == ev.last.UID || newer(ev.last, rec.object)) {
			e.forgetUnit(now, key, rec)
		}
	case rec == nil:
		e.addUnit(now, ev.object)
	case rec.object.UID != ev.object.UID:
		if newer(rec.object, ev.object) {
			return
		}
		e.forgetUnit(now, key, rec)
		e.addUnit(now, ev.object)
	default:
		e.updateUnit(now, rec, ev.object)
	}
}

// updateUnit takes another state of the same object.
func (e *Engine) updateUnit(now time.Time, rec *unitRecord, u *unitObject) {
	if newer(rec.object, u) || rec.object.ResourceVersion == u.ResourceVersion {
		return
	}
	before := rec.object
	e.unindex(rec)
	rec.object = u
	if before.Generation != u.Generation {
		e.acquit(u.key())
	}
	e.index(rec)
	if before.phase != admission.PhaseRunning && u.phase == admission.PhaseRunning && !rec.admittedAt.IsZero() {
		e.opts.Metrics.Observe(metrics.AdmittedToRunningSeconds, u.ranAfter(rec.admittedAt, now).Seconds(), rec.queue)
		rec.act().admittedAt = time.Time{}
	}
	e.feed(now, rec)
	if before.consumer != u.consumer || before.hasConsumer != u.hasConsumer || !e.alone(u.consumerUID()) {
		e.rejoin(now, before)
		e.rejoin(now, u)
	}
	if rec.flight != nil && rec.unknown && rec.flight.appliedTo(u) {
		// The object answers what the request did not.
		e.settle(now, rec, admission.OutcomeConfirmed)
	}
}

func (e *Engine) addUnit(now time.Time, u *unitObject) {
	rec := &unitRecord{object: u, activity: noActivity}
	e.units[u.key()] = rec
	e.index(rec)
	e.feed(now, rec)
	e.rejoin(now, u)
}

func (e *Engine) forgetUnit(now time.Time, key string, rec *unitRecord) {
	if rec.flight != nil {
		rec.flight.cancel()
	}
	if rec.explaining != nil {
		rec.explaining.cancel()
	}
	e.unindex(rec)
	delete(e.units, key)
	delete(e.explains, key)
	e.acquit(key)
	e.inCore("", func() { e.state.DeleteUnit(now, key) })
	e.rejoin(now, rec.object)
	e.touch(now, key, rec)
}

// feed gives the unit to the core as it resolves now.
func (e *Engine) feed(now time.Time, rec *unitRecord) {
	e.touch(now, rec.object.key(), rec) // its former queue and quota
	c := e.resolve(rec.object)
	rec.resolved(&c)
	if !e.quotas.known[c.Quota] {
		e.quotas.dirty[c.Quota] = true
	}
	e.inCore(c.Key, func() { e.state.UpsertUnit(now, c) })
	e.touch(now, c.Key, rec)
}

// resolved keeps what the unit resolved to.
func (rec *unitRecord) resolved(c *admission.Unit) {
	rec.queue, rec.quota, rec.priority, rec.invalid = c.Queue, c.Quota, c.Priority, c.Invalid
	rec.managed, rec.misnamed = c.ConsumerManaged, c.Misnamed
}

// touch has the snapshot, the status of its queue and the gauges of its quota looked at again.
func (e *Engine) touch(now time.Time, key string, rec *unitRecord) {
	e.touched.put(key, struct{}{})
	if uid := rec.object.consumerUID(); uid != "" {
		e.rejudged.put(uid, struct{}{})
	}
	if rec.queue != "" {
		e.statuses.mark(now, rec.queue)
	}
	e.gauges.mark(now, rec.quota)
}

// resolve makes the core's view of a unit, with the names and priorities that hold now.
func (e *Engine) resolve(u *unitObject) admission.Unit {
	c := admission.Unit{
		Key: u.key(), UID: string(u.UID), Queue: u.queue, Created: u.CreationTimestamp.Time,
		Request: u.request, Pods: u.pods, NonPreemptible: u.nonPreemptible, Active: !u.inactive,
		Consumer: u.consumer, OwnedByConsumer: u.owned, Adopting: u.adopting(),
		Phase: u.phase, Attempts: u.attempts, Held: u.held, RequeueAt: u.requeueAt,
		Invalid: u.invalid, InvalidMessage: u.invalidMessage,
	}
	if u.hasConsumer && e.opts.Predicate != nil {
		var name string
		name, c.ConsumerManaged = e.opts.Predicate.UnitName(u.consumerKind.Value(), u.consumer.Name)
		c.Misnamed = c.ConsumerManaged && name != u.Name
	}
	c.Expected = u.expected(c.ConsumerManaged)
	if e.askQuotas(func() { c.Quota = e.opts.Quotas.Resolve(u.Namespace, u.quotaLabels()) }) {
		delete(e.unresolved, c.Key)
	} else {
		c.Invalid, c.InvalidMessage = admission.ReasonInternalError, "its quota could not be resolved; see the log of the scheduler"
		e.unresolved[c.Key] = struct{}{}
	}
	if c.Queue == "" {
		c.Queue = c.Quota
	}
	if u.priority != nil {
		c.Priority = *u.priority
	} else {
		c.Priority = e.priorityOf(u.class)
	}
	if message, ok := e.poisoned[c.Key]; ok {
		c.Invalid, c.InvalidMessage, c.Poisoned = admission.ReasonInternalError, message, true
	}
	return c
}

// resolveAgain feeds these units again if they resolve to something else now.
func (e *Engine) resolveAgain(now time.Time, some keys) {
	for _, key := range sortedKeys(some) {
		rec := e.units[key]
		if rec == nil {
			continue
		}
		c := e.resolve(rec.object)
		if c.Quota != rec.quota || c.Queue != rec.queue || c.Priority != rec.priority || c.Invalid != rec.invalid {
			e.feed(now, rec)
		}
	}
}

func (e *Engine) index(rec *unitRecord) {
	u := rec.object
	key := u.key()
	if uid := u.consumerUID(); uid != "" {
		last := e.consumers[uid]
		if last == nil {
			e.consumers[uid] = rec
		}
		for ; last != nil; last = last.next {
			if last.next == nil {
				last.next = rec
				break
			}
		}
	}
	if u.quota == "" {
		e.unlabelled[key] = struct{}{}
	}
	if u.phase.Holds() {
		e.holders[key] = struct{}{}
	}
	if u.priority == nil {
		addKey(e.byClass, u.class, key)
	}
}

func (e *Engine) unindex(rec *unitRecord) {
	u := rec.object
	key := u.key()
	if uid := u.consumerUID(); uid != "" {
		e.leaveConsumer(uid, rec)
	}
	delete(e.unlabelled, key)
	delete(e.holders, key)
	delete(e.unresolved, key)
	if u.priority == nil {
		dropKey(e.byClass, u.class, key)
	}
}

// leaveConsumer takes a unit out of those of a consumer.
func (e *Engine) leaveConsumer(uid types.UID, rec *unitRecord) {
	first := e.consumers[uid]
	if first == rec {
		first = rec.next
	} else {
		for at := first; at != nil; at = at.next {
			if at.next == rec {
				at.next = rec.next
				break
			}
		}
	}
	rec.next = nil
	// Set anew in any case: the UID that is the key is part of a unit's memory, which must not outlive the unit.
	delete(e.consumers, uid)
	if first != nil {
		e.consumers[first.object.consumerUID()] = first
	}
}

func addKey[K comparable](index map[K]keys, by K, key string) {
	if index[by] == nil {
		index[by] = keys{}
	}
	index[by][key] = struct{}{}
}

func dropKey[K comparable](index map[K]keys, by K, key string) {
	delete(index[by], key)
	if len(index[by]) == 0 {
		delete(index, by)
	}
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// applyResult takes what became of a write.
func (e *Engine) applyResult(now time.Time, r Result) {
	w := r.write
	if w.kind == writeQueueStatus {
		e.statuses.written(now, w, r.outcome)
		return
	}
	rec := e.units[w.key.String()]
	if rec == nil || rec.object.UID != w.base.UID {
		return // gone meanwhile; a watch says what there is now
	}
	if r.gone {
		e.countAttempt("gone", w)
		e.forgetUnit(now, w.key.String(), rec)
		return
	}
	if r.fresh != nil {
		e.updateUnit(now, rec, r.fresh)
	}
	switch {
	case !w.decides():
		e.explained(now, rec, r)
	case rec.flight == nil || rec.flight.id != w.id:
		// settled by the object already
	case r.outcome == admission.OutcomeUnknown:
		rec.act().unknown = true
		e.countAttempt("unknown", w)
		e.inCore("", func() { e.state.Settle(now, rec.object.key(), w.attempt, admission.OutcomeUnknown) })
		if w.appliedTo(rec.object) {
			e.settle(now, rec, admission.OutcomeConfirmed)
		}
	default:
		if r.outcome == admission.OutcomeRefused {
			e.log.Error(r.err, "The API server refuses a status write", "queueUnit", w.key, "kind", w.kind, "attempt", w.attempt)
		}
		e.settle(now, rec, r.outcome)
	}
}

// settle ends the flight of a unit with a definite outcome.
func (e *Engine) settle(now time.Time, rec *unitRecord, outcome admission.Outcome) {
	w := rec.flight
	w.cancel()
	rec.act().flight, rec.act().unknown = nil, false
	result := map[admission.Outcome]string{
		admission.OutcomeConfirmed: "confirmed", admission.OutcomeRefuted: "refuted", admission.OutcomeRefused: "refused",
	}[outcome]
	e.countAttempt(result, w)
	e.inCore(rec.object.key(), func() {
		known := e.state.InFlight(rec.object.key())
		e.state.Settle(now, rec.object.key(), w.attempt, outcome)
		if !known { // the state was built anew while the write was under way
			e.state.UpsertUnit(now, e.resolve(rec.object))
		}
	})
	e.touch(now, rec.object.key(), rec)
	switch {
	case w.kind == writeAdmit && outcome == admission.OutcomeConfirmed:
		rec.act().admittedAt = now
		e.noteAdmission(now, w)
		e.opts.Metrics.Inc(metrics.AdmissionsTotal, rec.queue, rec.quota)
		if w.borrows {
			e.opts.Metrics.Inc(metrics.LoansTotal, rec.queue, rec.quota)
		}
		e.opts.Metrics.Observe(metrics.AdmissionWaitSeconds, max(w.decided.Sub(rec.object.CreationTimestamp.Time), 0).Seconds(), rec.queue)
		e.log.V(2).Info("Admitted", "queueUnit", w.key, "queue", rec.queue, "quota", rec.quota, "attempt", w.attempt)
	case w.kind == writeAdmit:
		rec.act().seq = 0
	case outcome == admission.OutcomeConfirmed:
		rec.act().seq = 0
		e.log.Info("Took an admission back", "queueUnit", w.key, "queue", rec.queue, "quota", rec.quota, "reason", w.reason)
	}
}

func (e *Engine) countAttempt(result string, w *Write) {
	reason := string(w.reason)
	if w.kind == writeAdmit {
		reason = "Admitted"
	}
	e.opts.Metrics.Inc(metrics.AttemptsTotal, string(w.kind)+"-"+result, reason)
}

// Why the core's state is built anew; labels of a metric.
const (
	rebuildPanic      = "Panic"
	rebuildDifference = "Difference"
)

func (e *Engine) rebuildBecause(why string) { e.rebuild, e.rebuildWhy = true, why }

// healState builds the core's state anew from the objects, after a panic in it or when it was found to differ, at most
// once a second and ever more seldom while it panics again; nothing is decided before that. What is being written counts as held until it is settled: it may be
// applied. The quotas keep their last observation; whoever does not trust it marks them dirty.
func (e *Engine) healState(now time.Time) {
	if !e.rebuild {
		return
	}
	if again := e.lastRebuild.Add(e.rebuildDelay()); now.Before(again) && !e.lastRebuild.IsZero() {
		e.retryIn(now, again.Sub(now))
		return
	}
	e.rebuild, e.lastRebuild = false, now
	e.state = e.newState()
	for _, key := range sortedJobKeys(e.jobs) {
		e.setConsumer(now, key, e.jobs[key], true)
	}
	for _, name := range sortedKeys(e.queues) {
		e.pushQueue(now, e.queues[name])
	}
	for _, key := range sortedKeys(e.units) {
		rec := e.units[key]
		c := e.resolve(rec.object)
		rec.resolved(&c)
		if rec.flight != nil {
			c.Phase, c.Held, c.Attempts = admission.PhaseDequeued, c.Request, max(rec.flight.attempt, c.Attempts)
		}
		e.inCore(key, func() { e.state.UpsertUnit(now, c) })
		e.touch(now, key, rec)
	}
	e.pods.forgetTold()
	for _, key := range sortedKeys(e.units) {
		e.rejoin(now, e.units[key].object)
	}
	for _, name := range sortedKeys(e.quotas.last) {
		e.inCore("", func() { e.state.SetQuota(now, e.quotas.last[name]) })
	}
	if !e.leading && !e.rebuild {
		e.recovered() // a standby does not decide
	}
	e.opts.Metrics.Inc(metrics.StateRebuildsTotal, e.rebuildWhy)
	e.log.Info("Built the state of admission anew", "cause", e.rebuildWhy, "queueUnits", len(e.units))
}

// conditionSaysParked: the controller has said why the unit is inactive, and says it better.
func conditionSaysParked(u *unitObject) bool {
	return u.parked && u.condition(v1alpha1.ConditionQuotaReserved) != nil
}
