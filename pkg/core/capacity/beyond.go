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

package capacity

import "github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"

// guarantees are sums over the levels below one, by the numbers of the tree.
type guarantees struct {
	known bool
	// unused is what the levels are guaranteed and do not use. kept is what they do not give up: what they are
	// guaranteed, or what pods outside of units use, where that is more.
	unused, kept []int64
}

// guaranteed is what a level may use of a resource whatever others ask for: its min, or what it asks for if that is
// less. A limit that is a share is at least that, and never more than what the level asks for.
func (l *Level) guaranteed(number int) int64 {
	least, _ := l.Owed(l.tree.Resource(number))
	return max(0, min(least, l.limit.bound[number]))
}

// unused is the part of what a level is guaranteed that is not in use.
func (l *Level) unused(number int) int64 {
	inUse := l.limit.InUse(l.tree.Resource(number))
	return max(0, resources.SaturatingSub(l.guaranteed(number), inUse))
}

// kept is what a level does not give up of a resource.
func (l *Level) kept(number int) int64 {
	name := l.tree.Resource(number)
	used, _ := l.spec.Used.Get(name)
	return max(l.guaranteed(number), resources.SaturatingSub(used, l.limit.UsedByUnits(name)))
}

// guarantees of the levels below.
func (l *Level) guarantees() *guarantees {
	g, width := &l.below, l.tree.numbers.Len()
	if g.known {
		return g
	}
	g.known, g.unused, g.kept = true, make([]int64, width), make([]int64, width)
	for _, child := range l.tree.childrenOf(l) {
		if !child.exists {
			continue
		}
		for number := range width {
			g.unused[number] = resources.SaturatingAdd(g.unused[number], child.unused(number))
			g.kept[number] = resources.SaturatingAdd(g.kept[number], child.kept(number))
		}
	}
	return g
}

// forgetGuarantees notes that what a level is guaranteed, or uses, may have changed.
func (t *Tree) forgetGuarantees(l *Level) {
	if parent, ok := t.levels[l.spec.Parent]; ok {
		parent.below.known = false
	}
}

// Rightful is how much a level can get of a resource while all others use what they are guaranteed, and pods outside of
// units stay: what its parent can get, less what its siblings keep, and not more than max. It is Unlimited where nothing
// bounds it.
func (l *Level) Rightful(number int) int64 {
	levels := l.tree.Route(l.name).Levels
	amount := Unlimited
	for i := len(levels) - 1; i >= 0; i-- {
		at := levels[i]
		if i < len(levels)-1 && amount != Unlimited {
			siblings := resources.SaturatingSub(levels[i+1].guarantees().kept[number], at.kept(number))
			amount = max(0, resources.SaturatingSub(amount, siblings))
		}
		amount = min(amount, at.most(number))
	}
	return amount
}

// most is what bounds a level, its share aside.
func (l *Level) most(number int) int64 {
	if !l.limit.IsShare(number) {
		return l.limit.bound[number]
	}
	if allowed, named := l.spec.Max.Get(l.tree.Resource(number)); named {
		return allowed
	}
	return Unlimited
}

// Beyond is what is free of a limit for a unit that goes beyond the shares on its path, claims aside: what its level can
// rightfully get, less what is in use, and less what the levels that are not on the path are guaranteed and do not use.
func (lim *Limit) Beyond(path []*Level, number int) int64 {
	l := lim.level
	if lim.isMin || lim.bound[number] == Unlimited || l.tree.Resource(number) == resources.Jobs {
		return lim.free[number]
	}
	room := lim.free[number]
	if lim.IsShare(number) {
		rightful := l.Rightful(number)
		if rightful == Unlimited {
			return Unlimited
		}
		more := max(0, resources.SaturatingSub(rightful, lim.bound[number]))
		room = resources.SaturatingAdd(room, more)
	}
	room = resources.SaturatingSub(room, l.guarantees().unused[number])
	for _, child := range path {
		if child.spec.Parent == l.name {
			room = resources.SaturatingAdd(room, child.unused(number))
		}
	}
	return room
}

// MayExceed says that a level that uses so much of a resource, claims ahead included, may go beyond its share with one
// more unit: it uses less than its share. A share may be too small for any unit, so a level that uses nothing may as well.
func (lim *Limit) MayExceed(number int, inUse int64) bool {
	spec := &lim.level.spec
	if inUse < lim.bound[number] {
		return true
	}
	weight, _ := spec.Terms.Weight.Get(lim.level.tree.Resource(number))
	return inUse <= 0 && (!spec.computed() || weight > 0)
}

// IsShare says that the limit of a resource is a share, which follows what others ask for.
func (lim *Limit) IsShare(number int) bool {
	return !lim.isMin && lim.level.spec.Shared && lim.bound[number] != Unlimited && lim.level.tree.Resource(number) != resources.Jobs
}

// Promises says that a level promises a unit what it needs: with the unit it uses no more than its min.
func (l *Level) Promises(need []int64) bool {
	for number, amount := range need {
		if amount <= 0 || l.limit.bound[number] == Unlimited {
			continue
		}
		name := l.tree.Resource(number)
		least, named := l.Owed(name)
		if name != resources.Jobs && (!named || resources.SaturatingAdd(l.limit.InUse(name), amount) > least) {
			return false
		}
	}
	return true
}
