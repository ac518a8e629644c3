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

package backlog

import "github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"

// share is a bounded part of a line for units of one kind. The first of them, in the order of the line, are inside, and
// the others outside. A unit that enters or leaves changes the side of at most one other.
type share[U Unit, N any] struct {
	line *Line[U, N]
	size int
	// Each unit inside is before each one outside.
	inside, outside *ordered.Tree[sortKey[U]]
}

func newShare[U Unit, N any](l *Line[U, N], size int) *share[U, N] {
	return &share[U, N]{line: l, size: size, inside: ordered.NewTree(l.compare), outside: ordered.NewTree(l.compare)}
}

// len is the number of units on both sides.
func (s *share[U, N]) len() int { return s.inside.Len() + s.outside.Len() }

// enter says whether a unit is inside. A unit on no side is added first. Until settle is called, more units than the
// size can be inside.
func (s *share[U, N]) enter(u U) (inside bool) {
	at := s.line.sortKey(u)
	if s.inside.Contains(at) {
		return true
	}
	if s.outside.Contains(at) {
		return false
	}
	last, some := s.inside.Max()
	room := s.inside.Len() < s.size && s.outside.Len() == 0
	if room || (some && s.line.compare(at, last) < 0) {
		s.inside.Insert(at)
		return true
	}
	s.outside.Insert(at)
	return false
}

// remove forgets a unit, if it is there. Until settle is called there may be fewer inside than could be.
func (s *share[U, N]) remove(u U) {
	at := s.line.sortKey(u)
	if !s.inside.Delete(at) {
		s.outside.Delete(at)
	}
}

// settled says that as many are inside as there may be.
func (s *share[U, N]) settled() bool { return s.inside.Len() == min(s.size, s.len()) }

// settle has as many inside as there may be, and returns the units that have changed sides.
func (s *share[U, N]) settle() (moved []U) {
	for s.inside.Len() > s.size {
		last, _ := s.inside.Max()
		s.inside.Delete(last)
		s.outside.Insert(last)
		moved = append(moved, last.unit)
	}
	for s.inside.Len() < s.size && s.outside.Len() > 0 {
		first, _ := s.outside.Min()
		s.outside.Delete(first)
		s.inside.Insert(first)
		moved = append(moved, first.unit)
	}
	return moved
}
