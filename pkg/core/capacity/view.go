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

// View has the free amounts of all limits of a tree, for a caller that tries out a decision. Claims and returns in a
// View change neither the tree nor another View. It is valid from Begin until the tree changes.
type View struct {
	tree *Tree
	// lends: it is of what is free for units that borrow.
	lends bool
	round int64
	rooms []room // by the slots of the limits
}

// room is what a view has of a limit, as of a round.
type room struct {
	round int64
	// free is without claims, and left is after them. Both are the same slice while there are no claims.
	free, left []int64
	// own and spare are the memory of those two where the view owns them, to be used again.
	own, spare []int64
	// shut: nothing is lent here.
	shut bool
}

// NewView is of what is free within the limits.
func NewView(t *Tree) *View {
	v := &View{tree: t}
	v.Begin()
	return v
}

// Begin has the view be what the tree is now.
func (v *View) Begin() {
	v.tree.Refresh()
	v.round++
	if missing := v.tree.slots.made - len(v.rooms); missing > 0 {
		v.rooms = append(v.rooms, make([]room, missing)...)
	}
}

func (v *View) at(lim *Limit) *room {
	if r := &v.rooms[lim.slot]; r.round == v.round {
		return r // all but the first look at a limit in a round: this much is inlined
	}
	return v.renew(lim)
}

// renew begins a round at a limit.
func (v *View) renew(lim *Limit) *room {
	r := &v.rooms[lim.slot]
	if r.round, r.shut, r.free = v.round, false, lim.free; v.lends {
		r.own = lim.level.lent(r.own)
		r.free = r.own
	}
	r.left = r.free
	return r
}

// Short says whether a limit has too little for a unit that needs so much, and the number of the first such resource.
// claimed: but for the claims ahead there would be enough. Where only claims make it short of one resource and there is
// too little of another without them, it is the other that counts.
//
// The leaf counts every resource that it limits, as ElasticQuota does when it places pods; other levels only what is
// asked for.
func (v *View) Short(lim *Limit, need []int64, leaf bool) (number int, claimed, short bool) {
	r := v.at(lim)
	left := r.left[:len(need)]
	for i, n := range need {
		if n <= left[i] {
			continue // a resource that it does not ask for is not overspent either
		}
		switch {
		case n > r.free[i] && (n > 0 || leaf):
			return i, false, true
		case n > 0 && !short:
			number, claimed, short = i, true, true
		}
	}
	return number, claimed, short
}

// Lacks says whether a limit has less than this of a resource, claims aside.
func (v *View) Lacks(lim *Limit, number int, amount int64) bool {
	return amount > v.at(lim).free[number]
}

// Free is what is free of a resource of a limit, and how much of that is claimed.
func (v *View) Free(lim *Limit, number int) (free, claimed int64) {
	r := v.at(lim)
	return r.free[number], resources.SaturatingSub(r.free[number], r.left[number])
}

// Claim subtracts the request of a unit from the amount that is left to those behind it.
func (v *View) Claim(lim *Limit, need []int64) {
	r := v.at(lim)
	if len(need) == 0 {
		return
	}
	if !r.claimed() {
		r.spare = append(r.spare[:0], r.free...)
		r.left = r.spare
	}
	change(r.left, need, resources.SaturatingSub)
}

// Unclaim puts back what was claimed.
func (v *View) Unclaim(lim *Limit, need []int64) {
	change(v.at(lim).left, need, resources.SaturatingAdd)
}

// Return has what units use or hold of a limit be free, as if they were gone. Amounts below zero are taken back.
func (v *View) Return(lim *Limit, amounts []int64) {
	r := v.at(lim)
	if len(amounts) == 0 {
		return
	}
	claimed := r.claimed()
	r.own = append(r.own[:0], r.free...)
	r.free = r.own
	change(r.free, amounts, resources.SaturatingAdd)
	if claimed {
		change(r.left, amounts, resources.SaturatingAdd)
	} else {
		r.left = r.free
	}
}

func (r *room) claimed() bool { return &r.left[0] != &r.free[0] }

// change adds to a vector, or takes away, where there is a limit.
func change(vector, by []int64, how func(a, b int64) int64) {
	for i, n := range by {
		if vector[i] != Unlimited {
			vector[i] = how(vector[i], n)
		}
	}
}

// Lending is a view of free amounts for a unit that goes beyond the limits. If the limit is a share, the level lends up
// to max. Used, held, the requests of pods outside of pending units, and the part that quotas without lending keep are
// subtracted. Claims are subtracted as well. Other pending units are ignored.
type Lending struct{ view *View }

// NewLending is of what a tree lends.
func NewLending(t *Tree) Lending {
	n := Lending{&View{tree: t, lends: true}}
	n.Begin()
	return n
}

// Begin has it be what the tree lends now.
func (n Lending) Begin() { n.view.Begin() }

func (n Lending) at(l *Level) *room { return n.view.at(&l.limit) }

// lent is what is free of a level for units that borrow, in the memory of a former vector.
func (l *Level) lent(memory []int64) []int64 {
	numbers, asked := &l.tree.numbers, l.Asked()
	free := unlimited(memory, numbers.Len())
	for _, it := range l.limitList().Items() {
		i, _ := numbers.Of(it.Name)
		most := it.Amount
		if allowed, named := l.spec.Max.Get(it.Name); named && l.spec.Shared {
			most = allowed
		}
		inUse := resources.SaturatingSub(l.limit.bound[i], l.limit.free[i])
		free[i] = resources.SaturatingSub(most, max(inUse, asked[i]))
	}
	return free
}

// Shut has nothing lent at a level.
func (n Lending) Shut(l *Level) { n.at(l).shut = true }

// IsShut says whether nothing is lent at a level.
func (n Lending) IsShut(l *Level) bool { return n.at(l).shut }

// Claim subtracts the request of a unit from the lent amounts of every level of its path.
func (n Lending) Claim(r *Route, need []int64) {
	for _, l := range r.Levels {
		n.view.Claim(&l.limit, need)
	}
}

// Allows says whether a unit may borrow what it needs.
func (n Lending) Allows(r *Route, need []int64) bool {
	if !r.Shared {
		return false
	}
	for i, l := range r.Levels {
		if n.ShortAt(l, need, i == 0) || n.IsShut(l) {
			return false
		}
	}
	return true
}

// ShortAt says whether too little is lent at a level for a unit together with what is claimed.
func (n Lending) ShortAt(l *Level, need []int64, leaf bool) bool {
	_, _, short := n.view.Short(&l.limit, need, leaf)
	return short
}

// Obstacle is what keeps a unit from borrowing: too little of a resource at a level, claims aside.
type Obstacle struct {
	Level    *Level
	Resource string
	Missing  int64
}

// Obstacle is the first level of a path where too little is lent even without claims; false if there is none.
func (n Lending) Obstacle(r *Route, need []int64) (Obstacle, bool) {
	for depth, l := range r.Levels {
		free := n.at(l).free
		for i, amount := range need {
			if amount > free[i] && (amount > 0 || depth == 0) {
				return Obstacle{l, n.view.tree.Resource(i), resources.SaturatingSub(amount, free[i])}, true
			}
		}
	}
	return Obstacle{}, false
}

// slots numbers the limits of a tree. The number of one that is gone is given again.
type slots struct {
	made int
	free []int
}

func (s *slots) take() int {
	if last := len(s.free) - 1; last >= 0 {
		slot := s.free[last]
		s.free = s.free[:last]
		return slot
	}
	s.made++
	return s.made - 1
}

func (s *slots) release(l *Level) { s.free = append(s.free, l.limit.slot, l.min.slot) }
