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

package unitbook

import (
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// listing finds units, and the names of queues and quotas that they use, page by page, for questions. Tenants can make
// many of each, so all are in order: the cost of a page depends only on what is on it.
type listing struct {
	namespaces map[string]*NamespaceListing
	names      ordered.Names // of namespaces
	quotas     map[string]*QuotaListing
}

// NamespaceListing has all units of one namespace, and the queues and quotas of those that are not over.
type NamespaceListing struct {
	Units          *ordered.Tree[*Record]
	Queues, Quotas ordered.Names
}

// QuotaListing has the units of one quota that are not over.
type QuotaListing struct{ Holding, Waiting *ordered.Tree[*Record] }

func newListing() listing {
	return listing{
		namespaces: map[string]*NamespaceListing{}, names: ordered.NewNames(), quotas: map[string]*QuotaListing{},
	}
}

func byPath(a, b *Record) int { return strings.Compare(a.Object.Path, b.Object.Path) }

func (l *listing) add(rec *Record) {
	n := l.namespaces[rec.Object.Namespace]
	if n == nil {
		n = &NamespaceListing{Units: ordered.NewTree(byPath), Queues: ordered.NewNames(), Quotas: ordered.NewNames()}
		l.namespaces[rec.Object.Namespace] = n
		l.names.Add(rec.Object.Namespace)
	}
	n.Units.Insert(rec)
}

func (l *listing) remove(rec *Record) {
	n := l.namespaces[rec.Object.Namespace]
	if n.Units.Delete(rec); n.Units.Len() == 0 {
		delete(l.namespaces, rec.Object.Namespace)
		l.names.Remove(rec.Object.Namespace)
	}
}

// place lists a unit under the queue and the quota that it resolved to, until displace is called for the same state of
// it.
func (l *listing) place(rec *Record) {
	if rec.listed || rec.Object.Phase.Terminal() || (rec.Queue == "" && rec.Quota == "") {
		return
	}
	rec.listed = true
	n := l.namespaces[rec.Object.Namespace]
	n.Queues.Add(rec.Queue)
	n.Quotas.Add(rec.Quota)
	q := l.quotas[rec.Quota]
	if q == nil {
		q = &QuotaListing{Holding: ordered.NewTree(byPath), Waiting: ordered.NewTree(byPath)}
		l.quotas[rec.Quota] = q
	}
	q.part(rec).Insert(rec)
}

func (l *listing) displace(rec *Record) {
	if !rec.listed {
		return
	}
	rec.listed = false
	n := l.namespaces[rec.Object.Namespace]
	n.Queues.Remove(rec.Queue)
	n.Quotas.Remove(rec.Quota)
	q := l.quotas[rec.Quota]
	q.part(rec).Delete(rec)
	if q.Holding.Len()+q.Waiting.Len() == 0 {
		delete(l.quotas, rec.Quota)
	}
}

func (q *QuotaListing) part(rec *Record) *ordered.Tree[*Record] {
	if rec.Object.Phase.Holds() {
		return q.Holding
	}
	return q.Waiting
}

// OfNamespace is what there is in a namespace; nil if there are no units in it.
func (r *Book) OfNamespace(namespace string) *NamespaceListing {
	return r.listing.namespaces[namespace]
}

// OfQuota are the units of a quota that are not over; nil if there are none.
func (r *Book) OfQuota(quota string) *QuotaListing { return r.listing.quotas[quota] }

// PageOf returns n values of a tree, after the first skip ones.
func PageOf(tree *ordered.Tree[*Record], skip, n int) (found []*Record) {
	if n <= 0 {
		return nil
	}
	tree.WalkAt(skip, func(rec *Record) bool {
		found = append(found, rec)
		return len(found) < n
	})
	return found
}
