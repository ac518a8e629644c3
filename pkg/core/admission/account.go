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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// accounts count the units, and sum what they ask for beyond their pods.
type accounts struct {
	byPair  map[pair]*QueueCounts
	byQueue map[string]*QueueCounts
	// counted are the pairs where the counts may have changed since they were asked for.
	counted map[pair]struct{}
	// demand by quota; moved are the quotas where it may have changed, told what was told of them last.
	demand map[string]*resources.Sum
	moved  map[string]struct{}
	told   map[string]resources.List
}

// pair of a queue and a quota.
type pair struct{ queue, quota string }

func newAccounts() accounts {
	return accounts{
		byPair: map[pair]*QueueCounts{}, byQueue: map[string]*QueueCounts{}, counted: map[pair]struct{}{},
		demand: map[string]*resources.Sum{}, moved: map[string]struct{}{}, told: map[string]resources.List{},
	}
}

// bucket is what a unit counts as.
type bucket uint8

const (
	bucketNone bucket = iota
	bucketPending
	bucketAdmitted
	bucketParked
)

func (u *record) bucket() bucket {
	switch u.stage {
	case stageAdmitted, stageEvicting, stageResizing, stageDequeuing:
		return bucketAdmitted
	case stageAdmitting:
		return bucketPending
	case stageWaiting:
		if u.group == nil || !u.group.Open() {
			return bucketParked
		}
		return bucketPending
	default:
		return bucketNone
	}
}

// tally adds a unit to all sums, or takes it out. Both have to happen in the same state: see change.
func (r *roster) tally(u *record, by int) {
	if u.spec.Key == "" {
		return
	}
	p := pair{u.spec.Queue, u.spec.Quota}
	r.count(p, u.bucket(), by)
	asks, more, less := r.demandOf(u)
	switch {
	case u.group != nil && !u.holding:
		n := &u.group.Notes
		n.tallied += by
		addTo(&n.demand, asks, by)
		if !u.group.Open() {
			break
		}
		fallthrough
	case u.holding:
		r.changeDemand(p.quota, func(sum *resources.Sum) { addTo(sum, asks, by) })
	}
	if more.IsZero() && less.IsZero() {
		return
	}
	r.tree.Ask(p.quota, func(sum *resources.Sum) {
		addTo(sum, more, by)
		addTo(sum, less, -by)
	})
}

// demandOf is what a unit that waits or holds quota asks for beyond its pods, growth aside. more and less are what it
// adds to what the pods of its quota request: a unit that holds quota what it asks for; the gate keeps the pods of one
// that waits, and those that are beyond what is held, and these are taken away.
func (r *roster) demandOf(u *record) (asks, more, less resources.List) {
	charges := r.ledger.Charges(u.spec.Key, u.spec.Quota)
	want := u.spec.Request
	if u.holding {
		want = u.held
	}
	asks = u.expected().Bound(want.Sub(charges.All).Floor0(), charges.Pods)
	switch {
	case u.holding:
		more = asks
		if charges.Idle.Len() > 0 {
			less = charges.All.Sub(u.held.Max(charges.Assigned)).Floor0()
		}
	case u.stage == stageWaiting:
		less = charges.Idle
	}
	return asks, more, less
}

// moveGroup adds the units of an open group to pending and to demand, those of another one to parked, or takes them
// out.
func (r *roster) moveGroup(g *group, by int) {
	n := &g.Notes
	if n.tallied == 0 {
		return
	}
	where := bucketParked
	if g.Open() {
		where = bucketPending
		r.changeDemand(g.Key().Quota, func(sum *resources.Sum) {
			if by > 0 {
				sum.AddSum(&n.demand)
			} else {
				sum.SubSum(&n.demand)
			}
		})
	}
	r.count(pair{n.queue.name, g.Key().Quota}, where, by*n.tallied)
}

func addTo(sum *resources.Sum, list resources.List, by int) {
	if by > 0 {
		sum.Add(list)
	} else {
		sum.Sub(list)
	}
}

func (a *accounts) count(p pair, where bucket, by int) {
	if where == bucketNone {
		return
	}
	a.counted[p] = struct{}{}
	ofPair, ok := a.byPair[p]
	if !ok {
		ofPair = &QueueCounts{Queue: p.queue, Quota: p.quota}
		a.byPair[p] = ofPair
	}
	ofQueue, ok := a.byQueue[p.queue]
	if !ok {
		ofQueue = &QueueCounts{Queue: p.queue}
		a.byQueue[p.queue] = ofQueue
	}
	ofPair.add(where, by)
	ofQueue.add(where, by)
	if ofPair.empty() {
		delete(a.byPair, p)
	}
	if ofQueue.empty() {
		delete(a.byQueue, p.queue)
	}
}

func (c *QueueCounts) add(where bucket, by int) {
	switch where {
	case bucketPending:
		c.Pending += by
	case bucketAdmitted:
		c.Admitted += by
	case bucketParked:
		c.Parked += by
	case bucketNone:
	}
}

func (c *QueueCounts) empty() bool { return c.Pending == 0 && c.Admitted == 0 && c.Parked == 0 }

func (a *accounts) changeDemand(quota string, change func(*resources.Sum)) {
	sum, ok := a.demand[quota]
	if !ok {
		sum = &resources.Sum{}
		a.demand[quota] = sum
	}
	if change(sum); sum.IsZero() {
		delete(a.demand, quota)
	}
	a.moved[quota] = struct{}{}
}

func sortCounts(list []QueueCounts) []QueueCounts {
	slices.SortFunc(list, func(a, b QueueCounts) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Quota, b.Quota))
	})
	return list
}
