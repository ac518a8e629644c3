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

package reclaim

import (
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// MostHolds is the greatest number of victims of one unit. Its object has no room for more of their holds.
const MostHolds = 1024

// Request of a preemptor, with the policy of its queue that says whom it may preempt.
type Request struct {
	Key   string // of its unit
	Ask   *decide.Ask
	Queue string
	// GangGroup is that of the unit, as gang.GroupOf names it; empty if it is in none.
	GangGroup string
	// Priority is the one that counts here, see unit.PreemptionPriority. Named is the one that its object has.
	Priority, Named int32
	Policy          queue.Preemption
}

// Situation has the tree and the holders at the time of a search. It is valid until the tree or the index changes.
type Situation[T comparable] struct {
	Tree *capacity.Tree
	// Index has been refreshed at Now. Leaving amounts count as free, and promised amounts as in use.
	Index *holders.Index[T]
	Now   time.Time
	// preemptors are the keys of the units of the requests. Their own promises do not count.
	preemptors []string
	// sure: what leaves counts as far as that is sure.
	sure bool
}

// forAll is the situation of several requests.
func (in *Situation[T]) forAll(requests []Request) *Situation[T] {
	all := *in
	for i := range requests {
		all.preemptors = append(all.preemptors, requests[i].Key)
	}
	return &all
}

// Search looks for the victims of one request.
type Search[T comparable] struct {
	Request
	tree *capacity.Tree
	view *capacity.View
	// gone has the amounts of victims, less the promises, level by level. held has the promises, less the amounts of
	// victims, and is added to the held amounts of the index.
	gone, held holders.Amounts
	// short are the resources of which a limit of the request has too little.
	short []bool
	in    *Situation[T]
	right right[T]
	// given are the amounts that the victims give back in the quota of the request.
	given []int64
}

// New returns a search for a request.
func New[T comparable](in *Situation[T], by Request) *Search[T] {
	s := &Search[T]{
		Request: by, tree: in.Tree, view: capacity.NewView(in.Tree), gone: holders.Amounts{}, held: holders.Amounts{}, in: in,
		given: make([]int64, len(by.Ask.Need)),
	}
	// Leaving amounts are in use until they are gone, for the request's own min. No other unit goes because of them.
	in.Index.Leaving(in.sure, func(route *capacity.Route, amount []int64) { s.free(route, amount, 1) })
	in.Index.Promised(in.preemptors, s.promise)
	s.by(s.reclaims())
	return s
}

// by has the search look for victims by this right.
func (s *Search[T]) by(r right[T]) {
	s.right = r
	s.look()
}

// Fits says that the request needs at most what is free, or on its way.
func (s *Search[T]) Fits() bool { return !slices.Contains(s.short, true) }

// find returns victims from a pool, in the order in which it found them. It returns nil if the request needs none. If
// no set of them is enough, it returns an obstacle. All victims have borrowed, or all are of the request's own queue:
// the rights do not mix. find leaves the search as it was.
func (s *Search[T]) find(of pool[T]) (set []*holders.Holder[T], o Obstacle) {
	if s.Fits() {
		return nil, o
	}
	for _, r := range s.rights() {
		s.by(r)
		found, obstacle := s.findBy(of)
		if set = found; len(set) > 0 {
			o = Obstacle{}
			break
		}
		obstacle.Bounded = obstacle.Bounded || o.Bounded
		if o.Bounded = obstacle.Bounded; !o.Some() {
			o = obstacle
		}
	}
	s.by(s.reclaims())
	return set, o
}

// findBy finds them by one right.
func (s *Search[T]) findBy(of pool[T]) (set []*holders.Holder[T], o Obstacle) {
	p := s.from(of)
	if one := p.alone(); one != nil {
		return []*holders.Holder[T]{one}, o
	}
	for units := 0; !s.Fits(); {
		h := p.next(units)
		if h == nil {
			o = p.obstacle()
			s.undo(set)
			return nil, o
		}
		units += len(h.Of)
		set = append(set, h)
	}
	set = s.least(set)
	s.undo(set)
	return set, o
}

// least returns surplus victims, the last one first. After each, the right to all that remain is checked again: a leaf
// that gives less may be above its min for another resource alone.
func (s *Search[T]) least(set []*holders.Holder[T]) []*holders.Holder[T] {
	for i := len(set) - 1; i >= 0; i-- {
		s.undo(set[i : i+1])
		if !s.Fits() {
			s.evict(set[i])
			continue
		}
		rest := slices.Delete(slices.Clone(set), i, i+1)
		s.undo(rest)
		if s.suffices(rest) {
			set = rest
		}
		for _, h := range set {
			s.evict(h)
		}
	}
	return set
}

// suffices says that the request has the right to each holder of a set, in this order, and fits when they are gone.
func (s *Search[T]) suffices(set []*holders.Holder[T]) bool {
	for i, h := range set {
		if !s.right.covers(h.Class) {
			s.undo(set[:i])
			return false
		}
		s.evict(h)
	}
	fits := s.Fits()
	s.undo(set)
	return fits
}

// evict makes a holder a victim: its amounts count as free.
func (s *Search[T]) evict(h *holders.Holder[T]) {
	s.release(h, 1)
	s.look()
}

func (s *Search[T]) undo(set []*holders.Holder[T]) {
	for _, h := range set {
		s.release(h, -1)
	}
	s.look()
}

// release makes the amounts of a holder free, or with by -1 held again.
func (s *Search[T]) release(h *holders.Holder[T], by int64) {
	for _, part := range h.Parts() {
		for i, n := range part.Held {
			if part.Leaf() == s.Ask.Leaf() {
				s.given[i] += by * n
			}
		}
		s.free(part.Route, part.Held, by)
		s.lessen(part.Route, part.Held, by)
	}
}

// promise has so much more be in use on a route.
func (s *Search[T]) promise(route *capacity.Route, amount []int64, times int64) {
	s.free(route, amount, -times)
	s.lessen(route, amount, -times)
}

// free has so much more be free within the limits of a route.
func (s *Search[T]) free(route *capacity.Route, amount []int64, times int64) {
	freed := make([]int64, len(amount))
	for i, n := range amount {
		freed[i] = times * n
	}
	for _, lim := range route.Limits(false) {
		s.view.Return(lim, freed)
	}
}

// lessen has so much less be in use on a route.
func (s *Search[T]) lessen(route *capacity.Route, held []int64, by int64) {
	s.gone.Add(route, held, by)
	s.held.Add(route, held, -by)
}

// look finds of which resources there is too little.
func (s *Search[T]) look() {
	s.short = make([]bool, len(s.Ask.Need))
	for i := range s.short {
		lacks := func(lim *capacity.Limit) bool { return s.lacks(lim, i) }
		s.short[i] = slices.ContainsFunc(s.Ask.Limits, lacks) || s.right.lacks(i)
	}
}

// lacks says that a limit has too little of a resource.
func (s *Search[T]) lacks(lim *capacity.Limit, number int) bool {
	n := s.Ask.Need[number]
	return (n > 0 || lim.Level() == s.Ask.Leaf()) && s.view.Lacks(lim, number, n)
}

// lacking is the first level that has too little, and of which resource; nil if none has.
func (s *Search[T]) lacking() (at *capacity.Level, number int) {
	for _, lim := range s.Ask.Limits {
		for i := range s.Ask.Need {
			if s.lacks(lim, i) {
				return lim.Level(), i
			}
		}
	}
	return nil, 0
}
