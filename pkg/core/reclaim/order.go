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
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Cost is what it costs to take a unit. Units are taken in the order of the fields, the least first.
type Cost struct {
	Priority int32
	// Evictions is how often others had it lose what it held before. What its user did to it does not count.
	Evictions int64
	// Lost is the work that is lost with it, in resource-seconds.
	Lost float64
}

func (c *Cost) compare(o *Cost) int {
	return cmp.Or(cmp.Compare(c.Priority, o.Priority), cmp.Compare(c.Evictions, o.Evictions), cmp.Compare(c.Lost, o.Lost))
}

// Sort joins those of a gang group, and has those come first that cost the least. Those of one cost stay in their
// order. A unit that nothing but its own end gives back stays by itself: the rest of its gang group may be taken.
func Sort[T any](units []Holder[T]) (holders []Holder[T]) {
	gangs := map[string]int{} // where those of a gang group are
	for i := range units {
		h := &units[i]
		joins := h.Gang != "" && !h.Protection.stays()
		if at, known := gangs[h.Gang]; known && joins {
			holders[at].Join(h)
			continue
		}
		if joins {
			gangs[h.Gang] = len(holders)
		}
		holders = append(holders, *h)
	}
	slices.SortStableFunc(holders, func(a, b Holder[T]) int { return a.Cost.compare(&b.Cost) })
	return holders
}

// byLeaf has the holders of each leaf, but for the protected, in the order given. A holder with parts in several
// leaves is with its first.
func byLeaf[T any](among []Holder[T]) (leaves [][]*Holder[T]) {
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
	return leaves
}

// compare says which of two units is taken first: the one whose quota is farthest above its share of what is short.
func (s *Search[T]) compare(a, b *Holder[T]) int {
	return cmp.Or(cmp.Compare(s.excess(b), s.excess(a)), a.Cost.compare(&b.Cost))
}

// excess is what units of the quota of a unit hold, of the first resource that is short, beyond what it may use while
// all others ask for theirs: its limit where that is a share, else its min. Of several quotas the greatest counts.
func (s *Search[T]) excess(h *Holder[T]) int64 {
	i := slices.Index(s.short, true)
	most := s.excessAt(h.Parts[0].leaf(), i)
	for p := range h.Parts[1:] {
		most = max(most, s.excessAt(h.Parts[1:][p].leaf(), i))
	}
	return most
}

func (s *Search[T]) excessAt(leaf *capacity.Level, i int) int64 {
	name := s.tree.Resource(i)
	share, _ := leaf.Owed(name)
	if leaf.Spec().Shared {
		share, _ = leaf.Limit().List().Get(name)
	}
	return resources.SaturatingSub(s.held.at(leaf, i), share)
}
