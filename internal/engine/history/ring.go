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

package history

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// ring keeps the newest records, within bounds of their number and of their bytes. If it is full, the namespace with
// the most bytes loses its oldest record. So a namespace with less than its share of the bytes loses none, whatever
// others do. One more record costs O(log n).
type ring struct {
	maxRecords, maxBytes int
	// last is the number of the newest entry; numbers only grow.
	last  uint64
	bytes int
	all   *ordered.Tree[*entry]
	// shares of namespaces; largest has them as a heap.
	shares  map[string]*share
	largest largest
	// begun is the beginning of the record. dropped is the time of the newest record that was dropped, lost the same
	// of namespaces that had no record left then.
	begun, dropped, lost time.Time
}

// entry is a record in the ring. It is never changed.
type entry struct {
	Record
	number uint64
}

type share struct {
	bytes, index int
	records      *ordered.Tree[*entry]
	dropped      time.Time
}

func byNumber(a, b *entry) int { return cmp.Compare(a.number, b.number) }

func newRing(maxRecords, maxBytes int, begun time.Time) *ring {
	return &ring{
		maxRecords: maxRecords, maxBytes: maxBytes, begun: begun, all: ordered.NewTree(byNumber), shares: map[string]*share{},
	}
}

func (r *ring) add(record *Record) {
	r.last++
	e := &entry{*record, r.last}
	s := r.shares[e.Namespace]
	if s == nil {
		s = &share{records: ordered.NewTree(byNumber), dropped: r.lost}
		r.shares[e.Namespace] = s
		heap.Push(&r.largest, s)
	}
	r.all.Insert(e)
	s.records.Insert(e)
	r.count(s, e.size())
	for r.all.Len() > r.maxRecords || r.bytes > r.maxBytes {
		r.drop(r.largest[0])
	}
}

func (r *ring) count(s *share, bytes int) {
	r.bytes += bytes
	s.bytes += bytes
	heap.Fix(&r.largest, s.index)
}

// drop takes the oldest record of a share out.
func (r *ring) drop(s *share) {
	oldest, _ := s.records.Min()
	s.records.Delete(oldest)
	r.all.Delete(oldest)
	r.count(s, -oldest.size())
	s.dropped = latest(s.dropped, oldest.Time)
	r.dropped = latest(r.dropped, oldest.Time)
	if s.records.Len() == 0 {
		heap.Remove(&r.largest, s.index)
		delete(r.shares, oldest.Namespace)
		r.lost = latest(r.lost, s.dropped)
	}
}

// page returns up to n entries, older than a number, the newest first. An empty namespace means all. more says whether
// others follow. The number zero begins at the newest.
func (r *ring) page(namespace string, before uint64, n int) (page []*entry, more bool) {
	of := r.all
	if namespace != "" {
		s := r.shares[namespace]
		if s == nil {
			return nil, false
		}
		of = s.records
	}
	end := of.Len()
	if before > 0 {
		end = of.Rank(&entry{number: before})
	}
	begin := max(end-n, 0)
	page = make([]*entry, end-begin)
	at := len(page)
	of.WalkAt(begin, func(e *entry) bool {
		if at > 0 {
			at--
			page[at] = e
		}
		return at > 0
	})
	return page, begin > 0
}

// completeSince is the time from which on no record of a namespace, or of any if it is empty, was dropped.
func (r *ring) completeSince(namespace string) time.Time {
	switch s := r.shares[namespace]; {
	case namespace == "":
		return latest(r.begun, r.dropped)
	case s == nil:
		return latest(r.begun, r.lost)
	default:
		return latest(r.begun, s.dropped)
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// largest is a heap of shares, the one with the most bytes first.
type largest []*share

// Len implements heap.Interface.
func (l largest) Len() int { return len(l) }

// Less implements heap.Interface.
func (l largest) Less(i, j int) bool { return l[i].bytes > l[j].bytes }

// Swap implements heap.Interface.
func (l largest) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i, j
}

// Push implements heap.Interface.
func (l *largest) Push(x any) {
	s := x.(*share)
	s.index = len(*l)
	*l = append(*l, s)
}

// Pop implements heap.Interface.
func (l *largest) Pop() any {
	last := len(*l) - 1
	s := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return s
}
