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

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

// past is what counts against a job: how long it ran, how often in a row it lost its admission, until when it is to
// wait, and that it is not to be tried again. Its unit says so, and the owner of the job may have the unit made again,
// also by taking the quota label off and putting it on again. So it is kept while the job exists, and the next unit of
// the job begins with it: the first write that this gets anyway says it there. A process that starts in between does
// not know it.
type past struct {
	executed     time.Duration
	requeues     int64
	requeueAt    time.Time
	deactivation *unit.Deactivation
}

// pasts are those of jobs whose unit went, until another one says it.
type pasts map[unit.Consumer]*past

// keep what counts against the job of a unit that goes.
func (p pasts) keep(now time.Time, u *objects.Unit) {
	last := past{executed: u.Executed, requeues: u.Requeues, requeueAt: u.RequeueAt, deactivation: madeInactive(u)}
	if u.Phase.Releases() && !u.Admitted.IsZero() { // all of it: nobody gains time by a new unit
		last.executed += max(now.Sub(u.Admitted), 0).Round(time.Second)
	}
	if before := p[u.Consumer]; before != nil {
		last.executed, last.requeues = max(last.executed, before.executed), max(last.requeues, before.requeues)
		if last.requeueAt.Before(before.requeueAt) {
			last.requeueAt = before.requeueAt
		}
		if last.deactivation == nil {
			last.deactivation = before.deactivation
		}
	}
	if last.executed > 0 || last.requeues > 0 || last.requeueAt.After(now) || last.deactivation != nil {
		p[u.Consumer] = &last
	}
}

// madeInactive is why a unit is not to be tried again; nil if it may be, or if the controller has it wait for a while.
func madeInactive(u *objects.Unit) *unit.Deactivation {
	if d := u.Deactivate(); d != nil || !u.Inactive || u.ParkedFor != "" {
		return d
	}
	d := &unit.Deactivation{Reason: unit.ReasonInactive, Message: "the unit that the job had was made inactive"}
	if c := u.Condition(v1alpha1.ConditionDeactivationTarget); c != nil && c.Status == metav1.ConditionTrue {
		d.Reason, d.Message = unit.Reason(c.Reason), c.Message
	}
	return d
}

// saidBy forgets what the object of a unit says itself. An admission says it all, and so does the condition that the
// unit must be made inactive: a user who makes it active again gives it its whole time.
func (p pasts) saidBy(u *objects.Unit) bool {
	l := p[u.Consumer]
	said := l.deactivation == nil &&
		u.Executed >= l.executed && u.Requeues >= l.requeues && !u.RequeueAt.Before(l.requeueAt)
	said = said || u.Deactivate() != nil || l.deactivation != nil && u.Inactive
	if said = said || u.Phase.Holds() && !u.WasAdopted(); said {
		delete(p, u.Consumer)
	}
	return said
}

// of a unit, nil if it has none.
func (p pasts) of(c *unit.Unit) *past {
	if !c.ConsumerManaged || c.Misnamed {
		return nil
	}
	return p[c.Consumer]
}

// onto has a unit begin with what counts against its job.
func (l *past) onto(c *unit.Unit) {
	c.Executed, c.Requeues = max(c.Executed, l.executed), max(c.Requeues, l.requeues)
	if c.RequeueAt.Before(l.requeueAt) {
		c.RequeueAt = l.requeueAt
	}
	if c.Deactivate == nil && c.Active {
		c.Deactivate = l.deactivation
	}
}

// inherit adds what counts against the job of a unit to what is written of it.
func (e *Engine) inherit(status map[string]any, u *objects.Unit, now time.Time) {
	c := e.resolve(u)
	l := e.pasts.of(&c)
	if l == nil {
		return
	}
	if c.Executed > 0 {
		status["accumulatedPastExecutionTimeSeconds"] = int64(c.Executed / time.Second)
	}
	if c.Requeues > 0 {
		state := map[string]any{"count": c.Requeues}
		if !c.RequeueAt.IsZero() {
			state["requeueAt"] = metav1.NewTime(c.RequeueAt)
		}
		status["requeueState"] = state
	}
	conditions, ok := status["conditions"].([]metav1.Condition)
	if d := l.deactivation; d != nil && ok {
		meta.SetStatusCondition(&conditions, metav1.Condition{
			Type: v1alpha1.ConditionDeactivationTarget, Status: metav1.ConditionTrue, Reason: string(d.Reason),
			Message: d.Message, LastTransitionTime: metav1.NewTime(now), ObservedGeneration: u.Generation,
		})
		status["conditions"] = conditions
	}
}

// forgetPast of a job that is gone.
func (e *Engine) forgetPast(job owner.Name, uid types.UID) {
	delete(e.pasts, job.Consumer(string(uid)))
}

// keepPast of the job of a unit that goes, as long as the job is there.
func (e *Engine) keepPast(now time.Time, rec *unitRecord) {
	c := rec.object.Consumer
	if rec.managed && !rec.misnamed && c.UID != "" && string(e.jobs[owner.NameOf(c)]) == c.UID {
		e.pasts.keep(now, rec.object)
	}
}
