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

package reservation

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	koordinatorv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// patience is how long Reservations wait for nodes, from the creation of the last one. For that time, those that have
// nodes keep them from others.
const patience = 15 * time.Second

// observed is what a plan is made of. Nothing of it is changed.
type observed struct {
	unit  *v1alpha1.QueueUnit
	check string
	kinds []jobkind.Kind
	// reservations that were made for a unit of this name, also for an earlier one.
	reservations []koordinatorv1alpha1.Reservation
	now          time.Time
}

// plan has the steps, in this order, and the answer.
type plan struct {
	delete []*koordinatorv1alpha1.Reservation
	create []*koordinatorv1alpha1.Reservation
	answer admissioncheck.Answer
}

// planFor decides about a unit that holds quota.
func planFor(o *observed) (p plan) {
	if unit.Phase(o.unit.Status.Phase).Releases() {
		p.deleteIf(o, o.used)
		return p
	}
	want := map[string]*koordinatorv1alpha1.Reservation{}
	if other := o.waitsFor(); other != "" {
		p.answer = pending(fmt.Sprintf("Reservations are created when check %q is ready", other))
	} else if list, err := wanted(o.unit, o.kinds); err != nil {
		p.answer = admissioncheck.Answer{State: admissioncheck.Rejected, Message: err.Error()}
	} else {
		for _, r := range list {
			want[r.Name] = r
		}
		p.create, p.answer = o.compare(list)
	}
	// After Retry they stay until the answer is written and the unit holds nothing: without them there is no answer.
	p.deleteIf(o, func(r *koordinatorv1alpha1.Reservation) bool { return want[r.Name] == nil })
	return p
}

// deleteIf plans to delete those of which it is true, and those of an earlier unit of the name.
func (p *plan) deleteIf(o *observed, so func(*koordinatorv1alpha1.Reservation) bool) {
	for i := range o.reservations {
		r := &o.reservations[i]
		if r.DeletionTimestamp == nil && (!strings.HasPrefix(r.Name, namePrefix(o.unit.UID)) || so(r)) {
			p.delete = append(p.delete, r)
		}
	}
}

// used says that a Reservation of a released unit has served its purpose: a pod has it, it has expired, or all pods are
// ready.
func (o *observed) used(r *koordinatorv1alpha1.Reservation) bool {
	return r.Status.Phase == koordinatorv1alpha1.ReservationSucceeded ||
		r.Status.Phase == koordinatorv1alpha1.ReservationFailed ||
		meta.IsStatusConditionTrue(o.unit.Status.Conditions, v1alpha1.ConditionPodsReady)
}

// waitsFor is another check that is not ready. It may make the nodes, or choose them, so Reservations come after it.
func (o *observed) waitsFor() string {
	for i := range o.unit.Status.AdmissionChecks {
		if c := &o.unit.Status.AdmissionChecks[i]; c.Name != o.check && c.State != admissioncheck.Ready {
			return c.Name
		}
	}
	return ""
}

// compare returns the Reservations that are missing, and the answer to the check.
func (o *observed) compare(
	want []*koordinatorv1alpha1.Reservation,
) (missing []*koordinatorv1alpha1.Reservation, a admissioncheck.Answer) {
	have := map[string]*koordinatorv1alpha1.Reservation{}
	for i := range o.reservations {
		have[o.reservations[i].Name] = &o.reservations[i]
	}
	var available, unschedulable int
	var words string
	var since time.Time
	for _, r := range want {
		h := have[r.Name]
		if h == nil {
			missing = append(missing, r)
			continue
		}
		if h.CreationTimestamp.After(since) {
			since = h.CreationTimestamp.Time
		}
		switch said, no := refusal(h); {
		case h.DeletionTimestamp != nil:
		case h.Status.Phase == koordinatorv1alpha1.ReservationFailed,
			h.Status.Phase == koordinatorv1alpha1.ReservationSucceeded:
			return nil, retry(fmt.Sprintf("Reservation %q is lost: its phase is %s", h.Name, h.Status.Phase))
		case h.Status.Phase == koordinatorv1alpha1.ReservationAvailable && h.Status.NodeName != "":
			available++
		case no:
			unschedulable++
			words = said
		}
	}
	left := patience - o.now.Sub(since)
	switch {
	case available == len(want):
		a = admissioncheck.Answer{State: admissioncheck.Ready, Message: "each pod has a Reservation on a node"}
	case len(missing) == 0 && unschedulable > 0 && left <= 0:
		a = retry(fmt.Sprintf("%d of %d pods find no node: %s", unschedulable, len(want), words))
	default:
		a = pending(fmt.Sprintf("%d of %d pods have a Reservation on a node", available, len(want)))
		if unschedulable > 0 {
			a.RequeueAfter = max(left, time.Second)
		}
	}
	return missing, a
}

// refusal is why the scheduler finds no node for a Reservation, in its words but for those about preemption: a
// Reservation preempts nobody.
func refusal(r *koordinatorv1alpha1.Reservation) (words string, no bool) {
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		if c.Type == koordinatorv1alpha1.ReservationConditionScheduled &&
			c.Status == koordinatorv1alpha1.ConditionStatusFalse {
			words, _, _ = strings.Cut(c.Message, " preemption: ")
			return words, true
		}
	}
	return "", false
}

func pending(message string) admissioncheck.Answer {
	return admissioncheck.Answer{State: admissioncheck.Pending, Message: message}
}

func retry(message string) admissioncheck.Answer {
	return admissioncheck.Answer{State: admissioncheck.Retry, Message: message}
}
