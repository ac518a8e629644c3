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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// accounts count the units, and sum what they ask for beyond their pods.
type accounts struct {
	byPair  map[pair]*QueueCounts
	byQueue map[string]*QueueCounts
	// counted are the pairs where the counts may have changed since they were asked for.
	counted map[pair]struct{}
	// moved are the quotas where the demand, which the tree has, may have changed, told what was told of them last.
	moved map[string]struct{}
	told  map[string]resources.List
}

// pair of a queue and a quota.
type pair struct{ queue, quota string }

func newAccounts() accounts {
	return accounts{
		byPair: map[pair]*QueueCounts{}, byQueue: map[string]*QueueCounts{}, counted: map[pair]struct{}{},
		moved: map[string]struct{}{}, told: map[string]resources.List{},
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

// bucket of a unit that is in no group.
func (u *record) bucket() bucket {
	switch u.stage {
	case stageAdmitted, stageEvicting, stageResizing, stageReleasing:
		return bucketAdmitted
	case stageAdmitting:
		return bucketPending
	case stageWaiting:
		return bucketParked
	default:
		return bucketNone
	}
}

// contribution is what a unit has added to the sums, to be taken out as it was when another one takes its place.
type contribution struct {
	of    pair
	where bucket
	// group, unless nil: it waits there and counts as the group does.
	group *group
	// asks is what it asks for beyond its pods, growth aside. more and less are what it adds to what the pods of its quota
	// request: a unit that holds quota what it asks for; the gate keeps the pods of one that waits, and those that are
	// beyond what is held, and these are taken away.
	asks, more, less resources.List
}

func (c *contribution) same(o *contribution) bool {
	return c.of == o.of && c.where == o.where && c.group == o.group && c.asks.Same(o.asks) && c.more.Same(o.more) &&
		c.less.Same(o.less)
}

// recount brings the accounts in line with what a unit is now.
func (r *roster) recount(u *record) {
	next := r.contributionOf(u)
	if next.same(&u.counted) {
		return
	}
	r.count(&u.counted, -1)
	u.counted = next
	r.count(&u.counted, 1)
}

func (r *roster) contributionOf(u *record) (c contribution) {
	if u.stage == stageDone {
		return c
	}
	c.of, c.where = pair{u.spec.Queue, u.spec.Quota}, u.bucket()
	charges := r.ledger.Charges(u.spec.Key, u.spec.Quota)
	asks := func(want resources.List) resources.List {
		return life.Expected(&u.spec, u.holding).Bound(want.Sub(charges.All).Floor0(), charges.Pods)
	}
	switch {
	case u.holding:
		c.asks = asks(u.held)
		if c.more = c.asks; charges.Idle.Len() > 0 {
			c.less = charges.All.Sub(u.held.Max(charges.Assigned)).Floor0()
		}
	case u.stage == stageWaiting:
		if c.less = charges.Idle; u.group != nil {
			c.asks, c.group, c.where = asks(u.spec.Request), u.group, bucketNone
		}
	}
	return c
}

// count adds a contribution to the sums, or takes it out.
func (r *roster) count(c *contribution, by int) {
	where := c.where
	if c.group != nil {
		n := &c.group.Notes
		n.tallied += by
		addTo(&n.demand, c.asks, by)
		where = n.countsAs
	}
	r.accounts.count(c.of, where, by)
	if !c.asks.IsZero() && (c.group == nil || where == bucketPending) {
		r.changeDemand(c.of.quota, func(sum *resources.Sum) { addTo(sum, c.asks, by) })
	}
	if c.more.IsZero() && c.less.IsZero() {
		return
	}
	r.tree.Ask(c.of.quota, func(sum *resources.Sum) {
		addTo(sum, c.more, by)
		addTo(sum, c.less, -by)
	})
}

// countGroup has the units of an open group count as pending, and ask for what they need, and those of another one as
// parked.
func (r *roster) countGroup(g *group) {
	n, as := &g.Notes, bucketParked
	if g.Open() {
		as = bucketPending
	}
	if n.countsAs == as {
		return
	}
	of, former := pair{n.queue.name, g.Key().Quota}, n.countsAs
	n.countsAs = as
	if n.tallied == 0 {
		return
	}
	r.accounts.count(of, former, -n.tallied)
	r.accounts.count(of, as, n.tallied)
	r.changeDemand(of.quota, func(sum *resources.Sum) {
		if as == bucketPending {
			sum.AddSum(&n.demand)
		} else {
			sum.SubSum(&n.demand)
		}
	})
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

func (r *roster) changeDemand(quota string, change func(*resources.Sum)) {
	r.tree.Want(quota, change)
	r.moved[quota] = struct{}{}
}

func sortCounts(list []QueueCounts) []QueueCounts {
	slices.SortFunc(list, func(a, b QueueCounts) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Quota, b.Quota))
	})
	return list
}
