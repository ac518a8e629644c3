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

// Package queuestatus writes the status of Queues: counts, the first units in order, and whether the queue admits. Each
// is written once per interval at most, and all together at a bounded pace.
package queuestatus

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/checks"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

const (
	// RefreshBatch bounds the queues whose status is made in one step, so that it holds up no decision, and the writes
	// that go out together.
	RefreshBatch = 16
	// RefreshSpacing is the mean time between two writes of all queues together. Each is larger than that of an admission.
	// A thousand queues that change all the time would take a fifth of the writes of a small API server. Their statuses
	// are written in turn and become older.
	RefreshSpacing = 50 * time.Millisecond
)

// maxItemsSize bounds the listed units of one status, in bytes. Each takes at most itemOverhead in addition to its
// names. With counts and conditions a status stays below 32 KiB, for any names and any number of units to list.
const (
	maxItemsSize = 28 << 10
	itemOverhead = 80
)

// ConditionActive of a Queue says whether it admits.
const ConditionActive = "Active"

// Statuses remembers what was written into the Queues.
type Statuses struct {
	*env.Env
	core    *recovery.Core
	checks  *checks.Book
	writers *statuswrite.Writers
	// exists says whether somebody made a queue. Of others nothing is kept: units may name as many as they like.
	exists func(name string) bool
	// interval is the least time between two writes of one status, which lists the first items units.
	interval time.Duration
	Items    int
	byName   map[string]*queueStatus
	// due holds the dirty ones by when they are to be made.
	due *ordered.Tree[*queueStatus]
	// paced is up to when the writes so far use up what refreshSpacing allows.
	paced time.Time
}

type queueStatus struct {
	name    string
	dirty   bool
	at      time.Time // while dirty: when it is due
	notYet  time.Time // not before
	written string    // the status that was written last, as JSON without times
	flight  *statuswrite.Write
}

func New(
	v *env.Env, interval time.Duration, items int, c *recovery.Core, checks *checks.Book, w *statuswrite.Writers,
	exists func(name string) bool,
) *Statuses {
	earlier := func(a, b *queueStatus) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.name, b.name)) }
	return &Statuses{
		Env: v, core: c, checks: checks, writers: w, exists: exists, byName: map[string]*queueStatus{},
		interval: interval, Items: items,
		due: ordered.NewTree(earlier),
	}
}

// Next is when the next refresh is due; zero for never.
func (s *Statuses) Next() time.Time {
	if q, ok := s.due.Min(); ok {
		return pace.Later(q.at, s.free())
	}
	return time.Time{}
}

// free is from when on another status may be written.
func (s *Statuses) free() time.Time { return s.paced.Add(-(RefreshBatch - 1) * RefreshSpacing) }

// spend counts one write.
func (s *Statuses) spend(now time.Time) { s.paced = pace.Later(s.paced, now).Add(RefreshSpacing) }

func (s *Statuses) plan(q *queueStatus, at time.Time) {
	q.dirty, q.at = true, at
	s.due.Insert(q)
}

// Mark says that the content of a queue may have changed.
func (s *Statuses) Mark(now time.Time, name string) {
	q := s.byName[name]
	if q == nil {
		if !s.exists(name) {
			return
		}
		q = &queueStatus{name: name}
		s.byName[name] = q
	}
	if !q.dirty {
		s.plan(q, pace.Later(q.notYet, now))
	}
}

func (s *Statuses) Forget(name string) {
	if q := s.byName[name]; q != nil {
		if q.flight != nil {
			q.flight.Cancel()
		}
		if q.dirty {
			s.due.Delete(q)
		}
		delete(s.byName, name)
	}
}

// Written takes the result. A status that did not get through is written again with the next refresh.
func (s *Statuses) Written(now time.Time, w *statuswrite.Write, outcome transition.Outcome) {
	q := s.byName[w.Key.Name]
	if q == nil || q.flight != w {
		return
	}
	w.Cancel()
	q.flight = nil
	if outcome != transition.Confirmed {
		q.written = ""
		s.Mark(now, w.Key.Name)
	}
}

