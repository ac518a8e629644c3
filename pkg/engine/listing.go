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
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// listing finds units, and the names of queues and quotas that they use, page by page, for questions. Tenants can make
// many of each, so all are in order: the cost of a page depends only on what is on it.
type listing struct {
	namespaces map[string]*namespaceListing
	quotas     map[string]*quotaListing
}

// namespaceListing is what there is in one namespace: all units, and what those that are not over use.
type namespaceListing struct {
	units          *ordered.Tree[*unitRecord]
	queues, quotas names
}

// quotaListing has the units of one quota that are not over.
type quotaListing struct{ holding, waiting *ordered.Tree[*unitRecord] }

func newListing() listing {
	return listing{namespaces: map[string]*namespaceListing{}, quotas: map[string]*quotaListing{}}
}

func byPath(a, b *unitRecord) int { return strings.Compare(a.object.Path, b.object.Path) }

func (l *listing) add(rec *unitRecord) {
	n := l.namespaces[rec.object.Namespace]
	if n == nil {
		n = &namespaceListing{units: ordered.NewTree(byPath), queues: newNames(), quotas: newNames()}
		l.namespaces[rec.object.Namespace] = n
	}
	n.units.Insert(rec)
}

func (l *listing) remove(rec *unitRecord) {
	n := l.namespaces[rec.object.Namespace]
	if n.units.Delete(rec); n.units.Len() == 0 {
		delete(l.namespaces, rec.object.Namespace)
	}
}

// place lists a unit under the queue and the quota that it resolved to, until displace is called for the same state of
// it.
func (l *listing) place(rec *unitRecord) {
	if rec.listed || rec.object.Phase.Terminal() || (rec.queue == "" && rec.quota == "") {
		return
	}
	rec.listed = true
	n := l.namespaces[rec.object.Namespace]
	n.queues.add(rec.queue)
	n.quotas.add(rec.quota)
	q := l.quotas[rec.quota]
	if q == nil {
		q = &quotaListing{holding: ordered.NewTree(byPath), waiting: ordered.NewTree(byPath)}
		l.quotas[rec.quota] = q
	}
	q.part(rec).Insert(rec)
}

func (l *listing) displace(rec *unitRecord) {
	if !rec.listed {
		return
	}
	rec.listed = false
	n := l.namespaces[rec.object.Namespace]
	n.queues.remove(rec.queue)
	n.quotas.remove(rec.quota)
	q := l.quotas[rec.quota]
	q.part(rec).Delete(rec)
	if q.holding.Len()+q.waiting.Len() == 0 {
		delete(l.quotas, rec.quota)
	}
}

func (q *quotaListing) part(rec *unitRecord) *ordered.Tree[*unitRecord] {
	if rec.object.Phase.Holds() {
		return q.holding
	}
	return q.waiting
}

// names counts how often each of them was added, and has them in order.
type names struct {
	count map[string]int
	order *ordered.Tree[string]
}

func newNames() names { return names{count: map[string]int{}, order: ordered.NewTree(strings.Compare)} }

func (s *names) add(name string) {
	if s.count[name]++; s.count[name] == 1 {
		s.order.Insert(name)
	}
}

func (s *names) remove(name string) {
	if s.count[name]--; s.count[name] == 0 {
		delete(s.count, name)
		s.order.Delete(name)
	}
}

// has says whether a name is there.
func (s *names) has(name string) bool { return s.count[name] > 0 }

// set makes a name be there or not, for names that are there once.
func (s *names) set(name string, there bool) {
	switch {
	case there && !s.has(name):
		s.add(name)
	case !there && s.has(name):
		s.remove(name)
	}
}

// page is up to n names behind one of them, and how many follow.
func (s *names) page(behind string, n int) (page []string, rest int) {
	if n <= 0 {
		return nil, s.order.Len()
	}
	s.order.WalkFrom(func(name string) bool { return behind != "" && name <= behind }, func(name string) bool {
		page = append(page, name)
		return len(page) < n
	})
	if len(page) > 0 {
		rest = s.order.Len() - s.order.Rank(page[len(page)-1]) - 1
	}
	return page, rest
}
