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

// Lending is one round of lending: what is free of each level for a unit that goes beyond the limits. Up to max where
// the limit is a share, beside all that is used, held, asked for by pods outside of waiting units or kept by quotas
// that lend nothing, as if nobody else waited; less what is claimed in the round. It is valid until the tree changes or
// another round begins.
type Lending struct {
	tree  *Tree
	round int64
}

// Lend begins a round.
func (t *Tree) Lend() Lending {
	t.Refresh()
	t.rounds++
	return Lending{tree: t, round: t.rounds}
}

// at is the limit of units that borrow at a level.
func (n Lending) at(l *Level) *Limit {
	if l.round != n.round {
		l.round, l.shut = n.round, false
		l.refreshBeyond()
	}
	return &l.beyond
}

func (l *Level) refreshBeyond() {
	numbers, asked := &l.tree.numbers, l.Asked()
	l.beyond.free = unlimited(l.beyond.free, numbers.len())
	for _, it := range l.limitList().Items() {
		i, most := numbers.of[it.Name], it.Amount
		if allowed, named := l.spec.Max.Get(it.Name); named && l.spec.Shared {
			most = allowed
		}
		inUse := resources.SaturatingSub(l.limit.bound[i], l.limit.free[i])
		l.beyond.free[i] = resources.SaturatingSub(most, max(inUse, asked[i]))
	}
	l.beyond.left = l.beyond.free
}

// Shut has nothing lent at a level in this round.
func (n Lending) Shut(l *Level) {
	n.at(l)
	l.shut = true
}

// Claim takes what a unit needs out of what is lent on every level of its path.
func (n Lending) Claim(r *Route, need []int64) {
	for _, l := range r.Levels {
		n.at(l).Claim(need)
	}
}

// Allows says whether a unit may borrow what it needs.
func (n Lending) Allows(r *Route, need []int64) bool {
	if !r.Shared {
		return false
	}
	for i, l := range r.Levels {
		if _, short := n.at(l).Short(need, i == 0); short || l.shut {
			return false
		}
	}
	return true
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
				return Obstacle{l, n.tree.Resource(i), resources.SaturatingSub(amount, free[i])}, true
			}
		}
	}
	return Obstacle{}, false
}

// ShortAt says whether too little is lent at a level for a unit beside what is claimed.
func (n Lending) ShortAt(l *Level, need []int64, leaf bool) bool {
	_, short := n.at(l).Short(need, leaf)
	return short
}

// IsShut says whether nothing is lent at a level.
func (n Lending) IsShut(l *Level) bool {
	n.at(l)
	return l.shut
}
