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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/rightful"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Ask is the request of a head, and the limits that it has to keep.
type Ask struct {
	// Need is the request as a vector, by the numbers of the tree, and Own what the head holds already. Limits are those
	// of the levels of Route, the leaf's first. Route leads from the leaf quota to the top.
	Need, Own []int64
	Limits    []*capacity.Limit
	Route     *capacity.Route
	// NonPreemptible requests draw on min as well. If a blocking head does not fit, it claims. Observed heads come last.
	NonPreemptible, Blocking, Observed bool
	// Jobs is how much of a limit of jobs the head takes: 1, or 0 if it already holds quota.
	Jobs int64
	// Request is Need as a list. Total is the amount that the unit holds after it: more, if it holds quota already.
	Request, Total resources.List
}

// Leaf is the quota of the head.
func (a *Ask) Leaf() *capacity.Level { return a.Route.Levels[0] }

// amount is the request of one resource.
func (a *Ask) amount(resource string) int64 {
	if resource == resources.Jobs {
		return a.Jobs
	}
	amount, _ := a.Request.Get(resource)
	return amount
}

// Bundle are asks that are granted together or not at all, in a fixed order. A bundle of one ask alone has no sums.
type Bundle struct {
	Asks []*Ask
	// sums are the requests at each limit that one of the asks has to keep.
	sums []part
	// short are the limits that had too little in the last pass.
	short []*capacity.Limit
}

// Alone is the bundle of one ask that is granted by itself.
func Alone(a *Ask) Bundle { return Bundle{Asks: []*Ask{a}} }

// Together sums asks that are granted together.
func Together(asks []*Ask) Bundle {
	g := Bundle{Asks: asks}
	for _, ask := range asks {
		for _, lim := range ask.Limits {
			i := slices.IndexFunc(g.sums, func(s part) bool { return s.Limit == lim })
			if i < 0 {
				i = len(g.sums)
				g.sums = append(g.sums, part{Limit: lim})
			}
			s := &g.sums[i]
			for len(s.Need) < len(ask.Need) {
				s.Need = append(s.Need, 0)
			}
			for number, amount := range ask.Need {
				s.Need[number] = resources.SaturatingAdd(s.Need[number], amount)
			}
			s.Leaf = s.Leaf || lim.Level() == ask.Leaf()
		}
	}
	return g
}

// together says that the bundle is of asks that were summed, if only of one.
func (g *Bundle) together() bool { return g.sums != nil }

// limits that one of the asks has to keep.
func (g *Bundle) limits() []*capacity.Limit {
	if !g.together() {
		return g.Asks[0].Limits
	}
	limits := make([]*capacity.Limit, 0, len(g.sums))
	for i := range g.sums {
		limits = append(limits, g.sums[i].Limit)
	}
	return limits
}

// isLeaf says that an ask which has to keep the limit draws on its level.
func (g *Bundle) isLeaf(lim *capacity.Limit) bool {
	return slices.ContainsFunc(g.Asks, func(a *Ask) bool {
		return lim.Level() == a.Leaf() && slices.Contains(a.Limits, lim)
	})
}

// at sums two amounts of a resource over the asks with a limit: the requests, and the held amounts after them.
func (g *Bundle) at(lim *capacity.Limit, resource string) (request, total int64) {
	for _, a := range g.Asks {
		if slices.Contains(a.Limits, lim) {
			after, _ := a.Total.Get(resource)
			request = resources.SaturatingAdd(request, a.amount(resource))
			total = resources.SaturatingAdd(total, after)
		}
	}
	return request, total
}

// Excess is a limit at which a bundle asks for more of a resource than the quota may ever have.
type Excess struct {
	Reason        unit.Reason
	Limit         *capacity.Limit
	Number        int // of the resource
	Request, Most int64
}

// Never finds the first limit at which the bundle can never be granted together; the reason is empty if there is none.
func (g *Bundle) Never(tree *capacity.Tree) (e Excess) {
	for i := range g.sums {
		s := &g.sums[i]
		for number, amount := range s.Need {
			most, bounded := s.Limit.Most(number)
			first := e.Limit == nil || tree.Resource(number) < tree.Resource(e.Number)
			if bounded && amount > most && first {
				e = Excess{Limit: s.Limit, Number: number, Request: amount, Most: most}
			}
		}
		switch {
		case e.Limit == nil:
		case e.Limit.IsMin():
			e.Reason = unit.ReasonExceedsMin
			return e
		default:
			e.Reason = unit.ReasonExceedsMax
			return e
		}
	}
	return e
}

type part = rightful.Part

// parts of a request, in the order of the limits.
func (a *Ask) parts(need []int64) iter.Seq[part] {
	return func(yield func(part) bool) {
		for _, lim := range a.Limits {
			if !yield(part{Limit: lim, Need: need, Own: a.Own, Leaf: lim.Level() == a.Leaf()}) {
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
		if lim := g.sums[i].Limit; !lim.IsMin() {
			levels = append(levels, lim.Level())
		}
	}
	return levels
}

// TooLarge says that a request can never rightfully be had.
func (a *Ask) TooLarge(rights *rightful.Book) bool {
	return a.Route.Shared && rights.TooLarge(a.parts(a.Need))
}

// TooLarge says that the asks can never rightfully be had together, or never at all.
func (g *Bundle) TooLarge(tree *capacity.Tree, rights *rightful.Book) bool {
	return g.Never(tree).Reason != "" || rights.TooLarge(g.parts())
}

// promise says whether each level below the top promises a unit what it needs. That is found out once.
type promise struct{ known, kept bool }

func (p *promise) to(rights *rightful.Book, a *Ask, need []int64) bool {
	if !p.known {
		levels := a.Route.Levels
		p.known, p.kept = true, !slices.ContainsFunc(levels[:len(levels)-1], func(l *capacity.Level) bool {
			return !rights.Promises(l, need)
		})
	}
	return p.kept
}
