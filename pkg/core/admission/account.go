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
	"sort"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// bucket is what a unit counts as.
type bucket uint8

const (
	bucketNone bucket = iota
	bucketPending
	bucketAdmitted
	bucketParked
)

func (u *unit) bucket() bucket {
	switch u.stage {
	case stageAdmitted, stageEvicting:
		return bucketAdmitted
	case stageAdmitting:
		return bucketPending
	case stageWaiting:
		if u.group == nil || u.group.parked != "" {
			return bucketParked
		}
		return bucketPending
	default:
		return bucketNone
	}
}

// account brings counts and demand in line with where the unit is.
func (s *State) account(u *unit) {
	where, former := u.bucket(), u.counted
	if where != u.where || (former != nil && (former.Queue != u.spec.Queue || former.Quota != u.spec.Quota)) {
		u.counted = s.countsFor(u, where)
		s.count(u.counted, where, 1)
		s.count(former, u.where, -1)
		u.where = where
	}
	s.updateDemand(u)
	s.updateAsks(u)
}

// countsFor are those of the queue and the quota of a unit, nil where it is not counted.
func (s *State) countsFor(u *unit, where bucket) *QueueCounts {
	if where == bucketNone {
		return nil
	}
	p := pair{u.spec.Queue, u.spec.Quota}
	c, ok := s.counts[p]
	if !ok {
		c = &QueueCounts{Queue: p.queue, Quota: p.quota}
		s.counts[p] = c
	}
	return c
}

func (s *State) count(c *QueueCounts, where bucket, by int) {
	if c == nil {
		return
	}
	p := pair{c.Queue, c.Quota}
	s.countsChanged[p] = struct{}{}
	sum, ok := s.countsOf[c.Queue]
	if !ok {
		sum = &QueueCounts{Queue: c.Queue}
		s.countsOf[c.Queue] = sum
	}
	switch where {
	case bucketNone:
	case bucketPending:
		c.Pending += by
		sum.Pending += by
	case bucketAdmitted:
		c.Admitted += by
		sum.Admitted += by
	case bucketParked:
		c.Parked += by
		sum.Parked += by
	}
	if c.empty() {
		delete(s.counts, p)
	}
	if sum.empty() {
		delete(s.countsOf, c.Queue)
	}
}

func (c *QueueCounts) empty() bool { return c.Pending == 0 && c.Admitted == 0 && c.Parked == 0 }

// podBag holds the existing pods of one unit.
type podBag struct {
	pods map[string]Pod
	// requests sums them by the quota that they are charged to, unassigned those that are not assigned; count counts them.
	requests, unassigned map[string]*resources.Sum
	count                map[string]int64
}

func (b *podBag) add(p Pod) {
	b.count[p.Quota]++
	sumOf(b.requests, p.Quota).Add(p.Request)
	if !p.Assigned {
		sumOf(b.unassigned, p.Quota).Add(p.Request)
	}
}

func (b *podBag) remove(p Pod) {
	b.count[p.Quota]--
	b.requests[p.Quota].Sub(p.Request)
	if !p.Assigned {
		b.unassigned[p.Quota].Sub(p.Request)
	}
}

func sumOf(sums map[string]*resources.Sum, name string) *resources.Sum {
	sum, ok := sums[name]
	if !ok {
		sum = &resources.Sum{}
		sums[name] = sum
	}
	return sum
}

// SetPod takes a pod that exists of the unit with this key, also before the unit is known.
// Assigned pods materialise what the unit holds: outstanding = max(0, held - assigned), by resource.
func (s *State) SetPod(_ time.Time, unitKey string, p Pod) {
	bag, ok := s.pods[unitKey]
	if !ok {
		bag = &podBag{
			pods: map[string]Pod{}, count: map[string]int64{},
			requests: map[string]*resources.Sum{}, unassigned: map[string]*resources.Sum{},
		}
		s.pods[unitKey] = bag
	}
	if old, ok := bag.pods[p.UID]; ok {
		bag.remove(old)
	}
	bag.pods[p.UID] = p
	bag.add(p)
	var changed bool
	if p.Assigned {
		changed = s.ledger.Materialise(unitKey, ledgerPod(p))
	} else {
		changed = s.ledger.Dematerialise(unitKey, p.UID)
	}
	s.podsChanged(unitKey, changed)
}

// DeletePod forgets a pod that is gone or has ended.
func (s *State) DeletePod(_ time.Time, unitKey, podUID string) {
	bag, ok := s.pods[unitKey]
	if !ok {
		return
	}
	p, ok := bag.pods[podUID]
	if !ok {
		return
	}
	bag.remove(p)
	delete(bag.pods, podUID)
	if len(bag.pods) == 0 {
		delete(s.pods, unitKey)
	}
	s.podsChanged(unitKey, s.ledger.Dematerialise(unitKey, podUID))
}

func (s *State) podsChanged(unitKey string, outstandingChanged bool) {
	u, ok := s.units[unitKey]
	if !ok {
		return
	}
	if outstandingChanged && u.at != nil {
		s.refreshPath(u.at)
	}
	s.updateDemand(u)
	s.updateAsks(u)
}

// updateDemand keeps the sum of what the units of a quota ask beyond their existing pods.
func (s *State) updateDemand(u *unit) {
	var want resources.List
	counts := true
	bag, hasPods := s.pods[u.spec.Key]
	switch {
	case u.holding:
		want = u.held
	case u.where == bucketPending:
		if !hasPods && u.demand == &u.spec.waits {
			return
		}
		want = u.spec.Request
	default:
		counts = false
	}
	if !counts && u.demand == nil {
		return
	}
	var there int64
	if hasPods && counts {
		if sum, ok := bag.requests[u.spec.Quota]; ok {
			want = want.Sub(sum.List())
		}
		there = bag.count[u.spec.Quota]
	}
	want = u.spec.Expected.Bound(want.Floor0(), there)
	former := u.demand
	if counts && former.is(u.spec.Quota, want) {
		return
	}
	u.demand = nil
	if former != nil {
		s.changeDemand(former.quota, func(sum *resources.Sum) { sum.Sub(former.amount) })
	}
	if counts {
		s.addDemand(u, want)
	}
}

func (d *demand) is(quota string, amount resources.List) bool {
	return d != nil && d.quota == quota && d.amount.Equal(amount)
}

func (s *State) addDemand(u *unit, amount resources.List) {
	if u.demand = &u.spec.waits; !u.demand.amount.Same(amount) {
		u.demand = &demand{quota: u.spec.Quota, amount: amount}
	}
	s.changeDemand(u.spec.Quota, func(sum *resources.Sum) { sum.Add(amount) })
}

func (s *State) changeDemand(quota string, change func(*resources.Sum)) {
	sum := sumOf(s.demand, quota)
	change(sum)
	if sum.IsZero() {
		delete(s.demand, quota)
	}
	s.demandChanged[quota] = true
}

// Demand of a leaf quota that is not in Koordinator's request yet: over its waiting and admitted units,
// what they ask beyond their existing pods. O(1): kept incrementally.
func (s *State) Demand(quota string) resources.List {
	if sum, ok := s.demand[quota]; ok {
		return sum.List()
	}
	return resources.List{}
}

// DirtyDemand returns, once, the quotas whose Demand changed since the last call, sorted.
func (s *State) DirtyDemand() []string {
	out := make([]string, 0, len(s.demandChanged))
	for name := range s.demandChanged {
		out = append(out, name)
	}
	sort.Strings(out)
	clear(s.demandChanged)
	return out
}
