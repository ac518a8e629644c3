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

package holders

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Holder is a unit that holds quota, or the units of a gang group that are preempted together.
type Holder[T comparable] struct {
	Of []T
	*Class[T]
	// admitted is when the last of its units was, first the least of their keys.
	admitted, until time.Time
	first           string
}

// Class has the holders of one leaf that differ only in their admission, in the order of the work that is lost with
// them. This order does not depend on the time, so they are evicted in it.
type Class[T comparable] struct {
	kind
	// key says all of kind, and of shares that are one.
	key    string
	shares []share
	// terms are the units of one holder, if they were not admitted at one time. Then it is the only one of its class.
	terms   []term
	members *ordered.Tree[*Holder[T]]
	// structure is that of the tree for which parts are, and the amounts of terms.
	structure int64
	parts     []Part
}

// kind is what the holders of a class have in common.
type kind struct {
	Priority   int32
	Evictions  int64
	Protection Protection
	// runs is the least run time before one may be preempted.
	runs time.Duration
	// gang is set for a gang group whose units differ in quota, queue or time of admission. No other holder is like it.
	gang string
}

// appendKey appends what tells holders with such a part from those of other classes.
func (k *kind) appendKey(key []byte, of share) []byte {
	for _, n := range []int64{int64(k.Priority), k.Evictions, int64(k.Protection), int64(k.runs), of.units} {
		key = binary.AppendVarint(key, n)
	}
	for _, name := range []string{k.gang, of.queue} {
		key = append(binary.AppendVarint(key, int64(len(name))), name...)
	}
	for _, it := range of.amount.Items() {
		if it.Amount != 0 {
			key = append(binary.AppendVarint(key, int64(len(it.Name))), it.Name...)
			key = binary.AppendVarint(key, it.Amount)
		}
	}
	return key
}

// Part is what units of a queue give back in one quota, by the numbers of the tree. Route leads from there to the top.
type Part struct {
	Queue string
	Route *capacity.Route
	Held  []int64
}

// Leaf is the level of the quota.
func (p *Part) Leaf() *capacity.Level { return p.Route.Levels[0] }

// share is a part, whatever the tree is.
type share struct {
	queue, quota string
	amount       resources.List
	units        int64
}

// term is a unit of a gang group, of which work is lost.
type term struct {
	amount   resources.List
	admitted time.Time
	held     []int64
}

// join makes one holder of the core of a gang group, in the order of their keys, and its class.
func join[T comparable](units []*entry[T]) (h *Holder[T], c *Class[T]) {
	first := &units[0].hold
	h, c = &Holder[T]{}, &Class[T]{}
	c.kind = h.single(units[0])
	h.Of = nil
	for _, e := range units {
		o := &e.hold
		h.Of = append(h.Of, e.of[0])
		c.Priority, c.Evictions = min(c.Priority, o.Priority), min(c.Evictions, o.Evictions)
		switch mine, its := inGang[c.Protection].rank, inGang[o.Protection].rank; {
		case mine == its && o.Until.Before(h.until):
			h.until = o.Until
		case its < mine:
			c.Protection, h.until = o.Protection, o.Until
		}
		if !o.Admitted.Equal(first.Admitted) {
			c.gang, h.admitted = o.GangGroup, ordered.Later(h.admitted, o.Admitted)
		}
		c.share(e)
		c.terms = append(c.terms, term{amount: e.amount, admitted: o.Admitted})
	}
	if len(c.shares) > 1 {
		c.gang = first.GangGroup
	}
	if c.gang == "" {
		c.terms = nil
	}
	c.runs = h.until.Sub(h.admitted)
	return h, c
}

// single has a holder be one unit.
func (h *Holder[T]) single(e *entry[T]) kind {
	o := &e.hold
	h.admitted, h.until, h.first = o.Admitted, o.Until, o.Key
	h.Of = e.of[:]
	return kind{
		Priority: o.Priority, Evictions: o.Evictions, Protection: o.Protection, runs: o.Until.Sub(o.Admitted),
	}
}

