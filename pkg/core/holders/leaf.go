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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Leaf has the holders of one quota. One with parts in several is in that of its first unit.
type Leaf[T comparable] struct {
	name  string
	tree  *capacity.Tree
	route *capacity.Route
	// broken: nothing is decided about the quota.
	broken  bool
	classes map[string]*Class[T]
	// gangs counts, by gang group, the units here that may be in its core.
	gangs map[string]int
	// several counts the classes with several parts.
	several int
	// held is what the units of holders hold here. leaving is what goes without anybody's doing, unsure the part of it of
	// which that is not sure. promised is the amount that preemptors get and do not hold yet.
	held, leaving, unsure, promised sum
	// these are the vectors of the four.
	vectors [4][]int64
	version int64
	heads   heads[T]
}

// heads are the first of each class, in order, as they were asked for last.
type heads[T comparable] struct {
	now     time.Time
	number  int
	version int64
	list    []*Holder[T]
}

// sum of what several units keep from others.
type sum struct {
	amount resources.Sum
	units  int64
}

func (s *sum) add(amount resources.List, units int64) {
	if s.units += units; units < 0 {
		s.amount.Sub(amount)
	} else {
		s.amount.Add(amount)
	}
}

func (s *sum) list() resources.List { return s.amount.List() }

func (s *sum) isZero() bool { return s.units == 0 && s.amount.IsZero() }

func (s *sum) need(tree *capacity.Tree) []int64 { return tree.Need(s.list(), s.units) }

// Route of the quota.
func (l *Leaf[T]) Route() *capacity.Route { return l.route }

// Wide says that some of its holders have parts elsewhere.
func (l *Leaf[T]) Wide() bool { return l.several > 0 }

// Heads are the first holders of all classes with a holder that may be evicted now. They are in the order of their
// costs; lost work is counted in a resource. The caller must not change the list.
func (l *Leaf[T]) Heads(now time.Time, number int) []*Holder[T] {
	if h := &l.heads; h.version != l.version || h.number != number || !h.now.Equal(now) || h.list == nil {
		*h = heads[T]{now, number, l.version, []*Holder[T]{}}
		for _, c := range l.classes {
			c.refresh(l.tree)
			if first := c.First(now); first != nil {
				h.list = append(h.list, first)
			}
		}
		slices.SortFunc(h.list, func(a, b *Holder[T]) int { return a.Compare(b, now, number) })
	}
	return l.heads.list
}

// Classes visits the classes of a leaf, in no order.
func (l *Leaf[T]) Classes(visit func(*Class[T])) {
	for _, c := range l.classes {
		c.refresh(l.tree)
		visit(c)
	}
}

// put adds a holder to its class.
func (l *Leaf[T]) put(h *Holder[T], c *Class[T]) {
	h.Class = c
	c.members.Insert(h)
	l.version++
}

// begin has a class be one of the leaf.
func (l *Leaf[T]) begin(c *Class[T], key string) {
	c.key = key
	if l.classes[key] = c; len(c.shares) > 1 {
		l.several++
	}
}

// remove a holder, and say whether its class ends with it.
func (l *Leaf[T]) remove(h *Holder[T]) (ends bool) {
	c := h.Class
	h.Class = nil
	c.members.Delete(h)
	if l.version++; c.members.Len() > 0 {
		return false
	}
	delete(l.classes, c.key)
	if len(c.shares) > 1 {
		l.several--
	}
	return true
}

// sums are those of vectors, in the same order.
func (l *Leaf[T]) sums() [4]*sum { return [4]*sum{&l.held, &l.leaving, &l.unsure, &l.promised} }

func (l *Leaf[T]) isEmpty() bool {
	return len(l.classes) == 0 && l.held.isZero() && l.leaving.isZero() && l.promised.isZero()
}

// Amounts are sums by level, and by the numbers of the tree.
type Amounts map[*capacity.Level][]int64

// Add adds an amount so many times on a route.
func (a Amounts) Add(route *capacity.Route, more []int64, times int64) {
	for _, l := range route.Levels {
		if a[l] == nil {
			a[l] = make([]int64, len(more))
		}
		for i, n := range more {
			a[l][i] = resources.SaturatingAdd(a[l][i], times*n)
		}
	}
}

// At reads one amount.
func (a Amounts) At(l *capacity.Level, number int) int64 {
	if of := a[l]; of != nil {
		return of[number]
	}
	return 0
}
