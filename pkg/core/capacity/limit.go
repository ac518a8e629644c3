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

import (
	"maps"
	"math"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
)

// Unlimited is the free amount of a resource that a limit does not name.
const Unlimited int64 = math.MaxInt64

// Limit is one bound that units have to keep: the limit of a level, or its min.
type Limit struct {
	level *Level
	isMin bool
	// slot is its number among all limits of the tree.
	slot int
	// bound and free are vectors by the numbers of the tree, Unlimited where the limit does not name a resource. free is
	// bound - used - outstanding, and negative where more is in use than allowed.
	bound, free []int64
}

// Level whose limit this is.
func (lim *Limit) Level() *Level { return lim.level }

// IsMin says that only non-preemptible units have to keep it.
func (lim *Limit) IsMin() bool { return lim.isMin }

// Free is how much of a resource is free; false where there is no limit.
func (lim *Limit) Free(resource string) (int64, bool) {
	lim.level.tree.Refresh()
	i, ok := lim.level.tree.numbers.Of(resource)
	if !ok || lim.bound[i] == Unlimited {
		return 0, false
	}
	return lim.free[i], true
}

// Bound is the limit of a resource, Unlimited where there is none.
func (lim *Limit) Bound(number int) int64 { return lim.bound[number] }

// FreeOf is Bound less what is in use; negative where more is in use than allowed.
func (lim *Limit) FreeOf(number int) int64 { return lim.free[number] }

// Most is the greatest possible amount of a resource, whatever others ask for: max of the level, or its min, or its
// number of units. It is false if nothing bounds the resource.
func (lim *Limit) Most(number int) (int64, bool) {
	name := lim.level.tree.numbers.Names()[number]
	switch {
	case lim.isMin:
		return lim.level.spec.Min.Get(name)
	case name == resources.Jobs:
		return lim.level.spec.Limit.Get(name)
	default:
		return lim.level.spec.Max.Get(name)
	}
}

// List is the limit as it was observed or computed.
func (lim *Limit) List() resources.List {
	if lim.isMin {
		return lim.level.spec.Min
	}
	return lim.level.limitList()
}

// Used of it by assigned pods.
func (lim *Limit) Used() resources.List {
	if lim.isMin {
		return lim.level.spec.NonPreemptibleUsed
	}
	return lim.level.spec.Used
}

// Outstanding is what admitted units hold of a resource beyond their assigned pods.
func (lim *Limit) Outstanding(resource string) int64 {
	held := lim.level.tree.ledger.Read(lim.level.name)
	switch {
	case resource == resources.Jobs:
		return held.Units()
	case lim.isMin:
		return held.OutstandingNonPreemptible().Get(resource)
	default:
		return held.Outstanding().Get(resource)
	}
}

// UsedByUnits is the part of a resource that assigned pods of units use.
func (lim *Limit) UsedByUnits(resource string) int64 {
	units := lim.level.tree.ledger.Read(lim.level.name)
	if lim.isMin {
		return units.AssignedNonPreemptible().Get(resource)
	}
	return units.Assigned().Get(resource)
}

func (lim *Limit) refresh() {
	numbers := &lim.level.tree.numbers
	lim.bound = unlimited(lim.bound, numbers.Len())
	lim.free = unlimited(lim.free, numbers.Len())
	for _, it := range lim.List().Items() {
		i, _ := numbers.Of(it.Name)
		lim.bound[i], lim.free[i] = it.Amount, resources.SaturatingSub(it.Amount, lim.InUse(it.Name))
	}
}

// InUse is what pods use and units hold of a resource.
func (lim *Limit) InUse(resource string) int64 {
	used, _ := lim.Used().Get(resource)
	return resources.SaturatingAdd(used, lim.Outstanding(resource))
}

// unlimited is a vector of that length, in the memory of a former one where that is enough.
func unlimited(former []int64, length int) []int64 {
	if cap(former) < length {
		former = make([]int64, length)
	}
	former = former[:length]
	for i := range former {
		former[i] = Unlimited
	}
	return former
}

// Refresh brings all vectors up to date.
func (t *Tree) Refresh() {
	for _, name := range t.runtimes.settle(t) {
		t.markStale(t.levels[name])
	}
	if t.runtimes.shares.OwedMoved() {
		for _, l := range t.levels {
			l.versionBelow++
		}
	}
	if len(t.stale) == 0 {
		return
	}
	for _, l := range t.stale {
		l.stale = false
		if !l.exists {
			continue // nobody can be decided about below it
		}
		if l.spec.computed() {
			l.runtime = t.runtimes.limitOf(&l.spec)
		}
		l.limit.refresh()
		l.min.refresh()
		l.ofMin, l.ofLimit = shares.Dominant(l.spec.Used, t.ledger.Read(l.name).Outstanding(), l.spec.Min, l.limitList())
	}
	clear(t.stale)
	t.stale = t.stale[:0]
}

// LimitsMoved says, once, whether a Refresh found that a computed limit had changed.
func (t *Tree) LimitsMoved() bool {
	moved := t.runtimes.moved
	t.runtimes.moved = false
	return moved
}

// Moved returns, once and in order, the levels whose limit may have changed.
func (t *Tree) Moved() []string {
	t.Refresh()
	names := slices.Sorted(maps.Keys(t.runtimes.news))
	clear(t.runtimes.news)
	return names
}

func (l *Level) limitList() resources.List {
	if l.spec.computed() {
		return l.runtime
	}
	return l.spec.Limit
}

// LimitOf returns the limit of a level, and the bound for pods outside of units. That bound is at least min: the
// request of such a pod is not in the runtime yet, and up to min it will be.
func (t *Tree) LimitOf(name string) (limit, promised resources.List) {
	t.Refresh()
	l, ok := t.levels[name]
	if !ok {
		return resources.List{}, resources.List{}
	}
	limit = l.limitList()
	if !l.spec.computed() {
		return limit, limit
	}
	return limit, limit.Max(t.runtimes.shares.Promised(name))
}

// Owed is what the min of a level promises of a resource now: min, scaled down where there is less than all mins
// together. It is false if min does not name the resource.
func (l *Level) Owed(resource string) (amount int64, named bool) {
	least, named := l.spec.Min.Get(resource)
	if scaled, known := l.tree.runtimes.shares.Owed(l.name, resource); named && known {
		return scaled, true
	}
	return least, named
}

// Shares are the dominant shares of the quota: the greatest (used + outstanding) / min, and / limit, over the
// resources. A quota that uses its min has 1 of it, and one that uses more, or a resource without min, has not more
// than that.
func (l *Level) Shares() (ofMin, ofLimit float64) { return l.ofMin, l.ofLimit }
