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

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/patch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// applyUnit takes what a watch said about a unit. A state that is older than the one known is ignored: a watch may
// lag behind what our own writes returned (I3).
func (f *facts) applyUnit(now time.Time, key string, ev mail.UnitEvent) {
	delete(f.ghosts, key)
	f.opts.countUnreadable(!ev.Gone && ev.State.Panicked)
	rec := f.units.Get(key)
	if rec != nil {
		if state := ev.Of(rec.Object); state != nil {
			f.updateUnit(now, rec, state)
		}
	}
	switch {
	case ev.Gone:
		// Another object of the name that is older than what went has gone before it.
		if rec != nil && (ev.State == nil || rec.Object.UID == ev.State.UID ||
			mail.Newer(ev.State, rec.Object)) {
			f.forgetUnit(now, key, rec)
		}
	case rec == nil:
		f.addUnit(now, ev.State)
	case rec.Object.UID != ev.State.UID && !mail.Newer(rec.Object, ev.State):
		f.forgetUnit(now, key, rec)
		f.addUnit(now, ev.State)
	}
}

// updateUnit takes another state of the same object.
func (f *facts) updateUnit(now time.Time, rec *unitbook.Record, u *objects.Unit) {
	if mail.Newer(rec.Object, u) || rec.Object.ResourceVersion == u.ResourceVersion {
		return
	}
	before, was := rec.Object, rec.State()
	f.units.Replace(rec, u)
	if before.Generation != u.Generation {
		f.core.Acquit(u.Key())
	}
	if before.Phase != unit.PhaseRunning && u.Phase == unit.PhaseRunning && !rec.AdmittedAt.IsZero() {
		queue, _ := f.gauges.Labels(rec)
		f.Metrics.Observe(metrics.AdmittedToRunningSeconds, u.RanAfter(rec.AdmittedAt, now).Seconds(), queue)
		rec.Act().AdmittedAt = time.Time{}
	}
	f.feed(now, rec)
	f.changed(now, rec, was, rec.State())
	if before.HasConsumer != u.HasConsumer {
		f.pods.RetellNaming(now, u.Key())
	}
	if !before.Updates.Same(u.Updates) {
		f.pods.LookAgain(u)
	}
	if rec.Flight != nil && rec.Unknown && rec.Flight.AppliedTo(u) {
		// The object answers what the request did not.
		f.answered(now, rec)
	}
}

func (f *facts) addUnit(now time.Time, u *objects.Unit) {
	rec := f.units.Add(u)
	f.feed(now, rec)
	f.changed(now, rec, history.State{}, rec.State())
	f.pods.RetellNaming(now, u.Key())
}

func (f *facts) forgetUnit(now time.Time, key string, rec *unitbook.Record) {
	if rec.Flight != nil {
		rec.Flight.Cancel()
	}
	if rec.Reporting != nil {
		rec.Reporting.Cancel()
	}
	if c := rec.Object.Consumer; rec.Managed && !rec.Misnamed && c.UID != "" && string(f.jobs[owner.NameOf(c)]) == c.UID {
		f.pasts.keep(now, rec.Object) // as long as the job is there
	}
	f.changed(now, rec, rec.State(), history.State{})
	f.units.Remove(rec)
	f.core.Acquit(key)
	f.core.Call("", func(s *admission.State) { s.DeleteUnit(now, key) })
	f.pods.RetellNaming(now, key)
	f.touch(now, key, rec)
}

func (f *facts) changed(now time.Time, rec *unitbook.Record, was, is history.State) {
	for _, s := range []*history.State{&was, &is} {
		if q := f.queues[s.Queue]; q != nil {
			s.Limit = q.Spec.Execution.Limit(s.Limit)
		}
	}
	f.opts.History.Changed(now, was, is)
	f.opts.Witness.Unit(rec.Object.Key(), rec.Object.UID, is.Phase)
}

