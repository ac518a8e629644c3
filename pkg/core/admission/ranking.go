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
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// ranking has the queues with eligible units in the order in which they are served.
type ranking struct {
	queues []*queueRecord
	// compare is the order of the ranks of two queues.
	compare func(a, b *queueRecord) int
	// touched queues may have another rank for another reason than their share.
	touched map[*queueRecord]struct{}
}

func newRanking(order queue.Order) ranking {
	r := ranking{
		touched: map[*queueRecord]struct{}{},
		compare: func(a, b *queueRecord) int { return order.Compare(a.rank, b.rank) },
	}
	if _, fair := order.(queue.FairOrder); fair {
		r.compare = func(a, b *queueRecord) int { return queue.CompareFairly(&a.rank, &b.rank) } // copies nothing
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
func (r *ranking) place(q *queueRecord, rank queue.Rank, eligible bool) {
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
