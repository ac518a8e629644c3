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
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// mostSpared bounds the sets of several requests of which each holder is tried whether it need not be taken.
const mostSpared = 32

// Together finds whom several requests take from that are served together or not at all: some for each, none where it
// needs none. A request finds gone what those before it take, and in use what all others ask for: they reclaim only if
// each of them is within its min with all others. The result is nil if none are enough, for which the obstacle is. It
// is none for each if they fit without. Sets that are enough only if pods go of which that is not sure are none yet.
func Together[T any](in *Situation[T], takers []Taker) (units [][]T, o Obstacle) {
	takers = slices.Clone(takers)
	for i := range takers {
		if len(takers) > 1 && !takers[i].withinMin(in.Tree, others(takers, i)) {
			for j := range takers {
				takers[j].Policy.Reclaim = queue.VictimsNone
			}
			break
		}
	}
	sets, o := inTurn(in, takers, in.Among)
	for again := len(takers) > 1; again; {
		var fewer [][]*Holder[T]
		if fewer, again = spare(in, takers, slices.Concat(sets...)); again {
			sets = fewer
		}
	}
	if o.Unsure = !suffice(in, takers, slices.Concat(sets...)); o.Unsure {
		return nil, o
	}
	for _, set := range sets {
		var its []T
		for _, h := range set {
			its = append(its, h.Of...)
		}
		units = append(units, its)
	}
	return units, o
}

// suffice says that those who are taken are enough even if those stay of whom it is not sure that they go.
func suffice[T any](in *Situation[T], takers []Taker, taken []*Holder[T]) bool {
	unsure := func(h Holder[T]) bool { return h.Unsure }
	if len(taken) == 0 || !slices.ContainsFunc(in.Leaving, unsure) {
		return true
	}
	sure := *in
	sure.Leaving = slices.DeleteFunc(slices.Clone(in.Leaving), unsure)
	var among []Holder[T]
	for _, h := range taken {
		among = append(among, *h)
	}
	sets, _ := inTurn(&sure, takers, among)
	return sets != nil
}

// spare finds sets that leave out one of those that are taken, if there are any.
func spare[T any](in *Situation[T], takers []Taker, taken []*Holder[T]) (sets [][]*Holder[T], found bool) {
	for i := 0; i < len(taken) && len(taken) <= mostSpared && !found; i++ {
		var rest []Holder[T]
		for j, h := range taken {
			if j != i {
				rest = append(rest, *h)
			}
		}
		sets, _ = inTurn(in, takers, rest)
		found = len(sets) > 0
	}
	return sets, found
}

func others(takers []Taker, but int) []Taker { return slices.Delete(slices.Clone(takers), but, but+1) }

// inTurn has each request take from those that are left of some.
func inTurn[T any](in *Situation[T], takers []Taker, among []Holder[T]) (sets [][]*Holder[T], o Obstacle) {
	now := *in
	now.Promised = slices.Clone(in.Promised)
	for i, by := range takers {
		s := New(&now, by)
		for _, h := range slices.Concat(sets...) {
			s.release(h, 1)
		}
		clear(s.given)
		expect(s, takers[i+1:])
		s.look()
		set, obstacle := s.Find(among)
		if len(set) == 0 && !s.Fits() {
			return nil, obstacle
		}
		sets = append(sets, set)
		var rest []Holder[T]
		for i := range among {
			if !slices.Contains(set, &among[i]) {
				rest = append(rest, among[i])
			}
		}
		among = rest
		now.Promised = append(now.Promised, Holder[T]{Parts: []Part{{Route: by.Ask.Route, Held: by.Ask.Need}}})
	}
	return sets, o
}

// expect has what others ask for be in use, as far as the right is concerned.
func expect[T any](s *Search[T], others []Taker) {
	for i := range others {
		s.lessen(others[i].Ask.Route, others[i].Ask.Need, -1)
	}
}