// Refresh writes the status of queues that changed, each at most once per interval, those first that are due longest.
func (s *Statuses) Refresh(now time.Time, queues map[string]*objects.Queue) {
	for refreshed := 0; refreshed < RefreshBatch; {
		q, ok := s.due.Min()
		if !ok || q.at.After(now) || s.free().After(now) {
			return
		}
		s.due.Delete(q)
		q.dirty = false
		switch {
		case queues[q.name] == nil:
			delete(s.byName, q.name) // the queue was deleted in this step
		case q.flight != nil:
			s.plan(q, now.Add(time.Second))
		default:
			refreshed++
			q.notYet = now.Add(s.interval)
			s.write(now, queues[q.name], q)
		}
	}
}

func (s *Statuses) write(now time.Time, q *objects.Queue, to *queueStatus) {
	counts, items := s.content(q.Name)
	waiting := counts.Pending + counts.Parked
	active := s.activeCondition(q)
	text := statusText(items, waiting, counts.Admitted, active.Reason)
	if text == to.written || (to.written == "" && text == SaidOf(q)) {
		return // also after a restart nothing is written that is there (I8, I12)
	}
	to.written = text
	s.spend(now)
	conditions := append([]metav1.Condition(nil), q.Conditions...)
	active.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&conditions, active)
	to.flight = s.writers.Queue(q, map[string]any{
		"queueItemDetails": map[string]any{v1alpha1.QueueItemsActiveKey: items},
		"pending":          waiting,
		"admitted":         counts.Admitted,
		"conditions":       conditions,
	}, now)
	s.writers.Submit(to.flight)
}

// content of a queue: what is in it, and the first of its units.
func (s *Statuses) content(name string) (counts accounts.Counts, items []v1alpha1.QueueItemDetail) {
	items = []v1alpha1.QueueItemDetail{}
	s.core.Call("", func(state *admission.State) {
		counts = state.Accounts().CountsOf(name)
		room := maxItemsSize
		state.Line(name, func(position int, u *unit.Unit, _ bool) bool {
			namespace, key, _ := strings.Cut(u.Key, "/")
			if room -= len(namespace) + len(key) + itemOverhead; room < 0 || len(items) == s.Items {
				return false
			}
			items = append(items, v1alpha1.QueueItemDetail{
				Namespace: namespace, Name: key, Priority: u.Priority,
				Position: int32(position), //nolint:gosec // bounded by ItemsInStatus
			})
			return true
		})
	})
	return counts, items
}

// statusText is equal for statuses that say the same.
func statusText(items []v1alpha1.QueueItemDetail, pending, admitted int, active string) string {
	text, err := json.Marshal(map[string]any{"items": items, "pending": pending, "admitted": admitted, "active": active})
	if err != nil { // strings and numbers always encode
		return ""
	}
	return string(text)
}

// activeCondition says whether the queue admits.
func (s *Statuses) activeCondition(q *objects.Queue) metav1.Condition {
	c := metav1.Condition{
		Type: ConditionActive, Status: metav1.ConditionTrue, Reason: "Ready", Message: "the queue admits units",
		ObservedGeneration: q.Generation,
	}
	switch {
	case !s.core.KnowsPolicy(q.Spec.Policy):
		c.Status, c.Reason = metav1.ConditionFalse, string(unit.ReasonUnknownPolicy)
		c.Message = "spec.queuePolicy is none of the policies that this scheduler was built with"
	case s.checks.FaultOf(q) != nil:
		fault := s.checks.FaultOf(q)
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(fault.Reason), fault.Message
	case q.Spec.Held:
		c.Status, c.Reason = metav1.ConditionFalse, string(unit.ReasonQueueHeld)
		c.Message = "spec.stopPolicy holds the queue"
		if q.Spec.Drains {
			c.Reason = string(unit.ReasonQueueDrained)
			c.Message = "spec.stopPolicy holds the queue and takes back what it has admitted"
		}
	}
	return c
}

// SaidOf a queue is what its status says, as statusText; empty if it cannot be read.
func SaidOf(q *objects.Queue) string {
	var status v1alpha1.QueueStatus
	if err := objects.Read(q.Status, &status); err != nil {
		return ""
	}
	return statusOf(&status)
}

func statusOf(s *v1alpha1.QueueStatus) string {
	active := meta.FindStatusCondition(s.Conditions, ConditionActive)
	if active == nil || s.Pending == nil || s.Admitted == nil {
		return ""
	}
	items := append([]v1alpha1.QueueItemDetail{}, s.QueueItemDetails[v1alpha1.QueueItemsActiveKey]...)
	return statusText(items, int(*s.Pending), int(*s.Admitted), active.Reason)
}
