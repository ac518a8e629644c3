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
	"cmp"
	"math"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// pool has the candidates of a search: all holders except for some, or a list of holders.
type pool[T comparable] struct {
	but    map[*holders.Holder[T]]bool
	listed bool
	of     []*holders.Holder[T]
}

func listed[T comparable](of []*holders.Holder[T]) pool[T] { return pool[T]{listed: true, of: of} }

// without is the pool without others.
func (p pool[T]) without(set []*holders.Holder[T]) (rest pool[T]) {
	rest.listed, rest.but = p.listed, map[*holders.Holder[T]]bool{}
	for h := range p.but {
		rest.but[h] = true
	}
	for _, h := range set {
		rest.but[h] = true
	}
	for _, h := range p.of {
		if !rest.but[h] {
			rest.of = append(rest.of, h)
		}
	}
	return rest
}

// pick has the candidates of a pool in the order in which a search makes them victims, leaf by leaf.
type pick[T comparable] struct {
	s  *Search[T]
	of pool[T]
	// scarce is the resource in which the work counts that is lost.
	scarce int
	lines  []*line[T]
}

// line has the next candidates of a leaf, in the order of their costs: of each class the first one.
type line[T comparable] struct {
	route *capacity.Route
	// wide: some have parts in other leaves.
	wide bool
	// heads are read from the leaf when they are asked for first; owned: they may be changed.
	leaf  *holders.Leaf[T]
	heads []*holders.Holder[T]
	owned bool
}

func (s *Search[T]) from(of pool[T]) *pick[T] {
	p := &pick[T]{s: s, of: of, scarce: s.scarce()}
	if !of.listed {
		for _, l := range s.in.Index.Leaves() {
			p.lines = append(p.lines, &line[T]{route: l.Route(), wide: l.Wide(), leaf: l})
		}
		return p
	}
	for _, h := range of.of {
		parts := h.Parts()
		at := slices.IndexFunc(p.lines, func(l *line[T]) bool { return l.route.Levels[0] == parts[0].Leaf() })
		if at < 0 {
			at = len(p.lines)
			p.lines = append(p.lines, &line[T]{route: parts[0].Route, owned: true})
		}
		p.put(p.lines[at], h)
		p.lines[at].wide = p.lines[at].wide || len(parts) > 1
	}
	return p
}

// put adds a head to a line.
func (p *pick[T]) put(l *line[T], h *holders.Holder[T]) {
	at, _ := slices.BinarySearchFunc(l.heads, h, func(a, b *holders.Holder[T]) int {
		return a.Compare(b, p.s.in.Now, p.scarce)
	})
	l.heads = slices.Insert(l.heads, at, h)
}

// covered visits the heads of a line to which the request has the right, in order, until visit returns false.
func (p *pick[T]) covered(l *line[T], visit func(*holders.Holder[T]) bool) {
	if !l.wide && !p.s.right.reaches(l.route) {
		return
	}
	if l.heads == nil && l.leaf != nil {
		l.heads = l.leaf.Heads(p.s.in.Now, p.scarce)
		for i := 0; i < len(l.heads) && len(p.of.but) > 0; {
			if h := l.heads[i]; p.of.but[h] {
				p.advance(l, h)
			} else {
				i++
			}
		}
	}
	for _, h := range l.heads {
		if p.s.right.covers(h.Class) && !visit(h) {
			return
		}
	}
}

// advance puts the next holder of its class in the place of a head.
func (p *pick[T]) advance(l *line[T], h *holders.Holder[T]) {
	if !l.owned {
		l.heads, l.owned = slices.Clone(l.heads), true
	}
	at := slices.Index(l.heads, h)
	l.heads = slices.Delete(l.heads, at, at+1)
	if p.of.listed {
		return
	}
	if next := p.of.first(h.Next()); next != nil {
		p.put(l, next)
	}
}

// first is a holder of a class, or the first after it that is in the pool; nil if there is none.
func (p *pool[T]) first(h *holders.Holder[T]) *holders.Holder[T] {
	for h != nil && p.but[h] {
		h = h.Next()
	}
	return h
}

// alone returns the first holder that is enough by itself. Holders with one part are in the order of their leaf. So
// none behind one that is enough, or that is not better, can be better.
func (p *pick[T]) alone() (one *holders.Holder[T]) {
	for _, l := range p.lines {
		done := false
		p.covered(l, func(h *holders.Holder[T]) bool {
			switch narrow := len(h.Parts()) == 1; {
			case done && narrow, len(h.Of) > MostHolds:
			case one != nil && p.s.compare(one, h) <= 0:
				done = done || narrow
			default:
				if p.s.evict(h); p.s.Fits() {
					one, done = h, done || narrow
				}
				p.s.undo([]*holders.Holder[T]{h})
			}
			return !done || l.wide
		})
	}
	return one
}

// next makes the next holder a victim: the first one that the request has the right to. It returns nil if there is
// none, or if there would be too many victims.
func (p *pick[T]) next(units int) (first *holders.Holder[T]) {
	var in *line[T]
	for _, l := range p.lines {
		p.covered(l, func(h *holders.Holder[T]) bool {
			if first == nil || p.s.compare(h, first) < 0 {
				in, first = l, h
			}
			return false
		})
	}
	if first == nil || units+len(first.Of) > MostHolds {
		return nil
	}
	p.s.evict(first)
	p.advance(in, first)
	return first
}

// compare orders two candidates. The one whose quota is farthest above its share of the scarce resource is first. The
// work that is lost with a unit is counted in that resource as well.
func (s *Search[T]) compare(a, b *holders.Holder[T]) int {
	scarce := s.scarce()
	return cmp.Or(cmp.Compare(s.excess(b, scarce), s.excess(a, scarce)), a.Compare(b, s.in.Now, scarce))
}

// scarce is the first resource that is short.
func (s *Search[T]) scarce() int { return slices.Index(s.short, true) }

// excess is the held amount of a resource in the quota of a unit beyond the quota's limit while all others use theirs.
// The limit is the runtime if that is a share, else min. Of several quotas the greatest excess counts.
func (s *Search[T]) excess(h *holders.Holder[T], i int) int64 {
	name, most := s.tree.Resource(i), int64(math.MinInt64)
	for _, p := range h.Parts() {
		leaf := p.Leaf()
		share, _ := leaf.Owed(name)
		if leaf.Spec().Shared {
			share, _ = leaf.Limit().List().Get(name)
		}
		most = max(most, resources.SaturatingSub(s.heldAt(leaf, i), share))
	}
	return most
}
