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

package admission

import (
	"fmt"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// level is one quota: its last observation, and what waits for it.
type level struct {
	name string
	// known: it exists now. The observation of a quota that went stays, because what is held there keeps
	// counting on its remembered path.
	known bool
	spec  Quota

	main, min gate
	// beyond is what a unit has to pass instead of main to borrow.
	beyond gate
	// behind are the groups that claims here keep from borrowing.
	behind behind
	// eased: in State.eased.
	eased bool
	// asked is what the quota asks of its parent if nobody waits, askedBelow the sum of that over its children. askedOf is
	// the level whose sum asked is in.
	asked      resources.List
	askedBelow resources.Sum
	askedOf    *level
	// ofMin and ofMax are the shares of QueueRank, while shared says so.
	ofMin, ofMax float64
	shared       bool

	groups map[*group]struct{}
	// heads are the queues whose first eligible unit draws on this quota.
	heads map[*unitLine]struct{}

	// path leads from here to the top, as of State.tree; broken says what is missing on it.
	path   []*level
	broken string
	pathOf int64
}

// level finds or makes the level of a name.
func (s *State) level(name string) *level {
	if l, ok := s.levels[name]; ok {
		return l
	}
	l := &level{
		name: name, pathOf: -1,
		groups: map[*group]struct{}{}, heads: map[*unitLine]struct{}{}, behind: newBehind(),
	}
	l.main.init(s, l, gateLimit)
	l.min.init(s, l, gateMin)
	l.beyond.init(s, l, gateBeyond)
	s.levels[name] = l
	s.tree++
	return l
}

// pruneLevel forgets a level that does not exist and that nothing refers to.
func (s *State) pruneLevel(l *level) {
	for l != nil && s.levels[l.name] == l &&
		!l.known && len(l.groups) == 0 && len(s.below[l.name]) == 0 && !s.ledger.Holds(l.name) {
		parent := s.levels[l.spec.Parent]
		s.setParent(l, "")
		delete(s.levels, l.name)
		s.withdraw(l)
		s.tree++
		l = parent
	}
}

func (s *State) setParent(l *level, parent string) {
	if l.spec.Parent == parent {
		return
	}
	if old := l.spec.Parent; old != "" {
		delete(s.below[old], l)
		if len(s.below[old]) == 0 {
			delete(s.below, old)
		}
	}
	if parent != "" {
		if s.below[parent] == nil {
			s.below[parent] = map[*level]struct{}{}
		}
		s.below[parent][l] = struct{}{}
	}
	l.spec.Parent = parent
	s.ledger.SetParent(l.name, parent)
	s.tree++
}

// pathTo lists the levels from the leaf to the top. broken says why units of the leaf cannot be decided: a
// level that is missing cannot be checked, so nothing is admitted below it.
func (s *State) pathTo(leaf *level) (path []*level, broken string) {
	if leaf.pathOf == s.tree {
		return leaf.path, leaf.broken
	}
	leaf.path, leaf.broken, leaf.pathOf = nil, "", s.tree
	for l := leaf; ; {
		if !l.known && leaf.broken == "" {
			leaf.broken = missing(leaf, l.name)
		}
		leaf.path = append(leaf.path, l)
		parent := l.spec.Parent
		if parent == "" {
			break
		}
		next, ok := s.levels[parent]
		if !ok {
			leaf.broken = missing(leaf, parent)
			break
		}
		if among(leaf.path, next) {
			leaf.broken = fmt.Sprintf("quota %q: its parents form a circle at %q", leaf.name, parent)
			break
		}
		l = next
	}
	return leaf.path, leaf.broken
}

func missing(leaf *level, name string) string {
	if leaf.name == name {
		return fmt.Sprintf("quota %q does not exist", name)
	}
	return fmt.Sprintf("quota %q: its parent %q does not exist", leaf.name, name)
}

func among(levels []*level, l *level) bool {
	for _, other := range levels {
		if other == l {
			return true
		}
	}
	return false
}

// SetQuota takes an observation; it wakes what may fit now. Re-parenting moves what is outstanding.
// An observation that changes nothing wakes nothing.
func (s *State) SetQuota(now time.Time, in Quota) {
	l := s.level(in.Name)
	if l.known && sameQuota(l.spec, in) {
		return
	}
	moved := l.spec.Parent != in.Parent
	structural := moved || !l.known || l.spec.Shared != in.Shared
	appears := !l.known
	remeasured := structural || !l.spec.Max.Same(in.Max) || !l.spec.Min.Same(in.Min)
	affected := map[*level]struct{}{}
	if remeasured {
		s.leavesBelow(l, affected)
	}
	var formerPath []string
	// Known from here on, so that nothing below takes it for forgotten.
	l.known = true
	if moved {
		formerPath = s.ledger.Path(l.name)
		former := s.levels[l.spec.Parent]
		s.setParent(l, in.Parent)
		s.pruneLevel(former)
	}
	lowered := lowers(l.spec.Limit, in.Limit)
	l.spec = in
	if structural {
		s.tree++
		s.leavesBelow(l, affected)
	}
	s.refreshLevel(l)
	if moved {
		s.refreshNamed(append(formerPath, s.ledger.Path(l.name)...))
	}
	if appears {
		s.adopt(l)
	}
	s.refreshAsked(l)
	// What fits within the limit may be another thing though as much is free.
	s.wakeBorrowersUp(l)
	if lowered {
		s.wakeBorrowersBelow(l)
	}
	s.restructure(now, affected, structural)
}

// DeleteQuota parks the units that wait for the quota. What is held there stays held, and keeps counting on
// the path that the quota had, until it is released or the quota comes back.
func (s *State) DeleteQuota(now time.Time, name string) {
	l, ok := s.levels[name]
	if !ok || !l.known {
		return
	}
	affected := map[*level]struct{}{}
	s.leavesBelow(l, affected)
	l.known = false
	l.spec.Requested, l.spec.KeepsMin = resources.List{}, false
	s.refreshAsked(l)
	s.tree++
	s.restructure(now, affected, true)
	if formerPath := s.ledger.Path(l.name); s.circular(l) {
		// Its parents lead nowhere, and it would keep itself alive.
		former := s.levels[l.spec.Parent]
		s.setParent(l, "")
		s.refreshNamed(formerPath)
		s.pruneLevel(former)
	}
	s.pruneLevel(l)
}

// circular says whether the parents of a level lead back to it.
func (s *State) circular(l *level) bool {
	for _, name := range s.ledger.Path(l.name) {
		if at, ok := s.levels[name]; ok && at.spec.Parent == l.name {
			return true
		}
	}
	return false
}

// leavesBelow adds the levels with groups whose path leads through a level.
func (s *State) leavesBelow(l *level, to map[*level]struct{}) {
	s.visitBelow(l, func(at *level) {
		if len(at.groups) > 0 {
			to[at] = struct{}{}
		}
	})
}

// visitBelow visits a level and all that are below it, each once: parents may form a circle.
func (s *State) visitBelow(l *level, do func(*level)) {
	seen := map[*level]struct{}{}
	var visit func(*level)
	visit = func(at *level) {
		if _, again := seen[at]; again {
			return
		}
		seen[at] = struct{}{}
		do(at)
		for below := range s.below[at.name] {
			visit(below)
		}
	}
	visit(l)
}

// restructure takes the groups of the leaves again after max or min changed above them or, if structural, their path.
func (s *State) restructure(now time.Time, leaves map[*level]struct{}, structural bool) {
	for leaf := range leaves {
		for g := range leaf.groups {
			s.repark(now, g)
			if structural {
				s.markDirty(g)
			}
		}
	}
}

// refreshPath recomputes the free amounts of a level and of its ancestors after the ledger changed.
func (s *State) refreshPath(l *level) {
	path, broken := s.pathTo(l)
	if broken != "" {
		// The ledger knows the rest of it.
		s.refreshNamed(s.ledger.Path(l.name))
		return
	}
	for _, at := range path {
		s.refreshLevel(at)
	}
}

func (s *State) refreshNamed(names []string) {
	for _, name := range names {
		if at, ok := s.levels[name]; ok {
			s.refreshLevel(at)
		}
	}
}

// refreshLevel recomputes what is free at a level and wakes what that concerns.
func (s *State) refreshLevel(l *level) {
	if !l.known {
		return
	}
	l.shared = false
	held := s.ledger.Read(l.name)
	s.refreshGate(&l.main, held)
	s.refreshGate(&l.min, held)
	s.refreshGate(&l.beyond, held)
	for q := range l.heads {
		s.touch(q)
	}
}

// shares is the use of the quota for the order of queues.
func (s *State) shares(l *level) (ofMin, ofMax float64) {
	if !l.shared {
		l.ofMin, l.ofMax = dominantShares(l.spec.Used, s.ledger.Read(l.name).Outstanding(), l.spec.Min, l.spec.Max)
		l.shared = true
	}
	return l.ofMin, l.ofMax
}

// lowers says whether something within the one limit may exceed the other.
func lowers(from, to resources.List) bool {
	return slices.ContainsFunc(to.Items(), func(it resources.Item) bool {
		amount, limited := from.Get(it.Name)
		return !limited || it.Amount < amount
	})
}

func sameQuota(a, b Quota) bool {
	return a.Name == b.Name && a.Parent == b.Parent && a.Limit.Same(b.Limit) && a.Max.Same(b.Max) &&
		a.Min.Same(b.Min) && a.Used.Same(b.Used) && a.NonPreemptibleUsed.Same(b.NonPreemptibleUsed) &&
		a.Shared == b.Shared && a.KeepsMin == b.KeepsMin && a.Requested.Same(b.Requested)
}
