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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// right is a rule by which a request may preempt.
type right[T comparable] struct {
	// covers says that the request may preempt holders of a class after the victims so far, and that some of it helps. It
	// covers nothing in a leaf that it does not reach.
	covers  func(*holders.Class[T]) bool
	reaches func(leaf *capacity.Route) bool
	// lacks says that more of a resource has to be given back than the limits of the request lack.
	lacks func(number int) bool
}

// rights are those that the policy of its queue gives a request, in the order in which it uses them.
func (s *Search[T]) rights() (list []right[T]) {
	if s.Policy.Reclaim != queue.VictimsNone {
		list = append(list, s.reclaims())
	}
	if s.Policy.WithinQueue != queue.VictimsNone {
		list = append(list, s.preempts())
	}
	return list
}

// reclaims is the right to what other quotas have borrowed. A gang group that has borrowed some of what it holds has
// borrowed all of it, as it does not run without.
func (s *Search[T]) reclaims() right[T] {
	return right[T]{
		lacks: func(int) bool { return false },
		reaches: func(leaf *capacity.Route) bool {
			return s.mayReclaim(leaf, func(l *capacity.Level, i int) bool { return s.short[i] && s.isOver(l, i) })
		},
		covers: func(c *holders.Class[T]) bool {
			if c.Priority >= s.Priority && s.Policy.Reclaim != queue.VictimsAny {
				return false
			}
			return slices.ContainsFunc(c.Parts(), func(p holders.Part) bool {
				return s.mayReclaim(p.Route, func(l *capacity.Level, i int) bool {
					return p.Held[i] > 0 && s.short[i] && s.isOver(l, i)
				})
			})
		},
	}
}

// mayReclaim says that the request may reclaim from a leaf. The levels of the request are within their mins with it.
// At each level of the leaf others have borrowed some resource.
func (s *Search[T]) mayReclaim(leaf *capacity.Route, borrowed func(l *capacity.Level, number int) bool) bool {
	mine, its := branches(s.Ask.Route.Levels, leaf.Levels)
	if len(mine) == 0 || len(its) == 0 {
		return false
	}
	for _, l := range its {
		some := false
		for i := 0; i < len(s.short) && !some; i++ {
			some = borrowed(l, i)
		}
		if !some {
			return false
		}
	}
	return !slices.ContainsFunc(mine, s.exceedsMin)
}

// preempts is the right to what units of lower priority hold in its queue and quota.
func (s *Search[T]) preempts() right[T] {
	return right[T]{
		lacks:   s.raises,
		reaches: func(leaf *capacity.Route) bool { return leaf.Levels[0] == s.Ask.Leaf() },
		covers: func(c *holders.Class[T]) bool {
			return c.Priority < s.Priority && slices.ContainsFunc(c.Parts(), func(p holders.Part) bool {
				return p.Queue == s.Queue && p.Leaf() == s.Ask.Leaf() && s.helps(&p)
			})
		},
	}
}

// helps says that some of what is short is given back.
func (s *Search[T]) helps(p *holders.Part) bool {
	for i, held := range p.Held {
		if held > 0 && s.short[i] {
			return true
		}
	}
	return false
}

// raises says that a level would exceed its min, and its present amount, with the request in place of the victims. The
// top has no min.
func (s *Search[T]) raises(number int) bool {
	n := s.Ask.Need[number]
	if n <= s.given[number] {
		return false
	}
	return slices.ContainsFunc(s.Ask.Route.Levels[:len(s.Ask.Route.Levels)-1], func(l *capacity.Level) bool {
		owed, _ := l.Owed(s.tree.Resource(number))
		return resources.SaturatingAdd(s.inUse(l, number), n) > owed
	})
}

// Entitled says whether a request can have a right to anything. Its queue lets it preempt lower priorities there, or
// reclaim if its quota is within its min with it.
func (t *Request) Entitled(tree *capacity.Tree) bool {
	return t.Policy.WithinQueue != queue.VictimsNone ||
		t.Policy.Reclaim != queue.VictimsNone && t.withinMin(tree, nil)
}

// withinMin says that the quota is within its min with the request and others.
func (t *Request) withinMin(tree *capacity.Tree, others []Request) bool {
	s := &Search[struct{}]{
		Request: *t, tree: tree, short: make([]bool, len(t.Ask.Need)), gone: holders.Amounts{}, held: holders.Amounts{},
	}
	expect(s, others)
	return !s.exceedsMin(t.Ask.Leaf())
}

// branches are the levels of two routes strictly below their lowest common ancestor.
func branches(a, b []*capacity.Level) (ofA, ofB []*capacity.Level) {
	for i, l := range a {
		if j := slices.Index(b, l); j >= 0 {
			return a[:i], b[:j]
		}
	}
	return nil, nil // of two trees: nothing of one is free in the other
}

// exceedsMin says that a level would be above its min with the request, or has no min of a short resource. Above the
// quota of the request only short resources count. Other quotas there may have borrowed another resource, which takes
// nothing away from the guarantee.
func (s *Search[T]) exceedsMin(l *capacity.Level) bool {
	leaf := l == s.Ask.Leaf()
	for i, n := range s.Ask.Need {
		owed, named := l.Owed(s.tree.Resource(i))
		exceeds := named && resources.SaturatingAdd(s.inUse(l, i), n) > owed
		if n > 0 && (s.short[i] && (!named || exceeds) || leaf && exceeds) {
			return true
		}
	}
	return false
}

// isOver says that units hold more of a resource than the min of a level. Pods outside of units are what the level has
// borrowed first: no unit goes for them that is within min.
func (s *Search[T]) isOver(l *capacity.Level, number int) bool {
	owed, _ := l.Owed(s.tree.Resource(number))
	return s.heldAt(l, number) > owed
}

// inUse is the amount of a resource that pods use and units hold at a level and below, without the victims.
func (s *Search[T]) inUse(l *capacity.Level, number int) int64 {
	return resources.SaturatingSub(l.Limit().InUse(s.tree.Resource(number)), s.gone.At(l, number))
}

// heldAt is the amount of a resource that units hold, or are promised, at a level and below. Amounts of victims do not
// count.
func (s *Search[T]) heldAt(l *capacity.Level, number int) int64 {
	return resources.SaturatingAdd(s.in.Index.Held().At(l, number), s.held.At(l, number))
}
