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

package accounts

import (
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Accounts of all units. They are not safe for concurrent use.
type Accounts struct {
	tree    *capacity.Tree
	byPair  map[Pair]*Counts
	byQueue map[string]*Counts
	// counted are the pairs where the counts may have changed since they were asked for.
	counted map[Pair]struct{}
	// moved are the quotas where the demand may have changed, told what was told of them last.
	moved map[string]struct{}
	told  map[string]resources.List
}

// New returns empty accounts, which keep their sums in this tree.
func New(tree *capacity.Tree) *Accounts {
	return &Accounts{
		tree: tree, byPair: map[Pair]*Counts{}, byQueue: map[string]*Counts{}, counted: map[Pair]struct{}{},
		moved: map[string]struct{}{}, told: map[string]resources.List{},
	}
}

// Replace replaces the contribution of a unit.
func (a *Accounts) Replace(former *Contribution, next Contribution) {
	if next.same(former) {
		return
	}
	a.add(former, -1)
	*former = next
	a.add(former, 1)
}

// add adds a contribution, or takes it out.
func (a *Accounts) add(c *Contribution, by int) {
	as := c.As
	if c.Pool != nil {
		c.Pool.units += by
		change(&c.Pool.demand, c.Asks, by)
		as = c.Pool.as()
	}
	a.count(c.Of, as, by)
	if !c.Asks.IsZero() && (c.Pool == nil || as == Pending) {
		a.changeDemand(c.Of.Quota, func(sum *resources.Sum) { change(sum, c.Asks, by) })
	}
	holds := c.Pool == nil && !c.Asks.IsZero()
	if !holds && c.Less.IsZero() {
		return
	}
	a.tree.Ask(c.Of.Quota, func(sum *resources.Sum) {
		if holds {
			change(sum, c.Asks, by)
		}
		change(sum, c.Less, -by)
	})
}

// SetOpen opens or closes a pool of this pair. Only while it is open the quota has to have what its units ask for.
func (a *Accounts) SetOpen(p *Pool, of Pair, open bool) {
	if p.open == open {
		return
	}
	former := p.as()
	p.open = open
	if p.units == 0 {
		return
	}
	a.count(of, former, -p.units)
	a.count(of, p.as(), p.units)
	a.changeDemand(of.Quota, func(sum *resources.Sum) {
		if open {
			sum.AddSum(&p.demand)
		} else {
			sum.SubSum(&p.demand)
		}
	})
}

func change(sum *resources.Sum, list resources.List, by int) {
	if by > 0 {
		sum.Add(list)
	} else {
		sum.Sub(list)
	}
}

func (a *Accounts) changeDemand(quota string, change func(*resources.Sum)) {
	a.tree.Want(quota, change)
	a.moved[quota] = struct{}{}
}

// Demand of a leaf quota is what its waiting and admitted units ask for beyond their pods: Koordinator's request does
// not have that yet. It costs O(1).
func (a *Accounts) Demand(quota string) resources.List { return a.tree.Wanted(quota) }

// DirtyDemand returns, once, the quotas whose Demand changed since the last call, sorted.
func (a *Accounts) DirtyDemand() []string {
	var out []string
	for quota := range a.moved {
		if demand := a.Demand(quota); !demand.Same(a.told[quota]) {
			out = append(out, quota)
			if a.told[quota] = demand; demand.Len() == 0 {
				delete(a.told, quota)
			}
		}
	}
	clear(a.moved)
	slices.Sort(out)
	return out
}
