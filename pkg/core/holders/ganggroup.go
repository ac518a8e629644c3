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

package holders

import (
	"cmp"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// gangGroup has the units of one that hold quota and may be preempted with it.
//
// Its core is the unit of each gang that was admitted first. A gang group is admitted with one unit of each gang, so
// these are preempted together. A unit that was admitted when its gangs were there already is preempted by itself. If
// it were part of the core, a group within its min would lose that for the quota that such a unit has borrowed.
type gangGroup[T comparable] struct {
	byGang map[string]*ordered.Tree[*entry[T]] // in the order of their admission
	core   []*entry[T]                         // in the order of their keys
	// holder is that of the core; nil without one.
	holder *Holder[T]
}

// compareInGang orders units by their admission. One whose admission is in flight is the last.
func compareInGang[T comparable](a, b *entry[T]) int {
	one, other := a.hold.Admitted, b.hold.Admitted
	if one.IsZero() || other.IsZero() {
		one, other = other, one
	}
	return cmp.Or(one.Compare(other), compareKeys(a, b))
}

// add takes a unit in, remove takes it out.
func (g *gangGroup[T]) add(e *entry[T]) {
	for gang := range strings.SplitSeq(e.hold.Gangs, ",") {
		if g.byGang[gang] == nil {
			g.byGang[gang] = ordered.NewTree(compareInGang[T])
		}
		g.byGang[gang].Insert(e)
	}
}

func (g *gangGroup[T]) remove(e *entry[T]) {
	for gang := range strings.SplitSeq(e.hold.Gangs, ",") {
		if g.byGang[gang].Delete(e); g.byGang[gang].Len() == 0 {
			delete(g.byGang, gang)
		}
	}
}

// pick finds the core. Nothing is decided about units that are left out.
func (g *gangGroup[T]) pick(leftOut func(*entry[T]) bool) (core []*entry[T]) {
	for _, units := range g.byGang {
		if first, _ := units.Min(); !leftOut(first) && !slices.Contains(core, first) {
			core = append(core, first)
		}
	}
	slices.SortFunc(core, compareKeys[T])
	return core
}