// feed gives the unit to the core as it resolves now.
func (f *facts) feed(now time.Time, rec *unitbook.Record) {
	f.touch(now, rec.Object.Key(), rec) // its former queue and quota
	c := f.resolve(rec.Object)
	if f.pasts.of(&c) != nil && f.pasts.saidBy(rec.Object) {
		c = f.resolve(rec.Object)
	}
	f.units.Resolved(rec, &c)
	if !f.quotas.Known(c.Quota) {
		f.quotas.Mark(c.Quota)
	}
	f.core.Call(c.Key, func(s *admission.State) { s.UpsertUnit(now, c) })
	f.touch(now, c.Key, rec)
}

// touch has the snapshot, the status of its queue and the gauges of its quota looked at again.
func (f *facts) touch(now time.Time, key string, rec *unitbook.Record) {
	f.publisher.Touch(key, rec.Object.ConsumerUID())
	if rec.Queue != "" {
		f.statuses.Mark(now, rec.Queue)
	}
	f.gauges.Mark(now, rec.Quota)
}

// resolve makes the core's view of a unit, with the names and priorities that hold now.
func (f *facts) resolve(u *objects.Unit) unit.Unit {
	c := unit.Unit{
		Key: u.Key(), UID: string(u.UID), Queue: u.Queue, Created: u.CreationTimestamp.Time,
		Request: u.Request, Pods: u.Pods, NonPreemptible: u.NonPreemptible, Active: !u.Inactive, Observed: u.Observed,
		Consumer: u.Consumer, OwnedByConsumer: u.Owned, Adopting: u.Adopting(),
		Phase: u.Phase, Attempts: u.Attempts, Labels: u.Labels, Stated: u.Stated, Adopted: u.WasAdopted(),
		Checks: u.Updates.Onto(u.Checks, f.checks.Listed),
		Said:   patch.SaidIn(u), ResizePending: u.ResizePending(), Deactivate: u.Deactivate(),
	}
	c.Ready, c.NotReadySince = u.Readiness()
	if p := f.managed.Load(); u.HasConsumer && p != nil {
		var name string
		name, c.ConsumerManaged = p.UnitName(u.ConsumerKind.Value(), u.Consumer.Name)
		c.Misnamed = c.ConsumerManaged && name != u.Name
		c.TemplatesWritten = c.ConsumerManaged && u.AskedWrites
		c.KindUnlisted = c.ConsumerManaged && f.sources.Unlisted(u.Consumer.Kind)
		c.Unsuspendable = p.Unsuspendable(u.ConsumerKind.Value(), u.Unsuspendable)
	}
	c.Expected = u.Expected(c.ConsumerManaged)
	if l := f.pasts.of(&c); l != nil {
		l.onto(&c)
	}
	var ok bool
	if c.Quota, ok = f.quotas.Resolve(u.Namespace, u.QuotaLabels()); !ok {
		c.Invalid = unit.ReasonInternalError
		c.InvalidMessage = "its quota could not be resolved; see the log of the scheduler"
	}
	f.units.NoteResolved(c.Key, ok)
	if u.OneQuota {
		c.Quotas = cmp.Or(c.Quotas, c.Quota)
	}
	if u.HeldIn != "" && u.HeldIn != c.Quota {
		c.Chosen = objects.Chose(u, c.Quota)
		c.Quota, c.MovesTo = u.HeldIn, c.Quota // the unit stays where its pods are charged until it has asked
	}
	if c.Chosen {
		c.Queue = cmp.Or(c.Queue, c.MovesTo)
	}
	c.Queue = cmp.Or(c.Queue, c.Quota)
	if u.Priority != nil {
		c.Priority = *u.Priority
	} else {
		c.Priority = f.priorities.Of(u.Class)
	}
	c.MaxPriority = f.priorities.BoundOf(u.Namespace)
	if message, ok := f.core.Quarantine(c.Key); ok {
		c.Invalid, c.InvalidMessage, c.Quarantined = unit.ReasonInternalError, message, true
	}
	return c
}

// resolveAgain feeds these units again if they resolve to something else now.
func (f *facts) resolveAgain(now time.Time, some []string) {
	for _, key := range some {
		rec := f.units.Get(key)
		if rec == nil {
			continue
		}
		if c := f.resolve(rec.Object); rec.DiffersFrom(&c) {
			f.feed(now, rec)
		}
	}
}
