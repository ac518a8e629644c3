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
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/pace"
)

const (
	// refreshBatch bounds the queues whose status is made in one step, so that it holds up no decision, and the writes
	// that go out together.
	refreshBatch = 16
	// refreshSpacing is the mean time between two writes of all queues together. Each is larger than an admission's, and
	// a thousand queues that change all the time would take a fifth of what a small API server can write: their statuses
	// get older instead, in turn.
	refreshSpacing = 50 * time.Millisecond
)

// maxItemsSize bounds the listed units of one status in bytes, of which each takes at most itemOverhead in addition to
// its names; with the counts and conditions a status stays below 32 KiB, whatever the names are and however many may be
// listed.
const (
	maxItemsSize = 28 << 10
	itemOverhead = 80
)

// conditionActive of a Queue says whether it admits.
const conditionActive = "Active"

// queueStatuses remembers what was written into the Queues.
type queueStatuses struct {
	*env
	core    *core
	checks  *admissionChecks
	writers *writers
	// exists says whether somebody made a queue. Of others nothing is kept: units may name as many as they like.
	exists func(name string) bool
	byName map[string]*queueStatus
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
	flight  *Write
}

func newQueueStatuses(
	v *env, c *core, checks *admissionChecks, w *writers, exists func(name string) bool,
) *queueStatuses {
	earlier := func(a, b *queueStatus) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.name, b.name)) }
	return &queueStatuses{
		env: v, core: c, checks: checks, writers: w, exists: exists, byName: map[string]*queueStatus{},
		due: ordered.NewTree(earlier),
	}
}

// next is when the next refresh is due; zero for never.
func (s *queueStatuses) next() time.Time {
	if q, ok := s.due.Min(); ok {
		return pace.Later(q.at, s.free())
	}
	return time.Time{}
}

// free is from when on another status may be written.
func (s *queueStatuses) free() time.Time { return s.paced.Add(-(refreshBatch - 1) * refreshSpacing) }

// spend counts one write.
func (s *queueStatuses) spend(now time.Time) { s.paced = pace.Later(s.paced, now).Add(refreshSpacing) }

func (s *queueStatuses) plan(q *queueStatus, at time.Time) {
	q.dirty, q.at = true, at
	s.due.Insert(q)
}

// mark says that the content of a queue may have changed.
func (s *queueStatuses) mark(now time.Time, name string) {
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

func (s *queueStatuses) forget(name string) {
	if q := s.byName[name]; q != nil {
		if q.flight != nil {
			q.flight.cancel()
		}
		if q.dirty {
			s.due.Delete(q)
		}
		delete(s.byName, name)
	}
}

// written takes the result. A status that did not get through is written again with the next refresh.
func (s *queueStatuses) written(now time.Time, w *Write, outcome admission.Outcome) {
	q := s.byName[w.key.Name]
	if q == nil || q.flight != w {
		return
	}
	w.cancel()
	q.flight = nil
	if outcome != admission.OutcomeConfirmed {
		q.written = ""
		s.mark(now, w.key.Name)
	}
}

// refresh writes the status of queues that changed, each at most once per interval, those first that are due longest.
func (s *queueStatuses) refresh(now time.Time, queues map[string]*objects.Queue) {
	for refreshed := 0; refreshed < refreshBatch; {
		q, ok := s.due.Min()
		if !ok || q.at.After(now) || s.free().After(now) {
			return
		}
		s.due.Delete(q)
		q.dirty = false
		switch {
		case queues[q.name] == nil:
			delete(s.byName, q.name) // it went in this step
		case q.flight != nil:
			s.plan(q, now.Add(time.Second))
		default:
			refreshed++
			q.notYet = now.Add(s.opts.Config.StatusRefreshInterval)
			s.write(now, queues[q.name], q)
		}
	}
}

func (s *queueStatuses) write(now time.Time, q *objects.Queue, to *queueStatus) {
	counts, items := s.content(q.Name)
	waiting := counts.Pending + counts.Parked
	active := s.activeCondition(q)
	text := statusText(items, waiting, counts.Admitted, active.Reason)
	if text == to.written || (to.written == "" && text == saidOf(q)) {
		return // also after a restart nothing is written that is there (I8, I12)
	}
	to.written = text
	s.spend(now)
	conditions := append([]metav1.Condition(nil), q.Conditions...)
	active.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&conditions, active)
	to.flight = s.writers.queue(q, map[string]any{
		"queueItemDetails": map[string]any{v1alpha1.QueueItemsActiveKey: items},
		"pending":          waiting,
		"admitted":         counts.Admitted,
		"conditions":       conditions,
	}, now)
	s.writers.submit(to.flight)
}

// content of a queue: what is in it, and the first of its units.
func (s *queueStatuses) content(name string) (counts accounts.Counts, items []v1alpha1.QueueItemDetail) {
	items = []v1alpha1.QueueItemDetail{}
	s.core.call("", func(state *admission.State) {
		counts = state.Accounts().CountsOf(name)
		room := maxItemsSize
		state.Line(name, func(position int, u *unit.Unit, _ bool) bool {
			namespace, key, _ := strings.Cut(u.Key, "/")
			if room -= len(namespace) + len(key) + itemOverhead; room < 0 || len(items) == s.opts.Config.ItemsInStatus {
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
func (s *queueStatuses) activeCondition(q *objects.Queue) metav1.Condition {
	c := metav1.Condition{
		Type: conditionActive, Status: metav1.ConditionTrue, Reason: "Ready", Message: "the queue admits units",
		ObservedGeneration: q.Generation,
	}
	switch {
	case !s.core.knowsPolicy(q.Spec.Policy):
		c.Status, c.Reason = metav1.ConditionFalse, string(unit.ReasonUnknownPolicy)
		c.Message = "spec.queuePolicy is none of the policies that this scheduler was built with"
	case s.checks.faultOf(q) != nil:
		fault := s.checks.faultOf(q)
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

// saidOf a queue is what its status says, as statusText; empty if it cannot be read.
func saidOf(q *objects.Queue) string {
	var status v1alpha1.QueueStatus
	if err := objects.Read(q.Status, &status); err != nil {
		return ""
	}
	return statusOf(&status)
}

func statusOf(s *v1alpha1.QueueStatus) string {
	active := meta.FindStatusCondition(s.Conditions, conditionActive)
	if active == nil || s.Pending == nil || s.Admitted == nil {
		return ""
	}
	items := append([]v1alpha1.QueueItemDetail{}, s.QueueItemDetails[v1alpha1.QueueItemsActiveKey]...)
	return statusText(items, int(*s.Pending), int(*s.Admitted), active.Reason)
}
