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
	"fmt"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Partial admission: a unit may say with how few pods its job can do. When its turn comes, and there is too little for
// all of them, it is admitted with the greatest number for which there is enough. In everything else it counts as what
// it needs at the least: that is what it claims, what is compared with max and min, and what it waits for. Once it is
// admitted it asks for what it got and for no more; when it waits again it asks for the whole.

// PodSetSize says how many pods of a kind a unit asks for, and with how few its job can do.
type PodSetSize struct {
	Count, Least int64
	// Request of all Count pods. So many pods of them ask for that part of it.
	Request resources.List
}

// shrinks says that it may be smaller. A pod set is never without any pod.
func (p *PodSetSize) shrinks() bool { return p.least() < p.Count }

func (p *PodSetSize) least() int64 { return min(max(p.Least, 1), p.Count) }

// Sizes are those in which a unit may be admitted, from the whole down to the least. It never changes. As in Kueue they
// are numbered from the whole: each pod set gives up its part of so many steps, of as many as there are pods to spare.
type Sizes struct {
	sets  []PodSetSize
	steps int64
	least resources.List
	key   string
}

// NewSizes returns nil if there is only one size. The pod sets together have to be what the unit asks for.
func NewSizes(sets []PodSetSize) *Sizes {
	if !slices.ContainsFunc(sets, func(p PodSetSize) bool { return p.shrinks() }) {
		return nil
	}
	s := &Sizes{sets: sets}
	var key strings.Builder
	for i := range sets {
		p := &sets[i]
		s.steps = resources.SaturatingAdd(s.steps, p.Count-p.least())
		fmt.Fprintf(&key, "%d-%d of %s|", p.least(), p.Count, p.Request.Key())
	}
	s.key = key.String()
	s.least, _ = s.at(s.steps)
	return s
}

// fixed is the whole as the only size.
func (s *Sizes) fixed() *Sizes {
	if s == nil || s.steps == 0 {
		return s
	}
	f := &Sizes{sets: s.sets, key: "whole " + s.key}
	f.least, _ = f.at(0)
	return f
}

func (s *Sizes) same(o *Sizes) bool { return s == o || s != nil && o != nil && s.key == o.key }

// String names all that the sizes depend on.
func (s *Sizes) String() string {
	if s == nil {
		return "one size"
	}
	return s.key
}

// counts are the numbers of pods of each pod set that many steps below the whole.
func (s *Sizes) counts(step int64) []int64 {
	counts := make([]int64, len(s.sets))
	for i := range s.sets {
		p := &s.sets[i]
		counts[i] = p.Count
		if s.steps > 0 && p.shrinks() {
			counts[i] -= resources.PartOf(p.Count-p.least(), step, s.steps)
		}
	}
	return counts
}

// at is what the unit asks for that many steps below the whole, and for how many pods. No amount is greater than that
// of a step before.
func (s *Sizes) at(step int64) (request resources.List, pods int64) {
	for i, n := range s.counts(step) {
		p := &s.sets[i]
		part := p.Request
		if n < p.Count {
			part = part.Part(n, p.Count)
		}
		request, pods = request.Add(part), resources.SaturatingAdd(pods, n)
	}
	return request, pods
}

// portion is what a unit is admitted with: the whole unless counts say how many pods of each pod set it is.
type portion struct {
	request resources.List
	pods    int64
	counts  []int64
}

// least is what a unit that waits has to get.
func (in *Unit) least() resources.List {
	if in.Sizes == nil {
		return in.Request
	}
	return in.Sizes.least
}

// wishes is what the unit asks for where it is in line, at the most.
func (u *unit) wishes() resources.List {
	if u.holding {
		return u.grows.need
	}
	return u.spec.Request
}

// ofLeast says of an amount that a unit has to get that it could be more.
func (u *unit) ofLeast(amount string) string {
	if !u.holding && u.spec.Sizes != nil && u.spec.Sizes.steps > 0 {
		return "of its least size " + amount
	}
	return amount
}

// become makes the unit ask for this much.
func (in *Unit) become(request resources.List, pods int64) { in.Request, in.Pods = request, pods }

// becomeWhole is what a unit is again that lost its admission.
func (in *Unit) becomeWhole() {
	if in.Sizes != nil {
		in.become(in.Sizes.at(0))
	}
}

// greatest is the greatest size that fits of the head of a group, whose least is known to fit. What fits in one size
// fits in all that are smaller.
func (r *roster) greatest(g *group, fits func(need []int64) bool) portion {
	u, n := g.Head(), &g.Notes
	s := u.spec.Sizes
	if u.holding || s == nil {
		return portion{request: u.spec.Request, pods: u.spec.Pods}
	}
	lo, hi := int64(0), s.steps
	for lo < hi {
		step := lo + (hi-lo)/2
		if request, _ := s.at(step); r.withinBounds(g, request) && fits(r.tree.Need(request, n.places)) {
			hi = step
		} else {
			lo = step + 1
		}
	}
	got := portion{}
	if got.request, got.pods = s.at(lo); lo > 0 {
		got.counts = s.counts(lo)
	}
	return got
}

// withinBounds says that a request is no more than what its quotas may have at all, which their limits need not repeat.
func (r *roster) withinBounds(g *group, request resources.List) bool {
	for _, l := range g.Notes.route.Levels {
		if beyondAll(request, l.Spec().Max) != "" || g.Notes.nonPreemptible && beyondAll(request, l.Spec().Min) != "" {
			return false
		}
	}
	return true
}

// fitting is the greatest size in which the head fits that firstFitting has found, beside the claims ahead of it.
func (p *pass) fitting(g *group) portion {
	n := &g.Notes
	return p.greatest(g, func(need []int64) bool {
		v := verdict{}
		v.measure(n.limits, need, n.nonPreemptible)
		return v.fits()
	})
}

// lent is the greatest size that is lent to the head that firstBorrower has found. One that is non-preemptible draws on
// min, which nobody lends: it gets its least.
func (p *pass) lent(g *group) portion {
	return p.greatest(g, func(need []int64) bool {
		return !g.Notes.nonPreemptible && p.lending.Allows(g.Notes.route, need)
	})
}
