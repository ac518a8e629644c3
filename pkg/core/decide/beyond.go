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

package decide

import (
	"iter"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// A share orders; it is no wall.
//
// If the limit of a quota is its runtime, that is a share of what there is, and follows what others ask for. A job is
// admitted whole or not at all, so a share may be too small for it as long as others have jobs. Therefore a head may go
// beyond the shares on its path if all of this holds:
//
//   - Each level that goes beyond its share uses less than that now. So each quota goes beyond its share by one unit at
//     most, and its use over time stays within one unit of its share.
//   - On each level up to the total the head fits beside all that is in use, and beside what other quotas are guaranteed:
//     the min of each, or what it asks for if that is less (capacity.Limit.Beyond).
//
// A blocking head that does not fit yet claims like any other (I6). Units of other queues that their quotas promise to
// them pass such a claim: nothing that others are guaranteed is taken. All that others use beyond that ends with the jobs
// that run, and is not filled again. So the head starts after the longest of those jobs. A head that is larger than what
// its quota can rightfully get (capacity.Level.Rightful) claims nothing above its quota.

// part is what is asked of one limit.
type part struct {
	limit *capacity.Limit
	need  []int64
	// leaf: something that is asked draws on the level of the limit itself.
	leaf bool
}

// parts of a request, in the order of the limits.
func (a *Ask) parts(need []int64) iter.Seq[part] {
	return func(yield func(part) bool) {
		for _, lim := range a.Limits {
			if !yield(part{lim, need, lim.Level() == a.Leaf()}) {
				return
			}
		}
	}
}

// parts of what all asks of the bundle request together.
func (g *Bundle) parts() iter.Seq[part] {
	if !g.together() {
		return g.Asks[0].parts(g.Asks[0].Need)
	}
	return slices.Values(g.sums)
}

// path has the levels on which the bundle draws.
func (g *Bundle) path() []*capacity.Level {
	if !g.together() {
		return g.Asks[0].Route.Levels
	}
	var levels []*capacity.Level
	for i := range g.sums {
		if lim := g.sums[i].limit; !lim.IsMin() {
			levels = append(levels, lim.Level())
		}
	}
	return levels
}

// reach says how far a request may go beyond the shares on its path.
type reach struct {
	// exceeds: the request is larger than what is left of a share.
	exceeds bool
	// saturated are the parts, by their bits, whose levels have to use less than their share first.
	saturated uint64
	// tooLarge is the first level that can never rightfully get so much of a resource; nil if there is none.
	tooLarge *capacity.Limit
	number   int
}

// TooLarge says that the request is larger than a share, and than what its level can rightfully get.
func (a *Ask) TooLarge() bool {
	for p := range a.parts(a.Need) {
		for number, amount := range p.need {
			if p.limit.IsShare(number) && amount > p.limit.Bound(number) && amount > p.limit.Level().Rightful(number) {
				return true
			}
		}
	}
	return false
}

// beyond says that the request may go beyond shares now, if the levels have enough.
func (r *reach) beyond() bool { return r.exceeds && r.saturated == 0 && r.tooLarge == nil }

// reachOf compares a request with the shares on its path.
func reachOf(view *capacity.View, parts iter.Seq[part]) (r reach) {
	bit := uint64(1)
	for p := range parts {
		for number, amount := range p.need {
			if !p.limit.IsShare(number) {
				continue
			}
			free, claimed := view.Free(p.limit, number)
			if amount <= free && (amount > 0 || free >= 0 || !p.leaf) || amount <= 0 && !p.leaf {
				continue
			}
			r.exceeds = true
			share := p.limit.Bound(number)
			inUse := resources.SaturatingAdd(resources.SaturatingSub(share, free), claimed)
			if !p.limit.MayExceed(number, inUse) {
				r.saturated |= bit
			}
			if r.tooLarge == nil && amount > share && amount > p.limit.Level().Rightful(number) {
				r.tooLarge, r.number = p.limit, number
			}
		}
		bit <<= 1
	}
	return r
}

// compareBeyond compares a request with limits where it may go beyond shares.
func (v *verdict) compareBeyond(view *capacity.View, parts iter.Seq[part], path []*capacity.Level) {
	for p := range parts {
		number, claimed, short := view.ShortBeyond(p.limit, p.need, p.leaf, path)
		v.note(p.limit, number, claimed, short)
	}
}
