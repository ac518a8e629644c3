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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/history"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// applyUnit takes what a watch said about a unit. A state that is older than the one known is ignored: a watch may
// lag behind what our own writes returned (I3).
func (e *Engine) applyUnit(now time.Time, key string, ev unitEvent) {
	delete(e.ghosts, key)
	e.countUnreadable(!ev.gone && ev.state.panicked)
	rec := e.units.get(key)
	if rec != nil {
		if state := ev.of(rec.object); state != nil {
			e.updateUnit(now, rec, state)
		}
	}
	switch {
	case ev.gone:
		// Another object of the name that is older than what went has gone before it.
		if rec != nil && (ev.state == nil || rec.object.UID == ev.state.UID || newer(ev.state, rec.object)) {
			e.forgetUnit(now, key, rec)
		}
	case rec == nil:
		e.addUnit(now, ev.state)
	case rec.object.UID != ev.state.UID && !newer(rec.object, ev.state):
		e.forgetUnit(now, key, rec)
		e.addUnit(now, ev.state)
	}
}

// updateUnit takes another state of the same object.
func (e *Engine) updateUnit(now time.Time, rec *unitRecord, u *unitObject) {
	if newer(rec.object, u) || rec.object.ResourceVersion == u.ResourceVersion {
		return
	}
	before, was := rec.object, rec.state()
	e.units.replace(rec, u)
	if before.Generation != u.Generation {
		e.core.acquit(u.key())
	}
	if before.phase != unit.PhaseRunning && u.phase == unit.PhaseRunning && !rec.admittedAt.IsZero() {
		queue, _ := e.gauges.labels(rec)
		e.opts.Metrics.Observe(metrics.AdmittedToRunningSeconds, u.ranAfter(rec.admittedAt, now).Seconds(), queue)
		rec.act().admittedAt = time.Time{}
	}
	e.feed(now, rec)
	e.opts.changed(now, rec, was, rec.state())
	if before.hasConsumer != u.hasConsumer {
		e.pods.retellNaming(now, u.key())
	}
	if !before.updates.Same(u.updates) {
		e.pods.lookAgain(u)
	}
	if rec.flight != nil && rec.unknown && rec.flight.appliedTo(u) {
		// The object answers what the request did not.
		e.settle(now, rec, admission.OutcomeConfirmed)
	}
}

func (e *Engine) addUnit(now time.Time, u *unitObject) {
	rec := e.units.add(u)
	e.feed(now, rec)
	e.opts.changed(now, rec, history.State{}, rec.state())
	e.pods.retellNaming(now, u.key())
}

func (e *Engine) forgetUnit(now time.Time, key string, rec *unitRecord) {
	if rec.flight != nil {
		rec.flight.cancel()
	}
	if rec.reporting != nil {
		rec.reporting.cancel()
	}
	e.keepPast(now, rec)
	e.opts.changed(now, rec, rec.state(), history.State{})
	e.units.remove(rec)
	delete(e.reports, key)
	e.core.acquit(key)
	e.core.call("", func(s *admission.State) { s.DeleteUnit(now, key) })
	e.pods.retellNaming(now, key)
	e.touch(now, key, rec)
}

func (o *Options) changed(now time.Time, rec *unitRecord, was, is history.State) {
	o.History.Changed(now, was, is)
	o.Witness.Unit(rec.object.key(), rec.object.UID, is.Phase)
}

// feed gives the unit to the core as it resolves now.
func (e *Engine) feed(now time.Time, rec *unitRecord) {
	e.touch(now, rec.object.key(), rec) // its former queue and quota
	c := e.resolve(rec.object)
	if e.pasts.of(&c) != nil && e.pasts.saidBy(rec.object) {
		c = e.resolve(rec.object)
	}
	e.units.resolved(rec, &c)
	if !e.quotas.known(c.Quota) {
		e.quotas.mark(c.Quota)
	}
	e.core.call(c.Key, func(s *admission.State) { s.UpsertUnit(now, c) })
	e.touch(now, c.Key, rec)
}

// touch has the snapshot, the status of its queue and the gauges of its quota looked at again.
func (e *Engine) touch(now time.Time, key string, rec *unitRecord) {
	e.publisher.touch(key, rec.object.consumerUID())
	if rec.queue != "" {
		e.statuses.mark(now, rec.queue)
	}
	e.gauges.mark(now, rec.quota)
}

// resolve makes the core's view of a unit, with the names and priorities that hold now.
func (e *Engine) resolve(u *unitObject) unit.Unit {
	c := unit.Unit{
		Key: u.key(), UID: string(u.UID), Queue: u.queue, Created: u.CreationTimestamp.Time,
		Request: u.request, Pods: u.pods, NonPreemptible: u.nonPreemptible, Active: !u.inactive,
		Consumer: u.consumer, OwnedByConsumer: u.owned, Adopting: u.adopting(),
		Phase: u.phase, Attempts: u.attempts, Labels: u.labels, Stated: u.Stated, Adopted: u.wasAdopted(),
		Checks: u.updates.Onto(u.checks, e.checks.listed),
		Said:   saidIn(u), ResizePending: u.resizePending(), Deactivate: u.deactivate(),
	}
	c.Ready, c.NotReadySince = u.readiness()
	if p := e.managed.Load(); u.hasConsumer && p != nil {
		var name string
		name, c.ConsumerManaged = p.UnitName(u.consumerKind.Value(), u.consumer.Name)
		c.Misnamed = c.ConsumerManaged && name != u.Name
		c.TemplatesWritten = c.ConsumerManaged && u.askedWrites
		c.KindUnlisted = c.ConsumerManaged && e.sources.kinds.Load().unlisted(u.consumer.Kind)
		c.Unsuspendable = p.Unsuspendable(u.consumerKind.Value())
	}
	c.Expected = u.expected(c.ConsumerManaged)
	if l := e.pasts.of(&c); l != nil {
		l.onto(&c)
	}
	var ok bool
	if c.Quota, ok = e.quotas.resolve(u.Namespace, u.quotaLabels()); !ok {
		c.Invalid = unit.ReasonInternalError
		c.InvalidMessage = "its quota could not be resolved; see the log of the scheduler"
	}
	e.units.noteResolved(c.Key, ok)
	if u.heldIn != "" && u.heldIn != c.Quota {
		c.Quota, c.MovesTo = u.heldIn, c.Quota // it stays where its pods are charged until it has asked
	}
	if c.Queue == "" {
		c.Queue = c.Quota
	}
	if u.priority != nil {
		c.Priority = *u.priority
	} else {
		c.Priority = e.classes.priorityOf(u.class)
	}
	if message, ok := e.core.quarantine(c.Key); ok {
		c.Invalid, c.InvalidMessage, c.Quarantined = unit.ReasonInternalError, message, true
	}
	return c
}

// resolveAgain feeds these units again if they resolve to something else now.
func (e *Engine) resolveAgain(now time.Time, some []string) {
	for _, key := range some {
		rec := e.units.get(key)
		if rec == nil {
			continue
		}
		if c := e.resolve(rec.object); rec.differsFrom(&c) {
			e.feed(now, rec)
		}
	}
}
