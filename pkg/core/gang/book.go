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

package gang

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Book knows the gang groups of all units. A unit of none takes no memory. It is not safe for concurrent use.
type Book[U comparable] struct {
	spec   func(U) *unit.Unit
	groups map[string]*group[U]
	// counted are the units that count for a fact, with the key that each was counted by.
	counted [facts]map[U]key
}

// fact about units that is counted by gang.
type fact int

const (
	present fact = iota // its unit is not over
	holding             // its unit holds quota
	cleared             // its unit is released, or has passed its own checks
	facts
)

type group[U comparable] struct {
	counts [facts]map[string]int
	// waiting are units in line, by gang, the first made first.
	waiting map[string]*ordered.Tree[U]
	// checked are reserved units that have passed their checks, and may go once those of other gangs have.
	checked map[U]struct{}
}

// key names a gang group, and the gangs of a unit; zero for a unit in none.
type key struct{ group, gangs string }

// GroupOf names the gang group of a unit; empty if it is in none.
func GroupOf(in *unit.Unit) string {
	if in.GangGroup == "" {
		return ""
	}
	return in.Namespace() + " " + in.GangGroup
}

// NewBook returns an empty book. spec says what a unit is at the moment.
func NewBook[U comparable](spec func(U) *unit.Unit) *Book[U] {
	b := &Book[U]{spec: spec, groups: map[string]*group[U]{}}
	for f := range b.counted {
		b.counted[f] = map[U]key{}
	}
	return b
}

// Len is the number of gang groups that are known, and of facts about their units.
func (b *Book[U]) Len() int {
	n := len(b.groups)
	for f := range b.counted {
		n += len(b.counted[f])
	}
	return n
}

// SetPresent takes in a unit as it is now, or that it is over. It returns the gang group that the unit was in before,
// and says whether that or the present one may be decided otherwise now.
func (b *Book[U]) SetPresent(u U, is bool) (former string, news bool) {
	before, now := b.counted[present][u], b.keyIf(u, is)
	if before == now {
		return before.group, false
	}
	lost := b.set(u, cleared, key{}) // until it is known whether it is cleared as it is now
	return before.group, b.set(u, present, now) || lost
}

// SetHolding says whether a unit holds quota. That is news if no other of its gang does.
func (b *Book[U]) SetHolding(u U, is bool) (news bool) { return b.set(u, holding, b.keyIf(u, is)) }

// SetCleared says whether a unit was let go, or may be as far as its own checks say. That is news if no other of its
// gang is like that.
func (b *Book[U]) SetCleared(u U, is bool) (news bool) { return b.set(u, cleared, b.keyIf(u, is)) }

func (b *Book[U]) keyIf(u U, is bool) key {
	in := b.spec(u)
	if !is || in.GangGroup == "" {
		return key{}
	}
	return key{GroupOf(in), in.Gangs}
}

// set counts a unit by its key of now. That is news if a gang has its first unit, or none any more.
func (b *Book[U]) set(u U, f fact, now key) (news bool) {
	before := b.counted[f][u]
	if before == now {
		return false
	}
	if b.counted[f][u] = now; now == (key{}) {
		delete(b.counted[f], u)
	}
	gone, come := b.count(before, f, -1), b.count(now, f, 1)
	return gone || come
}

func (b *Book[U]) count(k key, f fact, by int) (news bool) {
	if k.group == "" {
		return false
	}
	counts := b.group(k.group).counts[f]
	for _, gang := range gangsOf(k.gangs) {
		before := counts[gang]
		if counts[gang] += by; counts[gang] == 0 {
			delete(counts, gang)
		}
		news = news || (before == 0) != (counts[gang] == 0)
	}
	b.prune(k.group)
	return news
}

// SetChecked says whether a unit is reserved and has passed its own checks.
func (b *Book[U]) SetChecked(u U, is bool) {
	name := GroupOf(b.spec(u))
	if name == "" {
		return
	}
	if is {
		b.group(name).checked[u] = struct{}{}
	} else if g := b.groups[name]; g != nil {
		delete(g.checked, u)
		b.prune(name)
	}
}

