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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Taker is a request that may take what others hold, by the policy of its queue.
type Taker struct {
	Ask   *decide.Ask
	Queue string
	// Priority is the one that counts here, see unit.TakingPriority. Named is the one that its object has.
	Priority, Named int32
	Policy          queue.Preemption
}

// Holder is a unit that holds quota, or all units of a gang group that do.
type Holder[T any] struct {
	Of []T
	// Parts are what it gives back, each of another quota or queue.
	Parts []Part
	// Gang is the name of that gang group; empty for a unit by itself.
	Gang string
	// Unsure: of pods that leave, nobody knows yet whether somebody asks them to.
	Unsure bool
	Cost
	// Protection, if any, is why nobody takes it, and Until when that ends; zero for never.
	Protection Protection
	Until      time.Time
}

// Part is what units of a queue give back in one quota, by the numbers of the tree. Route leads from there to the top.
type Part struct {
	Queue string
	Route *capacity.Route
	Held  []int64
}

func (p *Part) leaf() *capacity.Level { return p.Route.Levels[0] }

// Situation is what is held when requests take. It is valid until the tree changes.
type Situation[T any] struct {
	Tree *capacity.Tree
	// Among are the units to take from, as Sort has sorted them.
	Among []Holder[T]
	// Leaving go without anybody's doing: units and pods that give back what they hold. It counts as if it were free.
	// Promised is what others have taken back and do not hold yet. It counts as in use.
	Leaving, Promised []Holder[T]
}

// Search is for the units that one request takes back.
type Search[T any] struct {
	Taker
	tree *capacity.Tree
	view *capacity.View
	// gone is what was taken, level by level. held is what units hold there that stay.
	gone, held amounts
	// short are the resources of which a limit of the request has too little.
	short []bool
	// leaving go without anybody's doing.
	leaving []Holder[T]
	right   right[T]
	// given is what those give back in the quota of the request that were taken.
	given []int64
}

// New returns a search for a request.
func New[T any](in *Situation[T], by Taker) *Search[T] {
	s := &Search[T]{
		Taker: by, tree: in.Tree, view: capacity.NewView(in.Tree), gone: amounts{}, held: amounts{}, leaving: in.Leaving,
		given: make([]int64, len(by.Ask.Need)),
	}
	for i := range in.Leaving {
		s.release(&in.Leaving[i], 1)
	}
	// What leaves is in use until it is gone, as far as the request's own min is concerned. It is nothing for which
	// another unit has to go.
	clear(s.gone)
	clear(s.held)
	for i := range in.Among {
		for _, p := range in.Among[i].Parts {
			s.held.add(p.Route, p.Held, 1)
		}
	}
	for i := range in.Promised {
		s.release(&in.Promised[i], -1)
	}
	clear(s.given)
	s.by(s.reclaims())
	return s
}

// by has the search be for what the request may take by this right.
func (s *Search[T]) by(r right[T]) {
	s.right = r
	s.look()
}

// Fits says that the request needs at most what is free, or on its way.
func (s *Search[T]) Fits() bool { return !slices.Contains(s.short, true) }

