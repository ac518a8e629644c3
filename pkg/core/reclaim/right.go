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

// mayTake says that the request has a right to what a unit holds, and that some of it helps.
func (s *Search[T]) mayTake(h *Holder[T]) bool {
	lower := h.Priority < s.Priority
	if s.inQueue {
		return lower && h.Queue == s.Queue && h.leaf() == s.Ask.Leaf() && s.helps(h)
	}
	if !lower && s.Policy.Reclaim != queue.VictimsAny {
		return false
	}
	mine, its := branches(s.Ask.Route.Levels, h.Route.Levels)
	return len(mine) > 0 && len(its) > 0 && !slices.ContainsFunc(mine, s.exceedsMin) &&
		!slices.ContainsFunc(its, func(l *capacity.Level) bool { return !s.over(l, h) })
}

// helps says that a unit holds some of what is short.
func (s *Search[T]) helps(h *Holder[T]) bool {
	for i, held := range h.Held {
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
	s := &Search[struct{}]{Taker: *t, tree: tree, short: make([]bool, len(t.Ask.Need))}
	return t.Policy.WithinQueue != queue.VictimsNone ||
		t.Policy.Reclaim != queue.VictimsNone && !s.exceedsMin(t.Ask.Leaf())
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

// exceedsMin says that a level would be above its min with the request, or promises nothing of what is short.
func (s *Search[T]) exceedsMin(l *capacity.Level) bool {
	for i, n := range s.Ask.Need {
		owed, named := l.Owed(s.tree.Resource(i))
		if n > 0 && (!named && s.short[i] || named && resources.SaturatingAdd(s.inUse(l, i), n) > owed) {
			return true
		}
	}
	return false
}

// over says that a level has more than its min of a resource that is short, and that a unit holds some of it.
func (s *Search[T]) over(l *capacity.Level, h *Holder[T]) bool {
	for i, held := range h.Held {
		owed, _ := l.Owed(s.tree.Resource(i))
		if held > 0 && s.short[i] && s.inUse(l, i) > owed {
			return true
		}
	}
	return false
}

// inUse is what pods use and units hold of a resource at a level and below, less what was taken.
func (s *Search[T]) inUse(l *capacity.Level, number int) int64 {
	inUse := l.Limit().InUse(s.tree.Resource(number))
	if gone := s.gone[l]; gone != nil {
		inUse = resources.SaturatingSub(inUse, gone[number])
	}
	return inUse
}