// Checked are the reserved units of a gang group that have passed their checks, by their keys.
func (b *Book[U]) Checked(group string) []U {
	if g := b.groups[group]; g != nil {
		return slices.SortedFunc(maps.Keys(g.checked), b.compareKeys)
	}
	return nil
}

// MayGo says whether no gang keeps back a unit that has passed its own checks.
func (b *Book[U]) MayGo(u U) bool {
	in := b.spec(u)
	g := b.groups[GroupOf(in)]
	if g == nil {
		return true
	}
	own := gangsOf(in.Gangs)
	for _, gang := range gangsOf(in.GangGroup) {
		over := g.counts[present][gang] == 0 && in.Attempts > 1
		if g.counts[cleared][gang] == 0 && !over && !slices.Contains(own, gang) {
			return false
		}
	}
	return true
}

// Join takes a unit of a gang group that comes into line, Part one that leaves it.
func (b *Book[U]) Join(u U) {
	in := b.spec(u)
	g := b.group(GroupOf(in))
	for _, gang := range gangsOf(in.Gangs) {
		if g.waiting[gang] == nil {
			g.waiting[gang] = ordered.NewTree(b.madeBefore)
		}
		g.waiting[gang].Insert(u)
	}
}

// Part takes out a unit that Join took. Its gangs and what says when it was made must be the same.
func (b *Book[U]) Part(u U) {
	in := b.spec(u)
	name := GroupOf(in)
	g := b.group(name)
	for _, gang := range gangsOf(in.Gangs) {
		if tree := g.waiting[gang]; tree != nil {
			if tree.Delete(u); tree.Len() == 0 {
				delete(g.waiting, gang)
			}
		}
	}
	b.prune(name)
}

// Members are the units that are decided together with a unit in line, ordered by their keys. There are none if its
// gang group is not whole. together is false if the unit is decided alone, because all gangs hold quota.
func (b *Book[U]) Members(u U) (members []U, together bool) {
	in := b.spec(u)
	g := b.group(GroupOf(in))
	kept, gone := false, false
	for _, gang := range gangsOf(in.GangGroup) {
		if g.counts[holding][gang] > 0 {
			continue
		}
		tree := g.waiting[gang]
		if tree == nil {
			there := g.counts[present][gang] > 0
			kept, gone = kept || there, gone || !there
			continue
		}
		if first, _ := tree.Min(); !slices.Contains(members, first) {
			members = append(members, first)
		}
	}
	isNew := func(u U) bool { return b.spec(u).Attempts == 0 }
	if kept || gone && (isNew(u) || slices.ContainsFunc(members, isNew)) {
		return nil, true
	}
	slices.SortFunc(members, b.compareKeys)
	return members, len(members) > 0
}

func (b *Book[U]) group(name string) *group[U] {
	g, ok := b.groups[name]
	if !ok {
		g = &group[U]{waiting: map[string]*ordered.Tree[U]{}, checked: map[U]struct{}{}}
		for f := range g.counts {
			g.counts[f] = map[string]int{}
		}
		b.groups[name] = g
	}
	return g
}

// prune forgets a gang group without units.
func (b *Book[U]) prune(name string) {
	g := b.groups[name]
	n := len(g.waiting) + len(g.checked)
	for f := range g.counts {
		n += len(g.counts[f])
	}
	if n == 0 {
		delete(b.groups, name)
	}
}

func (b *Book[U]) compareKeys(one, other U) int {
	return strings.Compare(b.spec(one).Key, b.spec(other).Key)
}

func (b *Book[U]) madeBefore(one, other U) int {
	a, o := b.spec(one), b.spec(other)
	return cmp.Or(a.Created.Compare(o.Created), strings.Compare(a.UID, o.UID), strings.Compare(a.Key, o.Key))
}

func gangsOf(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
