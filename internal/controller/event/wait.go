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

package event

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/reasons"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Events of a job tell its owner why it waits: one if the reason of its unit changes, and at most one per
// eventInterval. The events of all jobs share a rate limit. Their order is that in which the scheduler wrote the
// reasons, so the job that has waited longest is first.

// eventInterval is the least time between two events about what a job waits for.
const eventInterval = time.Minute

// Slots gives each event a time: so many a second, in the order in which they are asked for. It is safe for concurrent
// use; nil gives every one its time at once.
type Slots struct {
	perSecond int
	mu        sync.Mutex
	next      time.Time
}

// NewSlots gives so many times a second.
func NewSlots(perSecond int) *Slots { return &Slots{perSecond: perSecond} }

func (s *Slots) take(now time.Time) time.Time {
	if s == nil {
		return now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.next
	if at.Before(now) {
		at = now
	}
	s.next = at.Add(time.Second / time.Duration(s.perSecond))
	return at
}

// silentReasons have events of their own: the job was adopted, or it lost its admission.
var silentReasons = map[string]bool{
	"":                          true,
	string(unit.ReasonPending):  true,
	string(unit.ReasonAdopting): true,
	string(unit.ReasonBackoff):  true,
}

// waitEvent is what a job waits for, as its unit says; nil if it waits for nothing that should be told.
func waitEvent(u *v1alpha1.QueueUnit) *Event {
	if u == nil {
		return nil
	}
	about, status, reason := v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, "Pending"
	switch phase := unit.Phase(u.Status.Phase); {
	case phase.Releases():
		about, status, reason = v1alpha1.ConditionResizePending, metav1.ConditionTrue, "ResizePending"
	case phase.Terminal():
		return nil
	}
	c := meta.FindStatusCondition(u.Status.Conditions, about)
	if c == nil || c.Status != status || silentReasons[c.Reason] {
		return nil
	}
	e := Warning(reason, "Queue", fmt.Sprintf("%s: %s; for more: kubectl describe queueunit -n %s %s",
		c.Reason, Short(c.Message), u.Namespace, u.Name))
	if reasons.Of(c.Reason).Ordinary {
		e.Type = corev1.EventTypeNormal
	}
	return e
}

// Waits returns the event about the reason why a job waits, if it is time for one. The duration says when to ask again,
// and is zero if there is nothing to record. An event of an earlier process is not recorded again.
func (s *Said) Waits(u *v1alpha1.QueueUnit, begun Begun, slots *Slots, now time.Time) (*Event, time.Duration) {
	e, seen := waitEvent(u), s.seen
	s.seen = true
	if e == nil {
		s.wait, s.slot = 0, time.Time{}
		return nil, 0
	}
	text := hashOf(e.Reason + e.Note)
	switch {
	case text == s.wait || !seen && begun.After(u):
		s.wait, s.slot = text, time.Time{}
		return nil, 0
	case now.Before(s.at.Add(eventInterval)):
		return nil, s.at.Add(eventInterval).Sub(now)
	case s.slot.IsZero():
		s.slot = slots.take(now)
	}
	if now.Before(s.slot) {
		return nil, s.slot.Sub(now)
	}
	s.wait, s.at, s.slot = text, now, time.Time{}
	return e, 0
}
