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
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// QueueRank is what the order of queues may depend on.
type QueueRank struct {
	Name     string
	Priority int32
	// ShareOfMin and ShareOfMax are the dominant shares of the quota that the queue's first eligible unit
	// draws on: the greatest (used + outstanding) / min, and / max, over the resources. Use of a resource
	// without min is an infinite share of min.
	ShareOfMin, ShareOfMax float64
	// Head is the first eligible unit.
	Head queue.Item
}

// QueueOrder says which queue is served first. It must be a pure function of its arguments.
type QueueOrder interface {
	// Compare is negative when a is served before b, and zero only for the same queue.
	Compare(a, b QueueRank) int
}

// FairOrder serves the higher priority first; among equals the queue with the smallest share of what it is
// guaranteed, then of what it may use at most, then the one whose head is older.
type FairOrder struct{}

// Compare implements QueueOrder.
func (FairOrder) Compare(a, b QueueRank) int { return compareFairly(&a, &b) }

func compareFairly(a, b *QueueRank) int {
	// One after the other: most often the first that is not equal is all that has to be fetched from memory.
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if c := cmp.Compare(a.ShareOfMin, b.ShareOfMin); c != 0 {
		return c
	}
	if c := cmp.Compare(a.ShareOfMax, b.ShareOfMax); c != 0 {
		return c
	}
	if c := a.Head.Created.Compare(b.Head.Created); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// ranking has the queues with eligible units in the order in which they are served.
type ranking struct {
	queues []*queueRecord
	// compare is the order of the ranks of two queues.
	compare func(a, b *queueRecord) int
	// touched queues may have another rank for another reason than their share.
	touched map[*queueRecord]struct{}
}

func newRanking(order QueueOrder) ranking {
	r := ranking{
		touched: map[*queueRecord]struct{}{},
		compare: func(a, b *queueRecord) int { return order.Compare(a.rank, b.rank) },
	}
	if _, fair := order.(FairOrder); fair {
		r.compare = func(a, b *queueRecord) int { return compareFairly(&a.rank, &b.rank) } // copies nothing
	}
	return r
}

// touch remembers that the rank of a queue may have changed.
func (r *ranking) touch(q *queueRecord) { r.touched[q] = struct{}{} }

// moved lists the queues that may have another place, by name: those that were touched and those with another share.
func (r *ranking) moved() []*queueRecord {
	var moved []*queueRecord
	if len(r.touched) > 0 {
		moved = make([]*queueRecord, 0, len(r.touched)+1)
	}
	for q := range r.touched {
		moved = append(moved, q)
	}
	for _, q := range r.queues {
		if _, touched := r.touched[q]; !touched && q.shareChanged() {
			moved = append(moved, q)
		}
	}
	clear(r.touched)
	slices.SortFunc(moved, func(a, b *queueRecord) int { return strings.Compare(a.name, b.name) })
	return moved
}

// place gives a queue its rank, or none if it has no eligible unit. An order that cannot cope with a queue panics here
// over that one alone, before others are compared with it.
func (r *ranking) place(q *queueRecord, rank QueueRank, eligible bool) {
	if eligible == q.ranked && (!eligible || rank == q.rank) {
		return
	}
	if q.ranked {
		i, _ := slices.BinarySearchFunc(r.queues, q, r.compare)
		r.queues = slices.Delete(r.queues, i, i+1)
	}
	q.rank, q.ranked = rank, eligible
	if !eligible {
		return
	}
	r.compare(q, q)
	i, _ := slices.BinarySearchFunc(r.queues, q, r.compare)
	r.queues = slices.Insert(r.queues, i, q)
}
