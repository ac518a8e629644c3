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

package queue

import (
	"slices"
	"strings"
)

// Place of a queue in a ranking: its rank when it was placed last, if it was Ranked. The zero value is none.
type Place struct {
	Rank   Rank
	Ranked bool
}

// Ranking has the queues with eligible units in the order in which they are served. Q is what the caller keeps of a
// queue.
type Ranking[Q comparable] struct {
	queues  []Q
	placeOf func(Q) *Place
	// compare is the order of two ranks.
	compare func(a, b *Rank) int
	// touched queues may have another rank for another reason than their share; they have these names.
	touched map[Q]string
}

// NewRanking returns an empty ranking. placeOf finds the place of a queue, which nobody else writes.
func NewRanking[Q comparable](order Order, placeOf func(Q) *Place) Ranking[Q] {
	r := Ranking[Q]{
		touched: map[Q]string{}, placeOf: placeOf, compare: func(a, b *Rank) int { return order.Compare(*a, *b) },
	}
	if _, fair := order.(FairOrder); fair {
		r.compare = CompareFairly // copies nothing
	}
	return r
}

// Queues are the ranked ones, in order. They are valid until the next Place.
func (r *Ranking[Q]) Queues() []Q { return r.queues }

// Compare the places of two ranked queues.
func (r *Ranking[Q]) Compare(a, b Q) int { return r.compare(&r.placeOf(a).Rank, &r.placeOf(b).Rank) }

// Touch remembers that the rank of a queue may have changed.
func (r *Ranking[Q]) Touch(q Q, name string) { r.touched[q] = name }

// Forget a queue that is not ranked.
func (r *Ranking[Q]) Forget(q Q) {
	if !r.placeOf(q).Ranked {
		delete(r.touched, q)
	}
}

// Moved lists the queues that may have another place, by name: those that were touched and those with another share.
func (r *Ranking[Q]) Moved(shareChanged func(Q) bool) []Q {
	for _, q := range r.queues {
		if _, touched := r.touched[q]; !touched && shareChanged(q) {
			r.touched[q] = r.placeOf(q).Rank.Name
		}
	}
	if len(r.touched) == 0 {
		return nil
	}
	moved := make([]Q, 0, len(r.touched))
	for q := range r.touched {
		moved = append(moved, q)
	}
	slices.SortFunc(moved, func(a, b Q) int { return strings.Compare(r.touched[a], r.touched[b]) })
	clear(r.touched)
	return moved
}

// Place gives a queue its rank, or none if it has no eligible unit. An order that cannot cope with a queue panics here
// over that one alone, before others are compared with it.
func (r *Ranking[Q]) Place(q Q, rank Rank, eligible bool) {
	at := r.placeOf(q)
	if eligible == at.Ranked && (!eligible || rank == at.Rank) {
		return
	}
	if at.Ranked {
		i, _ := slices.BinarySearchFunc(r.queues, q, r.Compare)
		r.queues = slices.Delete(r.queues, i, i+1)
	}
	at.Rank, at.Ranked = rank, eligible
	if !eligible {
		return
	}
	r.Compare(q, q)
	i, _ := slices.BinarySearchFunc(r.queues, q, r.Compare)
	r.queues = slices.Insert(r.queues, i, q)
}
