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
	"cmp"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/history"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// applyUnit takes what a watch said about a unit. A state that is older than the one known is ignored: a watch may
// lag behind what our own writes returned (I3).
func (e *Engine) applyUnit(now time.Time, key string, ev unitEvent) {
	delete(e.ghosts, key)
	e.opts.countUnreadable(!ev.gone && ev.state.Panicked)
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
func (e *Engine) updateUnit(now time.Time, rec *unitRecord, u *objects.Unit) {
	if newer(rec.object, u) || rec.object.ResourceVersion == u.ResourceVersion {
		return
	}
	before, was := rec.object, rec.state()
	e.units.replace(rec, u)
	if before.Generation != u.Generation {
		e.core.acquit(u.Key())
	}
	if before.Phase != unit.PhaseRunning && u.Phase == unit.PhaseRunning && !rec.admittedAt.IsZero() {
		queue, _ := e.gauges.labels(rec)
		e.opts.Metrics.Observe(metrics.AdmittedToRunningSeconds, u.RanAfter(rec.admittedAt, now).Seconds(), queue)
		rec.act().admittedAt = time.Time{}
	}
	e.feed(now, rec)
	e.opts.changed(now, rec, was, rec.state())
	if before.HasConsumer != u.HasConsumer {
		e.pods.retellNaming(now, u.Key())
	}
	if !before.Updates.Same(u.Updates) {
		e.pods.lookAgain(u)
	}
	if rec.flight != nil && rec.unknown && rec.flight.appliedTo(u) {
		// The object answers what the request did not.
		e.settle(now, rec, admission.OutcomeConfirmed)
	}
}

func (e *Engine) addUnit(now time.Time, u *objects.Unit) {
	rec := e.units.add(u)
	e.feed(now, rec)
	e.opts.changed(now, rec, history.State{}, rec.state())
	e.pods.retellNaming(now, u.Key())
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
	o.Witness.Unit(rec.object.Key(), rec.object.UID, is.Phase)
}

// feed gives the unit to the core as it resolves now.
func (e *Engine) feed(now time.Time, rec *unitRecord) {
	e.touch(now, rec.object.Key(), rec) // its former queue and quota
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
	e.publisher.touch(key, rec.object.ConsumerUID())
	if rec.queue != "" {
		e.statuses.mark(now, rec.queue)
	}
	e.gauges.mark(now, rec.quota)
}

// resolve makes the core's view of a unit, with the names and priorities that hold now.
func (e *Engine) resolve(u *objects.Unit) unit.Unit {
	c := unit.Unit{
		Key: u.Key(), UID: string(u.UID), Queue: u.Queue, Created: u.CreationTimestamp.Time,
		Request: u.Request, Pods: u.Pods, NonPreemptible: u.NonPreemptible, Active: !u.Inactive, Observed: u.Observed,
		Consumer: u.Consumer, OwnedByConsumer: u.Owned, Adopting: u.Adopting(),
		Phase: u.Phase, Attempts: u.Attempts, Labels: u.Labels, Stated: u.Stated, Adopted: u.WasAdopted(),
		Checks: u.Updates.Onto(u.Checks, e.checks.listed),
		Said:   saidIn(u), ResizePending: u.ResizePending(), Deactivate: u.Deactivate(),
	}
	c.Ready, c.NotReadySince = u.Readiness()
	if p := e.managed.Load(); u.HasConsumer && p != nil {
		var name string
		name, c.ConsumerManaged = p.UnitName(u.ConsumerKind.Value(), u.Consumer.Name)
		c.Misnamed = c.ConsumerManaged && name != u.Name
		c.TemplatesWritten = c.ConsumerManaged && u.AskedWrites
		c.KindUnlisted = c.ConsumerManaged && e.sources.kinds.Load().unlisted(u.Consumer.Kind)
		c.Unsuspendable = p.Unsuspendable(u.ConsumerKind.Value(), u.Unsuspendable)
	}
	c.Expected = u.Expected(c.ConsumerManaged)
	if l := e.pasts.of(&c); l != nil {
		l.onto(&c)
	}
	var ok bool
	if c.Quota, ok = e.quotas.resolve(u.Namespace, u.QuotaLabels()); !ok {
		c.Invalid = unit.ReasonInternalError
		c.InvalidMessage = "its quota could not be resolved; see the log of the scheduler"
	}
	e.units.noteResolved(c.Key, ok)
	if u.OneQuota {
		c.Quotas = cmp.Or(c.Quotas, c.Quota)
	}
	if u.HeldIn != "" && u.HeldIn != c.Quota {
		c.Chosen = objects.Chose(u, c.Quota)
		c.Quota, c.MovesTo = u.HeldIn, c.Quota // it stays where its pods are charged until it has asked
	}
	if c.Chosen {
		c.Queue = cmp.Or(c.Queue, c.MovesTo)
	}
	c.Queue = cmp.Or(c.Queue, c.Quota)
	if u.Priority != nil {
		c.Priority = *u.Priority
	} else {
		c.Priority = e.priorities.Of(u.Class)
	}
	c.MaxPriority = e.priorities.BoundOf(u.Namespace)
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
