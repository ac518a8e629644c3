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

package rightful

import (
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
)

// Book knows what the levels of a tree are guaranteed.
type Book struct {
	tree  *capacity.Tree
	below map[*capacity.Level]*sums
}

// sums are over the levels below one, by the numbers of the tree, as of a version of the level.
type sums struct {
	version [2]int64
	// unused is the unused part of the guarantees of these levels. kept is the part that they do not give up: their
	// guarantees, or the use of pods outside of units if that is more.
	unused, kept []int64
}

// New returns the book of a tree.
func New(tree *capacity.Tree) *Book {
	return &Book{tree: tree, below: map[*capacity.Level]*sums{}}
}

// guaranteed is the amount that a level can use whatever others ask for: its min, or its demand if that is less. A
// limit that is a share is at least that, and at most the demand.
func (b *Book) guaranteed(l *capacity.Level, number int) int64 {
	least, _ := l.Owed(b.tree.Resource(number))
	return max(0, min(least, l.Limit().Bound(number)))
}

// unused is the part of what a level is guaranteed that is not in use.
func (b *Book) unused(l *capacity.Level, number int) int64 {
	inUse := l.Limit().InUse(b.tree.Resource(number))
	return max(0, resources.SaturatingSub(b.guaranteed(l, number), inUse))
}

// kept is what a level does not give up of a resource.
func (b *Book) kept(l *capacity.Level, number int) int64 {
	name := b.tree.Resource(number)
	used, _ := l.Spec().Used.Get(name)
	return max(b.guaranteed(l, number), resources.SaturatingSub(used, l.Limit().UsedByUnits(name)))
}

func (b *Book) sumsBelow(l *capacity.Level) *sums {
	s, known := b.below[l]
	if known && s.version == l.VersionBelow() {
		return s
	}
	children, width := b.tree.Below(l), len(b.tree.Need(resources.List{}, 0))
	s = &sums{version: l.VersionBelow(), unused: make([]int64, width), kept: make([]int64, width)}
	for _, child := range children {
		for number := range width {
			s.unused[number] = resources.SaturatingAdd(s.unused[number], b.unused(child, number))
			s.kept[number] = resources.SaturatingAdd(s.kept[number], b.kept(child, number))
		}
	}
	if !known && len(b.below) > b.tree.Len() {
		clear(b.below) // levels that are gone are among them
	}
	b.below[l] = s
	return s
}

// Rightful is the amount of a resource that a level can get while all others use their guarantees, and pods outside of
// units stay. It is the amount of its parent, less the parts that its siblings keep, and at most max. It is
// capacity.Unlimited if nothing bounds it.
func (b *Book) Rightful(l *capacity.Level, number int) int64 {
	amount := capacity.Unlimited
	var above *capacity.Level
	for _, at := range slices.Backward(b.tree.Route(l.Name()).Levels) {
		if above != nil && amount != capacity.Unlimited {
			siblings := resources.SaturatingSub(b.sumsBelow(above).kept[number], b.kept(at, number))
			amount = max(0, resources.SaturatingSub(amount, siblings))
		}
		amount, above = min(amount, b.most(at, number)), at
	}
	return amount
}

// most is what bounds a level, its share aside.
func (b *Book) most(l *capacity.Level, number int) int64 {
	if !IsShare(l.Limit(), b.tree, number) {
		return l.Limit().Bound(number)
	}
	if allowed, named := l.Spec().Max.Get(b.tree.Resource(number)); named {
		return allowed
	}
	return capacity.Unlimited
}

// Free is the free amount of a limit for a unit that goes beyond the shares on its path, without claims. It is the
// rightful amount of the level, less used amounts, and less the unused guarantees of levels that are not on the path.
func (b *Book) Free(lim *capacity.Limit, path []*capacity.Level, number int) int64 {
	l, room := lim.Level(), lim.FreeOf(number)
	if lim.IsMin() || lim.Bound(number) == capacity.Unlimited || b.tree.Resource(number) == resources.Jobs {
		return room
	}
	if IsShare(lim, b.tree, number) {
		rightful := b.Rightful(l, number)
		if rightful == capacity.Unlimited {
			return capacity.Unlimited
		}
		room = resources.SaturatingAdd(room, max(0, resources.SaturatingSub(rightful, lim.Bound(number))))
	}
	room = resources.SaturatingSub(room, b.sumsBelow(l).unused[number])
	for _, child := range path {
		if child.Spec().Parent == l.Name() {
			room = resources.SaturatingAdd(room, b.unused(child, number))
		}
	}
	return room
}

// IsShare says that the limit of a resource is a share, which follows what others ask for.
func IsShare(lim *capacity.Limit, tree *capacity.Tree, number int) bool {
	return !lim.IsMin() && lim.Level().Spec().Shared && lim.Bound(number) != capacity.Unlimited &&
		tree.Resource(number) != resources.Jobs
}

// mayExceed says whether a level may go beyond its share with one more unit: it uses less than its share, claims ahead
// included. A share can be too small for any unit, so a level that uses nothing may too.
func (b *Book) mayExceed(lim *capacity.Limit, number int, inUse int64) bool {
	if inUse < lim.Bound(number) {
		return true
	}
	terms := &lim.Level().Spec().Terms
	weight, _ := terms.Weight.Get(b.tree.Resource(number))
	return inUse <= 0 && (terms.Part != shares.Sharing || weight > 0)
}

// Promises says that a level promises a unit what it needs: with the unit its use is within its min.
func (b *Book) Promises(l *capacity.Level, need []int64) bool {
	for number, amount := range need {
		name := b.tree.Resource(number)
		if amount <= 0 || l.Limit().Bound(number) == capacity.Unlimited || name == resources.Jobs {
			continue
		}
		least, named := l.Owed(name)
		if !named || resources.SaturatingAdd(l.Limit().InUse(name), amount) > least {
			return false
		}
	}
	return true
}

// ShortOfMin is capacity.View.Short for a request that is not in the demand of the shares. If a limit is a share, the
// min of its level counts instead.
func (b *Book) ShortOfMin(view *capacity.View, p Part) bool {
	for number, amount := range p.Need {
		free, claimed := view.Free(p.Limit, number)
		if amount <= 0 {
			if p.Leaf && free < 0 {
				return true
			}
			continue
		}
		if IsShare(p.Limit, b.tree, number) {
			name := b.tree.Resource(number)
			least, _ := p.Limit.Level().Owed(name)
			free = resources.SaturatingSub(least, p.Limit.InUse(name))
		}
		if amount > resources.SaturatingSub(free, claimed) {
			return true
		}
	}
	return false
}
