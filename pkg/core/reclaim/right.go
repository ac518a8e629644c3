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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// right is one by which a request may take what others hold.
type right[T any] struct {
	// covers says that it may take a holder when those are gone that were taken, and that some of it helps.
	covers func(h *Holder[T]) bool
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
	return right[T]{lacks: func(int) bool { return false }, covers: func(h *Holder[T]) bool {
		if h.Priority >= s.Priority && s.Policy.Reclaim != queue.VictimsAny {
			return false
		}
		return slices.ContainsFunc(h.Parts, func(p Part) bool { return s.mayReclaim(&p) })
	}}
}

func (s *Search[T]) mayReclaim(p *Part) bool {
	mine, its := branches(s.Ask.Route.Levels, p.Route.Levels)
	return len(mine) > 0 && len(its) > 0 && !slices.ContainsFunc(mine, s.exceedsMin) &&
		!slices.ContainsFunc(its, func(l *capacity.Level) bool { return !s.over(l, p) })
}

// preempts is the right to what units of lower priority hold in its queue and quota.
func (s *Search[T]) preempts() right[T] {
	return right[T]{lacks: s.raises, covers: func(h *Holder[T]) bool {
		return h.Priority < s.Priority && slices.ContainsFunc(h.Parts, func(p Part) bool {
			return p.Queue == s.Queue && p.leaf() == s.Ask.Leaf() && s.helps(&p)
		})
	}}
}

// helps says that some of what is short is given back.
func (s *Search[T]) helps(p *Part) bool {
	for i, held := range p.Held {
		if held > 0 && s.short[i] {
			return true
		}
	}
	return false
}

// raises says that a level would have more of a resource than it has now, and than its min, with the request in place
// of what was taken. The top has no min.
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

// Entitled says whether a request may have a right to anything: its queue lets it take from units of lower priority
// there, or from others and its quota is within its min with it.
func (t *Taker) Entitled(tree *capacity.Tree) bool {
	return t.Policy.WithinQueue != queue.VictimsNone ||
		t.Policy.Reclaim != queue.VictimsNone && t.withinMin(tree, nil)
}

// withinMin says that the quota is within its min with the request and others.
func (t *Taker) withinMin(tree *capacity.Tree, others []Taker) bool {
	s := &Search[struct{}]{
		Taker: *t, tree: tree, short: make([]bool, len(t.Ask.Need)), gone: amounts{}, held: amounts{},
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

// exceedsMin says that a level would be above its min with the request, or promises nothing of what is short. Above the
// quota of the request only what is short counts: other quotas there may have borrowed another resource, which takes
// nothing away from the promise.
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

// over says that units hold more than the min of a level of a resource that is short, and that some of it is given
// back. Pods outside of units are what the level has borrowed first: no unit goes for them that is within min.
func (s *Search[T]) over(l *capacity.Level, p *Part) bool {
	for i, held := range p.Held {
		owed, _ := l.Owed(s.tree.Resource(i))
		if held > 0 && s.short[i] && s.held.at(l, i) > owed {
			return true
		}
	}
	return false
}

// inUse is what pods use and units hold of a resource at a level and below, less what was taken.
func (s *Search[T]) inUse(l *capacity.Level, number int) int64 {
	return resources.SaturatingSub(l.Limit().InUse(s.tree.Resource(number)), s.gone.at(l, number))
}