func (c *Class[T]) share(e *entry[T]) {
	at := slices.IndexFunc(c.shares, func(s share) bool { return s.quota == e.hold.Quota && s.queue == e.hold.Queue })
	if at < 0 {
		c.shares = append(c.shares, share{queue: e.hold.Queue, quota: e.hold.Quota, amount: e.amount, units: 1})
		return
	}
	c.shares[at].amount, c.shares[at].units = c.shares[at].amount.Add(e.amount), c.shares[at].units+1
}

// compareAdmissions of holders of one class: the less has been lost with one, the later it was admitted.
func compareAdmissions[T comparable](a, b *Holder[T]) int {
	return cmp.Or(b.admitted.Compare(a.admitted), strings.Compare(a.first, b.first))
}

// Parts are what a holder of the class gives back, each of another quota or queue.
func (c *Class[T]) Parts() []Part { return c.parts }

// Held is what a holder holds of a resource.
func (c *Class[T]) Held(number int) (sum int64) {
	for i := range c.parts {
		sum += c.parts[i].Held[number]
	}
	return sum
}

// refresh brings the vectors in line with the tree.
func (c *Class[T]) refresh(tree *capacity.Tree) {
	if c.structure == tree.Structure() && c.parts != nil {
		return
	}
	c.structure, c.parts = tree.Structure(), make([]Part, len(c.shares))
	for i := range c.shares {
		s := &c.shares[i]
		c.parts[i] = Part{Queue: s.queue, Route: tree.Route(s.quota), Held: tree.Need(s.amount, s.units)}
	}
	for i := range c.terms {
		c.terms[i].held = tree.Need(c.terms[i].amount, 1)
	}
}

// lost is the work that is lost with a holder: what it holds of a resource, times the seconds since its admission.
func (h *Holder[T]) lost(now time.Time, number int) (work float64) {
	if h.terms == nil {
		return float64(h.Held(number)) * now.Sub(h.admitted).Seconds()
	}
	for i := range h.terms {
		work += float64(h.terms[i].held[number]) * now.Sub(h.terms[i].admitted).Seconds()
	}
	return work
}

// Compare orders two holders by the cost of their eviction, the lower one first. Priority counts first, then evictions,
// then the work that is lost in a resource. The keys of their units break a tie.
func (h *Holder[T]) Compare(o *Holder[T], now time.Time, number int) int {
	return cmp.Or(
		cmp.Compare(h.Priority, o.Priority), cmp.Compare(h.Evictions, o.Evictions),
		cmp.Compare(h.lost(now, number), o.lost(now, number)), strings.Compare(h.first, o.first),
	)
}

// First is the holder of a class that is preempted first; nil if none may be preempted now.
func (c *Class[T]) First(now time.Time) (first *Holder[T]) {
	if c.Protection != Unprotected {
		return nil
	}
	return c.from(func(h *Holder[T]) bool { return h.until.After(now) })
}

// Next is the holder that is preempted after another one of its class; nil if there is none.
func (h *Holder[T]) Next() *Holder[T] {
	return h.from(func(o *Holder[T]) bool { return compareAdmissions(o, h) <= 0 })
}

func (c *Class[T]) from(before func(*Holder[T]) bool) (first *Holder[T]) {
	c.members.WalkFrom(before, func(h *Holder[T]) bool {
		first = h
		return false
	})
	return first
}

// Protected counts the protected holders of a class. It says why they are protected, and when the first protection
// ends; zero for never.
func (c *Class[T]) Protected(now time.Time) (n int64, p Protection, until time.Time) {
	if c.Protection != Unprotected {
		return int64(c.members.Len()), c.Protection, until
	}
	n = int64(c.members.Len())
	if open := c.First(now); open != nil {
		n = int64(c.members.Rank(open))
	}
	c.members.WalkAt(int(n)-1, func(h *Holder[T]) bool {
		if n > 0 {
			until = h.until
		}
		return false
	})
	return n, ByRunTime, until
}
