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
	"iter"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Part is what is asked of one limit.
type Part struct {
	Limit *capacity.Limit
	Need  []int64
	// Own is what a unit that asks for more holds at the level; nil for nothing. A level goes beyond its share by one unit
	// at most, however often that grows.
	Own []int64
	// Leaf: something that is asked draws on the level of the limit itself.
	Leaf bool
}

func (p *Part) own(number int) int64 {
	if number < len(p.Own) {
		return p.Own[number]
	}
	return 0
}

// Reach says how far a request may go beyond the shares on its path.
type Reach struct {
	// Exceeds: the request is larger than what is left of a share.
	Exceeds bool
	// TooLarge is the first level that can never rightfully get so much of the resource Number; nil if there is none.
	TooLarge *capacity.Limit
	Number   int
	// saturated are the parts whose levels have to use less than their share first.
	saturated set
}

// set of parts, by their numbers. A gang group can have more parts than bits: those from the last bit on share it, so
// that none is lost.
type set uint64

const lastBit = 63

func (s set) with(part int) set { return s | 1<<min(part, lastBit) }

func (s set) has(part int) bool { return s&(1<<min(part, lastBit)) != 0 }

// Beyond says that the request may go beyond shares now, if the levels have enough.
func (r *Reach) Beyond() bool { return r.Exceeds && r.saturated == 0 && r.TooLarge == nil }

// Saturated says that the level of a part has to use less than its share first.
func (r *Reach) Saturated(part int) bool { return r.saturated.has(part) }

// Reach compares a request with the shares on its path.
func (b *Book) Reach(view *capacity.View, parts iter.Seq[Part]) (r Reach) {
	part := 0
	for p := range parts {
		for number, amount := range p.Need {
			if !IsShare(p.Limit, b.tree, number) {
				continue
			}
			free, claimed := view.Free(p.Limit, number)
			if amount > 0 && amount <= free || amount <= 0 && (free >= 0 || !p.Leaf) {
				continue
			}
			r.Exceeds = true
			inUse := resources.SaturatingSub(p.Limit.Bound(number), resources.SaturatingSub(free, claimed))
			if !b.mayExceed(p.Limit, number, resources.SaturatingSub(inUse, p.own(number))) {
				r.saturated = r.saturated.with(part)
			}
			if r.TooLarge == nil && b.exceedsRight(&p, number) {
				r.TooLarge, r.Number = p.Limit, number
			}
		}
		part++
	}
	return r
}

// TooLarge says that a request is larger than a share, and than what its level can rightfully get.
func (b *Book) TooLarge(parts iter.Seq[Part]) bool {
	for p := range parts {
		for number := range p.Need {
			if b.exceedsRight(&p, number) {
				return true
			}
		}
	}
	return false
}

func (b *Book) exceedsRight(p *Part, number int) bool {
	amount := resources.SaturatingAdd(p.Need[number], p.own(number))
	return p.Need[number] > 0 && amount > p.Limit.Bound(number) && IsShare(p.Limit, b.tree, number) &&
		amount > b.Rightful(p.Limit.Level(), number)
}

// Short is capacity.View.Short for a unit that goes beyond the shares on its path.
func (b *Book) Short(view *capacity.View, p Part, path []*capacity.Level) (number int, claimed, short bool) {
	for i, n := range p.Need {
		free, taken := view.Free(p.Limit, i)
		if n <= 0 {
			if p.Leaf && resources.SaturatingAdd(free, p.own(i)) < 0 {
				return i, false, true
			}
			continue
		}
		beyond := b.Free(p.Limit, path, i)
		switch {
		case n > beyond:
			return i, false, true
		case !short && n > resources.SaturatingSub(beyond, taken):
			number, claimed, short = i, true, true
		}
	}
	return number, claimed, short
}
