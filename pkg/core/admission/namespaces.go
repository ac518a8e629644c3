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
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
)

// namespaces are those of the units of one queue.
type namespaces struct {
	// holding counts the units that hold quota.
	holding map[string]int
	// shares are of those that wait and that nothing but their queue or quota stops, where there is a bound.
	shares map[string]*share
}

type share = backlog.Share[*unit, notes]

// place of a share.
type sharePlace struct{ queue, namespace string }

func newNamespaces() namespaces {
	return namespaces{holding: map[string]int{}, shares: map[string]*share{}}
}

// hold counts units of a namespace that begin or end to hold quota.
func (n *namespaces) hold(namespace string, by int) {
	if n.holding[namespace] += by; n.holding[namespace] == 0 {
		delete(n.holding, namespace)
	}
}

// outside are the units that wait for a place in line.
func (n *namespaces) outside() (units []*unit) {
	for _, namespace := range slices.Sorted(maps.Keys(n.shares)) {
		n.shares[namespace].Outside(func(u *unit) bool { units = append(units, u); return true })
	}
	return units
}

// bounds of the queue for each namespace.
func (q *queueRecord) bounds() NamespaceBounds {
	if !q.known || q.spec.PerNamespace == nil {
		return NamespaceBounds{MaxPending: -1, MaxAdmitted: -1}
	}
	return *q.spec.PerNamespace
}

// hold counts a unit that begins or ends to hold quota.
func (q *queueRecord) hold(u *unit, by int) {
	q.holding += by
	q.namespaces.hold(u.spec.namespace(), by)
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
	case g.Notes.places == 0: // it is one of them already
		return ""
	case q.full():
		return fmt.Sprintf("queue %q has %d admitted units, as many as it may have (%d)",
			q.name, q.holding, q.spec.MaxAdmitted)
	case q.fullFor(namespace):
		return fmt.Sprintf("queue %q has %d admitted units of namespace %q, as many as it may have of each namespace (%d)",
			q.name, q.namespaces.holding[namespace], namespace, q.bounds().MaxAdmitted)
	default:
		return ""
	}
}

// takeIn says whether a unit that nothing but its queue or quota stops may be in line. Which units may changes with the
// others of its namespace: see settleShares.
func (r *roster) takeIn(u *unit) bool {
	q := r.queues.record(u.spec.Queue)
	most := q.bounds().MaxPending
	if most < 0 {
		return true
	}
	if _, fault := r.groupKey(q, u); fault != "" {
		return true // it has no place in any order; join parks it for that
	}
	namespace := u.spec.namespace()
	s, ok := q.namespaces.shares[namespace]
	if !ok {
		s = q.line.NewShare(int(most))
		q.namespaces.shares[namespace] = s
	}
	if inside, known := s.Inside(u); known {
		return inside
	}
	r.shareChanged(q, namespace)
	return s.Add(u)
}

// letOut takes a unit that does not wait in its line, nor for a place there, out of the share of its namespace.
func (r *roster) letOut(u *unit) {
	q, ok := r.queues.byName[u.spec.Queue]
	if !ok || len(q.namespaces.shares) == 0 {
		return
	}
	namespace := u.spec.namespace()
	s, ok := q.namespaces.shares[namespace]
	if !ok {
		return
	}
	s.Remove(u)
	r.shareChanged(q, namespace)
	if s.Len() == 0 {
		delete(q.namespaces.shares, namespace)
	}
}

func (r *roster) shareChanged(q *queueRecord, namespace string) {
	r.shares[sharePlace{q.name, namespace}] = struct{}{}
	r.changed = true
}

// settleShares places the units again that may be in line now and were not, or the other way round.
func (r *roster) settleShares(now time.Time) {
	if len(r.shares) == 0 {
		return
	}
	places := make([]sharePlace, 0, len(r.shares))
	for at := range r.shares {
		places = append(places, at)
	}
	slices.SortFunc(places, func(a, b sharePlace) int {
		return strings.Compare(a.queue+"/"+a.namespace, b.queue+"/"+b.namespace)
	})
	clear(r.shares)
	for _, at := range places {
		q, ok := r.queues.byName[at.queue]
		if !ok {
			continue
		}
		if s, ok := q.namespaces.shares[at.namespace]; ok {
			for _, u := range s.Settle() {
				r.change(u, func() { r.place(now, u) })
			}
		}
	}
}

// whyOverflow is what a unit is told that waits outside of its line.
func (r *roster) whyOverflow(u *unit) string {
	return fmt.Sprintf("queue %q has as many units of namespace %q in line as it may have of each namespace (%d)",
		u.spec.Queue, u.spec.namespace(), r.queues.record(u.spec.Queue).bounds().MaxPending)
}
