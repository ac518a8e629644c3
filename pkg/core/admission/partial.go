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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/eligibility"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Partial admission: a unit may say with how few pods its job can do. When its turn comes, and there is too little for
// all of them, it is admitted with the greatest number for which there is enough. In everything else it counts as what
// it needs at the least: that is what it claims, what is compared with max and min, and what it waits for. Once it is
// admitted, it asks only for what it got. When it waits again, it asks for the whole.

// portion is what a unit is admitted with: the whole unless counts say how many pods of each pod set it is.
type portion struct {
	request resources.List
	pods    int64
	counts  []int64
}

// wishesOf is what the unit asks for where it is in line, at the most.
func wishesOf(u *record) resources.List {
	if u.holding {
		return u.grows.Need
	}
	return u.spec.Request
}

// greatest is the greatest size that fits of the head of a group, whose least is known to fit. What fits in one size
// fits in all that are smaller.
func (p *pass) greatest(g *group, fits func(need []int64) bool) portion {
	u, a := g.Head(), &g.Notes.ask
	s := u.spec.Sizes
	if u.holding || s == nil {
		return portion{request: u.spec.Request, pods: u.spec.Pods}
	}
	lo, hi := int64(0), s.Steps()
	for lo < hi {
		step := lo + (hi-lo)/2
		if request, _ := s.At(step); eligibility.Possible(a, request) && fits(p.lines.tree.Need(request, a.Jobs)) {
			hi = step
		} else {
			lo = step + 1
		}
	}
	got := portion{}
	if got.request, got.pods = s.At(lo); lo > 0 {
		got.counts = s.Counts(lo)
	}
	return got
}

// fitting is the greatest size in which the head that firstFitting has found fits together with the claims ahead of it.
func (p *pass) fitting(g *group) portion {
	return p.greatest(g, func(need []int64) bool { return p.asks.Fits(&g.Notes.ask, need) })
}

// lent is the greatest size that is lent to the head that firstBorrower has found. A non-preemptible one gets its
// least.
func (p *pass) lent(g *group) portion {
	return p.greatest(g, func(need []int64) bool { return p.asks.Lends(&g.Notes.ask, need) })
}
