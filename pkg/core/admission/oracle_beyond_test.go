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
	"math"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// How far a unit may go beyond the shares on its path, by plain sums over all quotas.

const unbounded = math.MaxInt64

// bound is the limit of a level; unbounded where it names none.
func (o *oracle) boundAt(level, k string) int64 {
	if amount, named := o.quotas[level].Limit.Get(k); named {
		return amount
	}
	return unbounded
}

func (o *oracle) inUseAt(level, k string) int64 {
	used, _ := o.quotas[level].Used.Get(k)
	return used + o.outstanding(level, k, false)
}

// guaranteed is the min of a level, or its limit if that is less.
func (o *oracle) guaranteed(level, k string) int64 {
	least, _ := o.quotas[level].Min.Get(k)
	return max(0, min(least, o.boundAt(level, k)))
}

// kept is the amount that a level does not give up: its guarantee, or the use of pods outside of units.
func (o *oracle) kept(level, k string) int64 {
	others, _ := o.quotas[level].Used.Get(k)
	for _, pods := range o.pods {
		for _, p := range pods {
			if p.Assigned && slices.Contains(o.path(p.Quota), level) {
				amount, _ := p.Request.Get(k)
				others -= amount
			}
		}
	}
	return max(o.guaranteed(level, k), others)
}

// siblings are the existing levels below one.
func (o *oracle) below(level string) (names []string) {
	for name, q := range o.quotas {
		if q.Parent == level && !slices.Contains(o.path(level), name) {
			names = append(names, name)
		}
	}
	return names
}

// rightful is the amount that a level can get while all others use their guarantees.
func (o *oracle) rightful(level, k string) int64 {
	spec := o.quotas[level]
	amount := int64(unbounded)
	if spec.Parent != "" {
		if amount = o.rightful(spec.Parent, k); amount != unbounded {
			for _, other := range o.below(spec.Parent) {
				if other != level {
					amount -= o.kept(other, k)
				}
			}
			amount = max(0, amount)
		}
	}
	most := o.boundAt(level, k)
	if allowed, named := spec.Max.Get(k); spec.Shared && most != unbounded {
		if most = unbounded; named {
			most = allowed
		}
	}
	return min(amount, most)
}

// wide is what is free at a level for those of these paths that go beyond their shares, claims aside.
func (o *oracle) wide(level, k string, along map[string]bool) int64 {
	bound := o.boundAt(level, k)
	if bound == unbounded {
		return unbounded
	}
	if k == resources.Jobs {
		return bound - o.inUseAt(level, k)
	}
	if o.quotas[level].Shared {
		if bound = max(bound, o.rightful(level, k)); bound == unbounded {
			return unbounded
		}
	}
	room := bound - o.inUseAt(level, k)
	for _, other := range o.below(level) {
		if !along[other] {
			room -= max(0, o.guaranteed(other, k)-o.inUseAt(other, k))
		}
	}
	return room
}

// oracleReach says whether units may go beyond the shares on their paths.
type oracleReach struct {
	exceeds, tooLarge bool
	// saturated are the levels that have to be used less before.
	saturated map[string]bool
}

func (r oracleReach) beyond() bool { return r.exceeds && !r.tooLarge && len(r.saturated) == 0 }

// reach of units that are admitted together, or of one alone. levels are those on their paths, in order.
func (o *oracle) reach(met []oracleAsk, levels []string, claims []oracleClaim) (r oracleReach) {
	r.saturated = map[string]bool{}
	for _, level := range levels {
		spec := o.quotas[level]
		for _, k := range []string{"cpu", "gpu"} {
			bound := o.boundAt(level, k)
			if !spec.Shared || bound == unbounded {
				continue
			}
			need, _, leaf := o.sumAt(met, level, false, k)
			inUse := o.inUseAt(level, k)
			if need > 0 && inUse+need <= bound || need == 0 && (!leaf || inUse <= bound) {
				continue
			}
			r.exceeds = true
			own := o.ownAt(met, level, k)
			claimed := o.claimed(level, k, claims) - own
			if inUse+claimed >= bound && inUse+claimed > 0 {
				r.saturated[level] = true
			}
			r.tooLarge = r.tooLarge || o.exceedsRight(level, k, need, own)
		}
	}
	return r
}

// tooLarge says that a unit is larger than a share, and than what the level can rightfully get.
func (o *oracle) tooLarge(u oracleAsk) bool {
	for _, level := range o.path(u.Quota) {
		for _, k := range []string{"cpu", "gpu"} {
			if o.exceedsRight(level, k, oracleNeed(u, k), o.ownAt([]oracleAsk{u}, level, k)) {
				return true
			}
		}
	}
	return false
}

