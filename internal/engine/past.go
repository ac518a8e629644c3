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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// past is the record against a job: its run time, its losses of admission in a row, its back-off, and its deactivation.
// Its unit has the record. But the owner of the job can have the unit created again, for example by removing the quota
// label and adding it again. So the engine keeps the record while the job exists. The next unit of the job begins with
// it, and its first write for another reason writes it there. A process that starts in between does not know it.
type past struct {
	executed     time.Duration
	requeues     int64
	requeueAt    time.Time
	deactivation *unit.Deactivation
}

// pasts are the records of jobs whose unit was deleted, until another unit has them.
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

// madeInactive is why a unit is deactivated. It is nil if the unit may be tried again, or if the controller parked it.
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

// saidBy drops the parts that the object of a unit has itself. An admission has all of them, and so has the condition
// of a deactivation: a reactivated unit gets its whole time.
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