// Find returns the units to take, in the order in which they were found; nil if no set of them is enough, for which the
// obstacle is, or none is needed. It takes from others what they have borrowed, or else from its own queue, and not
// from both. Holders come as Sort has sorted them. It leaves the search as it was.
func (s *Search[T]) Find(among []Holder[T]) (set []*Holder[T], o Obstacle) {
	if s.Fits() {
		return nil, o
	}
	for _, r := range s.rights() {
		s.by(r)
		found, obstacle := s.find(among)
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

func (s *Search[T]) find(among []Holder[T]) (set []*Holder[T], o Obstacle) {
	leaves := s.byLeaf(among)
	if one := s.alone(leaves); one != nil {
		return []*Holder[T]{one}, o
	}
	units := 0
	for !s.Fits() {
		h := s.next(leaves)
		if h != nil {
			units += len(h.Of)
		}
		if h == nil || units > MostHolds {
			o = s.obstacle(among)
			s.undo(set)
			return nil, o
		}
		s.take(h)
		set = append(set, h)
	}
	set = s.least(set)
	s.undo(set)
	return set, o
}

// alone returns the first holder that is enough by itself.
func (s *Search[T]) alone(leaves [][]*Holder[T]) (one *Holder[T]) {
	for _, leaf := range leaves {
		for _, h := range leaf {
			if one != nil && s.compare(one, h) <= 0 || len(h.Of) > MostHolds || !s.right.covers(h) {
				continue
			}
			if s.take(h); s.Fits() {
				one = h
			}
			s.undo([]*Holder[T]{h})
		}
	}
	return one
}

// next takes the first holder out of the leaves that may be taken.
func (s *Search[T]) next(leaves [][]*Holder[T]) (first *Holder[T]) {
	of := 0
	for i, leaf := range leaves {
		if at := slices.IndexFunc(leaf, s.right.covers); at >= 0 && (first == nil || s.compare(leaf[at], first) < 0) {
			first, of = leaf[at], i
		}
	}
	if first != nil {
		leaves[of] = slices.DeleteFunc(leaves[of], func(h *Holder[T]) bool { return h == first })
	}
	return first
}

// least puts back, the last one first, what need not be taken. After each the right to all that remain is looked at
// again: a leaf from which less is taken may be above its min for another resource alone.
func (s *Search[T]) least(set []*Holder[T]) []*Holder[T] {
	for i := len(set) - 1; i >= 0; i-- {
		s.undo(set[i : i+1])
		if !s.Fits() {
			s.take(set[i])
			continue
		}
		rest := slices.Delete(slices.Clone(set), i, i+1)
		s.undo(rest)
		if s.suffices(rest) {
			set = rest
		}
		for _, h := range set {
			s.take(h)
		}
	}
	return set
}

// suffices says that the request has the right to each holder of a set, in this order, and fits when they are gone.
func (s *Search[T]) suffices(set []*Holder[T]) bool {
	for i, h := range set {
		if !s.right.covers(h) {
			s.undo(set[:i])
			return false
		}
		s.take(h)
	}
	fits := s.Fits()
	s.undo(set)
	return fits
}

// take has what a unit holds be free.
func (s *Search[T]) take(h *Holder[T]) {
	s.release(h, 1)
	s.look()
}

func (s *Search[T]) undo(set []*Holder[T]) {
	for _, h := range set {
		s.release(h, -1)
	}
	s.look()
}

// release gives back what a holder has, or takes it again.
func (s *Search[T]) release(h *Holder[T], by int64) {
	for p := range h.Parts {
		part := &h.Parts[p]
		freed := make([]int64, len(part.Held))
		for i, n := range part.Held {
			freed[i] = by * n
			if part.leaf() == s.Ask.Leaf() {
				s.given[i] += by * n
			}
		}
		for _, lim := range part.Route.Limits(false) {
			s.view.Return(lim, freed)
		}
		s.lessen(part.Route, part.Held, by)
	}
}

// lessen has so much less be in use on a route.
func (s *Search[T]) lessen(route *capacity.Route, held []int64, by int64) {
	s.gone.add(route, held, by)
	s.held.add(route, held, -by)
}

// amounts are sums by level, and by the numbers of the tree.
type amounts map[*capacity.Level][]int64

func (a amounts) add(route *capacity.Route, more []int64, times int64) {
	for _, l := range route.Levels {
		if a[l] == nil {
			a[l] = make([]int64, len(more))
		}
		for i, n := range more {
			a[l][i] = resources.SaturatingAdd(a[l][i], times*n)
		}
	}
}

func (a amounts) at(l *capacity.Level, number int) int64 {
	if of := a[l]; of != nil {
		return of[number]
	}
	return 0
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
