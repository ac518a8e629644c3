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

package admission

import (
	"fmt"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/places"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/words"
)

// noObject is what a queue without an object is: nothing bounds it.
var noObject = queue.Spec{MaxPending: -1, MaxAdmitted: -1}

// become has the queue be what its object says, or noObject.
func (q *queueRecord) become(spec queue.Spec, known bool) {
	q.known, q.spec = known, spec
	q.places = places.Bounds{Queue: q.name, All: spec.MaxAdmitted, Each: q.bounds().MaxAdmitted}
}

// bounds of the queue for each namespace.
func (q *queueRecord) bounds() queue.NamespaceBounds {
	if q.spec.PerNamespace == nil {
		return queue.NamespaceBounds{MaxPending: -1, MaxAdmitted: -1}
	}
	return *q.spec.PerNamespace
}

// newBounds are those of the line, as the queue has them now.
func (q *queueRecord) newBounds() *backlog.Bounds[*record, notes] {
	namespaceOf := func(u *record) string { return u.spec.Namespace() }
	return q.line.NewBounds(namespaceOf, int(q.bounds().MaxPending), int(q.spec.MaxPending))
}

// full says that the queue of a group has no place for one more unit, together with the claims of those ahead.
func (l *lines) full(g *group, ahead places.Claims) bool {
	at := &g.Notes.queue.places
	return g.Notes.ask.Jobs > 0 && !at.None() && (at.Full(l.holdings.Count, ahead) ||
		at.FullFor(g.Head().spec.Namespace(), l.holdings.CountOf, ahead))
}

// whyFull is in words why no unit of a group may be admitted to its queue, empty if one may.
func (l *lines) whyFull(g *group) string {
	q, namespace, pods := g.Notes.queue, g.Head().spec.Namespace(), l.holdings.Remnants(g.Notes.queue.name)
	switch {
	case g.Notes.ask.Jobs == 0: // the unit counts already
	case q.places.Full(l.holdings.Count, nil):
		return words.QueueFull(q.name, l.holdings.Count(q.name), q.places.All, pods)
	case q.places.FullFor(namespace, l.holdings.CountOf, nil):
		return words.FullFor(namespace, q.name, l.holdings.CountOf(q.name, namespace), q.places.Each, pods)
	case g.Notes.cause.Stopped == unit.ReasonQueueFull:
		return fmt.Sprintf("queue %q keeps the places that it has left for units ahead", q.name)
	}
	return ""
}

// takeIn says whether a unit that only its queue or quota stops may be in line. The answer changes with the other units
// of its queue: see settleBounds.
func (l *lines) takeIn(u *record) bool {
	q := l.queue(u.spec.Queue)
	if q.pending.None() {
		return true
	}
	if _, fault := l.groupKey(q, u); fault != "" {
		return true // has no place in any order; join parks it for that
	}
	inside := q.pending.Enter(u)
	l.boundsChanged(q)
	return inside
}

// letOut removes a unit from the bounds of its line. A unit that the policy cannot order is in none. The policy is not
// asked about it here, where nobody would recover its panic.
func (l *lines) letOut(u *record) {
	if u.group == nil && u.parked != unit.ReasonQueueOverflow {
		return
	}
	if q, ok := l.byName[u.spec.Queue]; ok && !q.pending.None() {
		q.pending.Leave(u)
		l.boundsChanged(q)
	}
}

// boundsChanged notes whether units of a queue have to change sides.
func (l *lines) boundsChanged(q *queueRecord) {
	if q.pending.Settled() {
		delete(l.unsettled, q)
		return
	}
	l.unsettled[q] = struct{}{}
	l.progress.changed = true
}

// whyOverflow is what a unit is told that waits outside of its line.
func (q *queueRecord) whyOverflow(u *record) string {
	if q.pending.OutsideOwn(u) {
		return fmt.Sprintf("queue %q has as many units of namespace %q in line as it may have of each namespace (%d)",
			q.name, u.spec.Namespace(), q.bounds().MaxPending)
	}
	return fmt.Sprintf("queue %q has as many units in line as it may have (%d)", q.name, q.spec.MaxPending)
}
