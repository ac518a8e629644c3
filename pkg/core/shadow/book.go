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

// Package shadow computes how much more, or less, would be in use if observed units were queued.
//
// The queue decides on an observed unit and never gates its pods. So an admitted observed unit holds nothing, and a
// pending one can have pods on nodes. Decisions about observed units use corrected amounts:
//
//   - An admitted observed unit uses its whole request, whatever its pods do.
//   - A pending observed unit uses nothing, whatever its pods do.
//
// Managed units must never be decided by these amounts.
package shadow

import (
	"cmp"
	"maps"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Book has what each observed unit would free in its quota if it were queued. It is not safe for concurrent use. The
// zero value has no unit.
type Book struct {
	units map[string]entry
	sums  map[place]*sum
}

// place is a quota, for units that draw on its limit alone or on its min as well.
type place struct {
	quota          string
	nonPreemptible bool
}

func comparePlaces(a, b place) int {
	if c := cmp.Compare(a.quota, b.quota); c != 0 || a.nonPreemptible == b.nonPreemptible {
		return c
	}
	if b.nonPreemptible {
		return -1
	}
	return 1
}

type entry struct {
	place
	frees resources.List
	jobs  int64
}

type sum struct {
	frees resources.Sum
	jobs  int64
	units int
}

// Waits has a unit be in line, with pods on nodes that use this much.
func (b *Book) Waits(key, quota string, nonPreemptible bool, used resources.List) {
	b.set(key, entry{place: place{quota, nonPreemptible}, frees: used})
}

// Holds has a unit be admitted with this request.
func (b *Book) Holds(key, quota string, nonPreemptible bool, request, used resources.List) {
	missing := request.Sub(used).Floor0()
	b.set(key, entry{place: place{quota, nonPreemptible}, frees: resources.List{}.Sub(missing), jobs: -1})
}

// Forget a unit, if it is known.
func (b *Book) Forget(key string) {
	if former, known := b.units[key]; known {
		b.add(&former, -1)
		delete(b.units, key)
	}
}

func (b *Book) set(key string, e entry) {
	b.Forget(key)
	if b.units == nil {
		b.units, b.sums = map[string]entry{}, map[place]*sum{}
	}
	b.units[key] = e
	b.add(&e, 1)
}

func (b *Book) add(e *entry, by int) {
	s, known := b.sums[e.place]
	if !known {
		s = &sum{}
		b.sums[e.place] = s
	}
	s.units += by
	s.jobs += int64(by) * e.jobs
	if by > 0 {
		s.frees.Add(e.frees)
	} else {
		s.frees.Sub(e.frees)
	}
	if s.units == 0 {
		delete(b.sums, e.place)
	}
}

// Cast is the shadow on the limits of the tree, as it is now. It is empty if there is no observed unit.
func (b *Book) Cast(tree *capacity.Tree) (all Shadow) {
	if len(b.units) == 0 {
		return nil
	}
	for _, at := range slices.SortedFunc(maps.Keys(b.sums), comparePlaces) {
		frees, route := b.sums[at].frees.List(), tree.Route(at.quota)
		all = append(all, shade{
			route: route, limits: route.Limits(at.nonPreemptible), frees: tree.Need(frees, b.sums[at].jobs),
			takes: tree.Need(resources.List{}.Sub(frees), -b.sums[at].jobs),
		})
	}
	return all
}

// Shadow is the additional free amount of limits if observed units were queued.
type Shadow []shade

// shade is the shadow on a route. Its vectors are by the numbers of the tree: amounts that observed units would free,
// and amounts that they would take.
type shade struct {
	route        *capacity.Route
	limits       []*capacity.Limit
	frees, takes []int64
}

// On has a view be what would be free.
func (all Shadow) On(view *capacity.View) {
	for _, s := range all {
		for _, lim := range s.limits {
			view.Return(lim, s.frees)
		}
	}
}

// OnLent has it be lent.
func (all Shadow) OnLent(lending capacity.Lending) {
	for _, s := range all {
		lending.Claim(s.route, s.takes)
	}
}

// At a limit is how much of the resource with a number would be held in addition, and how much less would be used.
func (all Shadow) At(lim *capacity.Limit, number int) (held, unused int64) {
	for _, s := range all {
		if slices.Contains(s.limits, lim) && number < len(s.frees) {
			held = resources.SaturatingAdd(held, max(0, s.takes[number]))
			unused = resources.SaturatingAdd(unused, max(0, s.frees[number]))
		}
	}
	return held, unused
}
