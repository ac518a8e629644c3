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

// Lending is a view of what is free of each level for a unit that goes beyond the limits. Up to max where the limit is
// a share, beside all that is used, held, asked for by pods outside of waiting units or kept by quotas that lend
// nothing, as if nobody else waited; less what is claimed.
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

// Claim takes what a unit needs out of what is lent on every level of its path.
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

// ShortAt says whether too little is lent at a level for a unit beside what is claimed.
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

// Obstacle is the first level of a path where too little is lent even beside no claims; false if there is none.
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
