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
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// namespaces are those of the units of one queue.
type namespaces struct {
	// holding counts the units that hold quota.
	holding map[string]int
	// shares are of those that wait and that nothing but their queue or quota stops, where there is a bound. That of all
	// namespaces has those that the bound of their own lets into line.
	shares map[shareOf]*share
}

type share = backlog.Share[*record, notes]

// shareOf one namespace, or of all.
type shareOf struct {
	all       bool
	namespace string
}

// sharePlace is where a share is.
type sharePlace struct {
	queue string
	of    shareOf
}

// before: the share of all follows from those of the namespaces.
func (p sharePlace) before(o sharePlace) int {
	if p.of.all != o.of.all {
		if o.of.all {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(p.queue, o.queue), strings.Compare(p.of.namespace, o.of.namespace))
}

func newNamespaces() namespaces {
	return namespaces{holding: map[string]int{}, shares: map[shareOf]*share{}}
}

// hold counts units of a namespace that begin or end to hold quota.
func (n *namespaces) hold(namespace string, by int) {
	if n.holding[namespace] += by; n.holding[namespace] == 0 {
		delete(n.holding, namespace)
	}
}

// outside are the units that wait for a place in line.
func (n *namespaces) outside() (units []*record) {
	for _, s := range n.shares {
		s.Outside(func(u *record) bool { units = append(units, u); return true })
	}
	slices.SortFunc(units, compareKeys)
	return units
}

// bounds of the queue for each namespace.
func (q *queueRecord) bounds() queue.NamespaceBounds {
	if !q.known || q.spec.PerNamespace == nil {
		return queue.NamespaceBounds{MaxPending: -1, MaxAdmitted: -1}
	}
	return *q.spec.PerNamespace
}

// bound is how many units of a share may be in line; below zero is no bound.
func (q *queueRecord) bound(of shareOf) int32 {
	switch {
	case !of.all:
		return q.bounds().MaxPending
	case q.known:
		return q.spec.MaxPending
	default:
		return -1
	}
}

// hold counts a unit that begins or ends to hold quota.
func (q *queueRecord) hold(u *record, by int) {
	if by > 0 {
		q.holders[u] = struct{}{}
	} else {
		delete(q.holders, u)
	}
	q.count(u.spec.Namespace(), by)
}

// count adds places of a namespace, or takes them away.
func (q *queueRecord) count(namespace string, by int) {
	q.holding += by
	q.namespaces.hold(namespace, by)
}

// fullFor says that as many units of a namespace hold quota as may; the namespace is that of a group.
func (q *queueRecord) fullFor(namespace string) bool {
	most := q.bounds().MaxAdmitted
	return most >= 0 && namespace != "" && q.namespaces.holding[namespace] >= int(most)
}

// whyFull is in words why no unit of a group may be admitted to its queue, empty if one may.
func (q *queueRecord) whyFull(g *group) string {
	namespace := g.Key().Namespace
	switch {
	case g.Notes.ask.Jobs == 0: // it is one of them already
		return ""
	case q.full():
		return fmt.Sprintf("queue %q has %d admitted units, as many as it may have (%d)%s",
			q.name, q.holding, q.spec.MaxAdmitted, q.whoRuns())
	case q.fullFor(namespace):
		return fmt.Sprintf("queue %q has %d admitted units of namespace %q, as many as it may have of each namespace (%d)%s",
			q.name, q.namespaces.holding[namespace], namespace, q.bounds().MaxAdmitted, q.whoRuns())
	default:
		return ""
	}
}

// whoRuns says how many places of the queue are kept by pods alone.
func (q *queueRecord) whoRuns() string {
	if q.remnants == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of the queue have given back their admission, and pods of theirs still run", q.remnants)
}

// sharesOf a unit, in the order in which they let it in.
func sharesOf(u *record) [2]shareOf { return [2]shareOf{{namespace: u.spec.Namespace()}, {all: true}} }

// takeIn says whether a unit that nothing but its queue or quota stops may be in line. Which units may changes with the
// others of its namespace, and of its queue: see settleShares.
func (r *roster) takeIn(u *record) bool {
	q := r.queues.record(u.spec.Queue)
	for _, of := range sharesOf(u) {
		if q.bound(of) < 0 {
			continue
		}
		if _, fault := r.groupKey(q, u); fault != "" {
			return true // it has no place in any order; join parks it for that
		}
		if !r.enter(q, of, u) {
			if !of.all {
				r.quit(q, shareOf{all: true}, u)
			}
			return false
		}
	}
	return true
}

// enter says whether a unit is inside a share, and has it there or outside.
func (r *roster) enter(q *queueRecord, of shareOf, u *record) (inside bool) {
	s, ok := q.namespaces.shares[of]
	if !ok {
		s = q.line.NewShare(int(q.bound(of)))
		q.namespaces.shares[of] = s
	}
	if inside, known := s.Inside(u); known {
		return inside
	}
	r.shareChanged(q, of)
	return s.Add(u)
}

// quit takes a unit out of a share, if it is there.
func (r *roster) quit(q *queueRecord, of shareOf, u *record) {
	s, ok := q.namespaces.shares[of]
	if !ok {
		return
	}
	s.Remove(u)
	r.shareChanged(q, of)
	if s.Len() == 0 {
		delete(q.namespaces.shares, of)
		delete(r.shares, sharePlace{q.name, of})
	}
}

// letOut takes a unit that does not wait in its line, nor for a place there, out of all shares.
func (r *roster) letOut(u *record) {
	q, ok := r.queues.byName[u.spec.Queue]
	if !ok || len(q.namespaces.shares) == 0 {
		return
	}
	for _, of := range sharesOf(u) {
		r.quit(q, of, u)
	}
}

func (r *roster) shareChanged(q *queueRecord, of shareOf) {
	r.shares[sharePlace{q.name, of}] = struct{}{}
	r.changed = true
}

// settleShares places the units again that may be in line now and were not, or the other way round.
func (r *roster) settleShares(now time.Time) {
	for len(r.shares) > 0 { // once more where a share of all followed
		places := slices.SortedFunc(maps.Keys(r.shares), sharePlace.before)
		clear(r.shares)
		for _, at := range places {
			q, ok := r.queues.byName[at.queue]
			if !ok {
				continue
			}
			if s, ok := q.namespaces.shares[at.of]; ok {
				for _, u := range s.Settle() {
					r.touch(u)
				}
				r.settle(now)
			}
		}
	}
}

// whyOverflow is what a unit is told that waits outside of its line.
func (r *roster) whyOverflow(u *record) string {
	q, own := r.queues.record(u.spec.Queue), sharesOf(u)[0]
	if s, ok := q.namespaces.shares[own]; ok {
		if inside, _ := s.Inside(u); !inside {
			return fmt.Sprintf("queue %q has as many units of namespace %q in line as it may have of each namespace (%d)",
				u.spec.Queue, own.namespace, q.bound(own))
		}
	}
	return fmt.Sprintf("queue %q has as many units in line as it may have (%d)", u.spec.Queue, q.spec.MaxPending)
}
