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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// mostSpared bounds the victims of several requests that are tried one by one whether they can stay.
const mostSpared = 32

// Together finds victims for several requests that are served together or not at all: a set for each request, empty if
// it needs none. Each request sees the victims of earlier ones as gone, and the requests of all others as in use. So
// requests reclaim only if each is within its min together with all others.
//
// The result is nil if no set is enough, and the obstacle says why. All sets are empty if the requests fit without
// victims. A set that is enough only if uncertain pods go does not count.
func Together[T comparable](in *Situation[T], requests []Request) (units [][]T, o Obstacle) {
	requests = slices.Clone(requests)
	in = in.forAll(requests)
	hindered := in.asOne(requests)
	for i := range requests {
		if len(requests) > 1 && !requests[i].withinMin(in.Tree, others(requests, i)) {
			for j := range requests {
				requests[j].Policy.Reclaim = queue.VictimsNone
			}
			break
		}
	}
	sets, o := inTurn(in, requests, pool[T]{})
	if sets == nil && len(requests) > 1 {
		// The first counted the others as in use, and may have chosen victims in their quotas who give them too little.
		alone, _ := New(in, requests[0]).find(pool[T]{})
		if sets, _ = inTurn(in, requests, listed(alone)); sets != nil {
			o = Obstacle{}
		}
	}
	o.GroupBorrowed = hindered && sets == nil
	for again := len(requests) > 1; again; {
		var fewer [][]*holders.Holder[T]
		if fewer, again = spare(in, requests, slices.Concat(sets...)); again {
			sets = fewer
		}
	}
	if o.Unsure = !suffice(in, requests, slices.Concat(sets...)); o.Unsure {
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

// asOne has units of a gang group preempt as the group can be preempted. They have the lowest priority of all, and of
// the core that holds quota. They reclaim nothing while a quota of the core has borrowed; hindered says that one would.
// So a gang group has no right to its own core, and two of them cannot preempt each other in turn.
func (in *Situation[T]) asOne(requests []Request) (hindered bool) {
	lowest, named := requests[0].Priority, requests[0].Named
	for i := range requests {
		lowest, named = min(lowest, requests[i].Priority), min(named, requests[i].Named)
	}
	borrowed := false
	if core := in.Index.GangGroup(requests[0].GangGroup); core != nil {
		lowest, named = min(lowest, core.Priority), min(named, core.Priority)
		s := New(in, requests[0])
		borrowed = slices.ContainsFunc(core.Parts(), func(p holders.Part) (is bool) {
			for i, held := range p.Held {
				is = is || held > 0 && s.isOver(p.Leaf(), i)
			}
			return is
		})
	}
	for i := range requests {
		by := &requests[i]
		if by.Priority, by.Named = lowest, named; borrowed {
			hindered = hindered || by.Policy.Reclaim != queue.VictimsNone && by.withinMin(in.Tree, nil)
			by.Policy.Reclaim = queue.VictimsNone
		}
	}
	return hindered
}

// suffice says that the victims are enough even if all uncertain pods stay.
func suffice[T comparable](in *Situation[T], requests []Request, victims []*holders.Holder[T]) bool {
	if len(victims) == 0 || !in.Index.Unsure() {
		return true
	}
	sure := *in
	sure.sure = true
	sets, _ := inTurn(&sure, requests, listed(victims))
	return sets != nil
}

// spare finds sets with one victim less, if there are any.
func spare[T comparable](
	in *Situation[T], requests []Request, victims []*holders.Holder[T],
) (sets [][]*holders.Holder[T], found bool) {
	for i := 0; i < len(victims) && len(victims) <= mostSpared && !found; i++ {
		rest := slices.Delete(slices.Clone(victims), i, i+1)
		sets, _ = inTurn(in, requests, listed(rest))
		found = len(sets) > 0
	}
	return sets, found
}

func others(requests []Request, but int) []Request {
	return slices.Delete(slices.Clone(requests), but, but+1)
}

// inTurn finds victims for each request among the candidates that earlier requests left.
func inTurn[T comparable](in *Situation[T], requests []Request, of pool[T]) (sets [][]*holders.Holder[T], o Obstacle) {
	for i, by := range requests {
		s := New(in, by)
		for j, set := range sets {
			for _, h := range set {
				s.release(h, 1)
			}
			s.promise(requests[j].Ask.Route, requests[j].Ask.Need, 1)
		}
		clear(s.given)
		expect(s, requests[i+1:])
		s.look()
		set, obstacle := s.find(of)
		if len(set) == 0 && !s.Fits() {
			return nil, obstacle
		}
		sets, of = append(sets, set), of.without(set)
	}
	return sets, o
}

// expect has what others ask for be in use, as far as the right is concerned.
func expect[T comparable](s *Search[T], others []Request) {
	for i := range others {
		s.lessen(others[i].Ask.Route, others[i].Ask.Need, -1)
	}
}
