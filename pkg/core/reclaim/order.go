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

package reclaim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Cost is what it costs to take a unit. Units are taken in the order of the fields, the least first.
type Cost struct {
	Priority int32
	// Evictions is how often others had it lose what it held before. What its user did to it does not count.
	Evictions int64
	// Lost is the work that is lost with it: of each resource, by the numbers of the tree, what it holds times the seconds
	// since its admission.
	Lost []float64
}

// compare with the lost work in the resource with this number, if there is one.
func (c *Cost) compare(o *Cost, number int) int {
	order := cmp.Or(cmp.Compare(c.Priority, o.Priority), cmp.Compare(c.Evictions, o.Evictions))
	if order != 0 || number < 0 || number >= min(len(c.Lost), len(o.Lost)) {
		return order
	}
	return cmp.Compare(c.Lost[number], o.Lost[number])
}

// work of a holder in so much time, by the numbers of the tree.
func (h *Holder[T]) work(d time.Duration) (of []float64) {
	for p := range h.Parts {
		for i, held := range h.Parts[p].Held {
			if i == len(of) {
				of = append(of, 0)
			}
			of[i] += float64(held) * d.Seconds()
		}
	}
	return of
}

// byLeaf has the holders of each leaf, but for the protected, in the order in which they are taken. A holder with parts
// in several leaves is with its first.
func (s *Search[T]) byLeaf(among []Holder[T]) (leaves [][]*Holder[T]) {
	index := map[*capacity.Level]int{}
	for i := range among {
		h := &among[i]
		if h.Protection != Unprotected {
			continue
		}
		leaf := h.Parts[0].leaf()
		at, known := index[leaf]
		if !known {
			at = len(leaves)
			index[leaf] = at
			leaves = append(leaves, nil)
		}
		leaves[at] = append(leaves[at], h)
	}
	scarce := slices.Index(s.short, true)
	for _, leaf := range leaves {
		slices.SortStableFunc(leaf, func(a, b *Holder[T]) int { return a.Cost.compare(&b.Cost, scarce) })
	}
	return leaves
}

// compare says which of two units is taken first: the one whose quota is farthest above its share of what is short. The
// work that is lost with a unit is counted in that resource as well.
func (s *Search[T]) compare(a, b *Holder[T]) int {
	scarce := slices.Index(s.short, true)
	return cmp.Or(cmp.Compare(s.excess(b, scarce), s.excess(a, scarce)), a.Cost.compare(&b.Cost, scarce))
}

// excess is what units of the quota of a unit hold of the resource with this number beyond what it may use while all
// others ask for theirs: its limit where that is a share, else its min. Of several quotas the greatest counts.
func (s *Search[T]) excess(h *Holder[T], i int) int64 {
	name, most := s.tree.Resource(i), int64(math.MinInt64)
	for p := range h.Parts {
		leaf := h.Parts[p].leaf()
		share, _ := leaf.Owed(name)
		if leaf.Spec().Shared {
			share, _ = leaf.Limit().List().Get(name)
		}
		most = max(most, resources.SaturatingSub(s.held.at(leaf, i), share))
	}
	return most
}