// tooLargeTogether says the same of units that are admitted together.
func (o *oracle) tooLargeTogether(met []oracleAsk, levels []string) bool {
	return slices.ContainsFunc(levels, func(level string) bool {
		return slices.ContainsFunc([]string{"cpu", "gpu"}, func(k string) bool {
			need, _, _ := o.sumAt(met, level, false, k)
			return o.exceedsRight(level, k, need, 0)
		})
	})
}

// exceedsRight says that a request, with the held amount, is more than a share, and more than its level can rightfully
// get.
func (o *oracle) exceedsRight(level, kind string, need, own int64) bool {
	return o.quotas[level].Shared && need > 0 && need+own > o.boundAt(level, kind) && need+own > o.rightful(level, kind)
}

// ownAt is what one that asks for more holds already at a level on its path.
func (o *oracle) ownAt(met []oracleAsk, level, kind string) int64 {
	if len(met) > 1 || !met[0].grows || !slices.Contains(o.path(met[0].Quota), level) {
		return 0
	}
	total, _ := met[0].total.Get(kind)
	return total - oracleNeed(met[0], kind)
}

// promises says that each level below the top promises a unit what it asks for.
func (o *oracle) promises(u oracleAsk) bool {
	path := o.path(u.Quota)
	for _, level := range path[:len(path)-1] {
		for _, k := range []string{"cpu", "gpu"} {
			need := oracleNeed(u, k)
			if need <= 0 || o.boundAt(level, k) == unbounded {
				continue
			}
			if least, named := o.quotas[level].Min.Get(k); !named || o.inUseAt(level, k)+need > least {
				return false
			}
		}
	}
	return true
}

// binds says whether a claim keeps a unit from what is claimed at a level.
func (o *oracle) binds(c oracleClaim, u oracleAsk, level string) bool {
	shared := slices.ContainsFunc(o.path(c.u.Quota), func(level string) bool { return o.quotas[level].Shared })
	return !shared || c.u.Queue == u.Queue || level == u.Quota || !o.promises(u)
}

// behind says that one of these claims is of a unit of the same queue and quota that blocks.
func (o *oracle) behind(claims []oracleClaim, u oracleAsk) bool {
	return slices.ContainsFunc(claims, func(c oracleClaim) bool {
		return c.u.Queue == u.Queue && c.u.Quota == u.Quota && o.blocks(c.queue, c.u)
	})
}

// binding are the claims that bind a unit at a level: all of them, behind one that blocks.
func (o *oracle) binding(claims []oracleClaim, u oracleAsk, level string) []oracleClaim {
	if o.behind(claims, u) {
		return claims
	}
	return slices.DeleteFunc(slices.Clone(claims), func(c oracleClaim) bool { return !o.binds(c, u, level) })
}

// pathsOf are the levels on the paths of units, without order but for a single one.
func (o *oracle) pathsOf(met []oracleAsk) (levels []string, along map[string]bool) {
	along = map[string]bool{}
	for _, m := range met {
		for _, level := range o.path(m.Quota) {
			if !along[level] {
				levels = append(levels, level)
			}
			along[level] = true
		}
	}
	return levels, along
}

// shortBeyond lists the gates where units do not fit that may go beyond their shares.
func (o *oracle) shortBeyond(met []oracleAsk, claims []oracleClaim) (short map[string]bool, missing map[string]int64) {
	short, missing = map[string]bool{}, map[string]int64{}
	levels, along := o.pathsOf(met)
	compare := func(gate, level string, ofMin bool, used resources.List, free func(string) int64, names []resources.Item) {
		for _, it := range names {
			need, some, leaf := o.sumAt(met, level, ofMin, it.Name)
			room, claimed := free(it.Name), o.claimed(gate, it.Name, claims)
			switch {
			case !some || room == unbounded:
			case need > 0 && need > room-claimed:
				short[gate], missing[gate+" "+it.Name] = true, need+claimed-room
			case leaf && need == 0:
				inUse, _ := used.Get(it.Name)
				free := it.Amount - inUse - o.outstanding(level, it.Name, ofMin)
				if free+o.ownAt(met, level, it.Name) < 0 {
					short[gate], missing[gate+" "+it.Name] = true, -free
				}
			}
		}
	}
	for _, level := range levels {
		spec := o.quotas[level]
		compare(level, level, false, spec.Used, func(k string) int64 { return o.wide(level, k, along) }, spec.Limit.Items())
		compare(level+"/min", level, true, spec.NonPreemptibleUsed, func(k string) int64 {
			used, _ := spec.NonPreemptibleUsed.Get(k)
			least, _ := spec.Min.Get(k)
			return least - used - o.outstanding(level, k, true)
		}, spec.Min.Items())
	}
	return short, missing
}
