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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// mayTake says that the request has a right to what a unit holds. Then some of that helps: below the common ancestor
// the request is within min, so it is short at levels that both share, of something that the unit holds.
func (s *Search[T]) mayTake(h *Holder[T]) bool {
	mine, its := branches(s.ask.Route.Levels, h.Route.Levels)
	return len(mine) > 0 && len(its) > 0 && !slices.ContainsFunc(mine, s.exceedsMin) &&
		!slices.ContainsFunc(its, func(l *capacity.Level) bool { return !s.over(l, h) })
}

// WithinMin says whether the quota of a request is within its min with it. Without that it has no right to anything.
func WithinMin(tree *capacity.Tree, ask *decide.Ask) bool {
	s := &Search[struct{}]{tree: tree, ask: ask, short: make([]bool, len(ask.Need))}
	return !s.exceedsMin(ask.Leaf())
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
	for i, n := range s.ask.Need {
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
