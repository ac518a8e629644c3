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

package ordered

import "strings"

// Names counts how often each of them was added, and has them in order.
type Names struct {
	count map[string]int
	order *Tree[string]
}

// NewNames returns one without names.
func NewNames() Names { return Names{count: map[string]int{}, order: NewTree(strings.Compare)} }

// Add counts a name once more.
func (s *Names) Add(name string) {
	if s.count[name]++; s.count[name] == 1 {
		s.order.Insert(name)
	}
}

// Remove counts a name once less; it is there until it was removed as often as added.
func (s *Names) Remove(name string) {
	if s.count[name]--; s.count[name] == 0 {
		delete(s.count, name)
		s.order.Delete(name)
	}
}

// Has says whether a name is there.
func (s *Names) Has(name string) bool { return s.count[name] > 0 }

// Set makes a name be there or not, for names that are there once.
func (s *Names) Set(name string, there bool) {
	switch {
	case there && !s.Has(name):
		s.Add(name)
	case !there && s.Has(name):
		s.Remove(name)
	}
}

// Page is up to n names behind one of them, and how many follow.
func (s *Names) Page(behind string, n int) (page []string, rest int) {
	if n <= 0 {
		return nil, s.order.Len()
	}
	s.order.WalkFrom(func(name string) bool { return behind != "" && name <= behind }, func(name string) bool {
		page = append(page, name)
		return len(page) < n
	})
	if len(page) > 0 {
		rest = s.order.Len() - s.order.Rank(page[len(page)-1]) - 1
	}
	return page, rest
}
